import { join } from 'node:path'
import type { Clock } from '@tapetree/session/util/wait'
import { findRepository, repositoryProblem, type Repository } from '../permissions/shell/programs/git-repository.ts'
import { readLimited } from '../resources/resource-files.ts'
import type { BoxProgram } from '../tools/commands/program-box.ts'
import { runGit } from '../workspace/run-git.ts'

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

export interface GitStatePlace {
  cwd: string
  clock: Clock
  /** The root of the project that the user trusts, without links. Git runs only in this repository. */
  trustedRoot?: string
  /** The environment in which git runs. */
  environment?: Readonly<Record<string, string | undefined>>
  signal?: AbortSignal
  /** The sandbox in which git runs. */
  box?: BoxProgram
}

const limitMs = 1000
const maxOutput = 1024 * 1024

/**
 * The branch and the changes; undefined outside of a repository. Git runs only if the user trusts this repository and
 * its settings name nothing that git would run. Otherwise, or if git is missing or slow, only the branch is known, from
 * the file HEAD.
 */
export async function gitStateOf(place: GitStatePlace): Promise<GitState | undefined> {
  const repository = findRepository(place.cwd)
  if (typeof repository !== 'object') return undefined
  const status = mayRun(repository, place) ? await runStatus(repository.root, place) : undefined
  place.signal?.throwIfAborted()
  return status === undefined ? branchInFile(repository) : parseStatus(status.output, { isCut: status.isCut })
}

function mayRun({ root }: Repository, { cwd, trustedRoot }: GitStatePlace): boolean {
  return root === trustedRoot && repositoryProblem(cwd) === undefined
}

const statusArguments = ['status', '--porcelain=v2', '--branch', '--ignore-submodules=all']

interface StatusOutput {
  output: string
  isCut: boolean
}

async function runStatus(
  root: string,
  { cwd, clock, environment, signal, box }: GitStatePlace,
): Promise<StatusOutput | undefined> {
  const ran = await runGit(statusArguments, {
    cwd,
    root,
    clock,
    limitMs,
    maxBytes: maxOutput,
    ...(environment && { environment }),
    ...(box && { box: await box({ type: 'git', cwd }) }),
    ...(signal && { signal }),
  })
  return ran.type === 'ran' ? { output: ran.output.toString('utf8'), isCut: ran.isCut } : undefined
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
