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
  /** For tests: a different file system, lock or index. */
  port?: FilePort
  lock?: (path: string) => Promise<LockAttempt>
  index?: ListIndex
}

/** Stores sessions as files below a folder, one folder each. */
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
  #recovered: Promise<void> | undefined
  /** Hidden sessions whose erase has not resolved yet. Erasing them again finishes, or confirms that they are gone. */
  readonly #unconfirmed = new Set<string>()

  constructor(options: FileStoreOptions) {
    this.#root = resolve(options.folder)
    this.#port = options.port ?? nodeFilePort()
    this.#lock = options.lock ?? acquireWriterLock
    this.#index = options.index ?? indexFor(options.port, this.#root)
    this.#folders = new DurableFolders(this.#port, this.#root)
  }

  /** Creates under a hidden name and renames, so that a session exists completely or not at all. */
  async create(scope: Scope, sessionId: string, header: SealedLine): Promise<void> {
    await this.#recover()
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
      // Another process created it first: rename only replaces a missing or empty folder.
      if (made === temporary && (await this.placeOf(scope, sessionId))) throw alreadyThere(sessionId)
      throw storageError(`Could not create session ${sessionId}`, error)
    }
  }

  async discard(scope: Scope, sessionId: string): Promise<void> {
    const folder = this.folderOf(scope, sessionId, 'active')
    const lock = this.#port.exists(folder) ? await this.#lock(join(folder, 'lock')) : undefined
    if (lock?.type === 'held') throw new SessionError('session-owned', `Session ${sessionId} is open. Close it first.`)
    const temporary = join(dirname(folder), unfinishedFolder, `${discardedPrefix}${randomBytes(6).toString('hex')}`)
    // Hidden in one step, if possible.
    const gone = await this.#port.rename(folder, temporary).then(
      () => temporary,
      () => folder,
    )
    this.#port.remove(gone)
    if (lock?.type === 'locked') lock.lock.release()
  }

  async open(scope: Scope, sessionId: string, place?: Place): Promise<ReadableLog> {
    const paths = this.#find(scope, sessionId, place)
    try {
      return new ReadableFileLog(this.#port, paths)
    } catch (error) {
      throw storageError(`Could not read session ${sessionId}`, error)
    }
  }

  async claim(scope: Scope, sessionId: string, options: ClaimOptions = {}): Promise<Claim> {
    await this.#recover()
    const paths = this.#find(scope, sessionId)
    try {
      // The process that created or moved it may have died before syncing the folder.
      await this.#folders.make(dirname(paths.folder))
      await this.#port.syncFolder(dirname(paths.folder))
    } catch (error) {
      throw storageError(`Could not open session ${sessionId} for writing`, error)
    }
    return this.#claimPaths(paths, options)
  }

  /** Opens a session folder, or a log by its own path. */
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
    await this.#recover()
    return this.#index.list(this.#source(scope, query.place ?? 'active'), query)
  }

  async search(scope: Scope, query: SearchQuery): Promise<SearchHit[]> {
    await this.#recover()
    return this.#index.search(this.#source(scope, query.place ?? 'active'), query)
  }

  async placeOf(scope: Scope, sessionId: string): Promise<Place | undefined> {
    return places.find((place) => this.#port.exists(join(this.folderOf(scope, sessionId, place), logName)))
  }

  async storedBytes(scope: Scope, query: Pick<SessionQuery, 'isVisible'> = {}): Promise<number> {
    let bytes = 0
    for (const place of places) {
      const { sessions } = await this.list(scope, { ...query, place, limit: Infinity })
      for (const { id } of sessions) bytes += sizeOf(this.#port, this.folderOf(scope, id, place))
    }
    return bytes
  }

  async move(scope: Scope, sessionId: string, place: Place): Promise<void> {
    const from = await this.placeOf(scope, sessionId)
    if (!from) throw notFound(sessionId)
    if (from === place) return this.#syncPlaces(scope)
    const folder = this.folderOf(scope, sessionId, from)
    const lock = await this.#lock(join(folder, 'lock'))
    if (lock.type === 'held')
      throw new SessionError('session-owned', `Session ${sessionId} is open and cannot be moved. Close it first.`)
    try {
      const target = this.folderOf(scope, sessionId, place)
      await this.#folders.make(dirname(target))
      await this.#port.rename(folder, target)
      await this.#port.syncFolder(dirname(target))
      await this.#port.syncFolder(dirname(folder))
    } catch (error) {
      throw storageError(`Could not move session ${sessionId} to ${place}`, error)
    } finally {
      if (lock.type === 'locked') lock.lock.release()
    }
  }

  /**
   * Hides the session in one step: renames its folder into `.erasing`. Then deletes the index, and last the folder,
   * so that after a crash the folder tells what is left to do.
   */
  async erase(scope: Scope, sessionId: string): Promise<void> {
    await this.#recover()
    const place = await this.placeOf(scope, sessionId)
    const doomed = await this.#lockErasures()
    try {
      if (place) doomed.push(await this.#hide(scope, sessionId, place))
      else if (!this.#unconfirmed.has(erasureKey(scope, sessionId))) throw notFound(sessionId)
      await this.#finishErasures(doomed)
      this.#unconfirmed.delete(erasureKey(scope, sessionId))
    } catch (error) {
      if (error instanceof SessionError) throw error
      throw storageError(`Could not erase session ${sessionId} completely; try again`, error)
    } finally {
      for (const { release } of doomed) release()
    }
  }

  async #hide(scope: Scope, sessionId: string, place: Place): Promise<Erasure> {
    const folder = this.folderOf(scope, sessionId, place)
    const lock = await this.#lock(join(folder, 'lock'))
    if (lock.type === 'held')
      throw new SessionError('session-owned', `Session ${sessionId} is open and cannot be erased. Close it first.`)
    const release = (): void => (lock.type === 'locked' ? lock.lock.release() : undefined)
    try {
      // Discarded copies of this session that a dead process did not remove.
      removeUnfinished(this.#port, join(this.#placeFolder(scope, 'active'), unfinishedFolder))
      const hidden = this.#erasurePath(scope, sessionId)
      await this.#folders.make(dirname(hidden))
      await this.#port.rename(folder, hidden)
      this.#unconfirmed.add(erasureKey(scope, sessionId))
      await this.#port.syncFolder(dirname(hidden))
      await this.#port.syncFolder(dirname(folder))
      return { folder: hidden, release }
    } catch (error) {
      release()
      throw error
    }
  }

  /** Locks the erasures that a dead process left behind. Those of other processes are left to them. */
  async #lockErasures(): Promise<Erasure[]> {
    const doomed: Erasure[] = []
    for (const name of this.#erasures()) {
      const folder = join(this.#root, erasingFolder, name)
      const lock = await this.#lock(join(folder, 'lock'))
      if (lock.type === 'held') continue
      this.#unconfirmed.add(name.slice(0, name.lastIndexOf(erasureSeparator)))
      doomed.push({ folder, release: () => (lock.type === 'locked' ? lock.lock.release() : undefined) })
    }
    return doomed
  }

  async #finishErasures(doomed: readonly Erasure[]): Promise<void> {
    if (doomed.length > 0) {
      await this.#index.purge()
      await this.#port.syncFolder(this.#root)
    }
    for (const { folder } of doomed) this.#port.remove(folder)
    await this.#port.syncFolder(join(this.#root, erasingFolder))
  }

  #erasures(): string[] {
    return this.#port.names(join(this.#root, erasingFolder))
  }

  #erasurePath(scope: Scope, sessionId: string): string {
    const name = [erasureKey(scope, sessionId), randomBytes(6).toString('hex')].join(erasureSeparator)
    return join(this.#root, erasingFolder, name)
  }

  /**
   * Finishes what a dead process left, once for each store. A failure is not reported here: the sessions are hidden
   * already, and the next erase reports it.
   */
  #recover(): Promise<void> {
    this.#recovered ??= (async (): Promise<void> => {
      if (this.#erasures().length === 0) return
      const doomed = await this.#lockErasures()
      try {
        await this.#finishErasures(doomed)
      } finally {
        for (const { release } of doomed) release()
      }
    })().catch(() => undefined)
    return this.#recovered
  }

  /** An earlier attempt may have moved a session and then failed to sync. */
  async #syncPlaces(scope: Scope): Promise<void> {
    for (const folder of places
      .map((place) => this.#placeFolder(scope, place))
      .filter((each) => this.#port.exists(each))) {
      await this.#port.syncFolder(folder).catch((error: unknown) => {
        throw storageError(`Could not sync the folder ${folder}`, error)
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

  /** Ids never begin with a dot, so names that do are ours. */
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

  #find(scope: Scope, sessionId: string, place: Place = 'active'): LogPaths {
    const paths = pathsInFolder(this.folderOf(scope, sessionId, place))
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
    if (attempt.type === 'unavailable' && !this.#port.exists(paths.log)) {
      throw new SessionError('session-not-found', 'Another process moved or erased the session meanwhile.')
    }
    if (attempt.type === 'unavailable' && !options.insist)
      return { type: 'owned', owner: { reason: withoutPath(attempt.reason, paths), cannotLock: true } }
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
      throw storageError(`Could not open the log ${paths.log} for writing`, error)
    }
  }

  async #openWritable(paths: LogPaths, options: ClaimOptions, hold: Hold): Promise<WritableFileLog> {
    const writer = { host: hostname(), process: String(process.pid) }
    const fd = this.#port.openAppend(paths.log)
    try {
      const mended = await mendTail(this.#port, paths.log, fd, hold)
      // Lines are published from here on, so they must be durable, even if another process wrote them.
      await this.#port.dataSync(fd)
      await this.#port.syncFolder(paths.folder)
      removeTemporaryFiles(this.#port, paths.blobs)
      if (paths.local !== undefined) removeTemporaryFiles(this.#port, paths.folder)
      const address = options.address === undefined ? {} : { address: options.address }
      await announceOwner(this.#port, paths.owner, { ...writer, ...address })
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

/** The index lives on the real disk; on other file systems every log is read. */
function indexFor(port: FilePort | undefined, root: string): ListIndex {
  return port ? scanIndex(port) : new SessionIndex({ file: indexFileIn(root) })
}

/** The lock that a claim holds. */
interface Hold {
  isLocked: boolean
  /** False once the lock file was deleted or replaced, or its folder renamed. */
  isOurs: () => boolean
  release: () => void
}

/** A session that is being erased. */
interface Erasure {
  folder: string
  release: () => void
}

/** Erased and discarded sessions, until nothing of them is left. */
const erasingFolder = '.erasing'
/** Not part of any id. */
const erasureSeparator = '~'

function erasureKey({ tenant }: Scope, sessionId: string): string {
  return [tenant, sessionId].join(erasureSeparator)
}

/** The size of a file, or of all files in a folder. What vanishes meanwhile does not count. */
function sizeOf(port: FilePort, path: string): number {
  let fd: number
  try {
    fd = port.openRead(path)
  } catch {
    // It is a folder, gone, or nothing that has a size.
    return namesIn(port, path).reduce((sum, name) => sum + sizeOf(port, join(path, name)), 0)
  }
  try {
    return port.size(fd)
  } finally {
    port.close(fd)
  }
}

function namesIn(port: FilePort, path: string): string[] {
  try {
    return port.names(path)
  } catch {
    return []
  }
}

const places: readonly Place[] = ['active', 'archive', 'trash']

/** Hidden path of a session while it is created; the name includes the creation time. */
function hiddenName(folder: string): string {
  return join(folder, unfinishedFolder, `${Date.now().toString(36)}-${randomBytes(6).toString('hex')}`)
}

const unfinishedFolder = '.new'
/** Not part of a creation time. */
const discardedPrefix = '~'
/** More than one page, so that a disk with room for only a few bytes counts as full. */
const probeBytes = 16 * 1024
/** Creating a session takes a moment; older leftovers belong to a process that died. */
const unfinishedPatienceMs = 60 * 60 * 1000

function removeUnfinished(port: FilePort, folder: string): void {
  for (const name of port.names(folder)) {
    const since = Number.parseInt(name, 36)
    if (name.startsWith(discardedPrefix) || since < Date.now() - unfinishedPatienceMs) port.remove(join(folder, name))
  }
}

function folderAt(path: string): string {
  return basename(path) === logName ? dirname(path) : path
}

/** Servers show the reason to clients, which must not learn where sessions are stored. */
function withoutPath(reason: string, { lock }: LogPaths): string {
  return reason.replaceAll(lock, 'its lock file')
}

function alreadyThere(sessionId: string): SessionError {
  return new SessionError('session-exists', `Session ${sessionId} exists already.`)
}

function notFound(sessionId: string): SessionError {
  return new SessionError('session-not-found', `There is no session ${sessionId}.`)
}
