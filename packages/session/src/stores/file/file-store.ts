import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { SessionError } from '../../errors.ts'
import { isId, requireId } from '../../line/ids.ts'
import type { Claim, ClaimOptions, LogStore, Place, ReadableLog, Scope } from '../../log/log-store.ts'
import type { SealedLine } from '../../line/seal-line.ts'
import type { SearchHit, SearchQuery, SessionPage, SessionQuery } from '../../state/session-info.ts'
import { SessionStore, type OpenedLog, type OpenOptions, type SessionStoreOptions } from '../../store/session-store.ts'
import { removeTemporaryFiles } from './blob-files.ts'
import { DurableFolders } from './durable-folders.ts'
import { indexFileIn } from './session-index/index-db.ts'
import { ReadableFileLog, WritableFileLog } from './file-log.ts'
import type { FilePort } from './file-port.ts'
import { LogFile } from './log-file.ts'
import { logName, pathsBesideFile, pathsInFolder, type LogPaths } from './log-paths.ts'
import { nodeFilePort } from './node-file-port.ts'
import { announceOwner, readOwner } from './owner-file.ts'
import { mendTail } from './recover.ts'
import type { IndexSource, ListIndex } from './session-index/list-index.ts'
import { scanIndex } from './session-index/scan-index.ts'
import { SessionIndex } from './session-index/session-index.ts'
import { storageError } from './storage-error.ts'
import { acquireWriterLock, type LockAttempt } from './writer-lock.ts'

export interface FileStoreOptions extends Omit<SessionStoreOptions, 'openPath' | 'pathOf'> {
  folder: string
  /** For tests: another file system, another lock, another index. */
  port?: FilePort
  lock?: (path: string) => Promise<LockAttempt>
  index?: ListIndex
}

/** Sessions as files below a folder, one folder each. */
export function openFileStore(options: FileStoreOptions): SessionStore {
  const port = new FileLogStore(options)
  return new SessionStore(port, {
    ...options,
    openPath: (path, openOptions) => port.openPath(path, openOptions),
    pathOf: (scope, sessionId) => port.folderOf(scope, sessionId, 'active'),
  })
}

export class FileLogStore implements LogStore {
  readonly #root: string
  readonly #port: FilePort
  readonly #lock: (path: string) => Promise<LockAttempt>
  readonly #index: ListIndex
  readonly #folders: DurableFolders

  constructor(options: FileStoreOptions) {
    this.#root = resolve(options.folder)
    this.#port = options.port ?? nodeFilePort()
    this.#lock = options.lock ?? acquireWriterLock
    this.#index = options.index ?? indexFor(options.port, this.#root)
    this.#folders = new DurableFolders(this.#port, this.#root)
  }

  /** Under a hidden name first, so that a session is there whole or not at all. */
  async create(scope: Scope, sessionId: string, header: SealedLine): Promise<void> {
    const folder = this.folderOf(scope, sessionId, 'active')
    if (await this.placeOf(scope, sessionId)) throw alreadyThere(sessionId)
    const parent = dirname(folder)
    const temporary = hiddenName(parent)
    let made = temporary
    try {
      await this.#folders.make(dirname(temporary))
      removeUnfinished(this.#port, dirname(temporary))
      this.#port.makeFolder(temporary)
      await this.#writeHeader(join(temporary, logName), header)
      await this.#port.syncFolder(temporary)
      await this.#port.rename(temporary, folder)
      made = folder
      await this.#port.syncFolder(parent)
    } catch (error) {
      this.#port.remove(made)
      // Somebody else was quicker: a folder is only moved to where none is, or an empty one.
      if (made === temporary && (await this.placeOf(scope, sessionId))) throw alreadyThere(sessionId)
      throw storageError(`Session ${sessionId} could not be created`, error)
    }
  }

  async discard(scope: Scope, sessionId: string): Promise<void> {
    const folder = this.folderOf(scope, sessionId, 'active')
    const temporary = hiddenName(dirname(folder))
    // Out of sight in one step, where that is possible.
    const gone = await this.#port.rename(folder, temporary).then(
      () => temporary,
      () => folder,
    )
    this.#port.remove(gone)
  }

  async open(scope: Scope, sessionId: string): Promise<ReadableLog> {
    const paths = this.#find(scope, sessionId)
    try {
      return new ReadableFileLog(this.#port, paths)
    } catch (error) {
      throw storageError(`Session ${sessionId} could not be read`, error)
    }
  }

  async claim(scope: Scope, sessionId: string, options: ClaimOptions = {}): Promise<Claim> {
    const paths = this.#find(scope, sessionId)
    try {
      // Whoever made or moved it may have died before its name was safe.
      await this.#folders.make(dirname(paths.folder))
      await this.#port.syncFolder(dirname(paths.folder))
    } catch (error) {
      throw storageError(`Session ${sessionId} could not be opened for writing`, error)
    }
    return this.#claimPaths(paths, options)
  }

  /** A session folder, or a log by its own path. */
  async openPath(path: string, options: OpenOptions): Promise<OpenedLog> {
    const absolute = resolve(path)
    const paths =
      absolute.endsWith('.jsonl') && basename(absolute) !== logName
        ? pathsBesideFile(absolute)
        : pathsInFolder(folderAt(absolute))
    if (!this.#port.exists(paths.log)) throw new SessionError('session-not-found', `There is no session at ${path}.`)
    const name = paths.local === undefined ? basename(paths.log, '.jsonl') : basename(paths.folder)
    const id = isId(name) ? name : 'session'
    const readable = (): ReadableLog => new ReadableFileLog(this.#port, paths)
    if (options.readOnly) return { type: 'readable', id, log: readable() }
    const claim = await this.#claimPaths(paths, options)
    if (claim.type === 'claimed') return { type: 'writable', id, log: claim.log }
    return { type: 'readable', id, log: readable(), owner: claim.owner }
  }

  async list(scope: Scope, query: SessionQuery): Promise<SessionPage> {
    return this.#index.list(this.#source(scope, query.place ?? 'active'), query)
  }

  async search(scope: Scope, query: SearchQuery): Promise<SearchHit[]> {
    return this.#index.search(this.#source(scope, 'active'), query)
  }

  async placeOf(scope: Scope, sessionId: string): Promise<Place | undefined> {
    return places.find((place) => this.#port.exists(join(this.folderOf(scope, sessionId, place), logName)))
  }

  async move(scope: Scope, sessionId: string, place: Place): Promise<void> {
    const from = await this.placeOf(scope, sessionId)
    if (!from) throw notFound(sessionId)
    if (from === place) return this.#syncPlaces(scope)
    const folder = this.folderOf(scope, sessionId, from)
    const lock = await this.#lock(join(folder, 'lock'))
    if (lock.type === 'held')
      throw new SessionError('session-owned', `Session ${sessionId} is open and cannot be moved.`)
    try {
      const target = this.folderOf(scope, sessionId, place)
      await this.#folders.make(dirname(target))
      await this.#port.rename(folder, target)
      await this.#port.syncFolder(dirname(target))
      await this.#port.syncFolder(dirname(folder))
    } catch (error) {
      throw storageError(`Session ${sessionId} could not be moved to ${place}`, error)
    } finally {
      if (lock.type === 'locked') lock.lock.release()
    }
  }

  /** An earlier try may have moved a session and failed behind that. */
  async #syncPlaces(scope: Scope): Promise<void> {
    for (const folder of places
      .map((place) => this.#placeFolder(scope, place))
      .filter((each) => this.#port.exists(each))) {
      await this.#port.syncFolder(folder).catch((error: unknown) => {
        throw storageError(`The folder ${folder} could not be synced`, error)
      })
    }
  }

  async check(scope: Scope): Promise<void> {
    const probe = hiddenName(this.#placeFolder(scope, 'active'))
    try {
      await this.#folders.make(dirname(probe))
      const fd = this.#port.create(probe)
      try {
        const bytes = new Uint8Array(probeBytes)
        if (this.#port.write(fd, bytes) < bytes.length) throw new Error('the disk is full')
        await this.#port.dataSync(fd)
      } finally {
        this.#port.close(fd)
        this.#port.remove(probe)
      }
    } catch (error) {
      throw storageError('Nothing can be stored', error)
    }
  }

  async close(): Promise<void> {
    this.#index.close()
  }

  /** Ids never begin with a dot, so what does is ours. */
  folderOf(scope: Scope, sessionId: string, place: Place): string {
    return join(this.#placeFolder(scope, place), requireId(sessionId, 'session id'))
  }

  #placeFolder({ tenant }: Scope, place: Place): string {
    const base = tenant === 'local' ? this.#root : join(this.#root, '.tenants', requireId(tenant, 'tenant'))
    return place === 'active' ? base : join(base, `.${place}`)
  }

  #source(scope: Scope, place: Place): IndexSource {
    return {
      folder: this.#placeFolder(scope, place),
      openLog: async (sessionId) =>
        new ReadableFileLog(this.#port, pathsInFolder(this.folderOf(scope, sessionId, place))),
    }
  }

  #find(scope: Scope, sessionId: string): LogPaths {
    const paths = pathsInFolder(this.folderOf(scope, sessionId, 'active'))
    if (!this.#port.exists(paths.log)) throw notFound(sessionId)
    return paths
  }

  async #writeHeader(path: string, header: SealedLine): Promise<void> {
    const fd = this.#port.create(path)
    try {
      const bytes = Buffer.from(`${header.text}\n`)
      if (this.#port.write(fd, bytes) < bytes.length) throw new Error('the disk is full')
      await this.#port.dataSync(fd)
    } finally {
      this.#port.close(fd)
    }
  }

  async #claimPaths(paths: LogPaths, options: ClaimOptions): Promise<Claim> {
    const attempt = await this.#lock(paths.lock)
    if (attempt.type === 'held') return { type: 'owned', owner: await readOwner(this.#port, paths.owner) }
    if (attempt.type === 'unavailable' && !options.insist)
      return { type: 'owned', owner: { reason: withoutPath(attempt.reason, paths) } }
    const isLocked = attempt.type === 'locked'
    const isOurs = (): boolean => !isLocked || attempt.lock.isIntact()
    const release = (): void => {
      if (isOurs()) this.#port.remove(paths.owner)
      if (isLocked) attempt.lock.release()
    }
    try {
      return { type: 'claimed', log: await this.#openWritable(paths, options, { isLocked, isOurs, release }) }
    } catch (error) {
      release()
      throw storageError(`The log ${paths.log} could not be opened for writing`, error)
    }
  }

  async #openWritable(paths: LogPaths, options: ClaimOptions, hold: Hold): Promise<WritableFileLog> {
    const writer = { host: hostname(), process: String(process.pid) }
    const fd = this.#port.openAppend(paths.log)
    try {
      const mended = await mendTail(this.#port, paths.log, fd, hold)
      // What is read from here on is published, so it must be durable, whoever wrote it.
      await this.#port.dataSync(fd)
      await this.#port.syncFolder(paths.folder)
      removeTemporaryFiles(this.#port, paths.blobs)
      if (paths.local !== undefined) removeTemporaryFiles(this.#port, paths.folder)
      const socket = options.socket === undefined ? {} : { socket: options.socket }
      await announceOwner(this.#port, paths.owner, { ...writer, ...socket })
      return new WritableFileLog({
        port: this.#port,
        paths,
        file: new LogFile(this.#port, { path: paths.log, fd, end: mended.end, isOurs: hold.isOurs }),
        mended,
        writer,
        hold,
      })
    } catch (error) {
      this.#port.close(fd)
      throw error
    }
  }
}

/** The index is a file of its own on the real disk; on any other file system every log is read. */
function indexFor(port: FilePort | undefined, root: string): ListIndex {
  return port ? scanIndex(port) : new SessionIndex({ file: indexFileIn(root) })
}

/** What a claim stands on. */
interface Hold {
  isLocked: boolean
  /** False once the lock file is gone from its place: deleted, replaced, or its folder renamed. */
  isOurs: () => boolean
  release: () => void
}

const places: readonly Place[] = ['active', 'archive', 'trash']

/** For what is no session yet, or no longer. */
/** Where a session lies while it is made: out of sight, under a name that says since when. */
function hiddenName(folder: string): string {
  return join(folder, unfinishedFolder, `${Date.now().toString(36)}-${randomBytes(6).toString('hex')}`)
}

const unfinishedFolder = '.new'
/** More than one page, so that a disk with room for a few bytes counts as full. */
const probeBytes = 16 * 1024
/** Making a session takes a moment; what is older was left by somebody who died. */
const unfinishedPatienceMs = 60 * 60 * 1000

function removeUnfinished(port: FilePort, folder: string): void {
  for (const name of port.names(folder)) {
    const since = Number.parseInt(name, 36)
    if (since < Date.now() - unfinishedPatienceMs) port.remove(join(folder, name))
  }
}

function folderAt(path: string): string {
  return basename(path) === logName ? dirname(path) : path
}

/** The reason is shown to clients of a server, who need not know where it keeps its sessions. */
function withoutPath(reason: string, { lock }: LogPaths): string {
  return reason.replaceAll(lock, 'its lock file')
}

function alreadyThere(sessionId: string): SessionError {
  return new SessionError('session-exists', `Session ${sessionId} exists already.`)
}

function notFound(sessionId: string): SessionError {
  return new SessionError('session-not-found', `There is no session ${sessionId}.`)
}
