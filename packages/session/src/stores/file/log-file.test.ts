import { describe, expect, test } from 'vitest'
import type { AppendResult, Durability } from '../../log/log-store.ts'
import { sealLine, type SealedLine } from '../../line/seal-line.ts'
import { MemoryDisk } from '../../testing/memory-disk.ts'
import { LogFile } from './log-file.ts'

const path = '/s/events.jsonl'

describe('the end of a log file', () => {
  test('a batch is one write, checked before and after, and one sync', async () => {
    const { disk, file } = opened({ journal: true })
    const before = disk.journal.length
    const result = await file.append([line('a', 2), line('ü', 3)], 'durable')
    const first = Buffer.byteLength(line('a', 2).text)
    const second = Buffer.byteLength(line('ü', 3).text)
    expect(result).toEqual({
      type: 'appended',
      positions: [
        { at: 7, size: first, next: 7 + first + 1 },
        { at: 7 + first + 1, size: second, next: 7 + first + 1 + second + 1 },
      ],
    })
    expect(disk.journal.slice(before).map(({ operation }) => operation)).toEqual(['write', 'dataSync'])
    expect(content(disk)).toBe(`header\n${line('a', 2).text}\n${line('ü', 3).text}\n`)
    expect(file.end).toBe(Buffer.byteLength(content(disk)))
  })

  test('a line that need only be accepted is not synced and resolves at once', () => {
    const { disk, file } = opened({ journal: true })
    const before = disk.journal.length
    const result = file.append([line('a', 2)], 'accepted')
    const size = line('a', 2).text.length
    expect(result).toEqual({ type: 'appended', positions: [{ at: 7, size, next: 7 + size + 1 }] })
    expect(disk.journal.slice(before).map(({ operation }) => operation)).toEqual(['write'])
  })

  test.each<[string, { error?: string; short?: number }]>([
    ['refused', { error: 'ENOSPC' }],
    ['taken in part', { short: 10 }],
    ['taken in part and refused', { short: 10, error: 'EIO' }],
    ['taken not at all', { short: 0 }],
  ])('a write that is %s leaves the file unchanged, and the next one succeeds', async (_how, fault) => {
    const { disk, file } = opened()
    disk.failNth({ operation: 'write', nth: 1, ...fault })
    const result = await file.append([line('a', 2)], 'durable')
    expect(result).toMatchObject({ type: 'failed', final: false })
    expect(content(disk)).toBe('header\n')
    expect(await file.append([line('b', 2)], 'durable')).toMatchObject({ type: 'appended' })
    expect(content(disk)).toBe(`header\n${line('b', 2).text}\n`)
  })

  test('the reason of a short write names the number of bytes written', async () => {
    const { disk, file } = opened()
    disk.failNth({ operation: 'write', nth: 1, short: 10 })
    const { length } = `${line('a', 2).text}\n`
    expect(reasonOf(await file.append([line('a', 2)], 'durable'))).toBe(`only 10 of ${length} bytes could be written`)
  })

  test('a partial line that cannot be truncated is truncated before the next write', async () => {
    const { disk, file } = opened()
    disk.failNth({ operation: 'write', nth: 1, short: 10 })
    disk.failNth({ operation: 'truncate', nth: 1, times: 3, error: 'EIO' })
    await file.append([line('a', 2)], 'durable')
    expect(content(disk)).toBe(`header\n${line('a', 2).text.slice(0, 10)}`)
    expect(await file.append([line('b', 2)], 'durable')).toMatchObject({ type: 'failed', final: false })
    expect(content(disk)).toBe(`header\n${line('a', 2).text.slice(0, 10)}`)
    expect(await file.append([line('c', 2)], 'durable')).toMatchObject({ type: 'appended' })
    expect(content(disk)).toBe(`header\n${line('c', 2).text}\n`)
  })

  test('a partial line followed by foreign bytes is not truncated', async () => {
    const { disk, file } = opened()
    disk.failNth({ operation: 'write', nth: 1, short: 10 })
    disk.failNth({ operation: 'truncate', nth: 1, error: 'EIO' })
    await file.append([line('a', 2)], 'durable')
    writeBehindBack(disk, 'foreign\n')
    const before = content(disk)
    expect(await file.append([line('b', 2)], 'durable')).toMatchObject({ type: 'fenced' })
    expect(content(disk)).toBe(before)
  })

  test.each<Durability>(['durable', 'accepted'])(
    'earlier bytes of another writer fence the writer (%s)',
    async (durability) => {
      const { disk, file } = opened()
      writeBehindBack(disk, 'foreign\n')
      expect(await file.append([line('a', 2)], durability)).toEqual({
        type: 'fenced',
        reason: 'the file has 15 bytes where 7 were expected',
      })
      expect(content(disk)).toBe('header\nforeign\n')
    },
  )

  test('bytes of another writer fence this writer and stay', async () => {
    const { disk, file } = opened()
    const write = disk.write.bind(disk)
    disk.write = (fd, bytes) => {
      const count = write(fd, bytes)
      disk.write = write
      writeBehindBack(disk, 'foreign\n')
      return count
    }
    expect(await file.append([line('a', 2)], 'durable')).toMatchObject({ type: 'fenced' })
    expect(content(disk)).toBe(`header\n${line('a', 2).text}\nforeign\n`)
  })

  test('a file that was truncated by another process fences the writer', async () => {
    const { disk, file } = opened()
    const fd = disk.openAppend(path)
    disk.truncate(fd, 3)
    expect(await file.append([line('a', 2)], 'durable')).toMatchObject({ type: 'fenced' })
    disk.failNth({ operation: 'write', nth: 1, error: 'EIO' })
    const other = opened()
    other.disk.failNth({ operation: 'write', nth: 1, error: 'EIO' })
    other.disk.failNth({ operation: 'truncate', nth: 1, error: 'EIO' })
    other.disk.failNth({ operation: 'write', nth: 1, short: 5 })
    await other.file.append([line('a', 2)], 'durable')
  })

  test('after a failed sync the same bytes go through a new descriptor, and the old one is never synced again', async () => {
    const { disk, file } = opened({ journal: true })
    const old = file.fd
    disk.failNth({ operation: 'dataSync', nth: 1, error: 'EIO' })
    const before = disk.journal.length
    expect(await file.append([line('a', 2)], 'durable')).toMatchObject({ type: 'appended' })
    const calls = disk.journal.slice(before).map(({ operation }) => operation)
    expect(calls.filter((call) => call !== 'read')).toEqual([
      'write',
      'dataSync',
      'openAppend',
      'close',
      'truncate',
      'write',
      'dataSync',
    ])
    expect(file.fd).not.toBe(old)
    expect(disk.openPaths).toEqual([path])
    expect(disk.afterPowerCut().contentOf(path)).toEqual(disk.contentOf(path))
    expect(await file.append([line('b', 3)], 'durable')).toMatchObject({ type: 'appended' })
  })

  test('a second failed sync fails the writer and removes the bytes', async () => {
    const { disk, file } = opened()
    disk.failNth({ operation: 'dataSync', nth: 1, times: 2, error: 'EIO' })
    expect(await file.append([line('a', 2)], 'durable')).toMatchObject({ type: 'failed', final: true })
    expect(content(disk)).toBe('header\n')
    expect(reasonOf(await file.append([line('b', 2)], 'durable'))).toBe('an earlier sync failed twice')
    expect(content(disk)).toBe('header\n')
  })

  test.each(['openAppend', 'truncate', 'write'] as const)(
    'a %s that fails after a failed sync ends the writer',
    async (operation) => {
      const { disk, file } = opened()
      disk.failNth({ operation: 'dataSync', nth: 1, error: 'EIO' })
      disk.failNth({ operation, nth: operation === 'write' ? 2 : 1, error: 'EIO' })
      expect(await file.append([line('a', 2)], 'durable')).toMatchObject({ type: 'failed', final: true })
      expect(await file.append([line('b', 2)], 'durable')).toMatchObject({ type: 'failed', final: true })
    },
  )

  test('bytes that another process writes during a failed sync are not truncated', async () => {
    const { disk, file } = opened()
    const dataSync = disk.dataSync.bind(disk)
    disk.dataSync = async () => {
      disk.dataSync = dataSync
      writeBehindBack(disk, 'foreign\n')
      throw new Error('EIO')
    }
    expect(await file.append([line('a', 2)], 'durable')).toMatchObject({ type: 'fenced' })
    expect(content(disk)).toBe(`header\n${line('a', 2).text}\nforeign\n`)
  })

  test('closing closes the descriptor', () => {
    const { disk, file } = opened()
    file.close()
    expect(disk.openPaths).toEqual([])
  })
})

function opened(options: { journal?: boolean } = {}): { disk: MemoryDisk; file: LogFile } {
  const disk = new MemoryDisk(options)
  disk.put(path, 'header\n')
  return { disk, file: new LogFile(disk, { path, fd: disk.openAppend(path), end: 7, isOurs: () => true }) }
}

function line(id: string, seq: number): SealedLine {
  return sealLine({ type: 'custom', id, parent_id: null }, seq)
}

function writeBehindBack(disk: MemoryDisk, words: string): void {
  const fd = disk.openAppend(path)
  disk.write(fd, Buffer.from(words))
  disk.close(fd)
}

function content(disk: MemoryDisk): string {
  return Buffer.from(disk.contentOf(path) ?? []).toString()
}

function reasonOf(result: AppendResult): string | undefined {
  return result.type === 'failed' && result.cause instanceof Error ? result.cause.message : undefined
}
