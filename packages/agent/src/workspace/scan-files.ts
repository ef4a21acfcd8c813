import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { isSecretPath } from '../permissions/paths/secret-files.ts'
import { fieldsOf, SnapshotsOff, type ShadowGit } from './shadow-git.ts'

/** What differs from an index. */
export interface Scan {
  changes: ScannedChange[]
  /** The first of them. */
  leftOut: LeftOutFile[]
  leftOutCount: number
}

export interface ScannedChange {
  type: 'added' | 'changed' | 'removed'
  path: string
  /** It is removed from the index although something is there: a folder, or a file that is left out from now on. */
  isForced?: true
}

export interface LeftOutFile {
  path: string
  reason: LeftOutReason
}

export type LeftOutReason = 'secret' | 'large' | 'special' | 'name' | 'unreadable'

const maxNewBytes = 5 * 1024 * 1024
const maxNewFiles = 200_000
const maxListedLeftOut = 50

export interface ScanOptions {
  git: ShadowGit
  /** The workspace, relative to the working tree, with a slash at the end. */
  prefix: string
  /** Names the index. */
  variables: Record<string, string>
  /** The index comes from the user's last commit: what a snapshot leaves out may be in it, even unchanged. */
  isSeeded: boolean
}

/** Compares the files of the workspace with an index. */
export async function scanFiles(options: ScanOptions): Promise<Scan> {
  const { git, isSeeded } = options
  const scan: Scan = { changes: [], leftOut: [], leftOutCount: 0 }
  const listed = new Map<string, ListedState>()
  for (const { tag, mode, path } of await listFiles(options)) {
    const isSubmodule = isSeeded && mode === linkedRepository
    if (tag === '?' && path.endsWith('/')) for (const inner of await nestedFiles(git, path)) listed.set(inner, 'new')
    else if (tag === '?') listed.set(path, 'new')
    else if (tag !== 'H') listed.set(path, 'known')
    else if (isSubmodule) listed.set(path, 'unwanted')
    else if (isSeeded && isSecretPath(join(git.root, path))) listed.set(path, 'known')
    // Its files are in the first snapshot, so that a later one does not take them for new.
    if (isSubmodule && (await isFolder(join(git.root, path))))
      for (const inner of await nestedFiles(git, `${path}/`)) listed.set(inner, 'new')
  }
  const links = new LinkedFolders(git.root)
  for (const [path, state] of listed) {
    const isGone = state === 'unwanted' || (state === 'known' && (await links.isBelow(path)))
    const found = isGone ? forcedRemoval : await look({ root: git.root, path, isNew: state === 'new' })
    if (found === undefined) continue
    if (found.type === 'left-out') {
      scan.leftOutCount += 1
      if (scan.leftOut.length < maxListedLeftOut) scan.leftOut.push({ path, reason: found.reason })
      if (state === 'known') scan.changes.push({ ...forcedRemoval, path })
    } else scan.changes.push({ ...found, path })
  }
  const added = scan.changes.filter(({ type }) => type === 'added').length
  if (added > maxNewFiles) {
    const limit = maxNewFiles.toLocaleString('en-US')
    throw new SnapshotsOff(`There are no file snapshots, because the folder has more than ${limit} new files.`)
  }
  return scan
}

type ListedState = 'new' | 'known' | 'unwanted'

type Found = Omit<ScannedChange, 'path'> | { type: 'left-out'; reason: LeftOutReason }

const forcedRemoval = { type: 'removed', isForced: true } as const

/** The mode of a repository inside of another one, in an index. */
const linkedRepository = '160000'

interface ListedFile {
  /** `?` is new, `C` has changed or is gone, `H` is unchanged. */
  tag: string
  /** Only of known files, and only if the index was seeded. */
  mode?: string
  path: string
}

async function listFiles({ git, prefix, variables, isSeeded }: ScanOptions): Promise<ListedFile[]> {
  const place = prefix === '' ? '.' : prefix.slice(0, -1)
  // With `-s`, known files have their mode and id before the path, after a tab.
  const known = isSeeded ? ['-c', '-s'] : []
  const command = ['ls-files', '-z', '-t', '-m', '-o', ...known, '--exclude-standard', '--', place]
  return fieldsOf((await git.runBesideEditors(command, { variables })).output).map((field) => {
    const tag = field.slice(0, 1)
    if (tag === '?' || !isSeeded) return { tag, path: field.slice(2) }
    return { tag, mode: field.slice(2, 8), path: field.slice(field.indexOf('\t') + 1) }
  })
}

async function isFolder(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined))?.isDirectory() ?? false
}

/** The files of a repository inside of the workspace. Git lists only its folder. */
async function nestedFiles(git: ShadowGit, folder: string): Promise<string[]> {
  return git.withIndex(async (index) => {
    const variables = { ...index, GIT_WORK_TREE: join(git.root, folder) }
    const { output } = await git.run(['ls-files', '-z', '-o', '--exclude-standard'], { variables })
    const inner: string[] = []
    for (const path of fieldsOf(output)) {
      if (path.endsWith('/')) inner.push(...(await nestedFiles(git, folder + path)))
      else inner.push(folder + path)
    }
    return inner
  })
}

/** Finds paths that lead through a link. A folder that was replaced by a link has no files of its own any more. */
class LinkedFolders {
  readonly #root: string
  readonly #isLink = new Map<string, Promise<boolean>>()

  constructor(root: string) {
    this.#root = root
  }

  async isBelow(path: string): Promise<boolean> {
    for (let end = path.indexOf('/'); end !== -1; end = path.indexOf('/', end + 1)) {
      const folder = path.slice(0, end)
      let isLink = this.#isLink.get(folder)
      if (!isLink) {
        isLink = lstat(join(this.#root, folder)).then(
          (stats) => stats.isSymbolicLink(),
          () => false,
        )
        this.#isLink.set(folder, isLink)
      }
      if (await isLink) return true
    }
    return false
  }
}

async function look({ root, path, isNew }: { root: string; path: string; isNew: boolean }): Promise<Found | undefined> {
  const place = join(root, path)
  if (path.includes('\ufffd')) return isNew ? { type: 'left-out', reason: 'name' } : undefined
  if (isSecretPath(place)) return { type: 'left-out', reason: 'secret' }
  let stats
  try {
    stats = await lstat(place)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return isNew ? undefined : { type: 'removed' }
    return { type: 'left-out', reason: 'unreadable' }
  }
  if (stats.isSymbolicLink()) return { type: isNew ? 'added' : 'changed' }
  if (stats.isDirectory()) return isNew ? undefined : forcedRemoval
  if (!stats.isFile()) return { type: 'left-out', reason: 'special' }
  if (isNew && stats.size > maxNewBytes) return { type: 'left-out', reason: 'large' }
  return { type: isNew ? 'added' : 'changed' }
}
