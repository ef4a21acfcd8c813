import { readdir, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { textOf, type ShadowGit } from './shadow-git.ts'
import { withStoreLock } from './store-lock.ts'

/** Packs compress well if similar files are compared, which the settings of the store rule out for large ones. */
const packing = ['-c', 'core.bigFileThreshold=5m', '-c', 'pack.threads=1', 'pack-objects', '-q']

/** Copies the file versions of a tree that are only in the user's repository. False if some are gone. */
export async function packBorrowed(git: ShadowGit, tree: string): Promise<boolean> {
  return whilePacking(git, async () => {
    const options = { variables: git.borrowing, input: `${tree}\n` }
    return (await git.try(['pack-objects', '-q', '--revs', packName(git)], options)).type === 'ran'
  })
}

/** A pack with everything in a tree that is not in another one, too. `isCut`: it is larger than this many bytes. */
export async function packTree(
  git: ShadowGit,
  { tree, base, maxBytes }: { tree: string; base?: string | undefined; maxBytes: number },
): Promise<{ bytes: Buffer; isCut: boolean }> {
  const input = base === undefined ? `${tree}\n` : `${tree}\n^${base}\n`
  const options = { variables: git.borrowing, input, maxBytes }
  const { output, isCut } = await git.run([...packing, '--revs', '--stdout'], options)
  return { bytes: output, isCut }
}

/** Adds the objects of a pack that comes from elsewhere. Git checks each of them. */
export async function takePack(git: ShadowGit, bytes: Buffer): Promise<void> {
  await whilePacking(git, async () => {
    await git.run(['index-pack', '--stdin', '--strict', '--fix-thin'], { input: bytes })
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

/** Deletes everything that is not in one of these trees. The caller holds the lock of the store. */
export async function keepOnly(git: ShadowGit, trees: readonly string[]): Promise<void> {
  await whilePacking(git, async () => {
    const old = await packsOf(git)
    // A tree that lacks something, because the user has pruned it, keeps the rest.
    const options = ['--revs', '--missing=allow-any']
    if (trees.length > 0) await replacePacks(git, { old, input: trees.map((tree) => `${tree}\n`).join(''), options })
    else await removePacks(git, old)
    for (const name of await readdir(git.objects))
      if (/^[0-9a-f]{2}$/.test(name)) await rm(join(git.objects, name), { recursive: true, force: true })
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
  const { output } = await git.run([...packing, ...options, packName(git)], { input, variables: git.borrowing })
  const made = `pack-${textOf(output).trim()}`
  await removePacks(
    git,
    old.filter((name) => name !== made),
  )
}

async function removePacks(git: ShadowGit, names: readonly string[]): Promise<void> {
  const folder = join(git.objects, 'pack')
  // The index of a pack goes first: without it, git does not find the pack.
  for (const name of names)
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
  return withStoreLock(join(git.path, 'pack'), work)
}
