import { execFileSync } from 'node:child_process'
import { link, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
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
