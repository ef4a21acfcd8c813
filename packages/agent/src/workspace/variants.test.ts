import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, globSync, lstatSync, readFileSync } from 'node:fs'
import { chmod, mkdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { memoryStore, type Session } from '@tapetree/session'
import { TestFolder } from '../testing/test-folder.ts'
import { SnapshotStore } from './snapshot-store.ts'
import {
  applyChoice,
  createVariant,
  listCopies,
  prepareChoice,
  recordVariant,
  removeCopy,
  type FinishedChoice,
  type PreparedChoice,
  type VariantPlaces,
  type WorkingCopy,
} from './variants.ts'
import { planCopies } from './working-copy.ts'
import { WorkspaceSnapshots } from './workspace-snapshots.ts'
import { systemClock } from '@tapetree/session/util/wait'

const lines = (...changed: [number, string][]): string =>
  `${Array.from({ length: 9 }, (_, index) => new Map(changed).get(index) ?? `line ${index}`).join('\n')}\n`

test.each([{ git: true }, { git: false }])(
  'a copy has the files, also those that are left out, and not the git folder (git: $git)',
  async ({ git }) => {
    await using place = await Place.make(
      {
        '.gitignore': 'out/\n',
        'out/built.js': 'built',
        '.env': 'KEY=1',
        'src/a.txt': 'a\r\n',
        'nested/.git/config': 'not copied',
      },
      { git },
    )
    await symlink(place.main.at('src'), place.main.at('out/link'))
    await chmod(place.main.at('src/a.txt'), 0o755)
    const before = place.gitHash()
    const { copy } = await place.variant()
    for (const path of ['.gitignore', 'out/built.js', '.env', 'src/a.txt'])
      expect(readFileSync(join(copy.folder, path))).toEqual(readFileSync(place.main.at(path)))
    expect((await stat(join(copy.folder, 'src/a.txt'))).mode & 0o111).not.toBe(0)
    expect(existsSync(join(copy.folder, 'nested/.git'))).toBe(false)
    // A link into the workspace leads into the copy.
    expect(readFileSync(join(copy.folder, 'out/link/a.txt'), 'utf8')).toBe('a\r\n')
    expect(execFileSync('realpath', [join(copy.folder, 'out/link')]).toString()).toContain(copy.root)
    if (git) {
      const run = (...command: string[]): string =>
        execFileSync('git', ['-C', copy.folder, ...command], { encoding: 'utf8' })
      expect(run('log', '--format=%s')).toBe('first\n')
      run('-c', 'user.name=A', '-c', 'user.email=a@b', 'commit', '-qam', 'in the copy')
      run('gc', '--quiet', '--prune=now')
    }
    expect(place.gitHash()).toBe(before)
  },
)

test('a chosen variant is merged with what the user changed meanwhile, and its copy is removed', async () => {
  await using place = await Place.make(
    { 'a.txt': 'a', 'both.txt': lines(), 'gone.txt': 'x', 'user.txt': 'u' },
    { git: true },
  )
  const chosen = await place.variant()
  const other = await place.variant()
  await place.write(chosen.copy, { 'a.txt': 'by the variant', 'both.txt': lines([0, 'variant']), 'new/b.txt': 'new' })
  await rm(join(chosen.copy.folder, 'gone.txt'))
  await place.write(other.copy, { 'a.txt': 'by the other' })
  await place.main.write('both.txt', lines([8, 'user']))
  await place.main.write('user.txt', 'mine')
  const { done } = await place.choose(chosen.session)
  expect(done).toMatchObject({
    changed: ['gone.txt', 'a.txt', 'new/b.txt'],
    merged: ['both.txt'],
    kept: [],
    skipped: [],
  })
  await removeCopy(chosen.session, place.places)
  await removeCopy(other.session, place.places)
  expect(await place.read('a.txt', 'both.txt', 'gone.txt', 'new/b.txt', 'user.txt')).toEqual([
    'by the variant',
    lines([0, 'variant'], [8, 'user']),
    undefined,
    'new',
    'mine',
  ])
  expect(await listCopies(place.places)).toEqual([])
  expect(chosen.session.workingCopy).toMatchObject({ outcome: 'chosen' })
  expect(other.session.workingCopy).toMatchObject({ outcome: 'discarded' })
  // The discarded files can still be read.
  const store = await SnapshotStore.open({ folder: place.main.path, storesFolder: place.places.storesFolder })
  const kept = await store.versionAt(other.session.workingCopy?.result ?? '', 'a.txt')
  expect((await store.read(kept?.id ?? '')).toString()).toBe('by the other')
})

test('what both changed in the same place is a conflict, and the user’s version stays unless they decide otherwise', async () => {
  await using place = await Place.make({ 'a.txt': 'a\n', 'b.txt': 'b\n', c: 'c', deleted: 'd\n' })
  const { session, copy } = await place.variant()
  await place.write(copy, { 'a.txt': 'variant\n', 'b.txt': 'variant\n', deleted: 'changed\n', 'folder/x': 'x' })
  for (const name of ['a.txt', 'b.txt']) await place.main.write(name, 'user\n')
  await place.main.write('folder', 'a file')
  await rm(place.main.at('deleted'))
  const { prepared, done } = await place.choose(session, new Map([['b.txt', 'take']]))
  expect(prepared.conflicts.map(({ path }) => path)).toEqual(['a.txt', 'b.txt', 'deleted'])
  expect(prepared.blocked.map(({ path }) => path)).toEqual(['folder/x'])
  expect(done.kept).toEqual(['a.txt', 'deleted', 'folder/x'])
  expect(await place.read('a.txt', 'b.txt', 'deleted', 'folder')).toEqual(['user\n', 'variant\n', undefined, 'a file'])
})

test('a new file of a variant does not replace an ignored file of the user', async () => {
  await using place = await Place.make({ '.gitignore': 'notes\n', 'a.txt': 'a' })
  const { session, copy } = await place.variant()
  await place.main.write('notes', 'mine')
  await place.write(copy, { '.gitignore': '', notes: 'of the variant' })
  const { done } = await place.choose(session)
  expect(done.kept).toEqual(['notes'])
  expect(await place.read('notes')).toEqual(['mine'])
})

test('what the check changed is not part of the result, and what the user changed in the copy afterwards is', async () => {
  await using place = await Place.make({ 'a.txt': 'a', 'snap.txt': 's' })
  const { session, copy } = await place.variant()
  await place.write(copy, { 'a.txt': 'variant' })
  const tree = await recordVariant(session, { places: place.places, by: 'agent' })
  await place.write(copy, { 'snap.txt': 'by the check', report: 'by the check', both: 'by the check' })
  const treeAfter = await recordVariant(session, { places: place.places, by: 'job' })
  await session.append({ type: 'check', check: { command: 'x', exitCode: 0, durationMs: 1, tree, treeAfter } })
  await place.write(copy, { both: 'by the user' })
  await place.choose(session)
  expect(await place.read('a.txt', 'snap.txt', 'report', 'both')).toEqual(['variant', 's', undefined, 'by the user'])
})

test('after a choice, an undo brings back the files before the variant and keeps those of the user', async () => {
  await using place = await Place.make({ 'a.txt': 'a', 'user.txt': 'u' })
  const { session, copy } = await place.variant()
  const entry = await session.appendMessage('user', 'change it')
  await place.write(copy, { 'a.txt': 'variant' })
  await recordVariant(session, { places: place.places, by: 'agent' })
  await place.main.write('user.txt', 'mine')
  await place.choose(session)
  const { storesFolder } = place.places
  const files = new WorkspaceSnapshots({ session, folder: place.main.path, storesFolder, clock: systemClock })
  const prepared = await files.prepare(entry)
  expect([prepared.restored, prepared.kept, prepared.conflicts].map((list) => list.map(({ path }) => path))).toEqual([
    ['a.txt'],
    ['user.txt'],
    [],
  ])
  await files.restore(prepared)
  expect(await place.read('a.txt', 'user.txt')).toEqual(['a', 'mine'])
})

test('a variant of a folder inside of a repository has the rest of the repository beside it', async () => {
  await using place = await Place.make(
    { 'sub/a.txt': 'a', 'other/b.txt': 'b', 'root.txt': 'r' },
    { git: true, sub: 'sub' },
  )
  const { session, copy } = await place.variant()
  expect(copy.folder).toBe(join(copy.root, 'sub'))
  expect(readFileSync(join(copy.folder, '../other/b.txt'), 'utf8')).toBe('b')
  await place.write(copy, { 'a.txt': 'variant', '../root.txt': 'not taken over' })
  await place.choose(session)
  expect(await place.read('sub/a.txt', 'root.txt')).toEqual(['variant', 'r'])
})

/** A folder, and sessions that work in copies of it. */
class Place implements AsyncDisposable {
  readonly main: TestFolder
  readonly #state: TestFolder
  readonly #folder: string
  readonly places: VariantPlaces
  #made = 0

  private constructor(main: TestFolder, state: TestFolder, folder: string) {
    this.main = main
    this.#state = state
    this.#folder = folder
    this.places = { sessions: memoryStore(), storesFolder: state.at('stores'), copiesFolder: state.at('copies') }
  }

  static async make(files: Record<string, string>, { git = false, sub = '' } = {}): Promise<Place> {
    const main = await TestFolder.make(files)
    if (git) {
      const run = (...command: string[]): void => void execFileSync('git', ['-C', main.path, ...command])
      run('init', '--quiet')
      run('add', '.', '--', ':!nested')
      run('-c', 'user.name=A', '-c', 'user.email=a@b', 'commit', '-qm', 'first')
    }
    return new Place(main, await TestFolder.make(), join(main.path, sub))
  }

  async variant(): Promise<{ session: Session; copy: WorkingCopy }> {
    const { places } = this
    const session = await places.sessions.create({ cwd: this.#folder })
    const store = await SnapshotStore.open({ folder: this.#folder, storesFolder: places.storesFolder })
    const snapshot = await store.take()
    const plan = await planCopies(store, { tree: snapshot.tree, count: 1, folder: places.copiesFolder })
    const variants = { id: 'v', number: ++this.#made, count: 3 }
    const folder = this.#folder
    return { session, copy: await createVariant(session, { places, store, folder, snapshot, plan, variants }) }
  }

  async write({ folder }: WorkingCopy, files: Record<string, string>): Promise<void> {
    for (const [path, content] of Object.entries(files)) {
      await mkdir(join(folder, path, '..'), { recursive: true })
      await writeFile(join(folder, path), content)
    }
  }

  async choose(
    session: Session,
    choices: Parameters<typeof applyChoice>[2]['choices'] = new Map(),
  ): Promise<{ prepared: PreparedChoice; done: FinishedChoice }> {
    const prepared = await prepareChoice(session, this.places)
    return { prepared, done: await applyChoice(session, prepared, { places: this.places, choices }) }
  }

  async read(...paths: string[]): Promise<(string | undefined)[]> {
    return Promise.all(paths.map((path) => this.main.read(path).catch(() => undefined)))
  }

  /** Of everything in the git folder. */
  gitHash(): string {
    const hash = createHash('sha256')
    for (const path of globSync('.git/**', { cwd: this.main.path }).toSorted()) {
      const stats = lstatSync(this.main.at(path))
      hash.update(`${path} ${stats.mtimeMs} `)
      if (stats.isFile()) hash.update(readFileSync(this.main.at(path)))
    }
    return hash.digest('hex')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.main[Symbol.asyncDispose]()
    await this.#state[Symbol.asyncDispose]()
  }
}
