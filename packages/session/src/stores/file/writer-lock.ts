// The kernel lock that makes one process the writer of a session. The kernel releases it when the process ends;
// no timeouts are involved.
import { closeSync, constants, fstatSync, lstatSync, openSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

export type LockKind = 'ofd' | 'sqlite'

export interface WriterLock {
  readonly kind: LockKind
  /** False if the file at the path is no longer the locked one: deleted, replaced, folder renamed, or released. */
  isIntact(): boolean
  release(): void
}

export type LockAttempt =
  | { type: 'locked'; lock: WriterLock }
  | { type: 'held' }
  | { type: 'unavailable'; reason: string }

export interface WriterLockOptions {
  /** Tried in this order; the next one only if the previous one is unavailable. */
  kinds?: readonly LockKind[]
}

/**
 * Locks the file at the path, creating it if needed, and never waits. The two kinds exclude each other, so
 * processes with and without the native package can coexist. While a lock is held, nothing else in the process
 * may open that file, not even to copy it: closing it would release a lock of kind `sqlite`.
 */
export async function acquireWriterLock(path: string, options: WriterLockOptions = {}): Promise<LockAttempt> {
  const reasons: string[] = []
  for (const kind of options.kinds ?? ['ofd', 'sqlite']) {
    try {
      const lockFile = kind === 'ofd' ? await loadOfd() : lockWithSqlite
      return acquire(resolve(path), kind, lockFile)
    } catch (error) {
      reasons.push(`${kind}: ${(error as Error).message}`)
    }
  }
  return { type: 'unavailable', reason: `No kernel lock is available for ${path} (${reasons.join('; ')}).` }
}

type FileLock =
  | { type: 'locked'; identity: string; unlock: () => void }
  | { type: 'held' }
  /** Locked, but the file at the path was deleted or replaced in the meantime. */
  | { type: 'replaced' }

type LockFile = (path: string) => FileLock

const attemptLimit = 10

/**
 * Locks held by this process, by path and by inode. Checking here instead of the kernel keeps a second attempt
 * from opening the file. The entry also keeps a SQLite lock from being garbage-collected with its database.
 */
const heldHere = new Map<string, () => void>()

/** Whether this process holds the lock at this path. */
export function isHeldHere(path: string): boolean {
  return heldHere.has(identityAt(path))
}

/** Synchronous: no other attempt of this process can come between the check of `heldHere` and the entry into it. */
function acquire(path: string, kind: LockKind, lockFile: LockFile): LockAttempt {
  const realPath = join(realpathSync(dirname(path)), basename(path))
  for (let attempt = 0; attempt < attemptLimit; attempt += 1) {
    if (heldHere.has(realPath) || heldHere.has(identityAt(path))) return { type: 'held' }
    const result = lockFile(path)
    if (result.type === 'held') return result
    if (result.type === 'replaced') continue
    const { identity, unlock } = result
    const release = (): void => {
      heldHere.delete(realPath)
      heldHere.delete(identity)
      unlock()
    }
    heldHere.set(realPath, release).set(identity, release)
    return { type: 'locked', lock: new KernelLock({ kind, path, identity, release }) }
  }
  throw new Error(`the file was replaced ${attemptLimit} times while it was being locked`)
}

class KernelLock implements WriterLock {
  readonly kind: LockKind
  readonly #path: string
  readonly #identity: string
  readonly #release: () => void
  #isReleased = false

  constructor(held: { kind: LockKind; path: string; identity: string; release: () => void }) {
    this.kind = held.kind
    this.#path = held.path
    this.#identity = held.identity
    this.#release = held.release
  }

  isIntact(): boolean {
    return !this.#isReleased && isAt(this.#path, this.#identity)
  }

  release(): void {
    // A descriptor closed twice could belong to another file by then.
    if (this.#isReleased) return
    this.#isReleased = true
    this.#release()
  }
}

/** Rejects if the package is not installed or has no build for this machine. */
async function loadOfd(): Promise<LockFile> {
  const { tryLock, unlock } = await import('fs-native-extensions')
  return (path) => {
    const descriptor = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
    let isKept = false
    try {
      if (!tryLock(descriptor)) return { type: 'held' }
      const identity = identityOf(fstatSync(descriptor, { bigint: true }))
      if (!isAt(path, identity)) return { type: 'replaced' }
      isKept = true
      return { type: 'locked', identity, unlock: () => unlockOfd(descriptor, unlock) }
    } finally {
      if (!isKept) closeSync(descriptor)
    }
  }
}

/** Unlocks explicitly: a child process being started may still hold a copy of the descriptor. */
function unlockOfd(descriptor: number, unlock: (descriptor: number) => void): void {
  try {
    unlock(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/**
 * `BEGIN IMMEDIATE` excludes others like `BEGIN EXCLUSIVE`, but of two concurrent attempts exactly one
 * succeeds; with `EXCLUSIVE` each can refuse the other. Nothing is ever written: the file stays empty, and its
 * journal is in memory.
 */
function lockWithSqlite(path: string): FileLock {
  makeLockFile(path)
  const identity = identityAt(path)
  const database = new DatabaseSync(path, { timeout: 0 })
  let isKept = false
  try {
    if (!beginImmediate(database)) return { type: 'held' }
    if (!isAt(path, identity)) return { type: 'replaced' }
    isKept = true
    return { type: 'locked', identity, unlock: () => database.close() }
  } finally {
    if (!isKept) database.close()
  }
}

function beginImmediate(database: DatabaseSync): boolean {
  try {
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN IMMEDIATE')
    return true
  } catch (error) {
    if ((error as { errcode?: number }).errcode === sqliteBusy) return false
    throw error
  }
}

const sqliteBusy = 5

/**
 * SQLite would follow a symbolic link, and create a file that others can read. An existing file is not opened:
 * closing it would release the lock of another thread of this process.
 */
function makeLockFile(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) throw new Error('it is a symbolic link')
  try {
    closeSync(openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL, 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

function isAt(path: string, identity: string): boolean {
  const there = identityAt(path)
  return there !== '' && there === identity
}

/** Empty if the file is missing or inaccessible. */
function identityAt(path: string): string {
  try {
    return identityOf(lstatSync(path, { bigint: true }))
  } catch {
    return '' // missing or inaccessible: not a file that we hold
  }
}

function identityOf({ dev, ino }: { dev: bigint; ino: bigint }): string {
  return `inode ${dev}:${ino}`
}
