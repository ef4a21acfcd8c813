import { createHash } from 'node:crypto'
import { constants, type BigIntStats } from 'node:fs'
import {
  chmod,
  copyFile,
  link,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  rmdir,
  symlink,
} from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { confirmPath, descriptorPath, hasDescriptorPaths } from '../tools/files/confirm-path.ts'
import { hasCode } from '../tools/tool-problem.ts'
import type { FileChange, FileVersion } from './file-versions.ts'
import { stagingName, type SnapshotStore } from './snapshot-store.ts'

export interface RestoreOptions {
  store: SnapshotStore
  restoreId: string
  /** The tree that has the versions `to`. */
  tree: string
  /** For tests: called before each change of the workspace. */
  onStep?: (step: string) => void | Promise<void>
}

export interface RestoreResult {
  changed: string[]
  /** Someone changed or created these in the meantime. They stay as they are. */
  skipped: string[]
  /** Versions that were written to a file while it was being replaced: the path, and the place of the copy. */
  keptCopies: { path: string; copy: string }[]
}

/**
 * Puts files to their target. Whatever is at a path is moved aside first and only deleted if it is the version that is
 * to be replaced, so that a save at any moment is never lost.
 */
export async function applyRestore(changes: readonly FileChange[], options: RestoreOptions): Promise<RestoreResult> {
  const { store, restoreId, tree } = options
  await cleanStaging(store)
  const staging = new Staging(store.root, restoreId)
  const written = changes.filter(({ to }) => to !== undefined)
  await mkdir(staging.fresh, { recursive: true, mode: 0o700 })
  await options.onStep?.('extract')
  const paths = written.map(({ path }) => path)
  if (paths.length > 0) await store.extract(tree, paths, staging.fresh)
  await syncAll(written.filter(({ to }) => to?.mode !== 'link').map(({ path }) => join(staging.fresh, path)))

  const result: RestoreResult = { changed: [], skipped: [], keptCopies: [] }
  const work = new Work(staging, options, result)
  // A file may have to make room for a folder, so removals come first; the deepest first, so that folders become empty.
  const removed = changes.filter(({ to }) => to === undefined).toSorted((a, b) => (a.path < b.path ? 1 : -1))
  for (const change of removed) await work.remove(change)
  for (const change of written) await work.write(change)
  await work.finish()
  return result
}

/**
 * Clears up after a restore that was killed: a file that was moved aside and not replaced returns to its place. Of the
 * others, a version that the store does not have is copied into it.
 */
export async function cleanStaging(store: SnapshotStore): Promise<void> {
  const folder = join(store.root, stagingName)
  for (const restoreId of await readdir(folder).catch(() => [])) {
    const { old } = new Staging(store.root, restoreId)
    for (const path of await filesBelow(old)) {
      const place = join(store.root, path)
      await mkdir(dirname(place), { recursive: true }).catch(() => undefined)
      try {
        await placeWithoutReplacing(join(old, path), place)
      } catch (error) {
        // Otherwise the next attempt finds the file here.
        if (!hasCode(error, 'EEXIST', 'ENOENT', 'ENOTDIR')) throw error
        await keepUnknown(store, { restoreId, path, file: join(old, path) })
      }
    }
  }
  await rm(folder, { recursive: true, force: true })
}

async function keepUnknown(
  store: SnapshotStore,
  moved: { restoreId: string; path: string; file: string },
): Promise<void> {
  if (!(await lstat(moved.file)).isFile()) return
  const bytes = await readFile(moved.file)
  const like = '0'.repeat(store.idLength)
  if (!(await store.hasVersion(blobId(bytes, like)))) await keepCopy(store, moved, bytes)
}

async function keepCopy(
  store: SnapshotStore,
  { restoreId, path }: { restoreId: string; path: string },
  bytes: Buffer,
): Promise<string> {
  const copy = join(store.path, 'kept', restoreId, path)
  await mkdir(dirname(copy), { recursive: true, mode: 0o700 })
  await using file = await open(copy, 'w', 0o600)
  await file.writeFile(bytes)
  await file.sync()
  return copy
}

/** The folder of a restore inside of the workspace: on the same file system, so that files can be moved. */
class Staging {
  readonly root: string
  readonly folder: string
  readonly fresh: string
  readonly old: string

  constructor(root: string, restoreId: string) {
    this.root = root
    this.folder = join(root, stagingName, restoreId)
    this.fresh = join(this.folder, 'new')
    this.old = join(this.folder, 'old')
  }
}

class Work {
  readonly #staging: Staging
  readonly #options: RestoreOptions
  readonly #result: RestoreResult
  /** What was moved aside, to look at it once more at the end: a program may still have it open. */
  readonly #moved: { path: string; expected: FileVersion }[] = []

  constructor(staging: Staging, options: RestoreOptions, result: RestoreResult) {
    this.#staging = staging
    this.#options = options
    this.#result = result
  }

  async remove({ path, from }: FileChange): Promise<void> {
    await using folder = await this.#folderOf(path, false)
    if (!folder) return this.#done(path)
    if (from && !(await this.#moveAside(path, from, folder.place))) return
    this.#done(path)
    await this.#removeEmptyFolders(path)
  }

  async write({ path, from, to }: FileChange): Promise<void> {
    if (!to) return
    await using folder = await this.#folderOf(path, true)
    if (!folder) return this.#skip(path)
    const fresh = join(this.#staging.fresh, path)
    const current = await lstat(folder.place).catch(() => undefined)
    if (from && from.id === to.id && from.mode !== 'link' && to.mode !== 'link' && current?.isFile()) {
      await this.#options.onStep?.(`mode ${path}`)
      await chmod(folder.place, withExecutable(current.mode, to.mode === 'executable'))
      return this.#done(path)
    }
    if (current?.isDirectory() && !from) {
      await this.#options.onStep?.(`rmdir ${path}`)
      if (!(await removeEmptyFolder(folder.place))) return this.#skip(path)
    }
    if (from) {
      if (current && to.mode !== 'link' && current.isFile())
        await chmod(fresh, withExecutable(current.mode, to.mode === 'executable'))
      if (!(await this.#moveAside(path, from, folder.place))) return
    }
    await this.#options.onStep?.(`place ${path}`)
    try {
      await placeWithoutReplacing(fresh, folder.place)
      this.#done(path)
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) throw error
      this.#skip(path)
    }
  }

  /** Looks at everything that was moved aside once more, and cleans up. */
  async finish(): Promise<void> {
    await this.#options.onStep?.('finish')
    for (const { path, expected } of this.#moved) {
      const old = join(this.#staging.old, path)
      if (await isVersion(old, expected)) continue
      if (!(await lstat(old)).isFile() || (await isSameFile(old, join(this.#staging.root, path)))) continue
      const { store, restoreId } = this.#options
      this.#result.keptCopies.push({ path, copy: await keepCopy(store, { restoreId, path }, await readFile(old)) })
    }
    await this.#options.onStep?.('clean up')
    await rm(this.#staging.folder, { recursive: true, force: true })
    await rmdir(dirname(this.#staging.folder)).catch(() => undefined)
  }

  /** False if the path does not have the expected version. Then it stays as it is. */
  async #moveAside(path: string, expected: FileVersion, place: string): Promise<boolean> {
    const before = await versionStats(place, expected)
    if (before === 'missing') return true
    if (before === 'other') {
      this.#skip(path)
      return false
    }
    const old = join(this.#staging.old, path)
    await mkdir(dirname(old), { recursive: true, mode: 0o700 })
    await this.#options.onStep?.(`move ${path}`)
    try {
      await rename(place, old)
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return true
      throw error
    }
    this.#moved.push({ path, expected })
    const after = await lstat(old, { bigint: true })
    const isSame = after.ino === before.ino && after.size === before.size && after.mtimeNs === before.mtimeNs
    if (isSame) return true
    // Saved between the look and the move.
    await this.#options.onStep?.(`return ${path}`)
    await placeWithoutReplacing(old, place).catch(() => undefined)
    this.#skip(path)
    return false
  }

  #done(path: string): void {
    this.#result.changed.push(path)
  }

  #skip(path: string): void {
    this.#result.skipped.push(path)
  }

  /** The folder of a path, held open, so that a folder which is replaced by a link cannot lead elsewhere. */
  async #folderOf(path: string, make: boolean): Promise<HeldFolder | undefined> {
    const { root } = this.#staging
    const names = dirname(path) === '.' ? [] : dirname(path).split('/')
    let folder = root
    for (const name of names) {
      folder = join(folder, name)
      if (make) {
        await this.#options.onStep?.(`mkdir ${folder}`)
        await mkdir(folder).catch(() => undefined)
      }
      const stats = await lstat(folder).catch(() => undefined)
      if (!stats?.isDirectory()) return undefined
    }
    if (!hasDescriptorPaths) return { place: join(root, path), [Symbol.asyncDispose]: async () => undefined }
    const handle = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
    try {
      await confirmPath(handle, folder)
    } catch (error) {
      await handle.close()
      throw error
    }
    return { place: join(descriptorPath(handle), basename(path)), [Symbol.asyncDispose]: () => handle.close() }
  }

  /** The workspace itself stays, also if it is a folder of a repository. */
  async #removeEmptyFolders(path: string): Promise<void> {
    const { prefix } = this.#options.store
    for (let folder = dirname(path); folder !== '.' && folder.startsWith(prefix); folder = dirname(folder)) {
      const isRemoved = await rmdir(join(this.#staging.root, folder)).then(
        () => true,
        () => false,
      )
      if (!isRemoved) return
    }
  }
}

/** Puts a file or link at a place that is free. Throws `EEXIST` if someone has created something there. */
async function placeWithoutReplacing(file: string, place: string): Promise<void> {
  if ((await lstat(file)).isSymbolicLink()) return symlink(await readlink(file), place)
  try {
    await link(file, place)
  } catch (error) {
    if (hasCode(error, 'EEXIST', 'ENOENT')) throw error
    // Some file systems have no hard links.
    await copyFile(file, place, constants.COPYFILE_EXCL)
  }
}

/** Empty folders are not part of a snapshot, so a folder with nothing else in it gives way. False if something is in it. */
async function removeEmptyFolder(place: string): Promise<boolean> {
  const inside = await readdir(place, { recursive: true, withFileTypes: true }).catch(() => undefined)
  if (!inside?.every((entry) => entry.isDirectory())) return false
  const below = inside.map(({ parentPath, name }) => join(parentPath, name))
  // The deepest first. None of them is removed that has been filled in the meantime.
  for (const folder of [...below.toReversed(), place])
    if (
      !(await rmdir(folder).then(
        () => true,
        () => false,
      ))
    )
      return false
  return true
}

interface HeldFolder extends AsyncDisposable {
  /** The path itself, through the held folder. */
  place: string
}

function withExecutable(mode: number, isExecutable: boolean): number {
  const permissions = mode & 0o777
  // Every class of users that may read the file may run it.
  return isExecutable ? permissions | ((permissions & 0o444) >> 2) : permissions & ~0o111
}

/** The attributes of the file, taken before it was read, if it has this version. */
async function versionStats(place: string, expected: FileVersion): Promise<BigIntStats | 'missing' | 'other'> {
  const stats = await lstat(place, { bigint: true }).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw error
  })
  if (!stats) return 'missing'
  return (await isVersion(place, expected)) ? stats : 'other'
}

async function isVersion(place: string, { mode, id }: FileVersion): Promise<boolean> {
  const stats = await lstat(place)
  if (mode === 'link') return stats.isSymbolicLink() && blobId(Buffer.from(await readlink(place)), id) === id
  if (!stats.isFile()) return false
  return blobId(await readFile(place), id) === id
}

/** Whether a file was returned to its place: linked, or copied. */
async function isSameFile(file: string, place: string): Promise<boolean> {
  const [moved, there] = await Promise.all([lstat(file), lstat(place).catch(() => undefined)])
  if (!there?.isFile()) return false
  return moved.ino === there.ino || (await readFile(file)).equals(await readFile(place))
}

/** The id that git gives to these bytes, with the hash of another id. */
export function blobId(bytes: Buffer, like: string): string {
  const hash = createHash(like.length === 64 ? 'sha256' : 'sha1')
  return hash.update(`blob ${bytes.length}\0`).update(bytes).digest('hex')
}

async function syncAll(files: readonly string[]): Promise<void> {
  const width = 16
  for (let start = 0; start < files.length; start += width) {
    await Promise.all(
      files.slice(start, start + width).map(async (path) => {
        await using file = await open(path, 'r')
        await file.sync()
      }),
    )
  }
}

async function filesBelow(folder: string): Promise<string[]> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
  return found
    .filter((each) => !each.isDirectory())
    .map((each) => join(each.parentPath, each.name).slice(folder.length + 1))
}
