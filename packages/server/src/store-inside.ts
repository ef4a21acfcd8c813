import { isInside } from '@tapetree/agent/util/is-inside'
import type { SessionStore } from '@tapetree/session'
import { lstatSync, realpathSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'

/**
 * The sessions of a store that work inside these folders, wherever links lead. For everything that is handed this store the others
 * do not exist. A session whose folder is gone counts by where it was; one that never had a folder is left out.
 */
export function storeInside(store: SessionStore, roots: readonly string[]): SessionStore {
  const realRoots = roots.map((root) => realPlace(resolve(root)) ?? resolve(root))
  return store.restrictedTo((cwd) => {
    if (cwd === undefined || !isAbsolute(cwd)) return false
    const place = realPlace(cwd)
    return place !== undefined && realRoots.some((root) => isInside(place, root))
  })
}

/**
 * Where a path really leads, `..` behind a link included. What is missing at its end is kept as it is; a link that leads nowhere,
 * or a `..` behind what is missing, has no place.
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
