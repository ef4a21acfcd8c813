import { constants } from 'node:fs'
import { mkdir, open, readdir, readFile, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { BlobReference } from '@tapetree/session'
import { replaceFile } from '@tapetree/session/util/replace-file'
import { hasCode } from '../tools/tool-problem.ts'
import type { StartDetails } from '../tools/tool.ts'
import { sha256Of } from '../util/request-hash.ts'
import type { CallOutcome, CallRequest } from './messages.ts'

/** What is known of a call before it acts. */
export interface StartedCall {
  request: CallRequest
  start: StartDetails
}

/** Its blobs are beside it. */
export type CallResult = Omit<CallOutcome, 'blobs'>

export type CallState =
  /** It was never started here. */
  | { type: 'unknown' }
  /** It was started, and its outcome is not known. */
  | { type: 'started'; started: StartedCall }
  | { type: 'done'; result: CallResult }
  /** The service has its result. */
  | { type: 'settled' }

const blobPrefix = 'blob-'
/** The settled calls of so many sessions are held in memory. */
const maxKnown = 200

/**
 * The calls of a tool host, each in a folder of its own: `started` is durable before the call acts, and `done` holds its
 * result until the service has it. An id is used once, also after its call is settled.
 */
export class CallJournal {
  readonly #folder: string
  /** The settled calls of each session. */
  readonly #settled = new Map<string, Promise<Set<string>>>()

  constructor(folder: string) {
    this.#folder = folder
  }

  async state(session: string, id: string): Promise<CallState> {
    if ((await this.#settledOf(session)).has(id)) return { type: 'settled' }
    const result = await readJson<CallResult>(this.#path(session, id, 'done'))
    if (result) return { type: 'done', result }
    const started = await this.started(session, id)
    return started ? { type: 'started', started } : { type: 'unknown' }
  }

  /** Resolves when it is durable that the call starts. Rejects if it was started before. */
  async begin(started: StartedCall): Promise<void> {
    const { session, id } = started.request
    const folder = join(this.#folder, session, id)
    const firstMade = await mkdir(folder, { recursive: true, mode: 0o700 })
    // A second start of the same call fails here, whatever came between.
    await using file = await open(join(folder, 'started'), 'wx', 0o600)
    try {
      await file.writeFile(JSON.stringify(started))
      await file.sync()
      await syncFolder(folder)
      await syncFolder(dirname(folder))
      if (firstMade !== folder) await syncFolder(this.#folder)
    } catch (error) {
      // The call does not run, so it must not be found as one that did.
      await rm(join(folder, 'started'), { force: true })
      throw error
    }
  }

  /** Records another start of a call that had not begun. */
  async replace(started: StartedCall): Promise<void> {
    const { session, id } = started.request
    await replaceFile(this.#path(session, id, 'started'), JSON.stringify(started))
  }

  /** Resolves when the bytes are durable. They go to the service with the result. */
  async putBlob({ session, id }: CallRequest, bytes: Uint8Array): Promise<BlobReference> {
    const sha256 = sha256Of(bytes)
    await replaceFile(this.#path(session, id, `${blobPrefix}${sha256}`), bytes)
    return { sha256, size: bytes.length }
  }

  async blobsOf({ session, id }: CallRequest): Promise<{ sha256: string; bytes: Buffer }[]> {
    const names = (await namesIn(join(this.#folder, session, id))).filter((name) => name.startsWith(blobPrefix))
    const read = async (name: string): Promise<{ sha256: string; bytes: Buffer }> => ({
      sha256: name.slice(blobPrefix.length),
      bytes: await readFile(this.#path(session, id, name)),
    })
    return Promise.all(names.map(read))
  }

  /** Resolves when the result is durable. */
  async finish({ session, id }: CallRequest, result: CallResult): Promise<void> {
    await replaceFile(this.#path(session, id, 'done'), JSON.stringify(result))
  }

  /** Undefined if the call was never started here, or is settled. */
  async started(session: string, id: string): Promise<StartedCall | undefined> {
    return readJson<StartedCall>(this.#path(session, id, 'started'))
  }

  /** Forgets the result, and remembers that the call ran. */
  async settle(session: string, id: string): Promise<void> {
    const settled = await this.#settledOf(session)
    if (settled.has(id)) return
    await using file = await open(join(this.#folder, session, 'settled'), 'a', 0o600)
    await file.writeFile(`${id}\n`)
    await file.datasync()
    settled.add(id)
    await rm(join(this.#folder, session, id), { recursive: true, force: true })
  }

  /** The calls that an earlier process of this host started and did not finish. */
  async unfinished(): Promise<StartedCall[]> {
    const found: StartedCall[] = []
    for await (const { session, id } of this.#calls()) {
      const state = await this.state(session, id)
      if (state.type === 'started') found.push(state.started)
      // The process died between two steps of `settle`, or before the call began.
      if (state.type === 'settled' || state.type === 'unknown') {
        await rm(join(this.#folder, session, id), { recursive: true, force: true })
      }
    }
    return found
  }

  /** The finished calls whose results nobody has collected since this time. */
  async uncollected(since: number): Promise<{ session: string; id: string }[]> {
    const found: { session: string; id: string }[] = []
    for await (const call of this.#calls()) {
      const done = await stat(this.#path(call.session, call.id, 'done')).catch(() => undefined)
      if (done && done.mtimeMs < since) found.push(call)
    }
    return found
  }

  async *#calls(): AsyncGenerator<{ session: string; id: string }> {
    for (const session of await namesIn(this.#folder)) {
      for (const id of await namesIn(join(this.#folder, session))) if (id !== 'settled') yield { session, id }
    }
  }

  #path(session: string, id: string, name: string): string {
    return join(this.#folder, session, id, name)
  }

  #settledOf(session: string): Promise<Set<string>> {
    const known = this.#settled.get(session)
    if (known) return known
    const read = readIfThere(join(this.#folder, session, 'settled')).then((text = '') => new Set(text.split('\n')))
    const [oldest] = this.#settled.keys()
    if (this.#settled.size >= maxKnown && oldest !== undefined) this.#settled.delete(oldest)
    this.#settled.set(session, read)
    read.catch(() => this.#settled.delete(session))
    return read
  }
}

/** Undefined if the file is missing, or if a power cut came before it was durable. */
async function readJson<T>(path: string): Promise<T | undefined> {
  const text = await readIfThere(path)
  try {
    return text === undefined ? undefined : (JSON.parse(text) as T)
  } catch {
    return undefined
  }
}

/** Any other failure must not look like a call that never ran. */
async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw error
  }
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => [])
}

async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return
  await using folder = await open(path, constants.O_RDONLY)
  await folder.sync()
}
