import { existsSync } from 'node:fs'
import files, { mkdir, statfs } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { afterEach, expect, test, vi } from 'vitest'
import { memoryStore } from '@tapetree/session'
import { systemClock } from '@tapetree/session/util/wait'
import { TestFolder } from '../testing/test-folder.ts'
import { SnapshotStore } from './snapshot-store.ts'
import { createVariant, removeCopy } from './variants.ts'
import { WorkspaceSnapshots } from './workspace-snapshots.ts'

async function fillDisk(): Promise<void> {
  const stats = await statfs('/')
  vi.spyOn(files, 'statfs').mockResolvedValue(Object.assign(stats, { bavail: 1 }))
  syncBuiltinESMExports()
}

afterEach(() => {
  vi.restoreAllMocks()
  syncBuiltinESMExports()
})

test('with little disk space a session records nothing new, and its files still go back', async () => {
  await using work = await TestFolder.make({ 'a.txt': 'one' })
  await using stores = await TestFolder.make()
  await using session = await memoryStore().create({ cwd: work.path })
  const open = (): WorkspaceSnapshots =>
    new WorkspaceSnapshots({ session, folder: work.path, storesFolder: stores.path, clock: systemClock })
  const record = async (snapshots: WorkspaceSnapshots): Promise<string> => {
    const entryId = await session.appendMessage('user', 'go')
    snapshots.runStarted({ runId: 'r', entryId })
    await snapshots.settled()
    return entryId
  }
  const entryId = await record(open())
  await work.write('a.txt', 'two')
  await fillDisk()
  const snapshots = open()
  const { seq } = session.head
  await record(snapshots)
  expect(snapshots.state).toMatchObject({ type: 'off', reason: expect.stringContaining('2 GiB') as string })
  expect(await snapshots.heldFiles()).toBeUndefined()
  // Only the message.
  expect(session.head.seq).toBe(seq + 1)
  const prepared = await snapshots.prepare(entryId)
  await snapshots.restore(prepared, new Map([['a.txt', 'take']]))
  expect(await work.read('a.txt')).toBe('one')
})

test('with little disk space a working copy can be removed, and its last files are recorded', async () => {
  await using work = await TestFolder.make({ 'a.txt': 'one' })
  await using state = await TestFolder.make()
  const sessions = memoryStore()
  await using session = await sessions.create({ cwd: work.path })
  const places = { sessions, storesFolder: state.at('stores'), copiesFolder: state.at('copies') }
  const store = await SnapshotStore.open({ folder: work.path, storesFolder: places.storesFolder })
  const snapshot = await store.take()
  const plan = { leftOut: [], tooLarge: [] }
  const variants = { id: 'v', number: 1, count: 1 }
  const copy = await createVariant(session, { places, store, folder: work.path, snapshot, plan, variants })
  await state.write(`copies/${session.id}/a.txt`, 'two')
  await fillDisk()
  await removeCopy(session, places)
  expect(existsSync(copy.root)).toBe(false)
  const kept = await store.versionAt(session.workingCopy?.result ?? '', 'a.txt')
  expect((await store.read(kept?.id ?? '')).toString()).toBe('two')
})

test('a working copy can be removed although its folder can have no snapshots any more', async () => {
  await using state = await TestFolder.make()
  const sessions = memoryStore()
  await using session = await sessions.create({ cwd: '/' })
  const places = { sessions, storesFolder: state.at('stores'), copiesFolder: state.at('copies') }
  const root = state.at(`copies/${session.id}`)
  await mkdir(root, { recursive: true })
  const workingCopy = { folder: root, root, copyOf: '/', tree: '0'.repeat(40) }
  await session.append({ type: 'working_copy', workingCopy })
  await removeCopy(session, places)
  expect(existsSync(root)).toBe(false)
  expect(session.workingCopy).toMatchObject({ outcome: 'discarded' })
})
