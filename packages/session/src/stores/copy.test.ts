import { randomBytes } from 'node:crypto'
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { localScope, type LogStore } from '../log/log-store.ts'
import { SessionStore } from '../store/session-store.ts'
import { user } from '../testing/builders.ts'
import { copySession, fileCopyTarget, sessionIdsIn, type CopiedSession, type CopyTarget } from './copy.ts'
import type { FilePort } from './file/file-port.ts'
import { FileLogStore } from './file/file-store.ts'
import { nodeFilePort } from './file/node-file-port.ts'
import { MemoryLogStore } from './memory/memory-store.ts'

let root: string
let from: FileLogStore
let sessions: SessionStore
let to: CopyTarget

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'tt-copy-'))
  from = new FileLogStore({ folder: join(root, 'from') })
  sessions = new SessionStore(from)
  to = fileCopyTarget({ folder: join(root, 'to') })
})

afterEach(async () => {
  await sessions.close()
  await to.close()
  await rm(root, { recursive: true, force: true })
})

/** A session with more lines than one batch has, and two blobs. */
async function makeSession(lines = 700): Promise<string> {
  await using session = await sessions.create({ cwd: '/work' })
  for (const words of ['large', 'also large']) await user(session, words.repeat(60_000))
  await Promise.all(Array.from({ length: lines }, (_, index) => user(session, `message ${index} ✓`)))
  return session.id
}

const copy = (sessionId: string, options: { dryRun?: boolean; to?: CopyTarget } = {}): Promise<CopiedSession> =>
  copySession({ from, to, sessionId, ...options })

const logOf = (side: 'from' | 'to', id: string, place = ''): string => join(root, side, place, id, 'events.jsonl')

test('a copy has the same bytes and blobs, in the same place', async () => {
  const [active, archived, deleted] = [await makeSession(), await makeSession(3), await makeSession(1)]
  await sessions.archive(archived)
  await sessions.delete(deleted)
  expect(await sessionIdsIn(from)).toEqual([active, archived, deleted].sort())
  expect(await copy(active)).toEqual({
    outcome: 'copied',
    place: 'active',
    lines: 704,
    blobs: 2,
    missingBlobs: 0,
    resumedLines: 0,
  })
  expect(await copy(archived)).toMatchObject({ outcome: 'copied', place: 'archive' })
  expect(await copy(deleted)).toMatchObject({ outcome: 'copied', place: 'trash' })
  for (const [id, place] of [[active], [archived, '.archive'], [deleted, '.trash']] as const) {
    expect(await readFile(logOf('to', id, place))).toEqual(await readFile(logOf('from', id, place)))
    expect(await readdir(join(root, 'to', place ?? '', id, 'blobs'))).toEqual(
      await readdir(join(root, 'from', place ?? '', id, 'blobs')),
    )
  }
  const copies = new SessionStore(to.store)
  expect((await copies.verify(active)).isIntact).toBe(true)
  expect((await copies.list()).sessions.map(({ id }) => id)).toEqual([active])
  expect(await copy(active)).toMatchObject({ outcome: 'present', lines: 704, blobs: 2 })
})

test('a dry run says what would be copied, and copies nothing', async () => {
  const id = await makeSession(1)
  expect(await copy(id, { dryRun: true })).toMatchObject({ outcome: 'would-copy', lines: 5, blobs: 2 })
  expect(await readdir(root)).toEqual(['from'])
})

test('an interrupted copy cannot be opened, and the next one goes on after its lines', async () => {
  const id = await makeSession()
  const failing: CopyTarget = {
    ...to,
    receive: async (...args) => {
      const incoming = await to.receive(...args)
      const append = incoming.append.bind(incoming)
      let count = 0
      incoming.append = async (lines) => {
        if (count++ > 0) throw new Error('interrupted')
        await append(lines)
      }
      return incoming
    },
  }
  await expect(copy(id, { to: failing })).rejects.toThrow('interrupted')
  expect(await to.store.placeOf(localScope, id)).toBeUndefined()
  expect((await to.store.list(localScope, {})).sessions).toEqual([])
  expect((await copy(id)).resumedLines).toBeGreaterThan(100)
  expect(await readFile(logOf('to', id))).toEqual(await readFile(logOf('from', id)))
})

test('the rest of an interrupted copy with other lines is deleted', async () => {
  const id = await makeSession(3)
  const other = await to.receive(localScope, id, '{"seq":1,"other":true}')
  await other.close()
  expect(await copy(id)).toMatchObject({ outcome: 'copied', resumedLines: 0 })
  expect(await readFile(logOf('to', id))).toEqual(await readFile(logOf('from', id)))
})

test('a torn last line of an interrupted copy is written again', async () => {
  const id = await makeSession(3)
  const lines = (await readFile(logOf('from', id), 'utf8')).split('\n')
  await (await to.receive(localScope, id, lines[0] as string)).close()
  await appendFile(join(root, 'to', '.copying', id, 'events.jsonl'), `${lines[1]}\n${lines[2]?.slice(0, 20)}`)
  expect(await copy(id)).toMatchObject({ outcome: 'copied', resumedLines: 1 })
  expect(await readFile(logOf('to', id))).toEqual(await readFile(logOf('from', id)))
})

test('a session that is being written, or copied by another process, is not copied', async () => {
  const id = await makeSession(1)
  {
    await using _ = await sessions.open(id)
    await expect(copy(id)).rejects.toMatchObject({ code: 'session-owned', message: /is open for writing/ })
  }
  const other = await to.receive(localScope, id, 'x')
  await expect(copy(id)).rejects.toMatchObject({ code: 'session-owned', message: /is being copied already/ })
  await other.close()
})

test('a session that cannot be locked is copied as it is', async () => {
  const id = await makeSession(1)
  const unlockable = new FileLogStore({
    folder: join(root, 'from'),
    lock: async () => ({ type: 'unavailable', reason: 'a read-only disk' }),
  })
  expect(await copySession({ from: unlockable, to, sessionId: id })).toMatchObject({ outcome: 'copied', lines: 5 })
  await unlockable.close()
})

test.each([
  ['another session', () => '{"seq":1,"type":"session","id":"x"}\n', /has another session with the id/],
  [
    'an earlier state',
    (log: string) => `${log.split('\n').slice(0, 3).join('\n')}\n`,
    /an earlier state .* 3 of its 5/,
  ],
  ['a later state', (log: string) => `${log}more\n`, /1 more lines, so it was continued there/],
  ['other lines', (log: string) => log.replace('message 0', 'message 1'), /with other lines from line 5 on/],
])('%s with the same id in the target is left alone', async (_, change, sentence) => {
  const id = await makeSession(1)
  await mkdir(join(root, 'to', id), { recursive: true })
  const there = change(await readFile(logOf('from', id), 'utf8'))
  await writeFile(logOf('to', id), there)
  for (const dryRun of [false, true]) {
    await expect(copy(id, { dryRun })).rejects.toMatchObject({ code: 'session-exists', message: sentence })
  }
  expect(await readFile(logOf('to', id), 'utf8')).toBe(there)
})

test('the same session without a blob in the target is reported', async () => {
  const id = await makeSession(1)
  await copy(id)
  await rm(join(root, 'to', id, 'blobs'), { recursive: true })
  await expect(copy(id)).rejects.toMatchObject({ code: 'session-exists', message: /without its blob/ })
})

test('a blob that the source has lost is counted, and the rest is copied', async () => {
  const id = await makeSession(1)
  const [lost = ''] = await readdir(join(root, 'from', id, 'blobs'))
  await rm(join(root, 'from', id, 'blobs', lost))
  expect(await copy(id)).toMatchObject({ outcome: 'copied', blobs: 1, missingBlobs: 1 })
  expect(await copy(id)).toMatchObject({ outcome: 'present', blobs: 1, missingBlobs: 1 })
})

test.each([
  ['not valid UTF-8', Buffer.from([0x22, 0xff, 0x22, 0x0a])],
  ['too long', Buffer.concat([randomBytes(17 * 1024 * 1024).fill(0x20, 0), Buffer.from('\n')])],
])('a log with a line that is %s is not copied', async (why, line) => {
  const id = await makeSession(1)
  await appendFile(logOf('from', id), line)
  await expect(copy(id)).rejects.toMatchObject({ code: 'invalid-entry', message: new RegExp(`line 6 is ${why}`) })
  expect(await to.store.placeOf(localScope, id)).toBeUndefined()
})

test('a log with garbage that is text is copied with it', async () => {
  const id = await makeSession(1)
  await appendFile(logOf('from', id), 'garbage\n')
  await copy(id)
  expect(await readFile(logOf('to', id))).toEqual(await readFile(logOf('from', id)))
})

test('a log without lines and an unknown session are not copied', async () => {
  const id = await makeSession(1)
  await writeFile(logOf('from', id), '')
  await expect(copy(id)).rejects.toMatchObject({ code: 'invalid-entry', message: /it has no lines/ })
  await expect(copy('unknown')).rejects.toMatchObject({ code: 'session-not-found' })
})

test('a session that appears in the target during the copy is left alone', async () => {
  const id = await makeSession(1)
  const incoming = await to.receive(localScope, id, 'x')
  await new SessionStore(to.store).create({ id })
  await expect(incoming.publish('active')).rejects.toMatchObject({ code: 'session-exists' })
})

test('a target that stores other lines than it was sent shows nothing', async () => {
  const id = await makeSession(3)
  const lying: CopyTarget = {
    ...to,
    receive: async (...args) => {
      const incoming = await to.receive(...args)
      const append = incoming.append.bind(incoming)
      incoming.append = (lines) => append(lines.map((line) => line.replace('message 1', 'message 2')))
      return incoming
    },
  }
  await expect(copy(id, { to: lying })).rejects.toMatchObject({ code: 'storage-failed', message: /other lines/ })
  expect(await to.store.placeOf(localScope, id)).toBeUndefined()
  expect(await copy(id)).toMatchObject({ outcome: 'copied', resumedLines: 0 })
})

test('a copy whose files another process took away fails', async () => {
  const incoming = await to.receive(localScope, 'a', 'x')
  await rm(join(root, 'to', '.copying'), { recursive: true })
  await expect(incoming.append(['y'])).rejects.toMatchObject({ code: 'storage-failed' })
  await expect(incoming.publish('active')).rejects.toMatchObject({ code: 'storage-failed' })
})

test('a copy on a full disk fails, and goes on when there is room', async () => {
  const id = await makeSession()
  const port = nodeFilePort()
  let room = 930_000
  const full: FilePort = {
    ...port,
    write: (fd, bytes) => {
      const taken = port.write(fd, bytes.subarray(0, room))
      room -= taken
      return taken
    },
  }
  const target = fileCopyTarget({ folder: join(root, 'to'), port: full })
  await expect(copy(id, { to: target })).rejects.toMatchObject({ code: 'storage-failed' })
  await target.close()
  expect(await to.store.placeOf(localScope, id)).toBeUndefined()
  expect(await copy(id)).toMatchObject({ outcome: 'copied' })
  expect(await readFile(logOf('to', id))).toEqual(await readFile(logOf('from', id)))
})

test('sessions of a store in memory can be copied', async () => {
  const memory: LogStore = new MemoryLogStore()
  await using session = await new SessionStore(memory).create({ cwd: '/work' })
  await user(session, 'hello')
  const { id } = session
  await session.close()
  expect(await copySession({ from: memory, to, sessionId: id })).toMatchObject({ outcome: 'copied' })
})
