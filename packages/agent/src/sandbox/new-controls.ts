import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { repositoryProblem } from '../permissions/shell/programs/git-repository.ts'
import type { TakenBack } from '../tools/commands/command.ts'
import { isInside } from '../util/is-inside.ts'
import { KeptWriteError, type KeptWrites } from './kept-writes.ts'
import { gitControls, type SandboxFacts } from './sandbox-policy.ts'

/** What can make other programs run something, in the working folders. */
type ControlFacts = Pick<SandboxFacts, 'folders' | 'repositories' | 'worktrees' | 'controls' | 'links'>

interface Control {
  path: string
  /** A link counts with its target, because a command can make it lead elsewhere. */
  key: string
}

function findControls({ folders, repositories, worktrees, controls, links }: ControlFacts): Control[] {
  const paths = [
    ...controls.map(({ path }) => path),
    ...repositories.map((git) => (holdsWork(git, folders) ? join(git, 'HEAD') : git)),
    ...repositories.flatMap((git) => gitControls.map((name) => join(git, name)).filter((path) => existsSync(path))),
    ...worktrees.flatMap(worktreeProblems),
  ]
  return [
    ...paths.map((path) => ({ path, key: path })),
    ...links.map(({ path, target }) => ({ path, key: `${path} -> ${target}` })),
  ]
}

/** Whether it is a working folder or has one in it. It is never moved: without its `HEAD` it is no repository. */
function holdsWork(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => isInside(folder, path))
}

/** A worktree that has settings of its own, or takes them from elsewhere. */
function worktreeProblems(worktree: string): string[] {
  const [settings, shared] = [join(worktree, 'config.worktree'), join(worktree, 'commondir')]
  const isUsual = !existsSync(shared) || readFileSync(shared, 'utf8').trim() === '../..'
  return [...(existsSync(settings) ? [settings] : []), ...(isUsual ? [] : [shared])]
}

/** Written beside the output of a command, so that the next process knows it, too. */
const listName = 'controls.json'

export async function rememberControls(spool: string, facts: ControlFacts): Promise<void> {
  await mkdir(spool, { recursive: true, mode: 0o700 })
  await writeFile(join(spool, listName), JSON.stringify(findControls(facts).map(({ key }) => key)), { mode: 0o600 })
}

interface TakeBackOptions {
  spool: string
  callId?: string
  kept: KeptWrites
  /** Looks at the working folders. */
  survey: () => Promise<ControlFacts>
}

/** Moves the control files that were made since `rememberControls` to a folder of ours. Undefined if there are none. */
export async function takeBackControls(options: TakeBackOptions): Promise<TakenBack | undefined> {
  const { spool, callId, kept, survey } = options
  const before = await readList(join(spool, listName))
  if (!before) return undefined
  const facts = await survey()
  const made = findControls(facts)
    .filter(({ key }) => !before.includes(key))
    .map(({ path }) => path)
  const harmless = made.filter((path) => isHarmlessRepository(path, facts))
  // Once its `HEAD` is gone, `config` in a working folder may be anything of the user.
  const freed = facts.repositories.filter((git) => holdsWork(git, facts.folders) && made.includes(join(git, 'HEAD')))
  const paths: string[] = []
  for (const path of made) {
    const isHarmless =
      harmless.some((repository) => isInside(path, repository)) ||
      freed.some((git) => gitControls.some((name) => path === join(git, name)))
    if (!isHarmless && !holdsWork(path, facts.folders) && !(await kept.isAgreed(path))) paths.push(path)
  }
  const outermost = paths.filter((path) => !paths.some((other) => other !== path && isInside(path, other)))
  const name = basename(spool)
  // Those that an earlier process moved are among them, if it was killed before the user answered.
  const { writes, unmoved } = await kept.take(name, outermost, callId)
  if (writes.length === 0 && unmoved.length === 0) return undefined
  return {
    writes,
    unmoved,
    putBack: async (record) => {
      const problems: string[] = []
      for (const { id } of writes) {
        const problem = await kept.apply(id, record).catch(problemOf)
        if (problem !== undefined) problems.push(problem)
      }
      await kept.leave(name)
      return problems
    },
    leave: () => kept.leave(name),
  }
}

/** A new repository without hooks and with harmless settings runs nothing, such as one that `git clone` made. */
function isHarmlessRepository(path: string, { repositories }: ControlFacts): boolean {
  const isWorkingTree = repositories.includes(path) && basename(path) === '.git'
  return isWorkingTree && repositoryProblem(dirname(path), { runsHooks: true }) === undefined
}

/** One that is not there any more was applied or discarded on another screen. */
function problemOf(error: unknown): string | undefined {
  if (!(error instanceof KeptWriteError)) throw error
  return error.code === 'write-not-found' ? undefined : error.message
}

async function readList(file: string): Promise<string[] | undefined> {
  const text = await readFile(file, 'utf8').catch(() => undefined)
  const value = text === undefined ? undefined : (JSON.parse(text) as unknown)
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : undefined
}
