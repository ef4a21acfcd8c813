import { isInside } from '@tapetree/agent/util/is-inside'
import type { SessionStore } from '@tapetree/session'
import { lstatSync, realpathSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'

/**
 * The sessions of a store that work inside these folders, with symbolic links resolved. All others do not exist
 * for users of this store. A session whose folder is gone counts by its former path; one without a folder is
 * excluded.
 */
export function storeInside(store: SessionStore, roots: readonly string[]): SessionStore {
  return store.restrictedTo(insideOf(roots.map((root) => realPlace(resolve(root)) ?? resolve(root))))
}

/** Whether a session with this folder is inside of one of these folders. They are real; links in them count as outside. */
export function insideOf(realRoots: readonly string[]): (cwd: string | undefined) => boolean {
  return (cwd) => {
    if (cwd === undefined || !isAbsolute(cwd)) return false
    const place = realPlace(cwd)
    return place !== undefined && realRoots.some((root) => isInside(place, root))
  }
}

/**
 * The real path, with `..` after a symbolic link resolved. A missing last part is kept; a dangling link, or a
 * `..` after a missing part, has no real path.
 */
function realPlace(path: string): string | undefined {
  try {
    return realpathSync.native(path)
  } catch {
    const parent = dirname(path)
    if (parent === path || basename(path) === '..' || isLink(path)) return undefined
    const place = realPlace(parent)
    return place === undefined ? undefined : join(place, basename(path))
  }
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false
}
