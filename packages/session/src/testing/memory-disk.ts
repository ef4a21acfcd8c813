import type { FilePort } from '../stores/file/file-port.ts'
import type { LockAttempt } from '../stores/file/writer-lock.ts'
import { DiskBytes } from './disk-bytes.ts'

/** The whole disk at one moment, by inode; the root folder is inode 1. Immutable once returned. */
export type DiskState = ReadonlyMap<number, DiskNode>
export type DiskNode = DiskFile | DiskFolder

/** The visible content, the durable content, and the changes between them. */
export interface DiskFile {
  type: 'file'
  content: DiskBytes
  durable: DiskBytes
  /** Since the last sync, oldest first. */
  pending: readonly FileChange[]
}

/** `isLost`: its sync failed. The system dropped it, and later syncs will not write it. */
export type FileChange =
  | { type: 'write'; at: number; bytes: Uint8Array; isLost?: boolean }
  | { type: 'truncate'; size: number }

export interface DiskFolder {
  type: 'folder'
  names: ReadonlyMap<string, number>
  durable: ReadonlyMap<string, number>
  pending: readonly NameChange[]
}

/** One atomic change to a folder. A rename into another folder has one half in each. */
export interface NameChange {
  remove?: string
  add?: { name: string; inode: number }
  /** For a removal by rename: the new folder and inode. The old name never disappears before the new one exists. */
  moved?: { folder: number; inode: number }
}

export type DiskOperation =
  | 'openAppend'
  | 'openRead'
  | 'create'
  | 'close'
  | 'write'
  | 'truncate'
  | 'read'
  | 'dataSync'
  | 'syncFolder'
  | 'rename'
  | 'makeFolder'
  | 'remove'

/** A call that took effect, and the disk after it. */
export interface DiskStep {
  operation: DiskOperation
  path: string
  /** The inode of a call on a descriptor, and of a rename. */
  inode?: number
  /** Bytes written or read, or the size after a truncation. */
  count?: number
  state: DiskState
}

export interface DiskFault {
  operation: DiskOperation
  /** The first call from now on that fails; 1 is the next one. */
  nth: number
  /** How many calls in a row fail; default 1. */
  times?: number
  /** Only calls on paths with this suffix. */
  pathEnd?: string
  /** The error code, such as `ENOSPC`. */
  error?: string
  /** For a write: only this many bytes are written. With `error`, they are written and the call still fails. */
  short?: number
}

export interface MemoryDiskOptions {
  /** Starts from the state of another disk; nothing is open or locked. */
  state?: DiskState
  /** Records every call in `journal`. */
  journal?: boolean
}

/**
 * A file system in memory that separates what processes see from what survives a power cut, and fails on
 * request. Syncing a file makes its content durable; syncing its folder makes its name durable. A failed sync
 * loses the data it should have saved.
 */
export class MemoryDisk implements FilePort {
  readonly journal: DiskStep[] = []
  readonly #isJournaled: boolean
  #nodes: Map<number, DiskNode>
  /** The nodes were returned to a caller and must be copied before the next change. */
  #isShared: boolean
  #nextInode: number
  #nextDescriptor = 3
  readonly #open = new Map<number, OpenFile>()
  readonly #locked = new Set<string>()
  readonly #faults: ArmedFault[] = []
  readonly #watchers = new Set<{ path: string; wake: () => void }>()

  constructor({ state = emptyDisk, journal = false }: MemoryDiskOptions = {}) {
    this.#isJournaled = journal
    this.#nodes = state as Map<number, DiskNode>
    this.#isShared = true
    this.#nextInode = 2
    for (const inode of state.keys()) if (inode >= this.#nextInode) this.#nextInode = inode + 1
  }

  // For tests

  get state(): DiskState {
    this.#isShared = true
    return this.#nodes
  }

  /** The paths of the open descriptors, as they were opened. */
  get openPaths(): string[] {
    return [...this.#open.values()].map(({ path }) => path)
  }

  /** The journal as short strings, such as `write /log 12`. */
  get calls(): string[] {
    return this.journal.map(
      ({ operation, path, count }) => `${operation} ${path}${count === undefined ? '' : ` ${count}`}`,
    )
  }

  /** The content visible to processes. */
  contentOf(path: string): Uint8Array | undefined {
    const node = this.#nodeAt(path)
    return node?.type === 'file' ? node.content.view : undefined
  }

  /** Creates a durable file, with all parent folders. */
  put(path: string, content: Uint8Array | string): void {
    const bytes = DiskBytes.of(typeof content === 'string' ? Buffer.from(content) : content)
    const names = [...partsOf(path)]
    const name = names.pop() as string
    const inode = this.#newNode({ type: 'file', content: bytes, durable: bytes, pending: [] })
    this.#setDurably(this.#durableFolder(names), name, inode)
  }

  failNth(fault: DiskFault): { readonly hits: number } {
    const armed = { ...fault, seen: 0, hits: 0 }
    this.#faults.push(armed)
    return armed
  }

  clearFaults(): void {
    this.#faults.length = 0
  }

  /** Simulates a process crash: all writes stay visible, nothing is open or locked. */
  afterProcessCrash(): MemoryDisk {
    return new MemoryDisk({ state: this.state, journal: this.#isJournaled })
  }

  /** Simulates a power cut: only synced data survives. */
  afterPowerCut(): MemoryDisk {
    return new MemoryDisk({ state: onlyDurable(this.state), journal: this.#isJournaled })
  }

  /** One holder for each path, like a kernel lock. */
  readonly lock = async (path: string): Promise<LockAttempt> => {
    if (this.#locked.has(path)) return { type: 'held' }
    this.#locked.add(path)
    let isReleased = false
    const release = (): void => {
      if (!isReleased) this.#locked.delete(path)
      isReleased = true
    }
    return { type: 'locked', lock: { kind: 'ofd', isIntact: () => !isReleased, release } }
  }

  // For the store

  openAppend(path: string): number {
    return this.#openFile('openAppend', path, { isWritable: true })
  }

  openRead(path: string): number {
    return this.#openFile('openRead', path, { isWritable: false })
  }

  create(path: string): number {
    this.#failIfTold('create', path)
    const { folder, name } = this.#placeOf('create', path)
    if (this.#folder(folder).names.has(name)) throw systemError('EEXIST', 'create', path)
    const inode = this.#newNode({ type: 'file', content: DiskBytes.empty, durable: DiskBytes.empty, pending: [] })
    this.#changeNames(folder, { add: { name, inode } })
    const fd = this.#descriptor({ path, inode, isWritable: true })
    this.#step('create', path)
    return fd
  }

  close(fd: number): void {
    const { path } = this.#opened('close', fd)
    this.#open.delete(fd)
    this.#failIfTold('close', path)
    this.#step('close', path)
  }

  /** Like O_APPEND: writes at the current end. */
  write(fd: number, bytes: Uint8Array): number {
    const { path, inode, isWritable } = this.#opened('write', fd)
    if (!isWritable) throw systemError('EBADF', 'write', path)
    const fault = this.#faultFor('write', path)
    const taken = fault ? bytes.slice(0, fault.short ?? 0) : bytes.slice()
    if (taken.length > 0) this.#write(inode, taken)
    if (!fault || taken.length > 0) this.#step('write', path, { inode, count: taken.length })
    if (fault?.error !== undefined) throw systemError(fault.error, 'write', path)
    return taken.length
  }

  size(fd: number): number {
    return this.#file(this.#opened('size', fd).inode).content.size
  }

  truncate(fd: number, size: number): void {
    const { path, inode } = this.#opened('truncate', fd)
    this.#failIfTold('truncate', path)
    const file = this.#file(inode)
    if (size > file.content.size) throw systemError('EINVAL', 'truncate', path)
    this.#set(inode, {
      ...file,
      content: file.content.cut(size),
      pending: [...file.pending, { type: 'truncate', size }],
    })
    this.#step('truncate', path, { inode, count: size })
  }

  async read(fd: number, bytes: Uint8Array, position: number): Promise<number> {
    const { path, inode } = this.#opened('read', fd)
    this.#failIfTold('read', path)
    const found = this.#file(inode).content.view.subarray(position, position + bytes.length)
    bytes.set(found)
    this.#step('read', path, { inode, count: found.length })
    return found.length
  }

  async dataSync(fd: number): Promise<void> {
    const { path, inode } = this.#opened('dataSync', fd)
    const file = this.#file(inode)
    const fault = this.#faultFor('dataSync', path)
    if (fault) {
      this.#set(inode, { ...file, pending: file.pending.map(lost) })
      this.#step('dataSync', path, { inode })
      throw systemError(fault.error ?? 'EIO', 'dataSync', path)
    }
    if (file.pending.length > 0) this.#set(inode, { ...file, durable: syncedContent(file), pending: [] })
    this.#step('dataSync', path, { inode })
  }

  async syncFolder(path: string): Promise<void> {
    this.#failIfTold('syncFolder', path)
    const inode = this.#inodeAt(path)
    const folder = inode === undefined ? undefined : this.#nodes.get(inode)
    if (inode === undefined || folder?.type !== 'folder') throw systemError('ENOENT', 'syncFolder', path)
    if (folder.pending.length > 0) this.#set(inode, { ...folder, durable: folder.names, pending: [] })
    this.#step('syncFolder', path)
  }

  async rename(from: string, to: string): Promise<void> {
    this.#failIfTold('rename', from)
    const source = this.#placeOf('rename', from)
    const target = this.#placeOf('rename', to)
    const inode = this.#folder(source.folder).names.get(source.name)
    if (inode === undefined) throw systemError('ENOENT', 'rename', from)
    this.#refuseFullFolder(target, to)
    const add = { name: target.name, inode }
    if (source.folder === target.folder) this.#changeNames(source.folder, { remove: source.name, add })
    else {
      this.#changeNames(target.folder, { add })
      this.#changeNames(source.folder, { remove: source.name, moved: { folder: target.folder, inode } })
    }
    this.#step('rename', from, { inode })
    this.#wake(to)
  }

  makeFolder(path: string): void {
    this.#failIfTold('makeFolder', path)
    let inode = rootInode
    for (const name of partsOf(path)) {
      let next = this.#folder(inode).names.get(name)
      if (next === undefined) {
        next = this.#newNode(emptyFolder)
        this.#changeNames(inode, { add: { name, inode: next } })
      }
      if (this.#nodes.get(next)?.type !== 'folder') throw systemError('ENOTDIR', 'makeFolder', path)
      inode = next
    }
    this.#step('makeFolder', path)
  }

  names(path: string): string[] {
    const node = this.#nodeAt(path)
    return node?.type === 'folder' ? [...node.names.keys()] : []
  }

  exists(path: string): boolean {
    return this.#inodeAt(path) !== undefined
  }

  remove(path: string): void {
    this.#failIfTold('remove', path)
    if (this.exists(path)) {
      const { folder, name } = this.#placeOf('remove', path)
      this.#changeNames(folder, { remove: name })
    }
    this.#step('remove', path)
  }

  async changed(path: string, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    await new Promise<void>((resolve) => {
      const watcher = { path, wake: resolve }
      this.#watchers.add(watcher)
      const stop = (): void => {
        this.#watchers.delete(watcher)
        resolve()
      }
      signal.addEventListener('abort', stop, { once: true })
    })
  }

  // Internals

  #openFile(operation: DiskOperation, path: string, { isWritable }: { isWritable: boolean }): number {
    this.#failIfTold(operation, path)
    const inode = this.#inodeAt(path)
    if (inode === undefined) throw systemError('ENOENT', operation, path)
    if (this.#nodes.get(inode)?.type !== 'file') throw systemError('EISDIR', operation, path)
    const fd = this.#descriptor({ path, inode, isWritable })
    this.#step(operation, path)
    return fd
  }

  #descriptor(file: OpenFile): number {
    const fd = this.#nextDescriptor++
    this.#open.set(fd, file)
    return fd
  }

  #opened(operation: string, fd: number): OpenFile {
    const file = this.#open.get(fd)
    if (!file) throw systemError('EBADF', operation, `descriptor ${fd}`)
    return file
  }

  #write(inode: number, bytes: Uint8Array): void {
    const file = this.#file(inode)
    this.#set(inode, {
      ...file,
      content: file.content.append(bytes),
      pending: [...file.pending, { type: 'write', at: file.content.size, bytes }],
    })
  }

  #changeNames(inode: number, change: NameChange): void {
    const folder = this.#folder(inode)
    this.#set(inode, { ...folder, names: withChange(folder.names, change), pending: [...folder.pending, change] })
  }

  #setDurably(inode: number, name: string, child: number): void {
    const folder = this.#folder(inode)
    const durable = new Map(folder.durable).set(name, child)
    const names = folder.pending.length === 0 ? durable : new Map(folder.names).set(name, child)
    this.#set(inode, { ...folder, names, durable })
  }

  #durableFolder(names: readonly string[]): number {
    let inode = rootInode
    for (const name of names) {
      const next = this.#folder(inode).names.get(name) ?? this.#newNode(emptyFolder)
      this.#setDurably(inode, name, next)
      inode = next
    }
    return inode
  }

  #refuseFullFolder({ folder, name }: { folder: number; name: string }, path: string): void {
    const there = this.#nodes.get(this.#folder(folder).names.get(name) ?? -1)
    if (there?.type === 'folder' && there.names.size > 0) throw systemError('ENOTEMPTY', 'rename', path)
  }

  #newNode(node: DiskNode): number {
    const inode = this.#nextInode++
    this.#set(inode, node)
    return inode
  }

  #set(inode: number, node: DiskNode): void {
    if (this.#isShared) this.#nodes = new Map(this.#nodes)
    this.#isShared = false
    this.#nodes.set(inode, node)
  }

  #file(inode: number): DiskFile {
    return this.#nodes.get(inode) as DiskFile
  }

  #folder(inode: number): DiskFolder {
    return this.#nodes.get(inode) as DiskFolder
  }

  #nodeAt(path: string): DiskNode | undefined {
    return this.#nodes.get(this.#inodeAt(path) ?? -1)
  }

  #inodeAt(path: string): number | undefined {
    return inodeAt(this.#nodes, path)
  }

  #placeOf(operation: DiskOperation, path: string): { folder: number; name: string } {
    const { parent, name } = splitPath(path)
    const folder = this.#inodeAt(parent)
    if (folder === undefined || name === '') throw systemError('ENOENT', operation, path)
    if (this.#nodes.get(folder)?.type !== 'folder') throw systemError('ENOTDIR', operation, path)
    return { folder, name }
  }

  #failIfTold(operation: DiskOperation, path: string): void {
    const fault = this.#faultFor(operation, path)
    if (fault) throw systemError(fault.error ?? 'EIO', operation, path)
  }

  #faultFor(operation: DiskOperation, path: string): ArmedFault | undefined {
    let hit: ArmedFault | undefined
    for (const fault of this.#faults) {
      if (fault.operation !== operation || !path.endsWith(fault.pathEnd ?? '')) continue
      fault.seen++
      if (fault.seen < fault.nth || fault.seen >= fault.nth + (fault.times ?? 1)) continue
      fault.hits++
      hit ??= fault
    }
    return hit
  }

  #step(operation: DiskOperation, path: string, details: { inode?: number; count?: number } = {}): void {
    if (this.#isJournaled) this.journal.push({ operation, path, ...details, state: this.state })
    if (operation === 'write' || operation === 'truncate') this.#wake(path)
  }

  #wake(path: string): void {
    for (const watcher of this.#watchers) {
      if (watcher.path !== path) continue
      this.#watchers.delete(watcher)
      watcher.wake()
    }
  }
}

/** The inode of a path on a disk. */
export function inodeAt(state: DiskState, path: string): number | undefined {
  let inode: number | undefined = rootInode
  for (const name of partsOf(path)) {
    const node: DiskNode | undefined = state.get(inode)
    inode = node?.type === 'folder' ? node.names.get(name) : undefined
    if (inode === undefined) return undefined
  }
  return inode
}

/** The disk with only its durable content. */
export function onlyDurable(state: DiskState): DiskState {
  const nodes = new Map<number, DiskNode>()
  for (const [inode, node] of state) {
    if (node.type === 'file') nodes.set(inode, node.content === node.durable ? node : settledFile(node.durable))
    else nodes.set(inode, node.names === node.durable ? node : settledFolder(node.durable))
  }
  return nodes
}

export function settledFile(content: DiskBytes): DiskFile {
  return { type: 'file', content, durable: content, pending: [] }
}

export function settledFolder(names: ReadonlyMap<string, number>): DiskFolder {
  return { type: 'folder', names, durable: names, pending: [] }
}

export function withChange(names: ReadonlyMap<string, number>, change: NameChange): ReadonlyMap<string, number> {
  const result = new Map(names)
  if (change.remove !== undefined) result.delete(change.remove)
  if (change.add) result.set(change.add.name, change.add.inode)
  return result
}

/** A write after the end leaves a hole of zeros. */
export function withFileChange(content: DiskBytes, change: FileChange): DiskBytes {
  if (change.type === 'truncate') return content.cut(change.size)
  const hole = change.at - content.size
  const before = hole > 0 ? content.append(new Uint8Array(hole)) : content.cut(change.at)
  return before.append(change.bytes)
}

interface OpenFile {
  path: string
  inode: number
  isWritable: boolean
}

interface ArmedFault extends DiskFault {
  seen: number
  hits: number
}

const rootInode = 1
const emptyFolder: DiskFolder = settledFolder(new Map())
const emptyDisk: DiskState = new Map([[rootInode, emptyFolder]])

/** The content that a sync makes durable: everything visible, except changes that an earlier failed sync lost. */
function syncedContent(file: DiskFile): DiskBytes {
  const kept = file.pending.filter((change) => change.type === 'truncate' || !change.isLost)
  return kept.length === file.pending.length ? file.content : kept.reduce(withFileChange, file.durable)
}

function lost(change: FileChange): FileChange {
  return change.type === 'write' ? { ...change, isLost: true } : change
}

/** Caches the split paths. */
const knownParts = new Map<string, readonly string[]>()
const maxKnownParts = 10_000

function partsOf(path: string): readonly string[] {
  const known = knownParts.get(path)
  if (known) return known
  const parts = path.split(/[\\/]+/).filter((part) => part !== '')
  if (knownParts.size >= maxKnownParts) knownParts.clear()
  knownParts.set(path, parts)
  return parts
}

function splitPath(path: string): { parent: string; name: string } {
  const end = Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\'))
  return { parent: path.slice(0, Math.max(end, 0)), name: path.slice(end + 1) }
}

const errorNumbers: Record<string, number> = {
  ENOENT: -2,
  EINTR: -4,
  EIO: -5,
  EBADF: -9,
  EEXIST: -17,
  ENOSPC: -28,
  EDQUOT: -122,
}

function systemError(code: string, operation: string, path: string): NodeJS.ErrnoException {
  const message = `${code}: injected failure of the modeled disk, ${operation} '${path}'`
  return Object.assign(new Error(message), { code, errno: errorNumbers[code] ?? -1, syscall: operation, path })
}
