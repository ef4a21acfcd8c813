import { createHash } from 'node:crypto'
import { dirname, join, resolve } from 'node:path'
import { SessionError } from '../errors.ts'
import { blobsOf } from '../line/large-values.ts'
import type { BlobReference } from '../line/message.ts'
import { parseLine } from '../line/parse-line.ts'
import {
  localScope,
  type LogStore,
  type Place,
  type ReadableLog,
  type Scope,
  type StoredLine,
  type WritableLog,
} from '../log/log-store.ts'
import { DurableFolders } from './file/durable-folders.ts'
import { FileLogStore } from './file/file-store.ts'
import type { FilePort } from './file/file-port.ts'
import { nodeFilePort } from './file/node-file-port.ts'
import { storageError } from './file/storage-error.ts'

/** Where sessions are copied to. A copy appears there completely or not at all. */
export interface CopyTarget {
  /** Reads what is there already. */
  readonly store: LogStore
  /**
   * Begins a copy with the first line, or goes on with an interrupted one. Rejects with `session-owned` while another
   * process makes the same copy.
   */
  receive(scope: Scope, sessionId: string, header: string): Promise<IncomingSession>
  close(): Promise<void>
}

/** A copy that nothing can open yet. */
export interface IncomingSession {
  /** The lines that are stored, with those of an interrupted copy. There is at least one. */
  lines(): AsyncIterable<Uint8Array[]>
  /** Resolves when the lines are stored. */
  append(lines: readonly string[]): Promise<void>
  /** Called before the line that names the blob is appended. */
  putBlob(bytes: Uint8Array): Promise<BlobReference>
  /** Shows the copy, in one step. Rejects with `session-exists`. */
  publish(place: Place): Promise<void>
  /** Deletes what is stored. */
  discard(): Promise<void>
  /** Ends the attempt. Without `publish`, nothing of it can be opened. */
  close(): Promise<void>
}

export interface CopySessionOptions {
  from: LogStore
  to: CopyTarget
  sessionId: string
  /** Default: `localScope`. */
  scope?: Scope
  /** Checks whether the session could be copied, and copies nothing. */
  dryRun?: boolean
}

export interface CopiedSession {
  /** `present`: the target had the same session already. */
  outcome: 'copied' | 'present' | 'would-copy'
  /** Where the session is in the target. */
  place: Place
  lines: number
  blobs: number
  /** How many blobs the log names and its store does not have. */
  missingBlobs: number
  /** How many of the lines an interrupted copy had stored. */
  resumedLines: number
}

/**
 * Copies a session to another store: every line with its bytes and its seq, every blob that a line names, and its place.
 * No process can write the session meanwhile. The copy appears after its lines were read back and compared. Rejects with
 * `session-owned` if a process writes the session, and with `session-exists` if the target has another one with its id.
 */
export async function copySession(options: CopySessionOptions): Promise<CopiedSession> {
  const { from, to, sessionId, scope = localScope, dryRun = false } = options
  const place = await from.placeOf(scope, sessionId)
  if (!place) throw new SessionError('session-not-found', `There is no session ${sessionId} to copy.`)
  const there = await to.store.placeOf(scope, sessionId)
  await using source = await hold(from, { scope, sessionId, place, isRead: dryRun || there !== undefined })
  if (there) {
    const target = await to.store.open(scope, sessionId, there)
    try {
      return { outcome: 'present', place: there, resumedLines: 0, ...(await compared(source, target, sessionId)) }
    } finally {
      await target.close()
    }
  }
  if (dryRun) return { outcome: 'would-copy', place, resumedLines: 0, ...(await inventoryOf(source)) }
  const { incoming, resumedLines } = await receive(source, to, scope)
  try {
    const copied = await transfer(source, { incoming, resumedLines })
    await incoming.publish(place)
    return { outcome: 'copied', place, resumedLines, ...copied }
  } finally {
    await incoming.close()
  }
}

/** The ids of all sessions of a store: active, archived and in the trash. */
export async function sessionIdsIn(store: LogStore, scope: Scope = localScope): Promise<string[]> {
  const ids: string[] = []
  for (const place of ['active', 'archive', 'trash'] as const) {
    const { sessions } = await store.list(scope, { place, limit: Infinity })
    ids.push(...sessions.map(({ id }) => id))
  }
  return ids.sort()
}

interface SourceLine {
  text: string
  bytes: Uint8Array
}

/** The log that is copied. */
class Source implements AsyncDisposable {
  readonly id: string
  readonly log: ReadableLog

  constructor(id: string, log: ReadableLog) {
    this.id = id
    this.log = log
  }

  /** Rejects if a line is not text: no store can keep its bytes as a line. */
  async *lines(): AsyncIterable<SourceLine[]> {
    let number = 0
    for await (const batch of this.log.lines(0)) yield batch.map((line) => this.#textOf(line, ++number))
  }

  #textOf({ bytes, size }: StoredLine, number: number): SourceLine {
    if (size > bytes.length) throw this.#damaged(`line ${number} is too long`)
    try {
      return { text: decoder.decode(bytes), bytes }
    } catch {
      throw this.#damaged(`line ${number} is not valid UTF-8`)
    }
  }

  #damaged(why: string): SessionError {
    return new SessionError('invalid-entry', `Session ${this.id} is damaged and cannot be copied as it is: ${why}.`)
  }

  async header(): Promise<string> {
    const { value: first } = await oneByOne(this.lines()).next()
    if (!first) throw this.#damaged('it has no lines')
    return first.text
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.log.close()
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Claims an active session, so that nobody can write it. The others cannot be written where they are. */
async function hold(
  store: LogStore,
  { scope, sessionId, place, isRead }: { scope: Scope; sessionId: string; place: Place; isRead: boolean },
): Promise<Source> {
  if (isRead || place !== 'active') return new Source(sessionId, await store.open(scope, sessionId, place))
  const claim = await store.claim(scope, sessionId)
  if (claim.type === 'claimed') return new Source(sessionId, claim.log)
  // Where nothing can be locked, as on a read-only disk, nothing writes under a lock either.
  if (claim.owner.cannotLock) return new Source(sessionId, await store.open(scope, sessionId))
  throw new SessionError('session-owned', `Session ${sessionId} is open for writing. ${claim.owner.reason}`)
}

/** Goes on with an interrupted copy if its lines are the first lines of the session; otherwise starts anew. */
async function receive(
  source: Source,
  to: CopyTarget,
  scope: Scope,
): Promise<{ incoming: IncomingSession; resumedLines: number }> {
  const header = await source.header()
  for (;;) {
    const incoming = await to.receive(scope, source.id, header)
    try {
      const { shared, target } = await commonStart(source, incoming.lines())
      if (shared === target) return { incoming, resumedLines: shared - 1 }
      await incoming.discard()
    } catch (error) {
      await incoming.close()
      throw error
    }
  }
}

interface Inventory {
  lines: number
  blobs: number
  missingBlobs: number
}

/** Sends what is missing, and compares the digest of all lines. */
async function transfer(
  source: Source,
  { incoming, resumedLines }: { incoming: IncomingSession; resumedLines: number },
): Promise<Inventory> {
  const digest = createHash('sha256')
  // The first line is always there.
  let there = resumedLines + 1
  const inventory = await inventoryOf(source, {
    blob: async (_, bytes) => void (await incoming.putBlob(bytes)),
    batch: async (lines) => {
      for (const { bytes } of lines) digest.update(bytes).update('\n')
      const missing = lines.slice(there).map(({ text }) => text)
      there = Math.max(0, there - lines.length)
      if (missing.length > 0) await incoming.append(missing)
    },
  })
  await expectDigest(incoming, digest.digest('hex'), source.id)
  return inventory
}

interface Visitor {
  /** Called once for each blob, before the batch with the first line that names it. */
  blob?: (sha256: string, bytes: Uint8Array) => Promise<void>
  batch?: (lines: readonly SourceLine[]) => Promise<void>
}

/** Reads all lines and all blobs that they name. */
async function inventoryOf(source: Source, { blob, batch }: Visitor = {}): Promise<Inventory> {
  const seen = new Set<string>()
  const inventory: Inventory = { lines: 0, blobs: 0, missingBlobs: 0 }
  for await (const lines of source.lines()) {
    for (const sha256 of new Set(lines.flatMap(({ bytes }) => blobsIn(bytes))).difference(seen)) {
      seen.add(sha256)
      const bytes = await source.log.getBlob(sha256)
      if (bytes) await blob?.(sha256, bytes)
      inventory[bytes ? 'blobs' : 'missingBlobs']++
    }
    await batch?.(lines)
    inventory.lines += lines.length
  }
  return inventory
}

async function expectDigest(incoming: IncomingSession, expected: string, sessionId: string): Promise<void> {
  const digest = createHash('sha256')
  for await (const batch of incoming.lines()) for (const bytes of batch) digest.update(bytes).update('\n')
  if (digest.digest('hex') === expected) return
  await incoming.discard()
  throw new SessionError(
    'storage-failed',
    `The target stored other lines of session ${sessionId} than were sent to it.`,
  )
}

/** Rejects unless both logs have the same lines and the target has all blobs. */
async function compared(source: Source, target: ReadableLog, sessionId: string): Promise<Inventory> {
  const found = await commonStart(source, bytesOf(target))
  const { shared } = found
  if (shared < found.source || shared < found.target) throw differs(sessionId, found)
  return inventoryOf(source, {
    blob: async (sha256) => {
      if (await target.getBlob(sha256)) return
      throw new SessionError('session-exists', `The target has session ${sessionId} without its blob ${sha256}.`)
    },
  })
}

function differs(sessionId: string, { shared, source, target }: CommonStart): SessionError {
  const why =
    shared === 0
      ? `has another session with the id ${sessionId}`
      : shared === target
        ? `has an earlier state of session ${sessionId}: ${target} of its ${source} lines`
        : shared === source
          ? `has session ${sessionId} with ${target - source} more lines, so it was continued there`
          : `has session ${sessionId} with other lines from line ${shared + 1} on`
  return new SessionError('session-exists', `The target ${why}. Nothing was copied.`)
}

interface CommonStart {
  /** How many lines are the same, from the first one on. */
  shared: number
  /** How many lines there are. */
  source: number
  target: number
}

async function commonStart(source: Source, target: AsyncIterable<Uint8Array[]>): Promise<CommonStart> {
  const counts: CommonStart = { shared: 0, source: 0, target: 0 }
  const left = oneByOne(source.lines())
  const right = oneByOne(target)
  for (let isSame = true; ;) {
    const [ours, theirs] = [await left.next(), await right.next()]
    if (ours.done && theirs.done) return counts
    if (!ours.done) counts.source++
    if (!theirs.done) counts.target++
    isSame &&= !ours.done && !theirs.done && Buffer.compare(ours.value.bytes, theirs.value) === 0
    if (isSame) counts.shared++
  }
}

async function* oneByOne<T>(batches: AsyncIterable<T[]>): AsyncGenerator<T, undefined> {
  for await (const batch of batches) yield* batch
  return undefined
}

async function* bytesOf(log: ReadableLog): AsyncIterable<Uint8Array[]> {
  for await (const batch of log.lines(0)) yield batch.map(({ bytes }) => bytes)
}

function blobsIn(bytes: Uint8Array): string[] {
  const parsed = parseLine(bytes)
  return parsed.type === 'line' ? blobsOf(parsed.line) : []
}

export interface FileCopyTargetOptions {
  folder: string
  /** For tests: another file system for unfinished copies. */
  port?: FilePort
}

/**
 * Copies into a folder of sessions. An unfinished copy is in its folder `.copying`, which no list, search or open sees, and
 * the next attempt goes on with it.
 */
export function fileCopyTarget({ folder, port = nodeFilePort() }: FileCopyTargetOptions): CopyTarget {
  const root = resolve(folder)
  const store = new FileLogStore({ folder: root })
  const unfinished = new FileLogStore({ folder: join(root, copyingFolder), port })
  return {
    store,
    receive: async (scope, sessionId, header) => {
      if (!(await unfinished.placeOf(scope, sessionId))) {
        await unfinished.create(scope, sessionId, { seq: 1, crc: '', text: header })
      }
      const claim = await unfinished.claim(scope, sessionId)
      if (claim.type === 'claimed')
        return new IncomingFiles({ store, unfinished, root, port, scope, sessionId }, claim.log)
      throw new SessionError('session-owned', `Session ${sessionId} is being copied already. ${claim.owner.reason}`)
    },
    close: async () => {
      await store.close()
      await unfinished.close()
    },
  }
}

const copyingFolder = '.copying'

interface IncomingParts {
  store: FileLogStore
  unfinished: FileLogStore
  root: string
  port: FilePort
  scope: Scope
  sessionId: string
}

class IncomingFiles implements IncomingSession {
  readonly #parts: IncomingParts
  readonly #log: WritableLog
  #isClosed = false
  /** How many lines were appended here: the store compares it with its own count. */
  #head = 0

  constructor(parts: IncomingParts, log: WritableLog) {
    this.#parts = parts
    this.#log = log
  }

  lines(): AsyncIterable<Uint8Array[]> {
    return bytesOf(this.#log)
  }

  async append(lines: readonly string[]): Promise<void> {
    const sealed = lines.map((text) => ({ seq: 0, crc: '', text }))
    const result = await this.#log.append(sealed, { term: 0, head: this.#head, durability: 'durable' })
    if (result.type === 'appended') this.#head += lines.length
    else {
      const cause = result.type === 'fenced' ? result.reason : result.cause
      throw storageError(`Could not copy session ${this.#parts.sessionId}`, cause)
    }
  }

  putBlob(bytes: Uint8Array): Promise<BlobReference> {
    return this.#log.putBlob(bytes)
  }

  async publish(place: Place): Promise<void> {
    const { store, unfinished, root, port, scope, sessionId } = this.#parts
    await this.close()
    const from = unfinished.folderOf(scope, sessionId, 'active')
    const target = store.folderOf(scope, sessionId, place)
    if (await store.placeOf(scope, sessionId)) {
      throw new SessionError('session-exists', `Session ${sessionId} was created in the target meanwhile.`)
    }
    try {
      await new DurableFolders(port, root).make(dirname(target))
      await port.rename(from, target)
      await port.syncFolder(dirname(target))
      await port.syncFolder(dirname(from))
    } catch (error) {
      throw storageError(`Could not show the copy of session ${sessionId}`, error)
    }
  }

  async discard(): Promise<void> {
    await this.close()
    await this.#parts.unfinished.discard(this.#parts.scope, this.#parts.sessionId)
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#log.close()
  }
}
