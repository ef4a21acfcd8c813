import type { SessionChange, SessionHandle } from '@tapetree/client'
import type { OpenedSession, SessionAccess, SessionSource } from '../../session-source.ts'

/** The session that is shown. Another one replaces it only once it is open, so the screen is never empty. */
export class CurrentSession {
  readonly #onChange: (change: SessionChange | { type: 'opened' }) => void
  #opened: OpenedSession | undefined
  #unsubscribe: () => void = () => undefined
  #isTyping = false

  constructor(onChange: (change: SessionChange | { type: 'opened' }) => void) {
    this.#onChange = onChange
  }

  get handle(): SessionHandle | undefined {
    return this.#opened?.handle
  }

  get access(): SessionAccess | undefined {
    return this.#opened?.access
  }

  get cwd(): string | undefined {
    return this.#opened?.cwd
  }

  /** The working folder, if its files are on this machine. */
  get localFolder(): string | undefined {
    const { access } = this
    const isElsewhere = access?.type === 'attached' && /^https?:/.test(access.where)
    return isElsewhere ? undefined : this.cwd
  }

  get isBusy(): boolean {
    const { handle } = this
    return handle?.state('run')?.isBusy ?? (handle?.transcript.run ?? null) !== null
  }

  /** Why nothing can be sent, for the border of the composer; empty if there is no obstacle. */
  get obstacle(): string {
    if (!this.#opened) return 'no session yet'
    const { access, handle } = this.#opened
    if (access.type === 'read-only') return `read-only: ${access.reason}`
    switch (handle.status.type) {
      case 'attached':
        return ''
      case 'connecting':
        return 'connecting; your messages are queued'
      case 'waiting':
        return `not connected; retrying in ${Math.ceil(handle.status.delayMs / 1000)} s; your messages are queued`
      case 'closed':
        return closedReasons[handle.status.reason]
      default:
        return handle.status satisfies never
    }
  }

  /** False: typed text stays in the composer. */
  get takesMessages(): boolean {
    return (
      this.#opened !== undefined && this.#opened.access.type !== 'read-only' && this.handle?.status.type !== 'closed'
    )
  }

  async show(opened: OpenedSession): Promise<void> {
    const before = this.#opened
    this.#unsubscribe()
    this.#opened = opened
    this.#isTyping = false
    this.#unsubscribe = opened.handle.subscribe(this.#onChange)
    opened.handle.present({ visibility: 'visible' })
    this.#onChange({ type: 'opened' })
    if (before && before.handle !== opened.handle) await before.handle.close()
  }

  /** Notifies other clients, only when it changes. */
  present(isTyping: boolean): void {
    if (isTyping === this.#isTyping) return
    this.#isTyping = isTyping
    this.#opened?.handle.present({ visibility: 'visible', typing: isTyping })
  }

  async close(): Promise<void> {
    this.#unsubscribe()
    await this.#opened?.handle.close()
  }
}

interface ListPlace {
  source: Pick<SessionSource, 'jobs'>
  session: Pick<CurrentSession, 'cwd'>
  /** On this machine. */
  cwd: string
}

/** The folder whose sessions are listed first; undefined for those of all folders. A server does not have the folders of this machine. */
export function listedFolder({ source, session, cwd }: ListPlace): string | undefined {
  return source.jobs.isRemote ? session.cwd : cwd
}

const closedReasons = {
  closed: 'the session is closed; /sessions opens another',
  unauthorized: 'the server no longer accepts your token; attach again',
  forbidden: 'you no longer have access to this session',
  gone: 'the session is gone; /sessions opens another',
  replaced: 'the session is open elsewhere under this client id; attach again',
} as const

/** More items than a user scrolls through; older ones are loaded again when they come into view. */
const maxItems = 3000
const keptEntries = 1500
const patience = 1000

/** How much of a long conversation stays in memory while its beginning is out of view. */
export class LoadedEntries {
  #most = maxItems

  trim(handle: SessionHandle): void {
    if (handle.transcript.path.items.length <= this.#most) return
    handle.forgetOlder(keptEntries)
    // A damaged conversation may have to keep everything: does not retry after every token.
    this.#most = Math.max(maxItems, handle.transcript.path.items.length + patience)
  }
}
