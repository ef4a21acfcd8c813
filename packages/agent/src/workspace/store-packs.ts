import { readdir, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { withFileLock } from '@tapetree/session/stores/file'
import { textOf, type ShadowGit } from './shadow-git.ts'

/** Packs compress well if similar files are compared, which the settings of the store rule out for large ones. */
const packing = ['-c', 'core.bigFileThreshold=5m', '-c', 'pack.threads=1', 'pack-objects', '-q']

/** Copies the file versions of a tree that are only in the user's repository. False if some are gone. */
export async function packBorrowed(git: ShadowGit, tree: string): Promise<boolean> {
  return whilePacking(git, async () => {
    const options = { variables: git.borrowing, input: `${tree}\n` }
    return (await git.try(['pack-objects', '-q', '--revs', packName(git)], options)).type === 'ran'
  })
}

/** Replaces all packs and single objects by one pack that has the same. */
export async function packStore(git: ShadowGit): Promise<void> {
  await whilePacking(git, async () => {
    const old = await packsOf(git)
    const { output } = await git.run(['cat-file', '--batch-all-objects', '--unordered', '--batch-check=%(objectname)'])
    if (output.length === 0) return
    await replacePacks(git, { old, input: textOf(output), options: [] })
    // Only what is in a pack too.
    await git.run(['prune-packed', '-q'])
  })
}

/** After a failure: git leaves the pack that it was writing. */
export async function removeTemporaryPacks(git: ShadowGit): Promise<void> {
  const folder = join(git.objects, 'pack')
  await whilePacking(git, async () => {
    for (const name of await readdir(folder)) if (name.startsWith('tmp_')) await rm(join(folder, name), { force: true })
  }).catch(() => undefined)
}

async function replacePacks(
  git: ShadowGit,
  { old, input, options }: { old: readonly string[]; input: string; options: readonly string[] },
): Promise<void> {
  const { output } = await git.run([...packing, ...options, packName(git)], { input })
  const made = `pack-${textOf(output).trim()}`
  const folder = join(git.objects, 'pack')
  // The index of a pack goes first: without it, git does not find the pack.
  for (const name of old)
    if (name !== made)
      for (const extension of ['idx', 'rev', 'pack']) await rm(join(folder, `${name}.${extension}`), { force: true })
}

/** The names of the packs. */
async function packsOf(git: ShadowGit): Promise<string[]> {
  const names = await readdir(join(git.objects, 'pack'))
  return names.filter((name) => name.endsWith('.idx')).map((name) => basename(name, '.idx'))
}

/** Begins the names of packs; git adds the id. */
function packName(git: ShadowGit): string {
  return join(git.objects, 'pack', 'pack')
}

function whilePacking<T>(git: ShadowGit, work: () => Promise<T>): Promise<T> {
  return withFileLock(join(git.path, 'pack'), work)
}
