import { SessionError, text, type Session, type SessionStore } from '@tapetree/session'

/** What callers were told while the script ran: all that may be checked afterwards. */
export interface Evidence {
  lines: { sessionId: string; id: string }[]
  blobs: { sessionId: string; sha256: string; content: string }[]
  sessions: string[]
  trashed: string[]
  refusals: Refusal[]
  /** Texts of messages that were refused: nobody may find them in a log. */
  refusedTexts: string[]
  /** A step that did not succeed although the fault was over. */
  stuck: string[]
}

interface Refusal {
  step: string
  code: string
  message: string
}

/** A session that was there before, with a torn tail. */
export const oldSessionId = 'old-session'
export const tornTail = '{"seq":4,"type":"mess'

export interface ScriptOptions {
  store: SessionStore
  /** A message so large that its text becomes a blob; it takes longer than all the rest. */
  withLargeValue: boolean
  /** Called after a refusal, before the step is tried again: by then the fault may be over. */
  refused?: () => void
}

/**
 * One session with queue, messages, branch, label, compaction, blob and fork, another one that needs mending, and one that goes
 * to the trash. Every step that is refused is tried again, as a person would.
 */
export async function runScript(options: ScriptOptions): Promise<Evidence> {
  const script = new Script(options)
  await script.run()
  return script.evidence
}

class Script {
  readonly evidence: Evidence = {
    lines: [],
    blobs: [],
    sessions: [],
    trashed: [],
    refusals: [],
    refusedTexts: [],
    stuck: [],
  }
  readonly #store: SessionStore
  readonly #withLargeValue: boolean
  readonly #refused: () => void
  #session: Session | undefined
  #sessionId = ''

  constructor({ store, withLargeValue, refused = () => undefined }: ScriptOptions) {
    this.#store = store
    this.#withLargeValue = withLargeValue
    this.#refused = refused
  }

  async run(): Promise<void> {
    await this.#mendOld()
    await this.#step('create', () => this.#create())
    const first = await this.#say('user', 'first')
    await this.#say('assistant', 'second')
    await this.#step('say three at once', () => this.#sayThree())
    await this.#step('queue', () => this.#queue())
    await this.#step('label', async () => void (await this.#writable().setLabel(first, 'start')))
    await this.#step('branch', () => this.#writable().branch(first))
    await this.#say('user', 'another way')
    await this.#step('blob', () => this.#blob('a picture'))
    await this.#step('another blob', () => this.#blob('a second picture'))
    if (this.#withLargeValue) await this.#step('large value', () => this.#large())
    await this.#step('compaction', async () => void (await this.#writable().appendCompaction('so far', first, 1000)))
    await this.#step('derived files', () => this.#writable().saveDerived())
    await this.#step('reopen', () => this.#reopen())
    await this.#say('user', 'after opening again')
    await this.#step('fork', () => this.#fork())
    await this.#step('branched session', async () => {
      const id = await this.#writable().createBranchedSession(first)
      this.evidence.sessions.push(id)
      await this.#step('trash', async () => {
        await this.#store.delete(id)
        this.evidence.trashed.push(id)
      })
    })
    await this.#say('user', 'last')
    await this.#step('close', () => this.#close())
    await this.#step('close the store', () => this.#store.close())
  }

  /** A step that was refused is tried again. One that ended the session opens it again first, which says that it is over. */
  async #step<T>(name: string, act: () => Promise<T>): Promise<T | undefined> {
    for (let tries = 0; tries < 8; tries++) {
      try {
        return await act()
      } catch (error) {
        this.#noteRefusal(name, error)
        this.#refused()
        if (this.#session && tries % 3 === 2) await this.#openAgain(name)
      }
    }
    this.evidence.stuck.push(name)
    return undefined
  }

  #noteRefusal(step: string, error: unknown): void {
    const code = error instanceof SessionError ? error.code : `no SessionError: ${(error as Error).name}`
    this.evidence.refusals.push({ step, code, message: (error as Error).message })
  }

  async #openAgain(name: string): Promise<void> {
    try {
      await this.#close()
    } catch (error) {
      this.#noteRefusal(`${name}, closing`, error)
    }
    try {
      await this.#open(this.#sessionId)
    } catch (error) {
      this.#noteRefusal(`${name}, opening again`, error)
    }
  }

  #writable(): Session {
    if (!this.#session) throw new SessionError('session-closed', 'It could not be opened before.')
    return this.#session
  }

  async #create(): Promise<void> {
    const session = await this.#store.create({ name: 'faults' })
    this.evidence.sessions.push(session.id)
    this.#use(session)
  }

  async #open(id: string): Promise<void> {
    const session = await this.#store.open(id)
    const reason = session.readOnlyReason
    if (reason !== undefined) {
      await session.close()
      throw new SessionError('read-only', reason)
    }
    this.#use(session)
  }

  #use(session: Session): void {
    this.#session = session
    this.#sessionId = session.id
    session.subscribe(({ line }) => this.evidence.lines.push({ sessionId: session.id, id: line.id }))
  }

  async #close(): Promise<void> {
    const session = this.#session
    this.#session = undefined
    await session?.close()
  }

  async #reopen(): Promise<void> {
    if (this.#session) await this.#close()
    await this.#open(this.#sessionId)
  }

  async #mendOld(): Promise<void> {
    this.evidence.sessions.push(oldSessionId)
    await this.#step('mend', () => this.#open(oldSessionId))
    await this.#say('user', 'behind the torn tail')
    await this.#step('close the mended one', () => this.#close())
    this.#session = undefined
  }

  async #say(role: 'user' | 'assistant', content: string): Promise<string> {
    return (await this.#step(`say ${content}`, () => this.#appendText(role, content))) ?? ''
  }

  async #appendText(role: 'user' | 'assistant', content: string): Promise<string> {
    const unique = `${content} (${this.evidence.refusals.length})`
    try {
      return await this.#writable().appendMessage(role, [text(unique)])
    } catch (error) {
      this.evidence.refusedTexts.push(unique)
      throw error
    }
  }

  async #sayThree(): Promise<void> {
    const results = await Promise.allSettled(
      ['a', 'b', 'c'].map((each) => this.#appendText('assistant', `many ${each}`)),
    )
    for (const result of results) if (result.status === 'rejected') throw result.reason
  }

  async #queue(): Promise<void> {
    const queue = this.#store.queue(this.#writable().id)
    await queue.add('waits')
    const waiting = this.#writable().nextWaiting('follow-up')
    if (waiting) await this.#writable().deliver(waiting.id)
  }

  async #blob(content: string): Promise<void> {
    const session = this.#writable()
    const blob = await session.putBlob(Buffer.from(content))
    this.evidence.blobs.push({ sessionId: session.id, sha256: blob.sha256, content })
    const image = { source: { type: 'blob', mediaType: 'image/png', ...blob } } as const
    await session.appendMessage('user', [{ type: 'image', image }])
  }

  async #large(): Promise<void> {
    await this.#writable().appendMessage('tool', [text('long '.repeat(39_000))])
  }

  async #fork(): Promise<void> {
    const fork = await this.#store.forkFrom(this.#sessionId)
    this.evidence.sessions.push(fork.id)
    await fork.close()
  }
}
