import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import files, { mkdir, readdir, readlink, rm, symlink } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { afterEach, expect, test, vi } from 'vitest'
import { TestFolder } from '../testing/test-folder.ts'
import { applyRestore, cleanStaging, type RestoreOptions, type RestoreResult } from './apply-restore.ts'
import { SnapshotStore, stagingName } from './snapshot-store.ts'

/** Moves of a restore fail from now on, as on some file systems. */
function fail(name: 'link' | 'copyFile', code: string): void {
  const work = files[name]
  vi.spyOn(files, name).mockImplementation(async (from, to, mode) => {
    if (!String(from).includes(stagingName)) return work(from, to, mode)
    throw Object.assign(new Error(`${code}: ${name}`), { code, syscall: name })
  })
  syncBuiltinESMExports()
}

function failNoMore(): void {
  vi.restoreAllMocks()
  syncBuiltinESMExports()
}

afterEach(failNoMore)

test('undoing the first files of an empty subfolder of a repository keeps the folder of the session', async () => {
  await using place = await TestFolder.make()
  execFileSync('git', ['init', '--quiet', place.path])
  await mkdir(place.at('app'))
  await using work = await Work.of(place.at('app'))
  const before = await work.take()
  await place.write('app/index.html', 'hello')
  await place.write('app/styles/main.css', 'hello')
  await work.restore(before)
  expect(await readdir(place.at('app'))).toEqual([])
})

test('files come back on a file system without hard links, and a file that someone creates meanwhile stays', async () => {
  await using place = await TestFolder.make({ 'a.txt': 'one', 'b.txt': 'one' })
  await symlink('a.txt', place.at('link'))
  await using work = await Work.of(place.path)
  const before = await work.take()
  await place.write('a.txt', 'two')
  await rm(place.at('b.txt'))
  await rm(place.at('link'))
  fail('link', 'EPERM')
  const onStep = async (step: string): Promise<void> => {
    if (step === 'place b.txt') await place.write('b.txt', 'mine')
  }
  expect(await work.restore(before, { onStep })).toMatchObject({ changed: ['a.txt', 'link'], skipped: ['b.txt'] })
  expect([await place.read('a.txt'), await place.read('b.txt')]).toEqual(['one', 'mine'])
  expect(await readlink(place.at('link'))).toBe('a.txt')
})

test('a file that is saved while it is moved returns to its place without hard links', async () => {
  await using place = await TestFolder.make({ 'a.txt': 'one' })
  await using work = await Work.of(place.path)
  const before = await work.take()
  await place.write('a.txt', 'two')
  fail('link', 'ENOTSUP')
  const onStep = async (step: string): Promise<void> => {
    if (step === 'move a.txt') await place.write('a.txt', 'saved')
  }
  expect(await work.restore(before, { onStep })).toEqual({ changed: [], skipped: ['a.txt'], keptCopies: [] })
  expect(await place.read('a.txt')).toBe('saved')
})

test('what a killed restore moved aside returns without hard links, and stays aside if it cannot return', async () => {
  await using place = await TestFolder.make({ 'a.txt': 'one', [`${stagingName}/x/old/b.txt`]: 'moved' })
  await symlink('a.txt', place.at(`${stagingName}/x/old/link`))
  await using work = await Work.of(place.path)
  fail('link', 'EPERM')
  fail('copyFile', 'EIO')
  await expect(cleanStaging(work.store)).rejects.toMatchObject({ code: 'EIO' })
  expect(await place.read(`${stagingName}/x/old/b.txt`)).toBe('moved')
  failNoMore()
  fail('link', 'EPERM')
  await cleanStaging(work.store)
  expect([await place.read('b.txt'), await readlink(place.at('link'))]).toEqual(['moved', 'a.txt'])
  expect(existsSync(place.at(stagingName))).toBe(false)
})

/** Takes snapshots of a folder and returns to them. */
class Work implements AsyncDisposable {
  readonly store: SnapshotStore
  readonly #stores: TestFolder

  private constructor(store: SnapshotStore, stores: TestFolder) {
    this.store = store
    this.#stores = stores
  }

  static async of(folder: string): Promise<Work> {
    const stores = await TestFolder.make()
    return new Work(await SnapshotStore.open({ folder, storesFolder: stores.path }), stores)
  }

  async take(): Promise<string> {
    return (await this.store.take()).tree
  }

  async restore(tree: string, options: Pick<RestoreOptions, 'onStep'> = {}): Promise<RestoreResult> {
    const changes = await this.store.diff(await this.take(), tree)
    return applyRestore(changes, { store: this.store, restoreId: 'x', tree, ...options })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stores[Symbol.asyncDispose]()
  }
}
