import { isAbsolute, relative, sep } from 'node:path'

/**
 * Whether an absolute path is the folder or below it, compared by whole names: `/home/me-too` is not inside `/home/me`.
 * Compares only text, so resolve symbolic links first.
 */
export function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path)
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}
