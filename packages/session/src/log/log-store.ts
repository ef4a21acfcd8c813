import type { Position } from '../line/line.ts'
import type { BlobReference } from '../line/message.ts'
import type { SealedLine } from '../line/seal-line.ts'
import type { SearchHit, SearchQuery, SessionPage, SessionQuery } from '../state/session-info.ts'

/** The tenant that a call applies to. Scopes never see each other. */
export interface Scope {
  tenant: string
}

export const localScope: Scope = { tenant: 'local' }

export type Place = 'active' | 'archive' | 'trash'

/**
 * The port that a store implements: lines, fencing and blobs. Stores do not interpret lines; the same lines
 * with the same `seq` go to memory, files or a database.
 */
export interface LogStore {
  /** Creates a durable log with its header as the only line. Rejects with `session-exists`. */
  create(scope: Scope, sessionId: string, header: SealedLine): Promise<void>
  /**
   * Removes a log that was just created and not yet announced, such as an incomplete copy. Rejects with `session-owned`
   * while it has a writer.
   */
  discard(scope: Scope, sessionId: string): Promise<void>
  /** Opens for reading, even while another process writes. Rejects with `session-not-found`. Default place: `active`. */
  open(scope: Scope, sessionId: string, place?: Place): Promise<ReadableLog>
  /** Becomes the only writer, or returns the current one. */
  claim(scope: Scope, sessionId: string, options?: ClaimOptions): Promise<Claim>
  /**
   * Becomes the writer of active sessions whose writer has died without closing them. Absent if a session whose writer
   * has died cannot be told from one that was closed, as with files.
   */
  readonly claimAbandoned?: ((scope: Scope, options: AbandonedOptions) => Promise<AbandonedLog[]>) | undefined
  list(scope: Scope, query: SessionQuery): Promise<SessionPage>
  search(scope: Scope, query: SearchQuery): Promise<SearchHit[]>
  placeOf(scope: Scope, sessionId: string): Promise<Place | undefined>
  /** The size of the sessions in all places: their lines and blobs, and with files whatever else is in their folders. */
  storedBytes(scope: Scope, options?: Pick<SessionQuery, 'isVisible'>): Promise<number>
  /** Moves a session to the archive, the trash or back. Rejects with `session-owned` while it has a writer. */
  move(scope: Scope, sessionId: string, place: Place): Promise<void>
  /**
   * Deletes a session for good, in any place: its lines, blobs and whatever was derived from them. Rejects with
   * `session-owned` while it has a writer. An interrupted erase leaves no session behind that could be opened.
   */
  erase(scope: Scope, sessionId: string): Promise<void>
  /** Writes, syncs and removes a small probe. Rejects if the storage takes no writes, for example on a full disk. */
  check?(scope: Scope): Promise<void>
  close(): Promise<void>
}

export interface ClaimOptions {
  /** Write even if no kernel lock is available. */
  insist?: boolean
  /** Where the owner answers other processes: `unix:` and the path of a socket, or the URL of a server. */
  address?: string
}

export interface AbandonedOptions extends Pick<ClaimOptions, 'address'> {
  /** At most this many; call again for more. */
  limit: number
  /** Leaves others alone. Called with the first line of a log. */
  isWanted?: (header: Uint8Array) => boolean
}

export interface AbandonedLog {
  sessionId: string
  log: WritableLog
}

export type Claim = { type: 'claimed'; log: WritableLog } | { type: 'owned'; owner: Owner }

/** The current owner of a session, if known. `reason` explains why the session cannot be claimed. */
export interface Owner {
  reason: string
  host?: string
  process?: string
  /** Where it answers other processes: `unix:` and the path of a socket on its host, or the URL of a server. */
  address?: string
  /** Set if nothing owns it, but it cannot be locked here. */
  cannotLock?: true
}

/** The position of a line, and of the one after it, which may not exist yet. The first line is at 0. */
export interface LinePosition extends Position {
  next: number
}

export interface StoredLine extends LinePosition {
  /** Without the newline. For an over-long line only the first bytes. */
  bytes: Uint8Array
}

export interface ReadableLog {
  /** Yields batches of lines from a position to the end, which is read when the iteration gets there. */
  lines(from: number): AsyncIterable<StoredLine[]>
  /**
   * Position of the line with this seq, or of the first one after it; undefined past the end. Cheap, also in a
   * long log.
   */
  seek(seq: number): Promise<number | undefined>
  readAt(positions: readonly Position[]): Promise<Uint8Array[]>
  /** Bytes after the last newline: a line being written, or a torn one. */
  unfinishedBytes(): Promise<number>
  /** Resolves when there may be more to read, or the signal aborts. */
  changed(signal: AbortSignal): Promise<void>
  /** The pieces of the checkpoint in order, none if there is no checkpoint. A brief one is the first piece alone. */
  loadCheckpoint(options?: { isBrief?: boolean }): Promise<string[]>
  getBlob(sha256: string): Promise<Uint8Array | undefined>
  /** The current writer, if it can be determined without claiming. Absent if the store cannot tell. */
  owner?(): Promise<Owner | undefined>
  /** The machine whose processes `owner` can see; it cannot see those of other machines. */
  readonly host?: string
  /** The folder on this machine for the session's drafts and spools. */
  readonly localFolder: string | undefined
  close(): Promise<void>
}

export type Durability = 'durable' | 'accepted'

export interface AppendOptions {
  /**
   * The writer's term and the seq of the last line it knows. A store rejects the append if either differs from
   * its own.
   */
  term: number
  head: number
  durability: Durability
}

export type AppendResult =
  | { type: 'appended'; positions: LinePosition[] }
  /** Another writer took over. No line of this batch counts. */
  | { type: 'fenced'; reason: string }
  /**
   * No line of this batch is in the log; a retry may succeed unless `final`. With `isPassing`, the cause is expected to
   * pass by itself, as an unreachable database does, and the session retries for a while before it reports a failure.
   */
  | { type: 'failed'; cause: unknown; final: boolean; isPassing?: true }
  /** The batch may or may not be in the log: claim again and look. */
  | { type: 'unknown'; cause: unknown }

/** What is derived from the lines. It may be lost: the session makes it anew from the log. */
export interface DerivedData {
  checkpoint?: CheckpointPieces
  metadata?: string
  queue?: string
}

/** A session checks what it loads, so pieces of two checkpoints that a crash left together do no harm. */
export interface CheckpointPieces {
  /** How many pieces the checkpoint has now. The store drops those from this number on. */
  count: number
  /**
   * The pieces that changed, by number; the others stay. The store writes piece 0 last. The only control character in a
   * piece is the newline.
   */
  changed: ReadonlyMap<number, string>
}

export interface WritableLog extends ReadableLog {
  /** Set if the store counts terms itself; with files, the log does. */
  readonly term: number | undefined
  readonly writer: { host: string; process: string }
  /**
   * Aborts, with a `fenced` error as its reason, when the store learns that another writer has taken over. Absent if
   * it only learns this from an append.
   */
  readonly lost?: AbortSignal
  /** What opening repaired at the end of the log. */
  readonly mended: { tornBytes: number; keptAs: string | undefined }
  /** May return synchronously. */
  append(lines: readonly SealedLine[], options: AppendOptions): AppendResult | Promise<AppendResult>
  /**
   * Rejects with `fenced` if another writer has taken over. Returns undefined if that is impossible, without asking: so it can
   * be called directly before an effect. Absent if a writer keeps its log until it closes it.
   */
  confirm?(): Promise<void> | undefined
  /** Called after `unknown`: makes a durable claim, so that whatever is read afterwards is durable too. */
  reclaim(): Promise<Claim>
  putBlob(bytes: Uint8Array): Promise<BlobReference>
  /** Saves the given data and leaves the rest as it is. Need not be durable. */
  saveDerived(data: DerivedData): Promise<void>
  /**
   * Closes it and leaves the session to `claimAbandoned`, as if this process had died. Absent if the store has no such
   * call.
   */
  handOver?(): Promise<void>
}
