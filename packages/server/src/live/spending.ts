import type { Clock } from '@tapetree/agent/run'
import { SessionError, type Session } from '@tapetree/session'
import type { DiskLine } from '@tapetree/session/format'
import type { LiveSessions } from './live-sessions.ts'

export interface SpendingOptions {
  clock: Clock
  /** A token and those that it derives from. Empty if it is unknown. */
  ancestorsOf: (tokenId: string) => readonly string[]
}

/** What is known of one log. */
interface ReadLog {
  seq: number
  /** Earlier lines were copied from another session. */
  created: string
  /** Changes with every cost. */
  row: string
  /** The token of the newest command; undefined: the user of the process. */
  payer: string | undefined
  /** The tokens that queued messages. */
  queued: Map<string, string | undefined>
}

/**
 * What model calls cost today, in UTC, by token: read from the logs, so it survives a restart. The token of the
 * newest message or command in a session pays for it, and for its subagents. Lines that a fork copied do not count
 * again.
 */
export class Spending {
  readonly #sessions: Pick<LiveSessions, 'store' | 'opened'>
  readonly #options: SpendingOptions
  #day = ''
  #total = 0
  readonly #byToken = new Map<string, number>()
  readonly #logs = new Map<string, ReadLog>()
  #reading: Promise<void> = Promise.resolve()

  constructor(sessions: Pick<LiveSessions, 'store' | 'opened'>, options: SpendingOptions) {
    this.#sessions = sessions
    this.#options = options
  }

  /** Reads what was added to logs since the last call. */
  refresh(): Promise<void> {
    const read = this.#reading.then(() => this.#read())
    this.#reading = read.catch(() => undefined)
    return read
  }

  /** In US dollars. Without a token: of all. */
  spentBy(tokenId: string | undefined): number {
    return tokenId === undefined ? this.#total : (this.#byToken.get(tokenId) ?? 0)
  }

  payerOf(sessionId: string): string | undefined {
    return this.#logs.get(sessionId)?.payer
  }

  async #read(): Promise<void> {
    this.#startDay(new Date(this.#options.clock.now()).toISOString().slice(0, 10))
    const live = new Map(this.#sessions.opened.map(({ session }) => [session.id, session]))
    for (const session of live.values()) await this.#readLog(session)
    const { store } = this.#sessions
    for (let cursor: string | undefined; ;) {
      const page = await store.list({ limit: 200, ...(cursor !== undefined && { cursor }) })
      const today = page.sessions.filter(({ modified }) => modified.slice(0, 10) >= this.#day)
      for (const { id, modified, cost } of today) {
        const row = `${modified} ${cost}`
        if (live.has(id) || this.#logs.get(id)?.row === row) continue
        await using session = await store.open(id, { readOnly: true }).catch(unlessNotFound)
        if (session) (await this.#readLog(session)).row = row
      }
      cursor = page.cursor
      if (cursor === undefined || today.length < page.sessions.length) return
    }
  }

  /** What was counted stays counted if its session is deleted during the day. */
  #startDay(day: string): void {
    if (day === this.#day) return
    this.#day = day
    this.#total = 0
    this.#byToken.clear()
    this.#logs.clear()
  }

  async #readLog(session: Session): Promise<ReadLog> {
    const created = session.header?.timestamp ?? ''
    const log = this.#logs.get(session.id) ?? { seq: 0, created, row: '', payer: undefined, queued: new Map() }
    this.#logs.set(session.id, log)
    const isSubagent = session.header?.subagent === true
    if (isSubagent) log.payer = await this.#payerOfParent(session.header?.parentSession)
    for await (const line of session.lines({ after: log.seq })) {
      log.seq = line.type === 'line' ? line.seq : line.seq + line.count - 1
      if (line.type !== 'line') continue
      const parsed = JSON.parse(line.text) as LineWithCost
      if (!isSubagent) followPayer(parsed, log)
      this.#count(parsed, log)
    }
    return log
  }

  async #payerOfParent(parentId: string | undefined): Promise<string | undefined> {
    if (parentId === undefined) return undefined
    const known = this.#logs.get(parentId)
    if (known) return known.payer
    await using parent = await this.#sessions.store.open(parentId, { readOnly: true }).catch(unlessNotFound)
    return parent && (await this.#readLog(parent)).payer
  }

  #count(line: LineWithCost, log: ReadLog): void {
    const { message, usage } = line
    const cost = message?.usage?.cost ?? usage?.tokens?.cost ?? 0
    if (!(cost > 0) || !line.timestamp?.startsWith(this.#day) || line.timestamp < log.created) return
    this.#total += cost
    if (log.payer === undefined) return
    const payers = new Set([log.payer, ...this.#options.ancestorsOf(log.payer)])
    for (const tokenId of payers) this.#byToken.set(tokenId, (this.#byToken.get(tokenId) ?? 0) + cost)
  }
}

/** The sender of a message or command pays for what follows. */
function followPayer({ type, cause, message, submission, run_start: run }: LineWithCost, log: ReadLog): void {
  if (submission?.action === 'add' && submission.id !== undefined) log.queued.set(submission.id, cause?.token)
  if (type !== 'message' && type !== 'run_start' && type !== 'compaction' && type !== 'branch_summary') return
  const queuedId = message?.submission_id ?? run?.submission_id
  // The server only continues what others began.
  if (cause && cause.client !== 'server') log.payer = cause.token
  else if (queuedId !== undefined && log.queued.has(queuedId)) {
    log.payer = log.queued.get(queuedId)
    log.queued.delete(queuedId)
  }
}

type LineWithCost = DiskLine & {
  cause?: { client?: string; token?: string }
  message?: { submission_id?: string; usage?: { cost?: number } }
  submission?: { action?: string; id?: string }
  run_start?: { submission_id?: string }
  usage?: { tokens?: { cost?: number } }
}

function unlessNotFound(error: unknown): undefined {
  if (error instanceof SessionError && error.code === 'session-not-found') return undefined
  throw error
}
