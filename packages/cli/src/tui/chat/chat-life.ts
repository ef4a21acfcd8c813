import type { ChatEnd, ChatOptions, SetupUi } from '../chat-options.ts'
import type { Activities } from './activities.ts'
import type { CurrentSession } from './current-session.ts'
import type { Remarks } from './remarks.ts'
import type { SessionActions } from './session-actions.ts'
import type { Writes } from './writes.ts'

/** What Enter does during a run: steer it, or queue the message. */
export interface EnterKey {
  steers: boolean
}

export interface ChatLifeOptions extends Pick<ChatOptions, 'source' | 'first' | 'signal'> {
  session: CurrentSession
  activities: Activities
  writes: Writes
  /** For questions before the first session. */
  ui: () => SetupUi
}

export interface ChatSteps {
  /** Shows the chat before anything is awaited. */
  start: () => void
  /** The first session is loading. */
  begin: () => void
  /** Restores the terminal. */
  restore: () => void
}

/** The lifecycle of every chat: opens its first session, runs until the user quits, and closes. */
export class ChatLife {
  readonly #options: ChatLifeOptions
  readonly #ended = Promise.withResolvers<void>()
  #opening: Promise<void> | undefined
  #isOver = false

  constructor(options: ChatLifeOptions) {
    this.#options = options
  }

  readonly quit = (): void => {
    this.#isOver = true
    this.#ended.resolve()
  }

  /** If no session is shown yet, sending a message starts one. */
  readonly whenOpen = async (): Promise<void> => {
    await this.#opening
    if (this.#isOver) throw new Error('The chat is closing.')
    const { session, source } = this.#options
    if (!session.handle) await session.show(await source.create())
  }

  async run({ start, begin, restore }: ChatSteps): Promise<ChatEnd> {
    const { session, signal, writes } = this.#options
    signal?.addEventListener('abort', this.quit, { once: true })
    if (signal?.aborted) this.quit()
    try {
      start()
      this.#open()
      begin()
      await this.#ended.promise
      return { sessionId: session.handle?.sessionId }
    } finally {
      signal?.removeEventListener('abort', this.quit)
      restore()
      await writes.settled()
      await session.close()
    }
  }

  #open(): void {
    const { first, session, activities, ui } = this.#options
    if (first === undefined) return
    const opened =
      typeof first === 'function' ? first(ui()) : activities.track('Opening the session', Promise.resolve(first))
    this.#opening = opened.then((each) => (each ? session.show(each) : this.quit()))
    this.#opening.catch((error: unknown) => this.#ended.reject(error))
  }
}

interface InterruptsOptions {
  now: () => number
  actions: SessionActions
  remarks: Remarks
  life: Pick<ChatLife, 'quit'>
}

/** What depends on the kind of chat. */
type Interrupt = 'close_panel' | 'clear_composer' | 'nothing'

/** Two presses within this time quit. */
export const twiceMs = 2000
export const againQuits = 'Press Ctrl-C again to quit.'

/** What Ctrl-C does in each state. */
export class Interrupts {
  readonly #options: InterruptsOptions
  #lastMs: number | undefined

  constructor(options: InterruptsOptions) {
    this.#options = options
  }

  press({ hasPanel, isComposerEmpty }: { hasPanel: boolean; isComposerEmpty: boolean }): Interrupt {
    const { now, actions, remarks, life } = this.#options
    const nowMs = now()
    const isSecond = this.#lastMs !== undefined && nowMs - this.#lastMs <= twiceMs
    this.#lastMs = nowMs
    if (isSecond) life.quit()
    else if (actions.isAtWork) {
      remarks.say('Stopped. Everything so far is kept.')
      remarks.say(againQuits, { forMs: twiceMs })
      void actions.cancel()
    } else if (hasPanel) return 'close_panel'
    else if (!isComposerEmpty) return 'clear_composer'
    else remarks.say(againQuits, { forMs: twiceMs })
    return 'nothing'
  }
}
