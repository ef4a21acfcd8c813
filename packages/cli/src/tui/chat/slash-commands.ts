import type { Terminal } from '@earendil-works/pi-tui'
import type { BlockedWrites } from './blocked-writes.ts'
import type { JobList } from './job-list.ts'
import type { ChatLife, EnterKey } from './chat-life.ts'
import type { CurrentSession } from './current-session.ts'
import type { MachineCommands } from './machine-commands.ts'
import type { Remarks } from './remarks.ts'
import type { Rewinding } from './rewinding.ts'
import type { SessionActions } from './session-actions.ts'
import type { SlashName } from './slash-table.ts'

type Chosen = 'help' | 'model' | 'thinking' | 'mode' | 'tree' | 'queue' | 'sessions' | 'diff'

/** Lets the user view something and choose: in a panel, or in a numbered list. */
export type Chooser = Readonly<Record<Chosen, () => Promise<void>>>

/** Display settings. An empty name opens a choice. */
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
  rewinding: Rewinding
  blocked: BlockedWrites
  jobs: JobList
  /** Absent if the sessions are on a server. */
  machine: (() => Promise<MachineCommands>) | undefined
  /** Sends a message, as if the user had typed it. */
  send: (text: string) => void
  /** Undefined if there is no screen. */
  look: Look | undefined
}

/** What each slash command of the chat does. */
export class SlashCommands {
  readonly #options: SlashCommandsOptions

  constructor(options: SlashCommandsOptions) {
    this.#options = options
  }

  async run(name: SlashName, words: string): Promise<void> {
    const { actions, blocked, chooser, jobs, life, rewinding } = this.#options
    switch (name) {
      case 'help':
      case 'tree':
      case 'queue':
      case 'sessions':
      case 'diff':
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
      case 'undo':
      case 'redo':
        return rewinding[name]()
      case 'blocked':
        return blocked.show()
      case 'jobs':
        return jobs.show()
      case 'permissions':
      case 'context':
        return this.#onMachine(name, (machine, sessionId) => machine[name](sessionId))
      case 'mcp':
      case 'usage':
      case 'config':
        return this.#onMachine(name, (machine) => machine[name]())
      case 'share':
      case 'export':
        return this.#onMachine(name, (machine, sessionId) => machine.share(sessionId, words))
      case 'login':
        return this.#onMachine(name, (machine) => machine.login(words))
      case 'init':
        return this.#init(words)
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

  async #onMachine(
    name: SlashName,
    run: (machine: MachineCommands, sessionId: string) => Promise<void>,
  ): Promise<void> {
    const { machine, session, remarks } = this.#options
    if (!machine) return remarks.warn(`/${name} works only on the machine that the session is on.`)
    const id = session.handle?.sessionId
    if (id === undefined) return remarks.warn('There is no session yet.')
    try {
      await run(await machine(), id)
    } catch (error) {
      remarks.fail(error)
    }
  }

  async #init(words: string): Promise<void> {
    const { initPrompt } = await import('./init-prompt.ts')
    this.#options.send(initPrompt(words))
  }

  async #look(name: 'theme' | 'vim' | 'details', words: string): Promise<void> {
    const { look, remarks } = this.#options
    if (!look) remarks.say(`/${name} has no effect without a screen.`)
    else if (name === 'theme') await look.theme(words)
    else look[name]()
  }

  /** Uses a terminal sequence, so that it works over ssh. Base64 keeps the text from containing a sequence. */
  #copy(): void {
    const { actions, remarks, terminal } = this.#options
    const words = actions.lastAnswer()
    if (words === '') return remarks.warn('There is no answer to copy yet.')
    terminal.write(`\u001b]52;c;${Buffer.from(words).toString('base64')}\u0007`)
    remarks.say('Sent the last answer to the clipboard of your terminal.')
  }

  #steer(): void {
    const { enterKey, remarks } = this.#options
    const steers = !enterKey.steers
    enterKey.steers = steers
    remarks.say(steers ? 'During a run, Enter steers it.' : 'During a run, Enter queues a message.', {
      while: () => enterKey.steers === steers,
    })
  }
}
