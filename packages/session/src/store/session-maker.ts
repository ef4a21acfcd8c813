import { toDisk } from '../line/codec.ts'
import { copyEntries } from './copy-session.ts'
import type { Cause } from '../line/entry.ts'
import { SessionError } from '../errors.ts'
import { newId, requireId } from '../line/ids.ts'
import { headerVersion, type DiskLine } from '../line/line.ts'
import type { LogStore, Scope, WritableLog } from '../log/log-store.ts'
import type { HeldSession } from './open-sessions.ts'
import { sealLine } from '../line/seal-line.ts'
import type { SessionReader } from '../log/session-reader.ts'
import { openPack, unpackInto } from './unpack.ts'
import type { BlobReference } from '../line/message.ts'
import type { SessionWriter } from '../log/session-writer.ts'

export interface HeaderOptions {
  id?: string
  cwd?: string
  parentSession?: string
  parentEntry?: string
  /** The command that the new session is the effect of. */
  cause?: Cause
  /** A subagent works in it, on behalf of the parent session. */
  subagent?: true
}

export interface SessionMakerParts {
  port: LogStore
  scope: Scope
  now: () => Date
  hold: (log: WritableLog) => Promise<HeldSession>
}

/** Makes sessions: empty ones, copies and imports. One that cannot be finished is taken back: nobody has been told of it. */
export class SessionMaker {
  readonly #parts: SessionMakerParts

  constructor(parts: SessionMakerParts) {
    this.#parts = parts
  }

  /** A log with its header and nothing else. */
  async create(options: HeaderOptions): Promise<string> {
    const { port, scope, now } = this.#parts
    const id = options.id === undefined ? newId() : requireId(options.id, 'session id')
    const { cwd, parentSession, parentEntry, subagent, cause } = options
    const draft = { type: 'session', version: headerVersion, cwd, parentSession, parentEntry, subagent }
    await port.create(scope, id, sealLine(toDisk(draft, { id, timestamp: now().toISOString(), cause }), 1))
    return id
  }

  /** The entries of one path of another session, or all of them. */
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
    await this.#fill(id, async (sink) => {
      const copied = new Set<string>()
      for await (const { line, blobs } of copy.lines) {
        for (const sha256 of blobs) {
          const bytes = copied.has(sha256) ? undefined : await reader.log.getBlob(sha256)
          if (bytes) await sink.putBlob(bytes)
          copied.add(sha256)
        }
        await sink.append(line)
      }
      return copy.leafId
    })
    return id
  }

  async unpack(bytes: AsyncIterable<Uint8Array>): Promise<string> {
    const { source, sessionId } = await openPack(bytes)
    const id = await this.create({ parentSession: requireId(sessionId, 'session id') })
    await this.#fill(id, (sink) => unpackInto(source, sink))
    return id
  }

  /** Finishes a session that was just made, or takes it back. */
  async orDiscard<T>(id: string, finish: () => Promise<T>): Promise<T> {
    const { port, scope } = this.#parts
    try {
      return await finish()
    } catch (error) {
      // Why it could not be finished matters more than a rest that could not be removed.
      await port.discard(scope, id).catch(() => undefined)
      throw error
    }
  }

  /** Writes lines into a new session; what `fill` gives is where the session goes on. */
  async #fill(id: string, fill: (sink: SessionSink) => Promise<string | null>): Promise<void> {
    const { port, scope, hold } = this.#parts
    await this.orDiscard(id, async () => {
      const claim = await port.claim(scope, id)
      if (claim.type === 'owned') throw new SessionError('session-owned', claim.owner.reason)
      const sink = new SessionSink(await hold(claim.log))
      try {
        await sink.finish(await fill(sink))
      } catch (error) {
        await sink.close()
        throw error
      }
    })
  }
}

/** The receiving end of a copy or an import: lines go in by the batch, not one sync each. */
class SessionSink {
  readonly #writer: SessionWriter
  readonly #log: WritableLog
  readonly #reader: SessionReader
  #underWay: Promise<unknown>[] = []

  constructor(parts: { writer: SessionWriter; log: WritableLog; reader: SessionReader }) {
    this.#writer = parts.writer
    this.#log = parts.log
    this.#reader = parts.reader
  }

  async putBlob(bytes: Uint8Array): Promise<BlobReference> {
    return this.#log.putBlob(bytes)
  }

  async append(line: DiskLine): Promise<void> {
    const appended = this.#writer.appendLine(line)
    // Whether it failed is asked later; until then nobody listens.
    appended.catch(noop)
    this.#underWay.push(appended)
    if (this.#underWay.length >= maxUnderWay) await this.#settle()
  }

  /** Sets the leaf where it is not the last entry, and closes the new session. */
  async finish(leafId: string | null): Promise<void> {
    await this.#settle()
    if ((this.#reader.state.leaf?.id ?? null) !== leafId) {
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
