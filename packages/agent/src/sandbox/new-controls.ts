import { cp, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { repositoryProblem } from '../permissions/shell/programs/git-repository.ts'
import type { TakenBack } from '../tools/commands/command.ts'
import { isInside } from '../util/is-inside.ts'
import { gitControls, type SandboxFacts } from './sandbox-policy.ts'

/** What can make other programs run something, in the working folders. */
type ControlFacts = Pick<SandboxFacts, 'folders' | 'repositories' | 'controls' | 'links'>

/** Every control file by its path. A link counts with its target, because a command can make it lead elsewhere. */
function controlPaths({ repositories, controls, links }: ControlFacts): string[] {
  return [
    ...controls.map(({ path }) => path),
    ...links.map(({ path, target }) => `${path} -> ${target}`),
    ...repositories,
    ...repositories.flatMap((git) => gitControls.map((name) => join(git, name)).filter((path) => existsSync(path))),
  ]
}

/** Written beside the output of a command, so that the next process knows it, too. */
const listName = 'controls.json'

export async function rememberControls(spool: string, facts: ControlFacts): Promise<void> {
  await mkdir(spool, { recursive: true, mode: 0o700 })
  await writeFile(join(spool, listName), JSON.stringify(controlPaths(facts)), { mode: 0o600 })
}

interface TakeBackOptions {
  cwd: string
  spool: string
  /** A folder for the files of this command alone. */
  folder: string
  /** Looks at the working folders. */
  survey: () => Promise<ControlFacts>
}

/** Moves the control files that were made since `rememberControls` to a folder of ours. Undefined if there are none. */
export async function takeBackControls({
  cwd,
  spool,
  folder,
  survey,
}: TakeBackOptions): Promise<TakenBack | undefined> {
  const before = await readList(join(spool, listName))
  if (!before) return undefined
  const facts = await survey()
  const made = controlPaths(facts).filter((path) => !before.includes(path))
  const harmless = made.filter((path) => isHarmlessRepository(path, facts))
  const paths = made
    .map((path) => path.split(' -> ')[0] ?? path)
    .filter((path) => !harmless.some((repository) => isInside(path, repository)))
  const outermost = paths.filter((path) => !paths.some((other) => other !== path && isInside(path, other)))
  const listed = join(folder, 'moved.json')
  // An earlier process may have moved some, and was killed before the user answered.
  const moved = new Map<string, string>(Object.entries((await readJson(listed)) ?? {}) as [string, string][])
  for (const path of outermost) moved.set(path, join(folder, String(moved.size)))
  if (moved.size === 0) return undefined
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await writeFile(listed, JSON.stringify(Object.fromEntries(moved)), { mode: 0o600 })
  for (const path of outermost) await move(path, moved.get(path) as string)
  return {
    paths: [...moved.keys()].map((path) => relative(cwd, path)),
    folder,
    putBack: async () => {
      for (const [path, place] of moved) if (existsSync(place) && !existsSync(path)) await move(place, path)
      await writeFile(join(spool, listName), JSON.stringify([...before, ...made]), { mode: 0o600 })
      await rm(folder, { recursive: true, force: true })
    },
    leave: () => rename(listed, join(folder, 'left.json')),
  }
}

/** A new repository without hooks and with harmless settings runs nothing, such as one that `git clone` made. */
function isHarmlessRepository(path: string, { repositories }: ControlFacts): boolean {
  const isWorkingTree = repositories.includes(path) && basename(path) === '.git'
  return isWorkingTree && repositoryProblem(dirname(path), { runsHooks: true }) === undefined
}

async function move(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true, mode: 0o700 })
  try {
    await rename(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
    await cp(from, to, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true })
    await rm(from, { recursive: true })
  }
}

async function readList(file: string): Promise<string[] | undefined> {
  const value = await readJson(file)
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : undefined
}

async function readJson(file: string): Promise<unknown> {
  const text = await readFile(file, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : (JSON.parse(text) as unknown)
}
