import { constants, existsSync, type Dirent } from 'node:fs'
import { copyFile, cp, lstat, mkdir, readdir, readlink, rm, statfs, symlink, utimes, writeFile } from 'node:fs/promises'
import { isAbsolute, join, relative } from 'node:path'
import { findRepository, hashOf, type Repository } from '../permissions/shell/programs/git-repository.ts'
import { hasCode } from '../tools/tool-problem.ts'
import { isInside } from '../util/is-inside.ts'
import type { SnapshotStore } from './snapshot-store.ts'

/** What working copies of a workspace get in addition to the files of a snapshot. */
export interface CopyPlan {
  /** Files and folders that no snapshot has, such as installed packages, relative to the root of the workspace. */
  leftOut: string[]
  /** Those that would exceed the limit. The copies do not have them. */
  tooLarge: { path: string; bytes: number }[]
}

/** Left-out files that a copy gets, in bytes. */
const maxLeftOutBytes = 2 * 1024 ** 3
/** Objects of the user's repository that a copy gets. It reads more than these from there. */
const maxObjectBytes = 256 * 1024 ** 2
/** Stays free on the disk. */
const minFreeBytes = 2 * 1024 ** 3

/** There is no room for the copies. The message is a sentence. */
export class CopyProblem extends Error {
  override readonly name = 'CopyProblem'
}

/**
 * Looks for files that are in the workspace and not in a snapshot: ignored files, secrets, large files. Rejects if the
 * disk has no room for so many copies.
 */
export async function planCopies(
  store: SnapshotStore,
  { tree, count, folder }: { tree: string; count: number; folder: string },
): Promise<CopyPlan> {
  const paths = new Set(await store.paths(tree))
  const folders = new Set([...paths].flatMap(foldersOf))
  const found: { path: string; bytes: number }[] = []
  await look('')
  const plan: CopyPlan = { leftOut: [], tooLarge: [] }
  let total = 0
  for (const { path, bytes } of found.toSorted((a, b) => a.bytes - b.bytes)) {
    if (total + bytes > maxLeftOutBytes) plan.tooLarge.push({ path, bytes })
    else plan.leftOut.push(path)
    if (total + bytes <= maxLeftOutBytes) total += bytes
  }
  let needed = total
  for (const path of paths) needed += (await sizeOf(join(store.root, path))) ?? 0
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const { bavail, bsize } = await statfs(folder)
  if (bavail * bsize - count * needed < minFreeBytes) {
    const each = `${Math.ceil(needed / 1024 ** 2).toLocaleString('en-US')} MiB`
    throw new CopyProblem(`There is not enough disk space for ${count} copies of ${each} in ${folder}.`)
  }
  return plan

  async function look(below: string): Promise<void> {
    for (const entry of await entriesOf(join(store.root, below))) {
      const path = below === '' ? entry.name : `${below}/${entry.name}`
      // A git folder is never copied: what is in it may refer to the user's repository.
      if (entry.name === '.git' || paths.has(path) || isInside(folder, join(store.root, path))) continue
      if (entry.isDirectory() && folders.has(path)) await look(path)
      else found.push({ path, bytes: await bytesBelow(join(store.root, path)) })
    }
  }
}

/**
 * Fills an empty folder with the files of a snapshot, the left-out files of the plan, and a git folder of its own, with
 * the same commits and branches, and without remotes and hooks.
 */
export async function fillWorkingCopy(
  store: SnapshotStore,
  { tree, root, plan }: { tree: string; root: string; plan: CopyPlan },
): Promise<void> {
  await store.workingCopy(root).checkOut(tree)
  for (const path of plan.leftOut)
    await copyTree(join(store.root, path), join(root, path), { from: store.root, to: root })
  const repository = findRepository(store.root)
  if (typeof repository === 'object' && repository.root === store.root) await makeGitFolder(repository, root)
  // The session's folder, if the snapshot has nothing in it.
  await mkdir(join(root, store.prefix), { recursive: true })
}

/** Deletes a working copy and what the store has about it, except its versions. */
export async function removeWorkingCopy(store: SnapshotStore | undefined, root: string): Promise<void> {
  await rm(root, { recursive: true, force: true, maxRetries: 3 })
  if (store) await rm(store.workingCopy(root).path, { recursive: true, force: true })
}

async function copyTree(from: string, to: string, roots: { from: string; to: string }): Promise<void> {
  const stats = await lstat(from).catch(() => undefined)
  try {
    if (stats?.isDirectory()) {
      await mkdir(to, { recursive: true, mode: stats.mode | 0o700 })
      const names = (await entriesOf(from)).map(({ name }) => name).filter((name) => name !== '.git')
      const rest = names.values()
      const copyRest = async (): Promise<void> => {
        for (const name of rest) await copyTree(join(from, name), join(to, name), roots)
      }
      await Promise.all([copyRest(), copyRest(), copyRest(), copyRest()])
    } else if (stats?.isSymbolicLink()) {
      const target = await readlink(from)
      // An absolute link into the workspace would lead the copy back to it.
      const isOwn = isAbsolute(target) && isInside(target, roots.from)
      await symlink(isOwn ? join(roots.to, relative(roots.from, target)) : target, to)
    } else if (stats?.isFile()) {
      await mkdir(join(to, '..'), { recursive: true })
      await copyFile(from, to, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL)
      await utimes(to, stats.atime, stats.mtime)
    }
  } catch (error) {
    // Deleted in the meantime, or not readable: then no copy has it.
    if (!hasCode(error, 'ENOENT', 'EACCES', 'EPERM')) throw error
  }
}

/** Written without git, so that nothing that the user's repository configures can run. */
async function makeGitFolder({ own, shared }: Repository, root: string): Promise<void> {
  // References in another format.
  if (existsSync(join(shared, 'reftable'))) return
  const git = join(root, '.git')
  await mkdir(join(git, 'objects', 'info'), { recursive: true })
  await mkdir(join(git, 'info'))
  await mkdir(join(git, 'refs'))
  const objects = join(shared, 'objects')
  const isSmall = (await bytesBelow(objects)) <= maxObjectBytes && !existsSync(join(objects, 'info', 'alternates'))
  // Git updates the times of objects in another folder when it would write them again, so they are copied if possible.
  if (isSmall) await copyTree(objects, join(git, 'objects'), { from: objects, to: join(git, 'objects') })
  else await writeFile(join(git, 'objects', 'info', 'alternates'), `${objects}\n`)
  const isLong = hashOf({ shared }).bytes === 32
  const format = isLong ? '[extensions]\n\tobjectFormat = sha256\n' : ''
  await writeFile(
    join(git, 'config'),
    `[core]\n\trepositoryFormatVersion = ${isLong ? 1 : 0}\n\tfileMode = true\n\tbare = false\n${format}`,
  )
  const files = (await readdir(own)).filter((name) => /^(?:HEAD|index|sharedindex\..*)$/.test(name))
  for (const name of files) await copyFile(join(own, name), join(git, name))
  for (const name of ['packed-refs', 'shallow', 'info/exclude'])
    if (existsSync(join(shared, name))) await copyFile(join(shared, name), join(git, name))
  await cp(join(shared, 'refs'), join(git, 'refs'), { recursive: true })
}

async function bytesBelow(path: string): Promise<number> {
  const stats = await lstat(path).catch(() => undefined)
  if (!stats?.isDirectory()) return stats?.isFile() ? stats.size : 0
  let bytes = 0
  for (const { name } of await entriesOf(path)) {
    bytes += await bytesBelow(join(path, name))
    if (bytes > maxLeftOutBytes) break
  }
  return bytes
}

async function sizeOf(path: string): Promise<number | undefined> {
  return (await lstat(path).catch(() => undefined))?.size
}

async function entriesOf(folder: string): Promise<Dirent[]> {
  return readdir(folder, { withFileTypes: true }).catch(() => [])
}

function foldersOf(path: string): string[] {
  const parts = path.split('/').slice(0, -1)
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'))
}
