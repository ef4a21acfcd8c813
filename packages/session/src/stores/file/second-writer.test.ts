import { expect, test } from 'vitest'
import type { Session } from '../../store/session.ts'
import { said, user } from '../../testing/builders.ts'
import { MemoryDisk } from '../../testing/memory-disk.ts'
import { openFileStore } from './file-store.ts'
import { mendTail } from './recover.ts'
import type { LockAttempt } from './writer-lock.ts'

const log = '/root/s/events.jsonl'
const large = 'x'.repeat(300_000)

test('a writer whose lock file was deleted fails its next append, and writes no more files by name', async () => {
  const disk = new MemoryDisk()
  const lock = fakeLock()
  const session = await storeOn(disk, lock.acquire).create({ id: 's' })
  await user(session, 'before')
  await session.saveDerived()
  await user(session, 'not yet in the derived files')
  const names = (): string[] => disk.names('/root/s').sort()
  const before = { names: names(), metadata: disk.contentOf('/root/s/metadata.json') }
  lock.isIntact = false
  await expect(user(session, large)).rejects.toMatchObject({ code: 'storage-failed' })
  await expect(user(session, 'after')).rejects.toMatchObject({ code: 'fenced' })
  await session.close()
  expect({ names: names(), metadata: disk.contentOf('/root/s/metadata.json') }).toEqual(before)
})

test('a writer does not truncate its partial line once another has written after it', async () => {
  const disk = new MemoryDisk()
  const { first, openSecond } = await twoOn(disk)
  disk.failNth({ operation: 'write', nth: 1, short: 50, pathEnd: log })
  const gate = pauseNext(disk, 'read')
  const half = user(first, 'half').catch((error: unknown) => error)
  await gate.reached
  const second = await openSecond()
  await user(second, 'acknowledged')
  gate.open()
  expect(await half).toMatchObject({ code: 'storage-failed' })
  await expect(user(first, 'again')).rejects.toMatchObject({ code: 'fenced' })
  expect(await said(await reopened(disk))).toEqual(['user: first', 'user: acknowledged'])
})

test('a writer whose lock file was deleted does not truncate its partial line', async () => {
  const disk = new MemoryDisk()
  const lock = fakeLock()
  const session = await storeOn(disk, lock.acquire).create({ id: 's' })
  await user(session, 'before')
  disk.failNth({ operation: 'write', nth: 1, short: 50, pathEnd: log })
  const size = disk.contentOf(log)!.length
  lock.isIntact = false
  await expect(user(session, 'half')).rejects.toMatchObject({ code: 'storage-failed' })
  await expect(user(session, 'again')).rejects.toMatchObject({ code: 'fenced' })
  expect(disk.contentOf(log)!.length).toBe(size + 50)
})

test('opening with insist and without a lock truncates nothing: the partial line may still be being written', async () => {
  const disk = new MemoryDisk()
  const { first, openSecond } = await twoOn(disk)
  const size = disk.contentOf(log)!.length
  writeRaw(disk, '{"seq":')
  const second = await openSecond()
  await user(second, 'second')
  expect(Buffer.from(disk.contentOf(log)!).toString().slice(size)).toMatch(/^\{"seq":\n\{"seq":\d/)
  await expect(user(first, 'first again')).rejects.toMatchObject({ code: 'fenced' })
  expect(await said(await reopened(disk))).toEqual(['user: first', 'user: second'])
})

test('opening with insist fails if the newline cannot be written', async () => {
  const disk = new MemoryDisk()
  const { openSecond } = await twoOn(disk)
  writeRaw(disk, '{"seq":')
  disk.failNth({ operation: 'write', nth: 1, short: 0, pathEnd: log })
  await expect(openSecond()).rejects.toMatchObject({ code: 'storage-failed' })
})

test('a partial line that appears during an open is not continued', async () => {
  const disk = new MemoryDisk()
  const { openSecond } = await twoOn(disk)
  const gate = pauseNext(disk, 'dataSync')
  const opening = openSecond()
  await gate.reached
  writeRaw(disk, '{"seq":')
  gate.open()
  await expect(user(await opening, 'second')).rejects.toMatchObject({ code: 'fenced' })
})

test('mending restarts if the log grew while its tail was copied', async () => {
  const disk = new MemoryDisk()
  await twoOn(disk)
  const whole = disk.contentOf(log)!
  writeRaw(disk, '{"seq":')
  const gate = pauseNext(disk, 'dataSync')
  const fd = disk.openAppend(log)
  const mending = mendTail(disk, log, fd)
  await gate.reached
  disk.write(fd, Buffer.from('1}\n'))
  gate.open()
  expect(await mending).toEqual({ tornBytes: 0, keptAs: undefined, end: whole.length + 10 })
  expect(disk.contentOf(log)!.length).toBe(whole.length + 10)
})

interface FakeLock {
  isIntact: boolean
  acquire: () => Promise<LockAttempt>
}

function fakeLock(): FakeLock {
  const fake: FakeLock = {
    isIntact: true,
    acquire: async () => ({
      type: 'locked',
      lock: { kind: 'ofd', isIntact: () => fake.isIntact, release: () => undefined },
    }),
  }
  return fake
}

const noLock = async (): Promise<LockAttempt> => ({ type: 'unavailable', reason: 'There are no locks here.' })

function storeOn(disk: MemoryDisk, lock: () => Promise<LockAttempt>): ReturnType<typeof openFileStore> {
  return openFileStore({ folder: '/root', port: disk, lock })
}

/** A session written without a lock, and a function that opens a second one. */
async function twoOn(disk: MemoryDisk): Promise<{ first: Session; openSecond: () => Promise<Session> }> {
  await (await storeOn(disk, fakeLock().acquire).create({ id: 's' })).close()
  const first = await storeOn(disk, noLock).open('s', { insist: true })
  await user(first, 'first')
  return { first, openSecond: () => storeOn(disk, noLock).open('s', { insist: true }) }
}

async function reopened(disk: MemoryDisk): Promise<Session> {
  return storeOn(disk, fakeLock().acquire).open('s')
}

/** Bytes that no store wrote. */
function writeRaw(disk: MemoryDisk, words: string): void {
  const fd = disk.openAppend(log)
  disk.write(fd, Buffer.from(words))
  disk.close(fd)
}

/** The next call of this name takes effect and then waits. */
function pauseNext(disk: MemoryDisk, operation: 'read' | 'dataSync'): { reached: Promise<void>; open: () => void } {
  const reached = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  const original = disk[operation].bind(disk) as (...parameters: unknown[]) => Promise<never>
  disk[operation] = async (...parameters: unknown[]): Promise<never> => {
    disk[operation] = original
    const result = await original(...parameters)
    reached.resolve()
    await gate.promise
    return result
  }
  return { reached: reached.promise, open: gate.resolve }
}

test('lines that need only be accepted also detect a deleted lock file, a moment later', async () => {
  const disk = new MemoryDisk()
  const lock = fakeLock()
  const store = openFileStore({ folder: '/root', port: disk, lock: lock.acquire, durability: 'accepted' })
  const session = await store.create({ id: 's' })
  await user(session, 'before')
  lock.isIntact = false
  const refused = async (): Promise<string> => {
    for (let tries = 0; tries < 1_000_000; tries++) {
      try {
        await user(session, 'after')
      } catch (error) {
        return (error as { code: string }).code
      }
    }
    return 'never'
  }
  expect(await refused()).toBe('fenced')
})
