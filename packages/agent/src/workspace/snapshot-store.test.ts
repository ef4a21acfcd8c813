import { execFileSync } from 'node:child_process'
import { chmod, link, readdir, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { expect, test } from 'vitest'
import { systemClock } from '@tapetree/session/util/wait'
import { TestFolder } from '../testing/test-folder.ts'
import { SnapshotStore } from './snapshot-store.ts'

test('opening a store does not disturb a snapshot that another process is taking', async () => {
  await using work = await TestFolder.make({ 'a.txt': 'a' })
  await using stores = await TestFolder.make()
  const options = { folder: work.path, storesFolder: stores.path }
  const store = await SnapshotStore.open(options)
  const { tree } = await store.take()
  // A snapshot works on another name of the index, whatever the age of the index is.
  const taking = join(store.path, 'temporary-of-another-process')
  await link(join(store.path, `index-${tree}`), taking)
  await SnapshotStore.open(options)
  expect(await readdir(store.path)).toContain('temporary-of-another-process')
})

test('a workspace that becomes part of a repository gets another store, since paths are relative to the repository', async () => {
  await using outer = await TestFolder.make({ 'sub/a.txt': 'a' })
  await using stores = await TestFolder.make()
  const options = { folder: outer.at('sub'), storesFolder: stores.path }
  const before = await SnapshotStore.open(options)
  const { tree } = await before.take()
  execFileSync('git', ['init', '--quiet', outer.path])
  const after = await SnapshotStore.open(options)
  expect(after.prefix).toBe('sub/')
  expect(await after.has(tree)).toBe(false)
  expect(await after.take()).toMatchObject({ added: 1, removed: 0 })
})

test('a folder that is replaced by a link is recorded as a link, and nothing is left out', async () => {
  await using work = await TestFolder.make({ 'one/a.txt': 'a', 'one/b.txt': 'b', 'two/a.txt': 'other' })
  await using stores = await TestFolder.make()
  const store = await SnapshotStore.open({ folder: work.path, storesFolder: stores.path })
  const first = await store.take()
  await rename(work.at('one'), work.at('three'))
  await symlink('two', work.at('one'))
  const second = await store.take()
  expect(second).toMatchObject({ added: 3, removed: 2, leftOutCount: 0 })
  const changed = (await store.diff(first.tree, second.tree)).map(({ path, to }) => `${path} ${to?.mode}`)
  expect(changed).toEqual([
    'one link',
    'one/a.txt undefined',
    'one/b.txt undefined',
    'three/a.txt file',
    'three/b.txt file',
  ])
})

test('the first snapshot of a repository has the files of its submodules', async () => {
  await using work = await TestFolder.make({ 'a.txt': 'a', 'sub/b.txt': 'b' })
  await using stores = await TestFolder.make()
  const git = (...args: string[]): string =>
    execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@b', ...args], {
      cwd: work.path,
      encoding: 'utf8',
      stdio: 'pipe',
    })
  for (const folder of [work.at('sub'), work.path]) {
    git('init', '--quiet', folder)
    git('-C', folder, 'add', '.')
    git('-C', folder, 'commit', '--quiet', '-m', 'first')
  }
  git('update-index', '--add', '--cacheinfo', `160000,${git('rev-parse', 'HEAD').trim()},not-checked-out`)
  git('commit', '--quiet', '-m', 'second')
  expect(git('ls-files', '-s', 'sub')).toMatch(/^160000 /)
  const store = await SnapshotStore.open({ folder: work.path, storesFolder: stores.path })
  const first = await store.take()
  expect(await store.paths(first.tree)).toEqual(['a.txt', 'sub/b.txt'])
  expect((await store.take()).tree).toBe(first.tree)
})

test('a damaged index is made again', async () => {
  await using work = await TestFolder.make({ 'a.txt': 'a' })
  await using stores = await TestFolder.make()
  const store = await SnapshotStore.open({ folder: work.path, storesFolder: stores.path })
  const { tree } = await store.take()
  await writeFile(join(store.path, `index-${tree}`), Buffer.alloc(100))
  await work.write('b.txt', 'b')
  const next = await store.take()
  expect((await store.diff(tree, next.tree)).map(({ path }) => path)).toEqual(['b.txt'])
})

test('a packed store has the same files in one pack', async () => {
  await using work = await TestFolder.make({ 'a.txt': 'a' })
  await using stores = await TestFolder.make()
  const store = await SnapshotStore.open({ folder: work.path, storesFolder: stores.path })
  const trees: string[] = []
  for (const content of ['one', 'two', 'three']) {
    await work.write('a.txt', content)
    await work.write(`${content}/b.txt`, content)
    trees.push((await store.take()).tree)
  }
  await rm(work.at('one'), { recursive: true })
  await store.pack()
  const objects = await readdir(join(store.path, 'git', 'objects'))
  expect(objects.toSorted()).toEqual(['info', 'pack'])
  expect(
    (await readdir(join(store.path, 'git', 'objects', 'pack'))).filter((name) => name.endsWith('.pack')),
  ).toHaveLength(1)
  for (const tree of trees) expect(await store.has(tree)).toBe(true)
  expect(await store.take()).toMatchObject({ removed: 1 })
})

test('a busy machine does not make every snapshot refresh the index, and touched files do', async () => {
  await using work = await TestFolder.make({ 'a.txt': 'a', 'b.txt': 'b' })
  await using place = await TestFolder.make()
  // Lists every git command.
  const git = execFileSync('sh', ['-c', 'command -v git']).toString('utf8').trim()
  await place.write('bin/git', `#!/bin/sh\necho "$@" >> '${place.at('commands')}'\nexec '${git}' "$@"\n`)
  await chmod(place.at('bin/git'), 0o755)
  const environment = { ...process.env, PATH: [place.at('bin'), process.env['PATH']].join(delimiter) }
  const clock = { ...systemClock, stepMs: 10, time: 0, now: () => (clock.time += clock.stepMs) }
  const storesFolder = place.at('stores')
  const store = await SnapshotStore.open({ folder: work.path, storesFolder, environment, clock })
  const takeMany = async (): Promise<number> => {
    await place.write('commands', '')
    for (let count = 0; count < 10; count += 1) await store.take()
    return (await place.read('commands')).split('\n').filter((line) => line.includes('--refresh')).length
  }
  await store.take()
  // The first snapshots of files that are as new as the index look at their content.
  await utimes(work.at('a.txt'), 1, 1)
  await utimes(work.at('b.txt'), 1, 1)
  clock.stepMs = 1000
  await takeMany()
  clock.stepMs = 10
  await takeMany()
  clock.stepMs = 30
  // One for the touched files, one in vain.
  expect(await takeMany()).toBeLessThanOrEqual(2)
  await utimes(work.at('a.txt'), 2, 2)
  clock.stepMs = 1000
  expect(await takeMany()).toBeGreaterThan(0)
  clock.stepMs = 10
  expect(await takeMany()).toBe(0)
})
