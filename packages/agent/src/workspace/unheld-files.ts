import { lstat, readdir } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import type { Deletion } from '../permissions/deleted-paths.ts'
import { exactPath, meets, parsePathPattern } from '../permissions/paths/path-pattern.ts'
import { isInside } from '../util/is-inside.ts'
import type { WorkspaceSnapshots } from './workspace-snapshots.ts'

/** Larger folders would take too long; then the user is asked. */
const maxEntries = 20_000

interface Workspace {
  cwd: string
  files: WorkspaceSnapshots | undefined
}

/**
 * The first file that a deletion would lose: it exists, and the last snapshot does not hold it, for example because git ignores it or it is too
 * large. Without snapshots that is any file. Files outside of the workspace do not count.
 */
export async function findUnheld(
  deletions: readonly Deletion[],
  { cwd, files }: Workspace,
): Promise<string | undefined> {
  const held = await files?.heldFiles()
  let left = maxEntries
  for (const { path: root, name } of deletions) {
    if (!isInside(root, cwd) && !isInside(cwd, root)) continue
    const pattern = name === undefined ? undefined : parsePathPattern(name)
    const paths = [root]
    for (let path = paths.pop(); path !== undefined; path = paths.pop()) {
      if (--left < 0) return root
      const info = await lstat(path).catch(() => undefined)
      if (info === undefined || (!isInside(path, cwd) && !isInside(cwd, path))) continue
      if (info.isDirectory()) {
        const folder = path
        paths.push(...(await readdir(folder).catch(() => [])).map((entry) => join(folder, entry)))
      } else if (!held?.has(path) && (!pattern || meets(pattern, exactPath(basename(path))))) {
        return relative(cwd, path) || path
      }
    }
  }
  return undefined
}
