import { lstatSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { isAbsolute, join, relative, resolve, sep } from 'node:path'
import type { Clock } from '@tapetree/session/util/wait'
import { findRepository, repositoryProblem, type Repository } from '../permissions/shell/programs/git-repository.ts'
import type { Policy } from '../permissions/policy.ts'
import { isInside } from '../util/is-inside.ts'
import { runGit, type GitRun } from './run-git.ts'
import { readWorkspaceFile, requireReadable, WorkspaceProblem } from './workspace-file.ts'

/** Git does not run, or did not succeed. The message is a sentence. */
export class GitProblem extends Error {
  override readonly name = 'GitProblem'
  readonly code: 'no-repository' | 'git-refused' | 'git-failed'

  constructor(code: GitProblem['code'], message: string) {
    super(message)
    this.code = code
  }
}

export interface GitWorkspace {
  /** `cwd` is the session's folder. Only files below it are shown. */
  policy: Policy
  /** The git folders and everything they refer to must be inside one of these. */
  roots: readonly string[]
  clock: Clock
  environment?: GitRun['environment']
  signal?: AbortSignal
}

export interface GitStatus {
  /** Absent if no branch is checked out. */
  branch?: string
  /** Absent before the first commit. */
  commit?: string
  upstream?: { name: string; ahead: number; behind: number }
  files: GitFile[]
  /** There are more files than are listed. */
  isCut: boolean
}

/** What happened to one side of a file. */
export type GitChange = 'unmodified' | 'modified' | 'added' | 'deleted' | 'renamed' | 'copied' | 'type-changed'

export interface GitFile {
  /** Relative to the session's folder. */
  path: string
  /** The former path of a renamed or copied file. */
  originalPath?: string
  /** The index against HEAD. */
  staged: GitChange
  /** The working tree against the index. */
  unstaged: GitChange
  isUntracked: boolean
  isConflicted: boolean
}

export type GitDiffScope = 'all' | 'staged' | 'unstaged'

export interface GitDiff {
  path: string
  originalPath?: string
  /** A unified diff. Empty if nothing has changed or the file is binary. */
  patch: string
  /** Numbers of lines. */
  added: number
  removed: number
  isBinary: boolean
  isUntracked: boolean
  /** The patch is incomplete. */
  isCut: boolean
}

const limitMs = 10_000
const maxStatusBytes = 1024 * 1024
const maxFiles = 2000
const maxPatchBytes = 1024 * 1024

/** The branch and the changed files below the session's folder. Submodules are left out. */
export async function gitStatus(place: GitWorkspace): Promise<GitStatus> {
  const status = await statusOf(await openRepository(place), place)
  if (status.files.length <= maxFiles) return status
  return { ...status, files: status.files.slice(0, maxFiles), isCut: true }
}

/**
 * The change of one file: `all` compares the working tree with HEAD, `unstaged` with the index, and `staged` compares the
 * index with HEAD.
 */
export async function gitDiff(path: string, scope: GitDiffScope, place: GitWorkspace): Promise<GitDiff> {
  const { policy } = place
  const opened = await openRepository(place)
  const written = resolve(opened.cwd, path)
  if (isAbsolute(path) || path.includes('\0') || written === opened.cwd || !isInside(written, opened.cwd))
    throw new WorkspaceProblem('outside-folder', `${JSON.stringify(path)} is outside of the session's folder.`)
  requireReadable(written, { shown: path, policy })
  const name = relative(opened.cwd, written).split(sep).join('/')
  // For the whole folder: git finds a rename only if it compares both paths.
  const { files, commit } = await statusOf(opened, place)
  const file = files.find((each) => each.path === name)
  const unchanged = { path: name, patch: '', added: 0, removed: 0, isBinary: false, isUntracked: false, isCut: false }
  if (!file) return unchanged
  if (file.isUntracked) return scope === 'staged' ? unchanged : untrackedDiff(name, policy)
  const { originalPath } = file
  if (originalPath !== undefined) requireReadable(resolve(opened.cwd, originalPath), { shown: originalPath, policy })
  const wanted = [...(originalPath === undefined ? [] : [originalPath]), name]
  const base = scope === 'unstaged' ? [] : [commit ?? (await emptyTree(opened, place))]
  const command = ['diff', ...diffArguments, ...(scope === 'staged' ? ['--cached'] : []), ...base, '--', ...wanted]
  const { output, isCut } = await run(command, opened, { ...place, maxBytes: maxPatchBytes })
  return { ...unchanged, ...(originalPath !== undefined && { originalPath }), ...parseDiff(output, wanted), isCut }
}

const statusArguments = [
  'status',
  '--porcelain=v2',
  '--branch',
  '-z',
  '--untracked-files=all',
  '--ignore-submodules=all',
  '--find-renames',
  '--',
]

/** The counts come first, so that a path which is a folder by now cannot bring other files along. */
const diffArguments = [
  '--no-ext-diff',
  '--no-textconv',
  '--no-color',
  '--ignore-submodules=all',
  '--find-renames',
  '--src-prefix=a/',
  '--dst-prefix=b/',
  '--relative',
  '--numstat',
  '--patch',
  '-z',
]

interface OpenedRepository extends Repository {
  /** The session's folder, without links. */
  cwd: string
}

/** Rejects unless git can run there without running anything else, or reading anything outside of the roots. */
async function openRepository({ policy, roots }: GitWorkspace): Promise<OpenedRepository> {
  const cwd = await realpath(policy.cwd)
  const repository = findRepository(cwd)
  if (repository === undefined) throw new GitProblem('no-repository', 'The folder is not in a git repository.')
  const problem = typeof repository === 'string' ? repository : (repositoryProblem(cwd) ?? reachProblem(repository))
  if (typeof repository === 'string' || problem !== undefined)
    throw new GitProblem('git-refused', `Git does not run in this repository: ${problem}.`)
  return { ...repository, cwd }

  function reachProblem({ root, own, shared }: Repository): string | undefined {
    const realRoots = roots.map((each) => realpathSync.native(each))
    const isAllowed = (path: string): boolean => realRoots.some((each) => isInside(path, each))
    if (!isAllowed(root)) return 'its root is outside of the folders that this server may use'
    try {
      return [...new Set([own, shared])].map((folder) => folderProblem(folder, isAllowed)).find(Boolean)
    } catch (error) {
      return `it cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown error'})`
    }
  }
}

/** How deep alternates may be nested, as in git. */
const maxAlternates = 5

/** Git reads a git folder without asking where its links lead, and takes objects from every folder that it names. */
function folderProblem(folder: string, isAllowed: (path: string) => boolean): string | undefined {
  if (!isAllowed(realpathSync.native(folder)))
    return 'its git folder is outside of the folders that this server may use'
  return (
    linkProblem(folder, isAllowed) ??
    attributesProblem(join(folder, 'info', 'attributes')) ??
    objectsProblem(join(folder, 'objects'), { isAllowed, depth: maxAlternates })
  )
}

function objectsProblem(
  objects: string,
  { isAllowed, depth }: { isAllowed: (path: string) => boolean; depth: number },
): string | undefined {
  if (lstatSync(objects, { throwIfNoEntry: false }) === undefined) return undefined
  const real = realpathSync.native(objects)
  if (!isAllowed(real)) return 'it takes objects from outside of the folders that this server may use'
  const linked = linkProblem(real, isAllowed)
  if (linked !== undefined) return linked
  for (const line of textOf(join(real, 'info', 'alternates')).split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    if (line.startsWith('"') || depth === 0) return 'it takes objects from too many places'
    const problem = objectsProblem(resolve(real, line), { isAllowed, depth: depth - 1 })
    if (problem !== undefined) return problem
  }
  return undefined
}

/** Links in a git folder and the folders of its objects and settings must stay inside. */
function linkProblem(folder: string, isAllowed: (path: string) => boolean): string | undefined {
  const inside = readdirSync(folder, { withFileTypes: true })
  const listed = inside.flatMap((entry) => {
    if (entry.isSymbolicLink()) return [join(folder, entry.name)]
    const isSearched = entry.isDirectory() && ['info', 'pack', 'refs', 'objects'].includes(entry.name)
    if (!isSearched) return []
    const below = readdirSync(join(folder, entry.name), { withFileTypes: true })
    return below.filter((each) => each.isSymbolicLink()).map(({ name }) => join(folder, entry.name, name))
  })
  const leaving = listed.find((path) => !isAllowed(realOr(path)))
  return leaving === undefined ? undefined : `${leaving} is a link that leads outside`
}

/** A dangling link leads outside as soon as its target exists. */
function realOr(path: string): string {
  try {
    return realpathSync.native(path)
  } catch {
    return '/'
  }
}

/** These attributes have no file in the working tree. Without settings a filter does nothing, but its name is a warning. */
function attributesProblem(file: string): string | undefined {
  return /\bfilter=/.test(textOf(file)) ? `${file} sets a filter` : undefined
}

const maxTextBytes = 64 * 1024

function textOf(file: string): string {
  const stats = lstatSync(file, { throwIfNoEntry: false })
  if (!stats?.isFile()) return ''
  if (stats.size > maxTextBytes) throw Object.assign(new Error(`${file} is too large.`), { code: 'EFBIG' })
  return readFileSync(file, 'utf8')
}

async function run(
  command: readonly string[],
  { root, cwd }: OpenedRepository,
  { clock, environment, signal, maxBytes }: GitWorkspace & { maxBytes: number },
): Promise<{ output: string; isCut: boolean }> {
  const ran = await runGit(command, {
    cwd,
    root,
    clock,
    limitMs,
    maxBytes,
    ignoreUser: true,
    ...(environment && { environment }),
    ...(signal && { signal }),
  })
  signal?.throwIfAborted()
  if (ran.type === 'ran') return { output: ran.output.toString('utf8'), isCut: ran.isCut }
  const [first = ''] = ran.message.split('\n')
  const reason = first === '' ? 'It is missing, or took too long.' : `It said: ${first.slice(0, 300)}`
  throw new GitProblem('git-failed', `Git failed in this repository. ${reason}`)
}

async function emptyTree(opened: OpenedRepository, place: GitWorkspace): Promise<string> {
  const command = ['hash-object', '-t', 'tree', '/dev/null']
  return (await run(command, opened, { ...place, maxBytes: 1024 })).output.trim()
}

async function statusOf(opened: OpenedRepository, place: GitWorkspace): Promise<GitStatus> {
  const { output, isCut } = await run([...statusArguments, '.'], opened, { ...place, maxBytes: maxStatusBytes })
  const prefix = opened.cwd === opened.root ? '' : `${relative(opened.root, opened.cwd).split(sep).join('/')}/`
  return parseGitStatus(output, { prefix, isCut })
}

/** Parses `git status --porcelain=v2 --branch -z`. Paths lose the prefix; others are left out. */
export function parseGitStatus(output: string, { prefix, isCut }: { prefix: string; isCut: boolean }): GitStatus {
  const status: GitStatus = { files: [], isCut }
  // Each record ends with a NUL, so an incomplete one is last.
  const records = output.split('\0').slice(0, -1)
  const local = (path: string): string | undefined => (path.startsWith(prefix) ? path.slice(prefix.length) : undefined)
  for (let index = 0; index < records.length; index++) {
    const record = records[index] ?? ''
    if (record.startsWith('# ')) readHeader(record, status)
    const file = fileOf(record)
    if (!file) continue
    // The former path of a renamed file is a record of its own.
    const former = record.startsWith('2 ') ? records[++index] : undefined
    const path = local(file.path)
    if (path === undefined || (record.startsWith('2 ') && former === undefined)) continue
    const originalPath = former === undefined ? undefined : local(former)
    status.files.push({ ...file, path, ...(originalPath !== undefined && { originalPath }) })
  }
  return status
}

function readHeader(record: string, status: GitStatus): void {
  const [, name, value = ''] = /^# branch\.(oid|head|upstream|ab) (.+)$/s.exec(record) ?? []
  if (name === 'oid' && value !== '(initial)') status.commit = value
  if (name === 'head' && value !== '(detached)') status.branch = value
  if (name === 'upstream') status.upstream = { name: value, ahead: 0, behind: 0 }
  const [, ahead, behind] = (name === 'ab' && /^\+(\d+) -(\d+)$/.exec(value)) || []
  if (status.upstream && ahead !== undefined)
    status.upstream = { ...status.upstream, ahead: Number(ahead), behind: Number(behind) }
}

function fileOf(record: string): GitFile | undefined {
  const quiet = { staged: 'unmodified', unstaged: 'unmodified', isUntracked: false, isConflicted: false } as const
  if (record.startsWith('? ')) return { ...quiet, path: record.slice(2), isUntracked: true }
  const fields = fieldCounts.get(record.slice(0, 2))
  if (fields === undefined) return undefined
  const path = record.split(' ').slice(fields).join(' ')
  if (record.startsWith('u ')) return { ...quiet, path, isConflicted: true }
  return {
    ...quiet,
    path,
    staged: changes.get(record.charAt(2)) ?? 'modified',
    unstaged: changes.get(record.charAt(3)) ?? 'modified',
  }
}

/** How many fields stand before the path. */
const fieldCounts = new Map([
  ['1 ', 8],
  ['2 ', 9],
  ['u ', 10],
])

const changes = new Map<string, GitChange>([
  ['.', 'unmodified'],
  ['M', 'modified'],
  ['A', 'added'],
  ['D', 'deleted'],
  ['R', 'renamed'],
  ['C', 'copied'],
  ['T', 'type-changed'],
])

/** Parses `git diff --numstat --patch -z`. Rejects if it has other files than these. */
function parseDiff(
  output: string,
  wanted: readonly string[],
): Pick<GitDiff, 'patch' | 'added' | 'removed' | 'isBinary'> {
  const total = { patch: '', added: 0, removed: 0, isBinary: false }
  let rest = output
  for (;;) {
    const [record, added, removed, path] = /^(\d+|-)\t(\d+|-)\t([^\0]*)\0/.exec(rest) ?? []
    if (record === undefined) break
    rest = rest.slice(record.length)
    const named = path === '' ? rest.split('\0', 2) : [path ?? '']
    if (path === '') rest = rest.slice(named.join('\0').length + 1)
    const isWanted = named.every((each) => wanted.includes(each))
    if (!isWanted) throw new GitProblem('git-failed', 'The path is a folder by now. Ask for its files one by one.')
    if (added === '-') total.isBinary = true
    total.added += Number(added) || 0
    total.removed += Number(removed) || 0
  }
  return { ...total, patch: total.isBinary ? '' : rest.replace(/^\0/, '') }
}

/** Git compares only files that it tracks. */
async function untrackedDiff(path: string, policy: Policy): Promise<GitDiff> {
  const part = { offset: 0, maxBytes: maxPatchBytes }
  const { kind, bytes, nextOffset } = await readWorkspaceFile(path, part, policy)
  const file = { path, added: 0, removed: 0, isUntracked: true, isCut: nextOffset !== undefined }
  if (kind.type !== 'text') return { ...file, patch: '', isBinary: true }
  const text = new TextDecoder(kind.encoding).decode(bytes)
  const isEnded = text.endsWith('\n')
  const lines = text === '' ? [] : (isEnded ? text.slice(0, -1) : text).split('\n')
  const patch = [
    `--- /dev/null`,
    `+++ b/${path}`,
    ...(lines.length === 0 ? [] : [`@@ -0,0 +1,${lines.length} @@`]),
    ...lines.map((line) => `+${line}`),
    ...(isEnded || lines.length === 0 ? [] : ['\\ No newline at end of file']),
    '',
  ].join('\n')
  return { ...file, patch, added: lines.length, isBinary: false }
}
