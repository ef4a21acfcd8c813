import type { ChatEnd, ChatOptions } from '../chat-options.ts'
import type { Activities } from './activities.ts'
import type { CurrentSession } from './current-session.ts'

/** What Enter does while a run goes on: steers it, or waits for its end. */
export interface EnterKey {
  steers: boolean
}

export interface ChatLifeOptions extends Pick<ChatOptions, 'source' | 'first' | 'signal'> {
  session: CurrentSession
  activities: Activities
}

export interface ChatSteps {
  /** Makes the chat stand, before anything is waited for. */
  start: () => void
  /** The first session is on its way. */
  begin: () => void
  /** Gives the terminal back. */
  restore: () => void
}

/** What every chat goes through, however it looks: its first session opens, it goes on until somebody leaves, and it closes. */
export class ChatLife {
  readonly #options: ChatLifeOptions
  readonly #ended = Promise.withResolvers<void>()
  #opening: Promise<void> | undefined

  constructor(options: ChatLifeOptions) {
    this.#options = options
  }

  readonly quit = (): void => this.#ended.resolve()

  /** Where no session is shown yet, what is sent begins one. */
  readonly whenOpen = async (): Promise<void> => {
    await this.#opening
    const { session, source } = this.#options
    if (!session.handle) await session.show(await source.create())
  }

  async run({ start, begin, restore }: ChatSteps): Promise<ChatEnd> {
    const { session, signal } = this.#options
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
      await session.close()
    }
  }

  #open(): void {
    const { first, session, activities } = this.#options
    if (first === undefined) return
    const opened = activities.track('Opening the session', Promise.resolve(first))
    this.#opening = opened.then((each) => session.show(each))
    this.#opening.catch((error: unknown) => this.#ended.reject(error))
  }
}
