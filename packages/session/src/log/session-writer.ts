import { checkDraft } from '../line/check-line.ts'
import { toDisk } from '../line/codec.ts'
import { DerivedFiles } from './derived-files.ts'
import type { Cause, RequestReference } from '../line/entry.ts'
import { SessionError } from '../errors.ts'
import { GroupCommit, type Committed, type CommitHost, type UnsettledLine } from './group-commit.ts'
import { newId, requireId } from '../line/ids.ts'
import { mayBeTooLarge, moveLargeValues } from '../line/large-values.ts'
import {
  currentFormat,
  isEntry,
  isNote,
  lineKind,
  maxNesting,
  type DiskLine,
  type EntryDraft,
  type RecordDraft,
} from '../line/line.ts'
import type { Durability, LinePosition, WritableLog } from './log-store.ts'
import { isTooDeep, parseLine } from '../line/parse-line.ts'
import type { SessionReader } from './session-reader.ts'
import { Listeners } from '../util/listeners.ts'

export interface AppendContext {
  /** A run passes its own leaf; other callers append to the session's leaf. */
  parentId?: string | null
  cause?: Cause
  request?: RequestReference
  /** The time of the line, in ISO 8601, if it happened earlier: in another program, for example. Default: now. */
  timestamp?: string
}

/** One of several lines that are appended together. */
export interface DraftInContext {
  draft: EntryDraft | RecordDraft
  context?: AppendContext
}

export interface SessionWriterOptions {
  log: WritableLog
  reader: SessionReader
  durability: Durability
  now: () => Date
  onCommit: (lines: readonly Committed[]) => void
}

/** Whether the lines of a session reach its storage. */
export type StorageStatus =
  | { type: 'working' }
  /** Lines wait for the storage, since this time; the session tries again for a minute. */
  | { type: 'waiting'; since: string; reason: string }
  /** The last lines could not be stored. The next ones may. */
  | { type: 'failed'; error: SessionError }
  /** Another writer has taken over: nothing more is stored through this process. */
  | { type: 'lost'; error: SessionError }

/**
 * The only way to append to a log: numbers lines, links entries, and keeps the state in memory at the last
 * durable line.
 */
export class SessionWriter {
  readonly #log: WritableLog
  readonly #reader: SessionReader
  readonly #now: () => string
  readonly #onCommit: (lines: readonly Committed[]) => void
  readonly #commit: GroupCommit
  readonly #derived: DerivedFiles
  redaction: Redaction = noRedaction
  #term: number
  /** The term of the last writer record in the log. */
  #announcedTerm = 0
  /** The leaf after all pending lines are written. */
  #plannedLeaf: string | null
  #failure: SessionError | undefined
  #isFinal = false
  /** Incremented when a batch is rejected: lines planned on top of it must not be written. */
  #epoch = 0
  /** Blobs being written for pending lines; later lines wait behind it. */
  #preparing: Promise<void> | undefined
  #waiting: Extract<StorageStatus, { type: 'waiting' }> | undefined
  /** Lines whose outcome could not be found out. They are looked for before anything else is written. */
  #unsettled: readonly UnsettledLine[] | undefined
  #settling: Promise<void> | undefined
  readonly onStorageChange = new Listeners<StorageStatus>()
  #isToldWorking = true

  constructor(options: SessionWriterOptions) {
    const { log, reader } = options
    this.#log = log
    this.#reader = reader
    this.#now = isoClock(options.now)
    this.#onCommit = options.onCommit
    this.#term = log.term ?? reader.state.term + 1
    this.#plannedLeaf = reader.state.leaf?.id ?? null
    this.#commit = new GroupCommit(log, this.#host(), { durability: options.durability })
    this.#derived = new DerivedFiles(log, reader)
    log.lost?.addEventListener('abort', this.#lose, { once: true })
    if (log.lost?.aborted) this.#lose()
  }

  get storage(): StorageStatus {
    const error = this.#failure
    if (this.#waiting && !this.#isFinal) return this.#waiting
    return error ? { type: error.code === 'fenced' ? 'lost' : 'failed', error } : working
  }

  get term(): number {
    return this.#term
  }

  /** Why the last append failed, until one succeeds. */
  get failure(): SessionError | undefined {
    return this.#failure
  }

  get plannedLeaf(): string | null {
    return this.#plannedLeaf
  }

  append(draft: EntryDraft | RecordDraft, context: AppendContext = noContext): Promise<Committed> {
    if (this.#isFinal) throw this.#failure as SessionError
    if (this.#unsettled) return this.#settle(this.#unsettled).then(() => this.append(draft, context))
    return this.appendLine(this.#lineOf(draft, context, this.#plannedLeaf))
  }

  /** Appends lines that belong together, in one batch if they are small. None is appended if one of them is invalid. */
  appendAll(drafts: readonly DraftInContext[]): Promise<Committed[]> {
    if (this.#isFinal) throw this.#failure as SessionError
    if (this.#unsettled) return this.#settle(this.#unsettled).then(() => this.appendAll(drafts))
    let leaf = this.#plannedLeaf
    const lines = drafts.map(({ draft, context = noContext }) => {
      const line = this.#lineOf(draft, context, leaf)
      leaf = leafAfter(line, leaf)
      return { line, body: bodyOf(line) }
    })
    return Promise.all(lines.map(({ line, body }) => this.#appendBody(line, body)))
  }

  /** Appends a line in its disk form, such as one copied from another session. */
  appendLine(line: DiskLine): Promise<Committed> {
    return this.#appendBody(line, bodyOf(line))
  }

  #appendBody(line: DiskLine, body: string): Promise<Committed> {
    const leafBefore = this.#plannedLeaf
    this.#plannedLeaf = leafAfter(line, leafBefore)
    if (!this.#preparing && !mayBeTooLarge(body)) return this.#commit.append({ line, body })
    return this.#appendLarge(line, body, leafBefore)
  }

  /** Writes checkpoint, metadata and queue now, at the end of a run and on close. */
  async saveDerived(): Promise<void> {
    await this.#commit.idle()
    await this.#derived.save()
  }

  async close(): Promise<void> {
    this.#log.lost?.removeEventListener('abort', this.#lose)
    await this.#preparing
    await this.#commit.idle()
    await this.#derived.close()
  }

  #lineOf(given: EntryDraft | RecordDraft, context: AppendContext, leaf: string | null): DiskLine {
    const draft = this.redaction.draft(checkDraft(given))
    const id = draft.id === undefined ? newId() : requireId(draft.id, 'entry id')
    const kind = lineKind(draft.type)
    const hasParent = kind === 'node' || kind === 'note'
    const parentId = context.parentId === undefined ? leaf : context.parentId
    return toDisk(draft, {
      id,
      timestamp: context.timestamp === undefined ? this.#now() : requireTime(context.timestamp),
      parentId: hasParent ? parentId : undefined,
      request: context.request,
      cause: context.cause,
    })
  }

  /** A line that is too large waits for its blobs; lines behind it keep their order. */
  async #appendLarge(line: DiskLine, body: string, leafBefore: string | null): Promise<Committed> {
    const epoch = this.#epoch
    const handedOver = this.#handOver(line, body, { after: this.#preparing, epoch })
    const prepared = handedOver.then(noop, (error: unknown) => {
      // A line that failed along with an earlier one is not a new failure; lines queued before it are still
      // pending.
      if (epoch === this.#epoch) this.#reject(error, leafBefore)
    })
    this.#preparing = prepared
    void prepared.then(() => {
      if (this.#preparing === prepared) this.#preparing = undefined
    })
    const { committed } = await handedOver
    return committed
  }

  async #handOver(
    line: DiskLine,
    body: string,
    { after, epoch }: { after: Promise<void> | undefined; epoch: number },
  ): Promise<{ committed: Promise<Committed> }> {
    await after
    const pending = mayBeTooLarge(body) ? await this.#moveLargeValues(line) : { line, body }
    if (epoch !== this.#epoch)
      throw this.#failure ?? new SessionError('storage-failed', 'An earlier line was not stored.')
    return { committed: this.#commit.append(pending) }
  }

  async #moveLargeValues(line: DiskLine): Promise<{ line: DiskLine; body: string }> {
    const moved = await moveLargeValues(line, this.#log).catch((error: unknown) => {
      throw asStorageError(error)
    })
    const body = JSON.stringify(moved)
    if (mayBeTooLarge(body))
      throw new SessionError(
        'invalid-entry',
        'The entry is too large to store as one line, even with its large values in blobs.',
      )
    return { line: moved, body }
  }

  #reject(error: unknown, leaf: string | null): void {
    this.#failure = asStorageError(error)
    this.#epoch++
    this.#plannedLeaf = leaf
  }

  #host(): CommitHost {
    return {
      expectation: () => ({ term: this.#term, head: this.#reader.state.seq }),
      preamble: () => (this.#announcedTerm === this.#term ? [] : [this.#writerLine()]),
      committed: (lines) => this.#takeIn(lines),
      rejected: (error, { isFinal }) => {
        this.#reject(error, this.#reader.state.leaf?.id ?? null)
        this.#isFinal ||= isFinal
        this.#tellStorage()
      },
      settleUnknown: (lines) => this.#settleUnknown(lines),
      waiting: (reason) => {
        this.#waiting = reason === undefined ? undefined : { type: 'waiting', since: this.#now(), reason }
        // The outcome of the lines tells how the wait ended.
        if (this.#waiting) this.#tellStorage()
      },
    }
  }

  #tellStorage(): void {
    const { storage } = this
    if (storage.type === 'working' && this.#isToldWorking) return
    this.#isToldWorking = storage.type === 'working'
    this.onStorageChange.notify(storage)
  }

  readonly #lose = (): void => {
    const reason: unknown = this.#log.lost?.reason
    this.#failure = reason instanceof SessionError ? reason : new SessionError('fenced', String(reason))
    this.#isFinal = true
    this.#tellStorage()
  }

  #writerLine(): DiskLine {
    const writer = { term: this.#term, ...this.#log.writer, format: currentFormat }
    return toDisk({ type: 'writer', writer }, { id: newId(), timestamp: this.#now() })
  }

  #takeIn(lines: readonly Committed[]): void {
    if (!this.#isFinal) this.#failure = undefined
    this.#tellStorage()
    const { state } = this.#reader
    for (const { line, sealed, position } of lines) {
      state.apply(line, { seq: sealed.seq, crc: sealed.crc, at: position.at, size: position.size })
      state.end = position.next
      if (line.type === 'writer') this.#announcedTerm = state.term
      if (line.type === 'compaction') this.#reader.forgetEntries()
      if (isEntry(line)) this.#reader.keepNew(sealed)
    }
    this.#derived.schedule(lines.length)
    this.#onCommit(lines)
  }

  /** Finds out what became of lines that an earlier append left unsettled, and goes on from there. */
  #settle(lines: readonly UnsettledLine[]): Promise<void> {
    this.#settling ??= this.#settleUnknown(lines)
      .then((positions) => {
        if (!positions) return
        this.#takeIn(lines.map((each, index) => ({ ...each, position: positions[index] as LinePosition })))
        this.#plannedLeaf = this.#reader.state.leaf?.id ?? null
      })
      .catch((error: unknown) => {
        this.#failure = error as SessionError
        this.#isFinal ||= this.#failure.code === 'fenced'
        this.#tellStorage()
        throw error
      })
      .finally(() => (this.#settling = undefined))
    return this.#settling
  }

  async #settleUnknown(lines: readonly UnsettledLine[]): Promise<LinePosition[] | undefined> {
    try {
      const positions = await this.#find(lines)
      this.#unsettled = undefined
      return positions
    } catch (error) {
      if (error instanceof SessionError && error.code === 'fenced') throw error
      this.#unsettled = lines
      const reason = error instanceof Error ? error.message : String(error)
      throw new SessionError(
        'outcome-unknown',
        `It is not known whether the last lines were stored (${reason}). The session finds out when it is used next.`,
        { cause: error },
      )
    }
  }

  /** Reclaims durably first, then looks whether the lines are in the log. */
  async #find(lines: readonly UnsettledLine[]): Promise<LinePosition[] | undefined> {
    const claim = await this.#log.reclaim()
    if (claim.type === 'owned')
      throw new SessionError(
        'fenced',
        `Another writer has taken over this session: ${claim.owner.reason} The last append may be in its log.`,
      )
    this.#term = claim.log.term ?? this.#term + 1
    const found: LinePosition[] = []
    for await (const batch of this.#log.lines(this.#reader.state.end)) {
      for (const stored of batch) {
        const parsed = parseLine(stored.bytes)
        if (parsed.type !== 'line' || parsed.crc !== lines[found.length]?.sealed.crc) return undefined
        found.push({ at: stored.at, size: stored.size, next: stored.next })
      }
    }
    if (this.#log.lost?.aborted) throw this.#log.lost.reason
    return found.length === lines.length ? found : undefined
  }
}

const noContext: AppendContext = {}
const working: StorageStatus = { type: 'working' }

function bodyOf(line: DiskLine): string {
  const body = JSON.stringify(line)
  if (isTooDeep(line, body)) {
    throw new SessionError('invalid-entry', `An entry may not be nested deeper than ${maxNesting} levels.`)
  }
  return body
}

/** The time as the log has it. */
export function requireTime(timestamp: string): string {
  const ms = Date.parse(timestamp)
  if (Number.isNaN(ms))
    throw new SessionError('invalid-entry', `${JSON.stringify(timestamp.slice(0, 80))} is not a time.`)
  return new Date(ms).toISOString()
}

function leafAfter(line: DiskLine, leaf: string | null): string | null {
  if (isEntry(line) && !isNote(line)) return line.id
  return line.type === 'leaf' ? (line['leaf'] as { target_id: string | null }).target_id : leaf
}

function asStorageError(error: unknown): SessionError {
  if (error instanceof SessionError) return error
  const reason = error instanceof Error ? error.message : String(error)
  return new SessionError('storage-failed', `Could not store a large value (${reason}).`, { cause: error })
}

function noop(): void {}

/**
 * Formats times from a clock. Caches the text, because many lines share a millisecond and formatting costs more
 * than reading the clock.
 */
export function isoClock(now: () => Date): () => string {
  let lastMs = -1
  let lastText = ''
  return () => {
    const date = now()
    const ms = date.getTime()
    if (ms !== lastMs) {
      lastMs = ms
      lastText = date.toISOString()
    }
    return lastText
  }
}

/** Redacts lines before they are stored; every line passes through it. */
export interface Redaction {
  draft<D extends EntryDraft | RecordDraft>(draft: D): D
  blob(bytes: Uint8Array): Uint8Array
}

const noRedaction: Redaction = { draft: (draft) => draft, blob: (bytes) => bytes }
