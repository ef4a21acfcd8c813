import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { newId, SessionError, text, type Content, type Session, type SessionStore } from '@tapetree/session'
import { openFileStore, type FilePort } from '@tapetree/session/stores/file'
import { findFaults, findHalfMade, findLost, findTemporaryFiles } from '../writer/check-log.ts'
import { fingerprintOf } from '../writer/fingerprint.ts'
import { readRawLog, type RawLog } from '../writer/raw-log.ts'
import type { Acknowledgement } from '../writer/report.ts'
import type { SmallDisk } from './small-disk.ts'

/** One store on the small disk: what callers were told there, and whether it is true. */
export class Scene {
  readonly disk: SmallDisk
  readonly random: () => number
  readonly problems: string[] = []
  /** The longest time from a call to its rejection. */
  slowestMs = 0
  failures = 0
  store: SessionStore
  readonly #folder: string
  readonly #acknowledged: Acknowledgement[] = []
  readonly #rejected: string[] = []
  #tornFiles = 0

  constructor(disk: SmallDisk, random: () => number, options: { port?: FilePort } = {}) {
    this.disk = disk
    this.random = random
    this.#folder = join(disk.folder, 'sessions')
    disk.makeRoom()
    rmSync(this.#folder, { recursive: true, force: true })
    mkdirSync(this.#folder)
    this.store = openFileStore({ folder: this.#folder, ...options })
  }

  folderOf(session: string): string {
    return join(this.#folder, session)
  }

  get acknowledged(): number {
    return this.#acknowledged.length
  }

  /** Does something that may find the disk full. A caller has to be told so, in our own words and soon; then it is undefined. */
  async mayFail<T>(what: string, work: () => Promise<T>): Promise<T | undefined> {
    const start = performance.now()
    try {
      return await work()
    } catch (error) {
      this.slowestMs = Math.max(this.slowestMs, performance.now() - start)
      this.failures++
      if (!saysThatStorageFailed(error)) {
        this.problems.push(`${what} rejects with ${(error as Error).stack}`)
      }
      return undefined
    }
  }

  /** Appends a message of so many bytes; says whether it was acknowledged. */
  async append(session: Session, length: number): Promise<boolean> {
    return this.#append(session, [text(`${'ä'.repeat(length / 2)}${'x'.repeat(length % 2)}`)])
  }

  /** The same with an image: the blob first, then the line that names it. */
  async appendImage(session: Session, length: number): Promise<boolean> {
    const bytes = Buffer.alloc(length, newId())
    const reference = await this.mayFail('storing a blob', () => session.putBlob(bytes))
    if (!reference) return false
    return this.#append(session, [
      { type: 'image', image: { source: { type: 'blob', mediaType: 'image/png', ...reference } } },
    ])
  }

  async #append(session: Session, content: Content[]): Promise<boolean> {
    const id = newId()
    const message = { role: 'user' as const, content }
    const line = await this.mayFail('an append', () => session.append({ type: 'message', id, message }))
    if (!line) this.#rejected.push(id)
    else
      this.#acknowledged.push({
        session: session.id,
        id,
        seq: line.seq,
        fingerprint: givenBy(message),
        durability: 'durable',
      })
    return line !== undefined
  }

  /** After an append that failed: the session says so. */
  expectFailure(session: Session): void {
    if (!session.storageFailure) this.problems.push('an append failed and the session does not say so')
  }

  expectTornFile(): void {
    this.#tornFiles++
  }

  /** There is room again: the session goes on where it is, then once more after it was closed and opened. */
  async goOn(session: Session): Promise<void> {
    this.disk.makeRoom()
    if (!(await this.append(session, 100))) this.problems.push('with room again, an append still fails')
    if (session.storageFailure) this.problems.push('an append succeeded and the session still says that storage failed')
    await this.append(session, 3000)
    await session.close()
    await using again = await this.store.open(session.id)
    if (again.readOnlyReason !== undefined) this.problems.push(`it opens read-only: ${again.readOnlyReason}`)
    if (again.damage.length > 0) this.problems.push(`damage is reported: ${JSON.stringify(again.damage)}`)
    await this.append(again, 100)
  }

  /** Everything that was acknowledged is there, everything that was rejected is not, and nothing lies about. */
  async check(session: string): Promise<void> {
    const folder = this.folderOf(session)
    const log = readRawLog(folder)
    const acknowledged = this.#acknowledged.filter((each) => each.session === session)
    const lost = findLost({ folder, log, proven: new Map() }, acknowledged)
    this.problems.push(...lost.map(({ acknowledgement, reason }) => `entry ${acknowledgement.id} is lost: ${reason}`))
    this.problems.push(...findFaults(log), ...this.#rejectedIn(log), ...brokenPath(log))
    const report = await this.store.verify(session)
    if (!report.isIntact) this.problems.push(`verify says ${JSON.stringify(report)}`)
    const torn = readdirSync(folder).filter((name) => name.includes('.torn-'))
    if (torn.length !== this.#tornFiles)
      this.problems.push(`${torn.length} torn ends were set aside: ${torn.join(', ')}`)
  }

  async end(): Promise<void> {
    await this.store.close()
    this.disk.makeRoom()
    for (const name of [...findTemporaryFiles(this.#folder), ...findHalfMade(this.#folder)]) {
      this.problems.push(`temporary file left: ${name}`)
    }
  }

  /** Sessions that the store would show. */
  sessions(): string[] {
    return readdirSync(this.#folder).filter((name) => !name.startsWith('.'))
  }

  #rejectedIn(log: RawLog): string[] {
    const ids = new Set(log.lines.map(({ id }) => id))
    return this.#rejected.filter((id) => ids.has(id)).map((id) => `entry ${id} was rejected and is in the log`)
  }
}

function givenBy(message: unknown): string {
  const payload = JSON.parse(JSON.stringify(message).replaceAll('"mediaType"', '"media_type"')) as unknown
  return fingerprintOf(payload, () => new Uint8Array())
}

/** Where not even a lock can be made, a session can only be read; that names the cause, too. */
function saysThatStorageFailed(error: unknown): boolean {
  if (!(error instanceof SessionError)) return false
  if (error.code === 'storage-failed') return true
  return (error.code === 'read-only' || error.code === 'session-owned') && error.message.includes('ENOSPC')
}

/** Nobody branched: every message must hang on the one before it, or the next context would lack some. */
function brokenPath(log: RawLog): string[] {
  const messages = log.lines.filter(({ type }) => type === 'message')
  return messages
    .filter(({ parent_id: parent }, index) => parent !== (messages[index - 1]?.id ?? null))
    .map(
      ({ seq, parent_id: parent }) =>
        `the message with seq ${seq} hangs on ${String(parent)}, not on the one before it`,
    )
}
