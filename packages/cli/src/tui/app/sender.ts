import type { PromptOutcome, SessionHandle } from '@tapetree/client'
import type { Composer } from '../input/composer.ts'
import type { History } from '../input/history.ts'
import type { Images } from '../input/images.ts'
import type { Activities } from './activities.ts'
import type { ChatLife } from './chat-life.ts'
import type { CurrentSession } from './current-session.ts'
import type { EnterKey } from './enter-key.ts'
import type { Remarks } from './remarks.ts'
import type { SessionActions } from './session-actions.ts'
import type { SlashCommands } from './slash-commands.ts'
import { readSlash } from './slash-table.ts'

export interface SenderOptions {
  session: CurrentSession
  actions: SessionActions
  commands: SlashCommands
  life: Pick<ChatLife, 'whenOpen'>
  composer: Pick<Composer, 'text'> & Partial<Pick<Composer, 'remember'>>
  history: History
  images: Images
  remarks: Remarks
  activities: Activities
  enterKey: EnterKey
  /** Something was said, to the model or to a shell. */
  onSend?: () => void
}

export type Way = 'enter' | 'steer'

/** What becomes of a message that was typed: a command of the chat, of a shell, or something for the model. Nothing of it is lost. */
export class Sender {
  readonly #options: SenderOptions

  constructor(options: SenderOptions) {
    this.#options = options
  }

  readonly send = (text: string, way: Way = 'enter'): void => {
    if (text.trim() === '') return
    const { remarks, history, composer } = this.#options
    remarks.clear()
    composer.remember?.([text])
    remarks.watch(history.add(text))
    remarks.watch(this.#send(text, way))
  }

  async #send(text: string, way: Way): Promise<void> {
    const { session, commands, onSend } = this.#options
    const known = session.handle?.state('commands') ?? []
    const reading = readSlash(
      text,
      known.map(({ name }) => name),
    )
    if (reading.type === 'command') return commands.run(reading.name, reading.words)
    if (reading.type === 'unknown') return this.#giveBack(text, reading.reason)
    onSend?.()
    try {
      await this.#deliver(text, way)
    } catch (error) {
      this.#giveBack(text, error instanceof Error ? error.message : String(error))
    }
  }

  async #deliver(text: string, way: Way): Promise<void> {
    const { session, actions, activities, life } = this.#options
    if (!session.handle) await activities.track('Waiting for the session', life.whenOpen())
    const { handle } = session
    if (!handle || !session.takesMessages) return this.#giveBack(text, `Not sent: ${session.obstacle}.`)
    const [, marks, command] = /^(!!?)\s*(\S[\s\S]*)$/.exec(text) ?? []
    if (command !== undefined) return actions.runCommand(handle, command, { isPrivate: marks === '!!' })
    this.#sayOutcome(await activities.track('Sending', this.#prompt(handle, text, way)))
  }

  async #prompt(handle: SessionHandle, text: string, way: Way): Promise<PromptOutcome | undefined> {
    const { images, session, enterKey } = this.#options
    const { text: marked, imageIds } = await images.idsIn(text)
    const message = imageIds.length > 0 ? { imageIds } : {}
    const isSteer = session.isBusy && (way === 'steer' || enterKey.steers)
    const outcome = isSteer
      ? await handle.prompt(marked, { ...message, whenBusy: 'steer' })
      : await handle.prompt(marked, message)
    images.clear()
    return outcome
  }

  #sayOutcome(outcome: PromptOutcome | undefined): void {
    const { remarks } = this.#options
    if (outcome?.outcome === 'handled' && outcome.say !== null) remarks.say(outcome.say)
    if (outcome?.outcome === 'queued') remarks.say('It waits for the end of the run. Ctrl-Q shows what waits.')
    if (outcome?.outcome === 'steered') remarks.say('It steers the run at its next step.')
  }

  /** What is typed since stays behind it. */
  #giveBack(text: string, reason: string): void {
    const { composer, remarks } = this.#options
    const typed = composer.text
    composer.text = typed === '' ? text : `${text}\n${typed}`
    remarks.warn(reason)
  }
}
