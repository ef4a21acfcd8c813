import { execFile } from 'node:child_process'
import { isAbsolute, delimiter, join, parse } from 'node:path'
import type { Clock } from '@tapetree/session/util/wait'
import { findRepository, repositoryProblem, type Repository } from '../permissions/shell/programs/git-repository.ts'
import { readLimited } from '../resources/resource-files.ts'
import { isInside } from '../util/is-inside.ts'

export interface GitState {
  /** Absent if no branch is checked out. */
  branch?: string
  /** The distance from its upstream; absent if there is none, or if git did not run. */
  upstream?: { ahead: number; behind: number }
  /** Absent if git did not run. */
  changes?: GitChanges
}

/** Numbers of files. */
export interface GitChanges {
  staged: number
  unstaged: number
  untracked: number
  conflicted: number
  /** There are more changes than were counted. */
  isCut: boolean
}

export interface GitPlace {
  cwd: string
  clock: Clock
  /** The root of the project that the user trusts, without links. Git runs only in this repository. */
  trustedRoot?: string
  /** The environment in which git runs. */
  environment?: Readonly<Record<string, string | undefined>>
  signal?: AbortSignal
}

const limitMs = 1000
const maxOutput = 1024 * 1024

/**
 * The branch and the changes; undefined outside of a repository. Git runs only if the user trusts this repository and
 * its settings name nothing that git would run. Otherwise, or if git is missing or slow, only the branch is known, from
 * the file HEAD.
 */
export async function gitStateOf(place: GitPlace): Promise<GitState | undefined> {
  const repository = findRepository(place.cwd)
  if (typeof repository !== 'object') return undefined
  const status = mayRun(repository, place) ? await runStatus(repository.root, place) : undefined
  place.signal?.throwIfAborted()
  return status === undefined ? branchInFile(repository) : parseStatus(status.output, { isCut: status.isCut })
}

function mayRun({ root }: Repository, { cwd, trustedRoot }: GitPlace): boolean {
  return root === trustedRoot && repositoryProblem(cwd) === undefined
}

/**
 * Git fetches nothing, runs no hook, watcher, pager or credential helper, ignores submodules with their own settings,
 * and does not mistake a folder that only looks like a git folder for one.
 */
const statusArguments = [
  ...[
    'safe.bareRepository=explicit',
    'core.fsmonitor=',
    'core.hooksPath=/dev/null',
    'core.pager=cat',
    'core.sshCommand=false',
    'credential.helper=',
    'protocol.allow=never',
  ].flatMap((setting) => ['-c', setting]),
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

/**
 * Variables such as GIT_DIR would redirect git. Missing objects are not fetched: that would run the configured remote.
 */
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

/** Parses the output of `git status --porcelain=v2 --branch`. */
export function parseStatus(output: string, { isCut }: { isCut: boolean }): GitState {
  const state: GitState = {}
  const changes = { staged: 0, unstaged: 0, untracked: 0, conflicted: 0, isCut }
  const lines = output.split('\n')
  // The last line may be incomplete.
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

async function branchInFile({ own }: Repository): Promise<GitState> {
  const head = await readLimited(join(own, 'HEAD'), { maxBytes: maxFileBytes, whenLonger: 'refuse' })
  const branch = head.type === 'text' ? /^ref: refs\/heads\/(.+)\n?$/.exec(head.text)?.[1] : undefined
  return branch === undefined ? {} : { branch }
}
