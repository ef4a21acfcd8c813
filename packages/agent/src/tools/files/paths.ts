import { lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { z } from 'zod'
import { isInside } from '../../util/is-inside.ts'
import type { Access } from '../tool.ts'
import { readdir } from 'node:fs/promises'
import { similarityTo } from '../../util/edit-distance.ts'
import { ToolProblem } from '../tool-problem.ts'

export const pathSchema = z
  .string()
  .min(1)
  .max(4096)
  .refine((path) => !path.includes('\0'), { error: 'A path cannot contain a NUL character.' })

const maxLinks = 40

/**
 * Resolves a path: absolute, with every symbolic link followed, even one whose target does not exist yet.
 * Missing parts are appended unchanged. This path is judged, and this one is opened.
 */
export function realPathOf(path: string, place: { cwd: string }): string {
  return follow(resolve(place.cwd, withHome(path)), { linksLeft: maxLinks })
}

export function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    // An inaccessible folder cannot be entered.
    return false
  }
}

/** The path that was judged when the call was checked. */
export function judgedPath(judged: readonly Access[], type: 'read' | 'write'): string {
  const access = judged.find((each) => each.type === type)
  if (access && 'path' in access) return access.path
  throw new Error(`The call was not judged for ${type}.`)
}

/** As the model would write it: relative if it lies below the working folder. */
export function shownPath(path: string, place: { cwd: string }): string {
  const here = realPathOf('.', place)
  return path === here ? '.' : shownName(isInside(path, here) ? relative(here, path) : path)
}

/** Quotes a name with line breaks or other control characters, so that it cannot be mistaken for something else. */
export function shownName(name: string): string {
  return /[\p{Cc}\p{Zl}\p{Zp}]/u.test(name) ? JSON.stringify(name) : name
}

function withHome(path: string): string {
  return path === '~' || path.startsWith('~/') ? join(homedir(), path.slice(1)) : path
}

function follow(path: string, budget: { linksLeft: number }): string {
  try {
    return realpathSync.native(path)
  } catch {
    // Missing, unreadable or cyclic: resolved as far as possible. Opening the result gives the error.
  }
  const parent = dirname(path)
  if (parent === path) return path
  const target = linkTargetOf(path)
  if (target === undefined || budget.linksLeft === 0) return join(follow(parent, budget), basename(path))
  budget.linksLeft -= 1
  return follow(resolve(follow(parent, budget), target), budget)
}

function linkTargetOf(path: string): string | undefined {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : undefined
  } catch {
    // It does not exist, so it is not a link.
    return undefined
  }
}

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
