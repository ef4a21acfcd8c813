import { isInside } from '@tapetree/agent/util/is-inside'
import { realpath, stat } from 'node:fs/promises'
import { isAbsolute, resolve } from 'node:path'
import { ProblemError } from '../../util/problem-error.ts'

/** The real place of a folder that lies inside one of the roots. What lies outside is not even asked for. */
export async function folderInside(path: string, roots: readonly string[]): Promise<string> {
  if (!isAbsolute(path)) throw new ProblemError(422, 'not-absolute', 'A folder is named by its absolute path.')
  const wanted = resolve(path)
  const realRoots = await Promise.all(roots.map((root) => realOr(root, root)))
  if (![...roots.map((root) => resolve(root)), ...realRoots].some((root) => isInside(wanted, root))) throw outside(path)
  const real = await realOr(wanted, undefined)
  const found = real === undefined ? undefined : await stat(real).catch(() => undefined)
  if (real === undefined || !found?.isDirectory()) {
    throw new ProblemError(404, 'folder-not-found', `There is no folder ${JSON.stringify(path)}.`)
  }
  // A link inside of a root may lead out of it.
  if (!realRoots.some((root) => isInside(real, root))) throw outside(path)
  return real
}

export async function realOr<T>(path: string, otherwise: T): Promise<string | T> {
  return realpath(path).catch(() => otherwise)
}

function outside(path: string): ProblemError {
  return new ProblemError(403, 'outside-roots', `${JSON.stringify(path)} is not inside a folder that may be used here.`)
}
