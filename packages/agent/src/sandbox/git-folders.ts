import { lstat, readdir, readFile, realpath } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

/** Git folders outside of a working folder that its repository uses. */
export interface LinkedGit {
  /** Commands must be able to write to these, or they could not commit. */
  writable: string[]
  /** Whole git folders among them. */
  repositories: string[]
  /** Git folders of linked worktrees among them. */
  worktrees: string[]
}

/**
 * Where the repository is if `.git` in a working folder is a file: a linked worktree or a submodule. Undefined if it is not, or if the
 * repository does not name this folder in return: then the file may have been made to let commands write elsewhere.
 */
export async function linkedGit(folder: string): Promise<LinkedGit | undefined> {
  const file = join(folder, '.git')
  const own = await namedIn(file, /^gitdir: (.+?)\s*$/, folder)
  if (own === undefined) return undefined
  const shared = await namedIn(join(own, 'commondir'), /^(.+?)\s*$/, own)
  if (shared !== undefined && dirname(own) === join(shared, 'worktrees')) {
    if ((await namedIn(join(own, 'gitdir'), /^(.+?)\s*$/, own)) !== (await realpath(file))) return undefined
    // Neither hooks nor settings nor other worktrees are below these.
    const parts = ['objects', 'refs', 'logs'].map((name) => join(shared, name))
    return { writable: [own, ...(await onlyFolders(parts))], repositories: [], worktrees: [own] }
  }
  if ((await namedIn(join(own, 'config'), /^\s*worktree\s*=\s*(.+?)\s*$/m, own)) !== folder) return undefined
  return { writable: [own], repositories: [own, ...(await moduleFolders(own))], worktrees: [] }
}

/** Git folders of submodules that are in a git folder, at any depth. */
export async function moduleFolders(git: string): Promise<string[]> {
  const found: string[] = []
  const folders = [join(git, 'modules')]
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
    const isGit = ['HEAD', 'config', 'objects'].every((name) => entries.some((entry) => entry.name === name))
    if (isGit) {
      found.push(folder)
      folders.push(join(folder, 'modules'))
    } else folders.push(...entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name)))
  }
  return found.toSorted()
}

/** The folders in a git folder that stand for linked worktrees. */
export async function worktreeFolders(git: string): Promise<string[]> {
  const entries = await readdir(join(git, 'worktrees'), { withFileTypes: true }).catch(() => [])
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(git, 'worktrees', name))
}

const maxFileBytes = 64 * 1024

/** The real path that a file names, relative to `base`. */
async function namedIn(file: string, pattern: RegExp, base: string): Promise<string | undefined> {
  const info = await lstat(file).catch(() => undefined)
  if (!info?.isFile() || info.size > maxFileBytes) return undefined
  const [, path] = pattern.exec(await readFile(file, 'utf8').catch(() => '')) ?? []
  return path === undefined ? undefined : realpath(resolve(base, path)).catch(() => undefined)
}

async function onlyFolders(paths: readonly string[]): Promise<string[]> {
  const infos = await Promise.all(paths.map((path) => lstat(path).catch(() => undefined)))
  return paths.filter((_, index) => infos[index]?.isDirectory())
}
