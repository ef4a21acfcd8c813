import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { SessionStore } from '../../store/session-store.ts'
import { said, user } from '../../testing/builders.ts'
import { MemoryDisk } from '../../testing/memory-disk.ts'
import { openFileStore } from './file-store.ts'
import { scanIndex } from './session-index/scan-index.ts'

const large = 'x'.repeat(300_000)

test('an append after a failed large value follows the last line queued before it', async () => {
  const disk = new MemoryDisk()
  const session = await onDisk(disk).create({ id: 's' })
  const gate = Promise.withResolvers<void>()
  const sync = disk.dataSync.bind(disk)
  disk.dataSync = async (fd) => gate.promise.then(() => sync(fd))
  disk.failNth({ operation: 'write', nth: 1, error: 'ENOSPC', pathEnd: '.tmp' })
  const before = user(session, 'before')
  await expect(user(session, large)).rejects.toMatchObject({ code: 'storage-failed' })
  const after = user(session, 'after')
  gate.resolve()
  await Promise.all([before, after])
  expect(await said(session)).toEqual(['user: before', 'user: after'])
})

test('a retry after a failed large value succeeds', async () => {
  const disk = new MemoryDisk()
  const session = await onDisk(disk).create({ id: 's' })
  disk.failNth({ operation: 'write', nth: 1, error: 'ENOSPC', pathEnd: '.tmp' })
  const persist = async (words: string): Promise<number> => {
    for (let tries = 1; tries <= 10; tries++) {
      try {
        await user(session, words)
        return tries
      } catch {
        // told that it was not stored
      }
    }
    return Infinity
  }
  const tries = await Promise.all([large, 'a', 'b', `${large}y`, 'c'].map(persist))
  expect(tries.filter((count) => count > 2)).toEqual([])
})

test.each([
  ['its lines', 'fork/events.jsonl'],
  ['a blob of it', '.tmp'],
])('a fork without room for %s does not exist, and can be created once there is room', async (_what, pathEnd) => {
  const disk = new MemoryDisk()
  const store = onDisk(disk)
  const session = await store.create({ id: 's' })
  await user(session, large)
  await Promise.all(Array.from({ length: 300 }, async () => user(session, 'hello')))
  disk.failNth({ operation: 'write', nth: 1, error: 'ENOSPC', pathEnd, times: 1000 })
  await expect(store.forkFrom('s', { id: 'fork' })).rejects.toMatchObject({ code: 'storage-failed' })
  disk.clearFaults()
  expect(disk.names('/root')).toEqual(['.new', 's'])
  await using fork = await store.forkFrom('s', { id: 'fork' })
  expect((await said(fork)).length).toBe(301)
})

test('a fork whose first line fails during the read rejects once and leaves no unhandled rejection', async () => {
  const disk = new MemoryDisk()
  const store = onDisk(disk)
  const session = await store.create({ id: 's' })
  for (const words of ['hello', large, `${large}y`]) await user(session, words)
  const read = disk.read.bind(disk)
  disk.read = async (...parameters) => {
    await setImmediate()
    return read(...parameters)
  }
  disk.failNth({ operation: 'write', nth: 1, error: 'ENOSPC', pathEnd: 'fork/events.jsonl' })
  await expect(store.forkFrom('s', { id: 'fork' })).rejects.toMatchObject({ code: 'storage-failed' })
})

test('a session without room for its name does not exist, and can be created once there is room', async () => {
  const disk = new MemoryDisk()
  const store = onDisk(disk)
  disk.failNth({ operation: 'write', nth: 1, error: 'ENOSPC', pathEnd: 's/events.jsonl' })
  await expect(store.create({ id: 's', name: 'named' })).rejects.toMatchObject({ code: 'storage-failed' })
  expect({
    names: [...disk.names('/root/.new'), ...disk.names('/root').filter((name) => name !== '.new')],
    open: disk.openPaths,
  }).toEqual({ names: [], open: [] })
  await using session = await store.create({ id: 's', name: 'named' })
  expect(session.name).toBe('named')
})

test('a blob without room is reported', async () => {
  const disk = new MemoryDisk()
  await using session = await onDisk(disk).create({ id: 's' })
  disk.failNth({ operation: 'write', nth: 1, short: 1, pathEnd: '.tmp' })
  await expect(session.putBlob(Buffer.from('bytes'))).rejects.toMatchObject({ code: 'storage-failed' })
})

function onDisk(disk: MemoryDisk): SessionStore {
  return openFileStore({ folder: '/root', port: disk, lock: disk.lock, index: scanIndex(disk) })
}
