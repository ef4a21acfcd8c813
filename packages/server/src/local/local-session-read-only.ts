import { ProblemError, ReplicaSession, type SessionHandle, type StateValues, type EventPage } from '@tapetree/client'
import { limits, snapshotToWire, type StateKey } from '@tapetree/client/protocol'
import type { Session } from '@tapetree/session'
import { checksum, type DiskLine } from '@tapetree/session/format'
import { emitWarning } from '../util/problem-error.ts'

export interface ReadOnlySessionOptions {
  /** Opened for reading. Closed with the handle. */
  session: Session
  /** A sentence that names the writer. */
  reason: string
  /** Number of entries to start with. */
  window?: number
  /** How often to check whether its owner has written. */
  everyMs?: number
  /** Called when a listener throws; by default the process emits a warning. */
  onProblem?: (error: unknown) => void
}

/** A session that another process writes, without a server for it. Follows its log, and rejects every command. */
export class ReadOnlySession extends ReplicaSession implements SessionHandle {
  readonly sessionId: string
  readonly #options: ReadOnlySessionOptions
  #timer: NodeJS.Timeout | undefined
  #reading: Promise<void> = Promise.resolve()

  private constructor(options: ReadOnlySessionOptions) {
    super(options.onProblem ?? emitWarning)
    this.#options = options
    this.sessionId = options.session.id
  }

  static async open(options: ReadOnlySessionOptions): Promise<ReadOnlySession> {
    const handle = new ReadOnlySession(options)
    await handle.#begin()
    handle.setStatus({ type: 'attached' })
    handle.#lookLater()
    return handle
  }

  /** Only values that follow from the log. */
  override state<Key extends StateKey>(key: Key): StateValues[Key] | undefined {
    const { openRun, totals, owner } = this.#options.session
    const known: Partial<StateValues> = {
      read_only: {
        reason: this.#options.reason,
        ...(owner && { owner: { host: owner.host, process: owner.process } }),
      },
      run: { runId: openRun?.runId ?? null, isBusy: openRun !== null, waitingFor: null },
      usage: totals,
    }
    return known[key]
  }

  async run(): Promise<never> {
    const { reason: detail } = this.#options
    throw new ProblemError({ type: 'session-owned', title: 'Session owned', status: 409, detail })
  }

  async loadOlder(count = 50): Promise<boolean> {
    return this.prependOlder(count, (before) => linesBefore(this.#options.session, before))
  }

  /** There are no other clients to tell. */
  present(): void {}

  async close(): Promise<void> {
    if (this.status.type === 'closed') return
    clearTimeout(this.#timer)
    this.setStatus({ type: 'closed', reason: 'closed' })
    await this.#reading
    await this.#options.session.close()
  }

  async #begin(): Promise<void> {
    const { session, window = 50 } = this.#options
    const snapshot = await session.snapshot({ entries: window })
    this.replica.attach({
      session_id: session.id,
      client_id: 'read-only',
      mode: 'snapshot',
      reason: 'first',
      head: snapshot.head,
      from: snapshot.head.seq + 1,
      limits: {
        max_behind_lines: limits.maxBehindLines,
        max_behind_bytes: limits.maxBehindBytes,
        max_frame_bytes: limits.maxFrameBytes,
      },
      state: {},
      snapshot: snapshotToWire(snapshot),
    })
    this.tell({ type: 'transcript' })
  }

  #lookLater(): void {
    if (this.status.type === 'closed') return
    this.#timer = setTimeout(() => {
      // A failed read may succeed later, for example on a network folder.
      this.#reading = this.#look().catch(() => undefined)
      void this.#reading.then(() => this.#lookLater())
    }, this.#options.everyMs ?? 500)
  }

  /** Continues after the applied lines, not after the last read: that may have failed midway. */
  async #look(): Promise<void> {
    const { session } = this.#options
    await session.refresh()
    if (this.replica.place(session.head.seq) === 'known') return
    for await (const line of session.lines({ after: this.replica.cursor?.seq ?? 0 })) {
      if (this.replica.place(line.seq) === 'known') continue
      if (line.type === 'lost') {
        this.replica.takeLost(line.seq, line.count)
        continue
      }
      const disk = JSON.parse(line.text) as DiskLine & { crc?: string }
      if (this.replica.takeLine(disk, { seq: line.seq, crc: disk.crc ?? checksum(line.text) })) continue
      // The session continues from an entry that is not loaded.
      await this.#begin()
      break
    }
    this.tell({ type: 'transcript' })
    this.tell({ type: 'state', key: 'run' })
    this.tell({ type: 'state', key: 'usage' })
  }
}

const pageLines = 200

/** The lines before one, oldest first, as a server returns them. Each line has its own number. */
export async function linesBefore(session: Session, before: number): Promise<EventPage> {
  const events: EventPage['events'] = []
  for await (const line of session.lines({ after: Math.max(0, before - 1 - pageLines) })) {
    if (line.seq >= before) break
    if (line.type === 'line') events.push(eventOf(line.text, line.seq))
    else events.push({ seq: line.seq, type: line.type, count: line.count })
  }
  return { events, head: session.head }
}

/** One line that is too long for a frame. */
export async function lineAt(session: Session, seq: number): Promise<DiskLine> {
  for await (const line of session.lines({ after: seq - 1 })) {
    if (line.seq === seq && line.type === 'line') return eventOf(line.text, seq) as unknown as DiskLine
    break
  }
  throw new Error(`Line ${seq} of session ${session.id} cannot be read.`)
}

function eventOf(text: string, seq: number): EventPage['events'][number] {
  return { ...(JSON.parse(text) as { type: string }), seq }
}
