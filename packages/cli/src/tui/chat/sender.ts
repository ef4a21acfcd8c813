import type { PromptResult, SessionHandle } from '@tapetree/client'
import type { Composer } from '../input/composer.ts'
import type { History } from '../input/history.ts'
import type { Images } from '../input/images.ts'
import type { Activities } from './activities.ts'
import type { ChatLife, EnterKey } from './chat-life.ts'
import type { CurrentSession } from './current-session.ts'
import type { Remarks, Validity } from './remarks.ts'
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
  /** The queue is on the screen, so a remark would repeat it. */
  showsQueue?: boolean
  /** A message was sent to the model, or a command to a shell. */
  onSend?: () => void
  /** `unacknowledged` has changed. */
  onUnacknowledged?: () => void
}

export type Way = 'enter' | 'steer'

/** Dispatches a typed message: a slash command, a shell command, or a prompt. Never loses its text. */
export class Sender {
  readonly #options: SenderOptions
  readonly #unacknowledged = new Set<{ text: string }>()

  constructor(options: SenderOptions) {
    this.#options = options
  }

  /** Messages without an answer, oldest first. They are lost if the process ends now. */
  get unacknowledged(): string[] {
    return [...this.#unacknowledged].map(({ text }) => text)
  }

  readonly send = (text: string, way: Way = 'enter'): void => {
    if (text.trim() === '') return
    const { remarks, history, composer, session } = this.#options
    remarks.clear()
    composer.remember?.([text])
    remarks.watch(history.add(text, session.handle?.sessionId))
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
    const message = { text }
    this.#unacknowledged.add(message)
    this.#options.onUnacknowledged?.()
    try {
      await this.#deliver(message, way)
    } catch (error) {
      this.#giveBack(text, error instanceof Error ? error.message : String(error))
    } finally {
      this.#acknowledged(message)
    }
  }

  #acknowledged(message: { text: string }): void {
    if (this.#unacknowledged.delete(message)) this.#options.onUnacknowledged?.()
  }

  async #deliver(message: { text: string }, way: Way): Promise<void> {
    const { text } = message
    const { session, actions, activities, life } = this.#options
    if (!session.handle) await activities.track('Waiting for the session', life.whenOpen())
    const { handle } = session
    if (!handle || !session.takesMessages)
      return this.#giveBack(text, `Not sent: ${session.obstacle}.`, { while: () => !session.takesMessages })
    const [, marks, command] = /^(!!?)\s*(\S[\s\S]*)$/.exec(text) ?? []
    if (command !== undefined) {
      // Its answer comes at its end, and a command that has started is no draft.
      this.#acknowledged(message)
      return actions.runCommand(handle, command, { isPrivate: marks === '!!' })
    }
    this.#sayOutcome(await activities.track('Sending', this.#prompt(handle, text, way)), handle)
  }

  async #prompt(handle: SessionHandle, text: string, way: Way): Promise<PromptResult | undefined> {
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

  #sayOutcome(outcome: PromptResult | undefined, handle: SessionHandle): void {
    const { remarks, session } = this.#options
    if (outcome?.outcome === 'handled' && outcome.say !== null) remarks.say(outcome.say)
    if (this.#options.showsQueue || (outcome?.outcome !== 'queued' && outcome?.outcome !== 'steered')) return
    const { messageId: id } = outcome
    // The queue update may arrive a moment after the answer to the command.
    let hasBeenSeen = false
    const isWaiting = (): boolean => {
      const waits = hasWaiting(handle, id)
      hasBeenSeen ||= waits
      return session.handle === handle && (waits || (!hasBeenSeen && session.isBusy))
    }
    const text =
      outcome.outcome === 'queued'
        ? 'Queued until the run ends. Ctrl-Q shows the queue.'
        : 'It steers the run at its next step.'
    remarks.say(text, { while: isWaiting })
  }

  /** Keeps text typed in the meantime after it. */
  #giveBack(text: string, reason: string, validity: Validity = {}): void {
    const { composer, remarks } = this.#options
    const typed = composer.text
    composer.text = typed === '' ? text : `${text}\n${typed}`
    remarks.warn(reason, validity)
  }
}

/** The log has the queue; if only part of the log is loaded, the server reports it. */
function hasWaiting(handle: SessionHandle, id: string): boolean {
  const { waiting: known } = handle.transcript
  const waiting = known.length > 0 ? known : (handle.state('queue')?.messages ?? [])
  return waiting.some((message) => message.id === id)
}
