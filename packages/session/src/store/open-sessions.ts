import type { CommittedLine } from '../log/group-commit.ts'
import type { Owner, WritableLog } from '../log/log-store.ts'
import type { SessionInboxParts } from './session-inbox.ts'
import type { SessionReader } from '../log/session-reader.ts'
import type { SessionWriter } from '../log/session-writer.ts'
import type { Listeners } from '../util/listeners.ts'

/** State shared by all openers of one session in this process. */
export interface HeldSession {
  type: 'held'
  reader: SessionReader
  writer: SessionWriter
  log: WritableLog
  listeners: Listeners<CommittedLine>
  /** Queued messages that are being delivered or removed. */
  taken: SessionInboxParts['taken']
  /** Pending changes to the queued messages, by the id of their line. */
  planned: SessionInboxParts['planned']
  /** Set once the session is closed for all of its handles, for example because it is being erased. */
  isClosed?: true
}

export type ClaimedSession = HeldSession | { type: 'owned'; owner: Owner }

interface Entry {
  session: Promise<ClaimedSession>
  users: number
  /** Whether its last user hands it over: what those who left have wished, if anything. */
  handOver?: boolean
  closing?: Promise<void>
}

export interface LeaveOptions {
  /**
   * Leaves it to another process, as if this one had died, when the last opener leaves. False: a process on this machine goes
   * on with it, so that it is not handed over, whatever the other openers wish. Absent: as the others wish.
   */
  handOver?: boolean
}

/** The sessions that this process writes. Openers share one instance; the last one to release it closes it. */
export class OpenSessions {
  readonly #entries = new Map<string, Entry>()
  #isClosed = false

  get isClosed(): boolean {
    return this.#isClosed
  }

  async join(key: string, claim: () => Promise<ClaimedSession>): Promise<ClaimedSession> {
    for (let entry = this.#entries.get(key); entry; entry = this.#entries.get(key)) {
      if (!entry.closing) {
        entry.users++
        // It may finish what an earlier opener left to a process on this machine.
        if (entry.handOver === false) delete entry.handOver
        return entry.session
      }
      await entry.closing
    }
    const entry: Entry = { session: claim(), users: 1 }
    this.#entries.set(key, entry)
    try {
      const session = await entry.session
      if (session.type === 'owned') this.#entries.delete(key)
      return session
    } catch (error) {
      this.#entries.delete(key)
      throw error
    }
  }

  async leave(key: string, session: HeldSession, { handOver }: LeaveOptions = {}): Promise<void> {
    const entry = this.#entries.get(key)
    // A closed session left the list, and a new one may have its id.
    if (!entry || session.isClosed) return
    if (handOver !== undefined && entry.handOver !== false) entry.handOver = handOver
    if (--entry.users <= 0) await this.#close(key, entry)
  }

  /** Closes a session even if it has users; their handles reject from then on. */
  async end(key: string): Promise<void> {
    const entry = this.#entries.get(key)
    if (entry) await this.#close(key, entry)
  }

  async closeAll(): Promise<void> {
    this.#isClosed = true
    for (const [key, entry] of this.#entries) await this.#close(key, entry)
  }

  async #close(key: string, entry: Entry): Promise<void> {
    entry.closing ??= closeSession(entry).finally(() => this.#entries.delete(key))
    await entry.closing
  }
}

async function closeSession(entry: Entry): Promise<void> {
  const session = await entry.session
  if (session.type === 'owned') return
  session.isClosed = true
  await session.writer.close()
  await (entry.handOver && session.log.handOver ? session.log.handOver() : session.log.close())
}
