import { expect, test } from 'vitest'
import { SessionError } from '../../errors.ts'
import type { Position } from '../../line/line.ts'
import { sealLine } from '../../line/seal-line.ts'
import { MemoryDisk } from '../../testing/memory-disk.ts'
import { ReadableFileLog, WritableFileLog } from './file-log.ts'
import { LogFile } from './log-file.ts'
import { pathsBesideFile, pathsInFolder } from './log-paths.ts'

const paths = pathsInFolder('/s')
const header = `${sealLine({ type: 'session', id: 'a' }, 1).text}\n`
const options = { term: 1, head: 1, durability: 'durable' } as const

function readable(content: string): { disk: MemoryDisk; log: ReadableFileLog } {
  const disk = new MemoryDisk({ journal: true })
  disk.put(paths.log, content)
  const log = new ReadableFileLog(disk, paths)
  disk.journal.length = 0
  return { disk, log }
}

function writable(): { disk: MemoryDisk; log: WritableFileLog; released: () => number } {
  const disk = new MemoryDisk({ journal: true })
  disk.put(paths.log, header)
  let released = 0
  const log = new WritableFileLog({
    port: disk,
    paths,
    file: new LogFile(disk, {
      path: paths.log,
      fd: disk.openAppend(paths.log),
      end: header.length,
      isOurs: () => true,
    }),
    mended: { tornBytes: 3, keptAs: '/s/torn', end: header.length },
    writer: { host: 'here', process: '7' },
    hold: { isOurs: () => true, release: () => released++ },
  })
  disk.journal.length = 0
  return { disk, log, released: () => released }
}

const texts = (lines: readonly Uint8Array[]): string[] => lines.map((line) => Buffer.from(line).toString())

test('neighboring lines are read together and returned in the requested order', async () => {
  const { disk, log } = readable('one\ntwo\nthree\n')
  const positions: Position[] = [
    { at: 8, size: 5 },
    { at: 0, size: 3 },
    { at: 4, size: 3 },
  ]
  expect(texts(await log.readAt(positions))).toEqual(['three', 'one', 'two'])
  expect(disk.calls).toEqual(['read /s/events.jsonl 13'])
  expect(await log.readAt([])).toEqual([])
})

test('a gap of 16 KiB or more is not read', async () => {
  const gap = 16 * 1024
  const { disk, log } = readable(`a${'x'.repeat(gap - 1)}b${'x'.repeat(gap)}c`)
  const second = gap
  const third = second + 1 + gap
  const found = await log.readAt([
    { at: 0, size: 1 },
    { at: second, size: 1 },
    { at: third, size: 1 },
  ])
  expect(texts(found)).toEqual(['a', 'b', 'c'])
  expect(disk.calls).toEqual([`read /s/events.jsonl ${gap + 1}`, 'read /s/events.jsonl 1'])
})

test('one read takes less than a mebibyte of lines', async () => {
  const size = 512 * 1024
  const { disk, log } = readable('x'.repeat(3 * size))
  const positions = [0, 1, 2].map((index) => ({ at: index * size, size }))
  expect((await log.readAt(positions)).map((line) => line.length)).toEqual([size, size, size])
  expect(disk.calls).toEqual(Array.from({ length: 3 }, () => `read /s/events.jsonl ${size}`))
  disk.journal.length = 0
  await log.readAt([positions[0]!, { at: size, size: size - 1 }])
  expect(disk.calls).toEqual([`read /s/events.jsonl ${2 * size - 1}`])
})

test('lines start at the requested offset, and a line is found by its seq', async () => {
  const second = `${sealLine({ type: 'custom', id: 'b', parent_id: null }, 2).text}\n`
  const { log } = readable(header + second)
  const found: number[] = []
  for await (const batch of log.lines(header.length)) found.push(...batch.map(({ at }) => at))
  expect([found, await log.seek(2), await log.seek(3)]).toEqual([[header.length], header.length, undefined])
})

test('bytes after the last newline are counted', async () => {
  expect(await readable('one\ntw').log.unfinishedBytes()).toBe(2)
  expect(await readable('one\n').log.unfinishedBytes()).toBe(0)
})

test('a checkpoint is read completely, and its file closed', async () => {
  const { disk, log } = readable('')
  expect([await log.loadCheckpoint(), disk.calls]).toEqual([[], []])
  disk.put(paths.derived.checkpoint, 'prüf\n')
  disk.put(`${paths.pieces}/10.json`, 'c')
  disk.put(`${paths.pieces}/2.json`, 'b')
  disk.put(`${paths.pieces}/2.json.0123.tmp`, 'half')
  expect(await log.loadCheckpoint()).toEqual(['prüf\n', 'b', 'c'])
  expect(await log.loadCheckpoint({ isBrief: true })).toEqual(['prüf\n'])
  disk.failNth({ operation: 'read', nth: 1, error: 'EIO' })
  await expect(log.loadCheckpoint()).rejects.toMatchObject({ code: 'EIO' })
  expect(disk.openPaths).toEqual([paths.log])
})

test('an unreadable blob is reported as a storage failure', async () => {
  const { disk, log } = readable('')
  const sha256 = 'f'.repeat(64)
  expect(await log.getBlob(sha256)).toBeUndefined()
  disk.put(`${paths.blobs}/${sha256}`, 'x')
  disk.failNth({ operation: 'openRead', nth: 1, error: 'EMFILE' })
  const error: unknown = await log.getBlob(sha256).catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(SessionError)
  expect(error).toMatchObject({ code: 'storage-failed', cause: { code: 'EMFILE' } })
  expect(String(error)).toContain(`Could not read blob ${sha256}: EMFILE`)
})

test('a reader is woken by writes, and stops waiting when it is closed', async () => {
  const { disk, log } = readable('')
  const heard = log.changed(new AbortController().signal)
  disk.write(disk.openAppend(paths.log), Buffer.from('x'))
  await heard
  await log.close()
  expect(disk.openPaths).toEqual([paths.log])
})

test('a log has a folder for drafts only if it has its own folder', () => {
  const disk = new MemoryDisk()
  disk.put('/any/where.jsonl', '')
  expect(new ReadableFileLog(disk, pathsBesideFile('/any/where.jsonl')).localFolder).toBeUndefined()
  expect(readable('').log.localFolder).toBe('/s')
})

test('a writer appends with the requested durability', async () => {
  const { disk, log } = writable()
  const line = sealLine({ type: 'custom', id: 'b', parent_id: null }, 2)
  const position = { at: header.length, size: line.text.length, next: header.length + line.text.length + 1 }
  expect(await log.append([line], options)).toEqual({ type: 'appended', positions: [position] })
  const next = { ...options, head: options.head + 1 }
  expect(log.append([line], { ...next, durability: 'accepted' })).toMatchObject({ type: 'appended' })
  const size = line.text.length + 1
  expect(disk.calls).toEqual([`write ${paths.log} ${size}`, `dataSync ${paths.log}`, `write ${paths.log} ${size}`])
})

test('a writer reports its owner and what it repaired, counts no terms, and reclaims itself', async () => {
  const { log } = writable()
  expect([log.writer, log.mended, log.term]).toEqual([
    { host: 'here', process: '7' },
    { tornBytes: 3, keptAs: '/s/torn', end: header.length },
    undefined,
  ])
  const claim = await log.reclaim()
  expect(claim.type === 'claimed' && claim.log).toBe(log)
})

const checkpoint = { count: 1, changed: new Map([[0, 'x']]) }

test('a checkpoint is saved only after its lines are durable', async () => {
  const { disk, log } = writable()
  const line = sealLine({ type: 'custom', id: 'b', parent_id: null }, 2)
  void log.append([line], { ...options, durability: 'accepted' })
  disk.journal.length = 0
  await log.saveDerived({ queue: '{}' })
  expect(disk.calls.some((call) => call.startsWith('dataSync'))).toBe(false)
  await log.saveDerived({ checkpoint })
  expect(disk.calls.filter((call) => call.startsWith('dataSync'))).toEqual([`dataSync ${paths.log}`])
  expect(
    [paths.derived.queue, paths.derived.checkpoint].map((path) => String(Buffer.from(disk.contentOf(path)!))),
  ).toEqual(['{}', 'x'])
})

test('the first piece of a checkpoint is saved last, and what an earlier writer left is removed', async () => {
  const { disk, log } = writable()
  for (const name of ['1.json', '2.json', '2.json.0123.tmp']) disk.put(`${paths.pieces}/${name}`, 'old')
  const changed = new Map([
    [0, 'first'],
    [1, 'second'],
  ])
  await log.saveDerived({ checkpoint: { count: 2, changed } })
  const renamed = disk.calls
    .filter((call) => call.startsWith('rename'))
    .map((call) => call.replace(/\.[^.]*\.tmp$/, ''))
  expect(renamed).toEqual([`rename ${paths.pieces}/1.json`, `rename ${paths.derived.checkpoint}`])
  expect(disk.names(paths.pieces)).toEqual(['1.json'])
  await log.saveDerived({ checkpoint: { count: 4, changed: new Map([...changed, [2, 'third'], [3, 'fourth']]) } })
  await log.saveDerived({ checkpoint: { count: 3, changed: new Map() } })
  expect(disk.names(paths.pieces).toSorted()).toEqual(['1.json', '2.json'])
  await log.saveDerived({ checkpoint })
  expect(disk.names(paths.pieces)).toEqual([])
  expect(await log.loadCheckpoint()).toEqual(['x'])
})

test('a checkpoint is not saved if its lines cannot be made durable', async () => {
  const { disk, log } = writable()
  void log.append([sealLine({ type: 'custom', id: 'b', parent_id: null }, 2)], { ...options, durability: 'accepted' })
  disk.failNth({ operation: 'dataSync', nth: 1, error: 'EIO' })
  await expect(log.saveDerived({ checkpoint })).rejects.toMatchObject({ code: 'EIO' })
  expect(disk.exists(paths.derived.checkpoint)).toBe(false)
})

test('a blob that cannot be stored is reported as a storage failure', async () => {
  const { disk, log } = writable()
  const bytes = Buffer.from('x')
  disk.failNth({ operation: 'write', nth: 1, error: 'ENOSPC' })
  await expect(log.putBlob(bytes)).rejects.toMatchObject({ code: 'storage-failed', cause: { code: 'ENOSPC' } })
  const { sha256, size } = await log.putBlob(bytes)
  expect([size, await log.getBlob(sha256)]).toEqual([1, new Uint8Array(bytes)])
})

test('closing closes both descriptors, then releases the lock', async () => {
  const { disk, log, released } = writable()
  await log.close()
  expect([disk.openPaths, released()]).toEqual([[], 1])
})

test('the lock is released even if closing fails', async () => {
  const { disk, log, released } = writable()
  disk.failNth({ operation: 'close', nth: 1, error: 'EIO' })
  await expect(log.close()).rejects.toMatchObject({ code: 'EIO' })
  expect(released()).toBe(1)
})

test('closing a log waits for the pending read, and later reads fail', async () => {
  const { disk, log } = readable('one\ntwo\n')
  const gate = Promise.withResolvers<void>()
  const read = disk.read.bind(disk)
  disk.read = async (...given) => {
    await gate.promise
    return read(...given)
  }
  const reading = log.readAt([{ at: 0, size: 3 }])
  const lines = log.lines(0)[Symbol.asyncIterator]()
  const closing = log.close()
  expect(disk.calls.filter((call) => call.startsWith('close'))).toEqual([])
  gate.resolve()
  expect(texts(await reading)).toEqual(['one'])
  await closing
  expect(disk.calls.at(-1)).toMatch(/^close/)
  await expect(lines.next()).rejects.toMatchObject({ code: 'session-closed' })
  await expect(log.readAt([{ at: 0, size: 3 }])).rejects.toMatchObject({ code: 'session-closed' })
})
