import { execFile } from 'node:child_process'
import { isAbsolute, delimiter, join, parse, resolve } from 'node:path'
import type { Clock } from '../clock.ts'
import { repositoryProblem } from '../permissions/shell/git-repository.ts'
import { readLimited } from '../resources/read-limited.ts'
import { isInside } from '../resources/real-place.ts'
import { findRepositoryRoot } from '../resources/repository-root.ts'

export interface GitState {
  /** Absent where no branch is checked out. */
  branch?: string
  /** How far from its upstream; absent where there is none, or where it was not looked at. */
  upstream?: { ahead: number; behind: number }
  /** Absent where it was not looked at. */
  changes?: GitChanges
}

/** Numbers of files. */
export interface GitChanges {
  staged: number
  unstaged: number
  untracked: number
  conflicted: number
  /** There are more than were counted. */
  isCut: boolean
}

export interface GitPlace {
  cwd: string
  clock: Clock
  /** Only then is git run: it obeys the settings of the repository. */
  isTrusted: boolean
  /** Where git is found and who its user is. */
  environment?: Readonly<Record<string, string | undefined>>
  signal?: AbortSignal
}

const limitMs = 1000
const maxOutput = 1024 * 1024

/**
 * What is checked out and what has changed; nothing outside of a repository. Nothing that the repository names is run: where its
 * settings could run something, where it is not trusted, or where git is missing or slow, only the branch is known, from a file.
 */
export async function gitStateOf(place: GitPlace): Promise<GitState | undefined> {
  const root = await findRepositoryRoot(place.cwd)
  if (root === undefined) return undefined
  const mayRun = place.isTrusted && !hasProblem(place.cwd)
  const status = mayRun ? await runStatus(root, place) : undefined
  place.signal?.throwIfAborted()
  return status === undefined ? branchInFile(root) : parseStatus(status.output, { isCut: status.isCut })
}

function hasProblem(cwd: string): boolean {
  try {
    return repositoryProblem(cwd) !== undefined
  } catch {
    // What cannot be judged is not run.
    return true
  }
}

/** Nothing is fetched, no hook and no watcher is run, and modules with settings of their own are left alone. */
const statusArguments = [
  '-c',
  'core.fsmonitor=',
  '-c',
  'core.hooksPath=/dev/null',
  '-c',
  'protocol.allow=never',
  '--no-optional-locks',
  '--no-pager',
  'status',
  '--porcelain=v2',
  '--branch',
  '--ignore-submodules=all',
]

interface StatusOutput {
  output: string
  isCut: boolean
}

async function runStatus(
  root: string,
  { cwd, clock, environment, signal }: GitPlace,
): Promise<StatusOutput | undefined> {
  const ended = new AbortController()
  const overdue = new AbortController()
  const watch = clock.wait(limitMs, ended.signal).then(
    () => overdue.abort(),
    () => undefined,
  )
  try {
    return await new Promise((settle) => {
      const options = {
        // Not in the repository: a relative folder in PATH must not find a program there.
        cwd: parse(cwd).root,
        env: gitEnvironment(environment ?? process.env, root),
        maxBuffer: maxOutput,
        signal: AbortSignal.any([overdue.signal, ...(signal ? [signal] : [])]),
        killSignal: 'SIGKILL' as const,
        windowsHide: true,
      }
      execFile('git', ['-C', cwd, ...statusArguments], options, (error, output) => {
        if (!error) settle({ output, isCut: false })
        else if (error.code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') settle({ output, isCut: true })
        else settle(undefined)
      })
    })
  } finally {
    ended.abort()
    await watch
  }
}

const passed = ['HOME', 'XDG_CONFIG_HOME', 'USERPROFILE', 'SystemRoot']

/** Variables such as GIT_DIR would lead git elsewhere. Missing objects are not fetched: that would run what the remote is set to. */
function gitEnvironment(ours: Readonly<Record<string, string | undefined>>, root: string): Record<string, string> {
  const folders = (ours['PATH'] ?? '').split(delimiter).filter((each) => isAbsolute(each) && !isInside(each, root))
  const known = passed.flatMap((name) => (ours[name] === undefined ? [] : [[name, ours[name]] as const]))
  return {
    ...Object.fromEntries(known),
    PATH: folders.join(delimiter),
    LC_ALL: 'C',
    GIT_TERMINAL_PROMPT: '0',
    GIT_NO_LAZY_FETCH: '1',
    GIT_ALLOW_PROTOCOL: '',
  }
}

/** Reads what `git status --porcelain=v2 --branch` says. */
export function parseStatus(output: string, { isCut }: { isCut: boolean }): GitState {
  const state: GitState = {}
  const changes = { staged: 0, unstaged: 0, untracked: 0, conflicted: 0, isCut }
  const lines = output.split('\n')
  // The last line may be half of one.
  if (isCut) lines.pop()
  for (const line of lines) {
    const head = /^# branch\.head (.+)$/.exec(line)?.[1]
    if (head !== undefined && head !== '(detached)') state.branch = head
    const [, ahead, behind] = /^# branch\.ab \+(\d+) -(\d+)$/.exec(line) ?? []
    if (ahead !== undefined) state.upstream = { ahead: Number(ahead), behind: Number(behind) }
    if (line.startsWith('? ')) changes.untracked += 1
    if (line.startsWith('u ')) changes.conflicted += 1
    if (!/^[12] /.test(line)) continue
    if (line.charAt(2) !== '.') changes.staged += 1
    if (line.charAt(3) !== '.') changes.unstaged += 1
  }
  return { ...state, changes }
}

const maxFileBytes = 4096

async function branchInFile(root: string): Promise<GitState> {
  const git = join(root, '.git')
  const limits = { maxBytes: maxFileBytes, whenLonger: 'refuse' } as const
  const here = await readLimited(join(git, 'HEAD'), limits)
  // In a worktree `.git` is a file that says where the repository is.
  const link = here.type === 'missing' ? await readLimited(git, limits) : undefined
  const folder = link?.type === 'text' ? /^gitdir: (.+)\n?$/.exec(link.text)?.[1] : undefined
  const head = folder === undefined ? here : await readLimited(resolve(root, folder, 'HEAD'), limits)
  const branch = head.type === 'text' ? /^ref: refs\/heads\/(.+)\n?$/.exec(head.text)?.[1] : undefined
  return branch === undefined ? {} : { branch }
}
