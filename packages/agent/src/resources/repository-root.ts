import { lstat } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** The nearest folder upwards that has a `.git`, a folder or the file of a worktree. Nothing in it is read and git is not run. */
export async function findRepositoryRoot(cwd: string): Promise<string | undefined> {
  for (let folder = cwd; ; folder = dirname(folder)) {
    if (await exists(join(folder, '.git'))) return folder
    if (dirname(folder) === folder) return undefined
  }
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  )
}
