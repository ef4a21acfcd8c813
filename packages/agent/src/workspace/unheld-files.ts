import { lstat, readdir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import type { Deletion } from '../permissions/deleted-paths.ts'
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
    const isMeant = name === undefined ? () => true : matcherOf(name)
    const paths = [root]
    for (let path = paths.pop(); path !== undefined; path = paths.pop()) {
      if (--left < 0) return root
      const info = await lstat(path).catch(() => undefined)
      if (info === undefined || (!isInside(path, cwd) && !isInside(cwd, path))) continue
      if (info.isDirectory()) {
        const folder = path
        paths.push(...(await readdir(folder).catch(() => [])).map((entry) => join(folder, entry)))
      } else if (isMeant(path.slice(path.lastIndexOf('/') + 1)) && !held?.has(path)) return relative(cwd, path) || path
    }
  }
  return undefined
}

function matcherOf(glob: string): (name: string) => boolean {
  const text = glob
    .replaceAll(/[\\^$.|+()[\]{}]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.')
  const pattern = new RegExp(`^${text}$`, 's')
  return (name) => pattern.test(name)
}
