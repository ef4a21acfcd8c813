import { readdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { shownPath, shownName } from './paths.ts'
import { similarityTo } from './similarity.ts'
import { ToolProblem } from '../tool-problem.ts'

const maxNames = 10_000
const maxSuggestions = 3

/** Reports that a path does not exist, with similar names. */
export async function missingProblem(path: string, place: { cwd: string }): Promise<ToolProblem> {
  let folder = dirname(path)
  let missing = basename(path)
  let names = await namesIn(folder)
  while (!names && dirname(folder) !== folder) {
    missing = basename(folder)
    folder = dirname(folder)
    names = await namesIn(folder)
  }
  const near = nearest(missing, names ?? []).map((name) => shownPath(join(folder, name), place))
  const where =
    join(folder, missing) === path ? '' : ` The folder ${shownPath(folder, place)} has no ${shownName(missing)}.`
  const meant = near.length > 0 ? ` Did you mean ${near.join(' or ')}?` : ''
  return new ToolProblem(`${shownPath(path, place)} does not exist.${where}${meant}`)
}

function nearest(name: string, names: string[]): string[] {
  const likenessOf = similarityTo(name)
  return names
    .map((candidate) => ({ candidate, likeness: likenessOf(candidate) }))
    .filter(({ likeness }) => likeness >= 0.5)
    .sort((left, right) => right.likeness - left.likeness || (left.candidate < right.candidate ? -1 : 1))
    .slice(0, maxSuggestions)
    .map(({ candidate }) => candidate)
}

async function namesIn(folder: string): Promise<string[] | undefined> {
  try {
    return (await readdir(folder)).slice(0, maxNames)
  } catch {
    // Missing or unreadable: no suggestions.
    return undefined
  }
}
