import { toDisk } from '../line/codec.ts'
import { copyEntries, restOfCopy, type Copy } from './copy-session.ts'
import type { Cause } from '../line/entry.ts'
import { SessionError } from '../errors.ts'
import { newId, requireId } from '../line/ids.ts'
import { headerVersion, type DiskLine } from '../line/line.ts'
import type { LogStore, Scope, WritableLog } from '../log/log-store.ts'
import type { HeldSession } from './open-sessions.ts'
import { sealLine } from '../line/seal-line.ts'
import { SessionReader } from '../log/session-reader.ts'
import { openPack, unpackInto } from './unpack.ts'
import type { BlobReference } from '../line/message.ts'
import { requireTime, type SessionWriter } from '../log/session-writer.ts'

export interface HeaderOptions {
  id?: string
  cwd?: string
  parentSession?: string
  parentEntry?: string
  /** The client command that creates the session. */
  cause?: Cause
  /** Set if a subagent works in it on behalf of the parent session. */
  subagent?: true
  /** When the conversation began, in ISO 8601, if it began earlier: in another program, for example. Default: now. */
  timestamp?: string
}

export interface SessionMakerParts {
  port: LogStore
  scope: Scope
  now: () => Date
  hold: (log: WritableLog) => Promise<HeldSession>
}

/** Creates sessions: empty ones, copies and imports. Discards a session that cannot be completed. */
export class SessionMaker {
  readonly #parts: SessionMakerParts

  constructor(parts: SessionMakerParts) {
    this.#parts = parts
  }

  /** Creates a log with only a header. */
  async create(options: HeaderOptions): Promise<string> {
    const { port, scope, now } = this.#parts
    const id = options.id === undefined ? newId() : requireId(options.id, 'session id')
    const { cwd, parentSession, parentEntry, subagent, cause } = options
    const draft = { type: 'session', version: headerVersion, cwd, parentSession, parentEntry, subagent }
    const timestamp = options.timestamp === undefined ? now().toISOString() : requireTime(options.timestamp)
    await port.create(scope, id, sealLine(toDisk(draft, { id, timestamp, cause }), 1))
    return id
  }

  /** Copies the entries of one path of another session, or all of them. */
  async copy(
    reader: SessionReader,
    source: { from: string; leafId?: string; options?: HeaderOptions },
  ): Promise<string> {
    const copy = await copyEntries(reader, source.leafId === undefined ? {} : { leafId: source.leafId })
    const cwd = source.options?.cwd ?? reader.state.header?.['cwd']
    const id = await this.create({
      ...source.options,
      ...(typeof cwd === 'string' && { cwd }),
      parentSession: source.from,
      ...(copy.leafId !== null && { parentEntry: copy.leafId }),
    })
    await this.#fill(id, (sink) => copyInto(sink, copy, reader))
    return id
  }

  /** Adds to a copy of a session what it lacks because its making was interrupted. */
  async completeCopy(reader: SessionReader, { id, leafId }: { id: string; leafId?: string }): Promise<void> {
    const { port, scope } = this.#parts
    const rest = (made: SessionReader): Promise<Copy> =>
      restOfCopy(reader, { made, ...(leafId !== undefined && { leafId }) })
    const log = await port.open(scope, id)
    try {
      // One that is whole may be in use by another process.
      const made = await SessionReader.open(log)
      const { lines, leafId: wanted } = await rest(made)
      const { done: isWhole } = await lines[Symbol.asyncIterator]().next()
      if (isWhole && (made.state.leaf?.id ?? null) === wanted) return
    } finally {
      await log.close()
    }
    await this.#write(id, async (sink) => copyInto(sink, await rest(sink.reader), reader))
  }

  async unpack(bytes: AsyncIterable<Uint8Array>): Promise<string> {
    const { source, sessionId } = await openPack(bytes)
    const id = await this.create({ parentSession: requireId(sessionId, 'session id') })
    await this.#fill(id, (sink) => unpackInto(source, sink))
    return id
  }

  /** Completes a new session, or discards it, unless another process owns it and may have written to it. */
  async orDiscard<T>(id: string, finish: () => Promise<T>): Promise<T> {
    const { port, scope } = this.#parts
    try {
      return await finish()
    } catch (error) {
      if (error instanceof SessionError && error.code === 'session-owned') throw error
      // The original error matters more than a failed cleanup.
      await port.discard(scope, id).catch(() => undefined)
      throw error
    }
  }

  /** Writes lines into a new session; `fill` returns its leaf. */
  async #fill(id: string, fill: (sink: SessionSink) => Promise<string | null>): Promise<void> {
    await this.orDiscard(id, () => this.#write(id, fill))
  }

  async #write(id: string, write: (sink: SessionSink) => Promise<string | null>): Promise<void> {
    const { port, scope, hold } = this.#parts
    const claim = await port.claim(scope, id)
    if (claim.type === 'owned') {
      const { cannotLock, reason } = claim.owner
      throw new SessionError(cannotLock ? 'storage-failed' : 'session-owned', reason)
    }
    const sink = new SessionSink(await hold(claim.log))
    try {
      await sink.finish(await write(sink))
    } catch (error) {
      await sink.close()
      throw error
    }
  }
}

/** Resolves with the leaf of the copy. */
async function copyInto(sink: SessionSink, { lines, leafId }: Copy, { log }: SessionReader): Promise<string | null> {
  const copied = new Set<string>()
  for await (const { line, blobs } of lines) {
    for (const sha256 of blobs) {
      const bytes = copied.has(sha256) ? undefined : await log.getBlob(sha256)
      if (bytes) await sink.putBlob(bytes)
      copied.add(sha256)
    }
    await sink.append(line)
  }
  return leafId
}

/** Receives the lines of a copy or an import and writes them in batches. */
class SessionSink {
  readonly #writer: SessionWriter
  readonly #log: WritableLog
  readonly reader: SessionReader
  #underWay: Promise<unknown>[] = []

  constructor(parts: { writer: SessionWriter; log: WritableLog; reader: SessionReader }) {
    this.#writer = parts.writer
    this.#log = parts.log
    this.reader = parts.reader
  }

  async putBlob(bytes: Uint8Array): Promise<BlobReference> {
    return this.#log.putBlob(bytes)
  }

  async append(line: DiskLine): Promise<void> {
    const appended = this.#writer.appendLine(line)
    // Errors are reported by a later await; this prevents an unhandled rejection.
    appended.catch(noop)
    this.#underWay.push(appended)
    if (this.#underWay.length >= maxUnderWay) await this.#settle()
  }

  /** Sets the leaf if it is not the last entry, and closes the new session. */
  async finish(leafId: string | null): Promise<void> {
    await this.#settle()
    if ((this.reader.state.leaf?.id ?? null) !== leafId) {
      await this.#writer.append({ type: 'leaf', leaf: { targetId: leafId } })
    }
    await this.close()
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#underWay)
    await this.#writer.close()
    await this.#log.close()
  }

  async #settle(): Promise<void> {
    const all = this.#underWay
    this.#underWay = []
    await Promise.all(all)
  }
}

const maxUnderWay = 256

function noop(): void {}
