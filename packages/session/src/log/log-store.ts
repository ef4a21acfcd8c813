import type { Position } from '../line/line.ts'
import type { BlobReference } from '../line/message.ts'
import type { SealedLine } from '../line/seal-line.ts'
import type { SearchHit, SearchQuery, SessionPage, SessionQuery } from '../state/session-info.ts'

/** Whose sessions a call is about. Scopes never see each other. */
export interface Scope {
  tenant: string
}

export const localScope: Scope = { tenant: 'local' }

export type Place = 'active' | 'archive' | 'trash'

/**
 * The port that a store implements: lines, fencing and blobs, and nothing of what the lines mean. The same lines with the same
 * `seq` go to memory, to a file or to a database.
 */
export interface LogStore {
  /** Makes a log with its header as the only line, durable. Rejects with `session-exists`. */
  create(scope: Scope, sessionId: string, header: SealedLine): Promise<void>
  /** Takes back a log that was just made and that nobody was told of, such as half a copy. */
  discard(scope: Scope, sessionId: string): Promise<void>
  /** Opens for reading, whoever writes. Rejects with `session-not-found`. */
  open(scope: Scope, sessionId: string): Promise<ReadableLog>
  /** Becomes the one writer, or says who is. */
  claim(scope: Scope, sessionId: string, options?: ClaimOptions): Promise<Claim>
  list(scope: Scope, query: SessionQuery): Promise<SessionPage>
  search(scope: Scope, query: SearchQuery): Promise<SearchHit[]>
  placeOf(scope: Scope, sessionId: string): Promise<Place | undefined>
  /** Archive, trash and back. Rejects with `session-owned` while somebody writes. */
  move(scope: Scope, sessionId: string, place: Place): Promise<void>
  /** Makes a small write durable and removes it. Rejects if the storage takes none, as a full disk. */
  check?(scope: Scope): Promise<void>
  close(): Promise<void>
}

export interface ClaimOptions {
  /** Write even where no kernel lock can be had. */
  insist?: boolean
  /** Where the owner answers other processes. */
  socket?: string
}

export type Claim = { type: 'claimed'; log: WritableLog } | { type: 'owned'; owner: Owner }

/** Who holds a session, as far as is known. `reason` says why it cannot be claimed. */
export interface Owner {
  reason: string
  host?: string
  process?: string
  socket?: string
}

export interface StoredLine extends Position {
  /** Without the newline. Of an over-long line only the first bytes. */
  bytes: Uint8Array
}

export interface ReadableLog {
  /** Batches of lines from a position to the end as it is when it gets there. */
  lines(from: number): AsyncIterable<StoredLine[]>
  /** Where the line with this seq begins, or the first one after it; undefined past the end. Costs little, also in a long log. */
  seek(seq: number): Promise<number | undefined>
  readAt(positions: readonly Position[]): Promise<Uint8Array[]>
  /** Bytes behind the last newline: a line being written, or torn. */
  unfinishedBytes(): Promise<number>
  /** Resolves when there may be more to read, or the signal aborts. */
  changed(signal: AbortSignal): Promise<void>
  /** With `maxBytes`, a store may give only so much of its beginning. */
  loadCheckpoint(options?: { maxBytes?: number }): Promise<string | undefined>
  getBlob(sha256: string): Promise<Uint8Array | undefined>
  /** Who writes the log now, as far as that can be told without trying to claim it. Absent: the store cannot tell. */
  owner?(): Promise<Owner | undefined>
  /** The machine that `owner` can tell of: what others run it cannot see. */
  readonly host?: string
  /** The folder of this machine where drafts and spools of this session may live. */
  readonly localFolder: string | undefined
  close(): Promise<void>
}

export type Durability = 'durable' | 'accepted'

export interface AppendOptions {
  /** The writer's term and the seq of the last line it knows. A store refuses if either is not its own. */
  term: number
  head: number
  durability: Durability
}

export type AppendResult =
  | { type: 'appended'; positions: Position[] }
  /** Another writer was here. Nothing of this batch counts. */
  | { type: 'fenced'; reason: string }
  /** Nothing of this batch is in the log; a later try may succeed unless `final`. */
  | { type: 'failed'; cause: unknown; final: boolean }
  /** The batch may or may not be in the log: claim again and look. */
  | { type: 'unknown'; cause: unknown }

export type DerivedFile = 'checkpoint' | 'metadata' | 'queue'

export interface WritableLog extends ReadableLog {
  /** Where the store counts terms itself; a file leaves it to the log. */
  readonly term: number | undefined
  readonly writer: { host: string; process: string }
  /** What opening had to mend at the end of the log. */
  readonly mended: { tornBytes: number; keptAs: string | undefined }
  /** A store that knows at once answers at once. */
  append(lines: readonly SealedLine[], options: AppendOptions): AppendResult | Promise<AppendResult>
  /** After `unknown`: a claim that itself is durable, so that what is read afterwards is too. */
  reclaim(): Promise<Claim>
  putBlob(bytes: Uint8Array): Promise<BlobReference>
  saveDerived(file: DerivedFile, content: string): Promise<void>
}
