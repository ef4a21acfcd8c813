import type { Terminal } from '@earendil-works/pi-tui'
import type { ChatLife, EnterKey } from './chat-life.ts'
import type { CurrentSession } from './current-session.ts'
import type { Remarks } from './remarks.ts'
import type { SessionActions } from './session-actions.ts'
import type { SlashName } from './slash-table.ts'

type Chosen = 'help' | 'model' | 'thinking' | 'mode' | 'tree' | 'queue' | 'sessions'

/** Lets the user look at something and choose: with a panel, or with a list that has numbers. */
export type Chooser = Readonly<Record<Chosen, () => Promise<void>>>

/** What can be changed about a screen. An empty name asks for one. */
export interface Look {
  theme(name: string): Promise<void>
  vim(): void
  details(): void
}

export interface SlashCommandsOptions {
  terminal: Pick<Terminal, 'write'>
  session: CurrentSession
  actions: SessionActions
  remarks: Remarks
  life: Pick<ChatLife, 'quit'>
  enterKey: EnterKey
  chooser: Chooser
  /** Undefined where nothing is drawn. */
  look: Look | undefined
}

/** What each slash command of the chat does. */
export class SlashCommands {
  readonly #options: SlashCommandsOptions

  constructor(options: SlashCommandsOptions) {
    this.#options = options
  }

  async run(name: SlashName, words: string): Promise<void> {
    const { actions, chooser, life } = this.#options
    switch (name) {
      case 'help':
      case 'tree':
      case 'queue':
      case 'sessions':
        return chooser[name]()
      case 'model':
        return words === '' ? chooser.model() : actions.setModel(words)
      case 'thinking':
        return words === '' ? chooser.thinking() : actions.setThinking(words)
      case 'mode':
        return words === '' ? chooser.mode() : actions.setMode(words)
      case 'new':
        return actions.create()
      case 'fork':
        return actions.fork()
      case 'name':
        return actions.rename(words)
      case 'label':
        return actions.label(words)
      case 'compact':
        return actions.compact(words)
      case 'retry':
        return actions.retry()
      case 'resume':
        return actions.resume()
      case 'export':
        return this.#export()
      case 'theme':
      case 'vim':
      case 'details':
        return this.#look(name, words)
      case 'copy':
        return this.#copy()
      case 'steer':
        return this.#steer()
      case 'quit':
        return life.quit()
      default:
        return name satisfies never
    }
  }

  #export(): void {
    const { session, remarks } = this.#options
    const id = session.handle?.sessionId
    if (id === undefined) remarks.warn('There is no session yet.')
    else remarks.say(`In a shell: tapetree sessions export ${id} --format html`)
  }

  async #look(name: 'theme' | 'vim' | 'details', words: string): Promise<void> {
    const { look, remarks } = this.#options
    if (!look) remarks.say(`/${name} has no meaning where nothing is drawn.`)
    else if (name === 'theme') await look.theme(words)
    else look[name]()
  }

  /** Through the terminal, so that it works over ssh. The words go as base64: nothing in them can be a sequence. */
  #copy(): void {
    const { actions, remarks, terminal } = this.#options
    const words = actions.lastAnswer()
    if (words === '') return remarks.warn('There is no answer to copy yet.')
    terminal.write(`\u001b]52;c;${Buffer.from(words).toString('base64')}\u0007`)
    remarks.say('The last answer was handed to the clipboard of your terminal.')
  }

  #steer(): void {
    const { enterKey, remarks } = this.#options
    const steers = !enterKey.steers
    enterKey.steers = steers
    remarks.say(steers ? 'While a run goes on, Enter steers it.' : 'While a run goes on, Enter queues a message.', {
      while: () => enterKey.steers === steers,
    })
  }
}
