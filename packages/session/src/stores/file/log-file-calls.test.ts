import { describe, expect, test } from 'vitest'
import type { SealedLine } from '../../line/seal-line.ts'
import { MemoryDisk } from '../../testing/memory-disk.ts'
import { LogFile } from './log-file.ts'

const path = '/log'

function line(text: string): SealedLine {
  return { seq: 1, crc: '', text }
}

/** A log that ends after `a`, open, with nothing in the journal yet. */
function start(): { disk: MemoryDisk; file: LogFile; content: () => string } {
  const disk = new MemoryDisk({ journal: true })
  disk.put(path, 'a\n')
  const file = new LogFile(disk, { path, fd: disk.openAppend(path), end: 2, isOurs: () => true })
  disk.journal.length = 0
  return { disk, file, content: () => Buffer.from(disk.contentOf(path)!).toString() }
}

function durableContent(disk: MemoryDisk): string {
  return Buffer.from(disk.afterPowerCut().contentOf(path)!).toString()
}

describe('system calls of a log file', () => {
  test('a durable batch is one write and one sync, and returns the positions of its lines', async () => {
    const { disk, file } = start()
    expect(await file.append([line('bb'), line('ü'), line('')], 'durable')).toEqual({
      type: 'appended',
      positions: [
        { at: 2, size: 2, next: 5 },
        { at: 5, size: 2, next: 8 },
        { at: 8, size: 0, next: 9 },
      ],
    })
    expect(disk.calls).toEqual(['write /log 7', 'dataSync /log'])
    expect([durableContent(disk), file.end]).toEqual(['a\nbb\nü\n\n', 9])
  })

  test('a line with multi-byte characters is positioned by bytes', async () => {
    const { file } = start()
    expect(await file.append([line('üü')], 'durable')).toEqual({
      type: 'appended',
      positions: [{ at: 2, size: 4, next: 7 }],
    })
    expect(await file.append([line('b')], 'durable')).toEqual({
      type: 'appended',
      positions: [{ at: 7, size: 1, next: 9 }],
    })
  })

  test('a write of zero bytes leaves nothing to truncate', async () => {
    const { disk, file } = start()
    disk.failNth({ operation: 'write', nth: 1, error: 'ENOSPC' })
    expect(await file.append([line('b')], 'durable')).toMatchObject({ type: 'failed', cause: { code: 'ENOSPC' } })
    expect(disk.calls).toEqual([])
  })

  test('a short write is read back and truncated before the append fails', async () => {
    const { disk, file, content } = start()
    disk.failNth({ operation: 'write', nth: 1, short: 3 })
    expect(await file.append([line('bcde')], 'durable')).toEqual({
      type: 'failed',
      final: false,
      cause: Object.assign(new Error('only 3 of 5 bytes could be written'), { code: 'ENOSPC' }),
    })
    expect(disk.calls).toEqual(['write /log 3', 'read /log 3', 'truncate /log 2'])
    expect([content(), file.end]).toEqual(['a\n', 2])
  })

  test('bytes that could not be truncated are truncated before the next write', async () => {
    const { disk, file, content } = start()
    disk.failNth({ operation: 'write', nth: 1, short: 3 })
    disk.failNth({ operation: 'truncate', nth: 1, times: 3, error: 'EIO' })
    await file.append([line('bcde')], 'durable')
    expect(await file.append([line('f')], 'durable')).toMatchObject({ type: 'failed', cause: { code: 'EIO' } })
    expect(content()).toBe('a\nbcd')
    disk.journal.length = 0
    expect(await file.append([line('g')], 'durable')).toEqual({
      type: 'appended',
      positions: [{ at: 2, size: 1, next: 4 }],
    })
    expect(disk.calls).toEqual(['read /log 3', 'truncate /log 2', 'write /log 2', 'dataSync /log'])
    expect(content()).toBe('a\ng\n')
  })

  test('a failed sync is not retried on its descriptor: the same bytes are written through a new one', async () => {
    const { disk, file } = start()
    const before = file.fd
    disk.failNth({ operation: 'dataSync', nth: 1, error: 'EIO' })
    expect(await file.append([line('b')], 'durable')).toEqual({
      type: 'appended',
      positions: [{ at: 2, size: 1, next: 4 }],
    })
    expect(disk.calls).toEqual([
      'write /log 2',
      'dataSync /log',
      'openAppend /log',
      'close /log',
      'read /log 2',
      'truncate /log 2',
      'write /log 2',
      'dataSync /log',
    ])
    expect([durableContent(disk), file.end, disk.openPaths]).toEqual(['a\nb\n', 4, [path]])
    expect(file.fd).not.toBe(before)
    expect(await file.append([line('c')], 'durable')).toMatchObject({ type: 'appended' })
    expect(durableContent(disk)).toBe('a\nb\nc\n')
  })

  test('after a second failed sync the bytes are truncated and no further call is made', async () => {
    const { disk, file, content } = start()
    disk.failNth({ operation: 'dataSync', nth: 1, times: 2, error: 'EIO' })
    expect(await file.append([line('b')], 'durable')).toMatchObject({ type: 'failed', final: true })
    expect([content(), file.end]).toEqual(['a\n', 2])
    disk.journal.length = 0
    expect(await file.append([line('c')], 'durable')).toEqual({
      type: 'failed',
      final: true,
      cause: new Error('an earlier sync failed twice'),
    })
    expect(disk.calls).toEqual([])
  })

  test('if no new descriptor can be opened after a failed sync, the bytes are truncated through the old one', async () => {
    const { disk, file, content } = start()
    disk.failNth({ operation: 'dataSync', nth: 1, error: 'EIO' })
    disk.failNth({ operation: 'openAppend', nth: 1, error: 'EMFILE' })
    expect(await file.append([line('b')], 'durable')).toMatchObject({ final: true, cause: { code: 'EMFILE' } })
    expect([content(), disk.openPaths]).toEqual(['a\n', [path]])
  })

  test('a second writer detected after a write or a failed sync is not truncated', async () => {
    const { disk, file, content } = start()
    const sync = disk.dataSync.bind(disk)
    disk.dataSync = async (fd) => {
      disk.write(disk.openAppend(path), Buffer.from('foreign\n'))
      disk.failNth({ operation: 'dataSync', nth: 1 })
      return sync(fd)
    }
    expect(await file.append([line('b')], 'durable')).toEqual({
      type: 'fenced',
      reason: 'the file has 12 bytes where 4 were expected',
    })
    expect(content()).toBe('a\nb\nforeign\n')
  })

  test('a file whose size cannot be read is not written', async () => {
    const { disk, file, content } = start()
    const size = disk.size.bind(disk)
    disk.size = () => {
      throw new Error('no answer')
    }
    expect(await file.append([line('b')], 'durable')).toEqual({
      type: 'failed',
      final: false,
      cause: new Error('no answer'),
    })
    disk.size = size
    expect([content(), disk.calls]).toEqual(['a\n', []])
    expect(await file.append([line('b')], 'durable')).toMatchObject({ type: 'appended' })
  })

  test('closing closes the descriptor', () => {
    const { disk, file } = start()
    file.close()
    expect([disk.calls, disk.openPaths]).toEqual([['close /log'], []])
  })
})

describe('settling', () => {
  test('syncs lines that were only accepted, once', async () => {
    const { disk, file } = start()
    await file.settle()
    void file.append([line('b')], 'accepted')
    await file.settle()
    await file.settle()
    expect(disk.calls).toEqual(['write /log 2', 'dataSync /log'])
    expect(durableContent(disk)).toBe('a\nb\n')
  })

  test('does nothing after a durable batch', async () => {
    const { disk, file } = start()
    void file.append([line('b')], 'accepted')
    await file.append([line('c')], 'durable')
    disk.journal.length = 0
    await file.settle()
    expect(disk.calls).toEqual([])
  })

  test('leaves lines accepted meanwhile for the next time', async () => {
    const { disk, file } = start()
    void file.append([line('b')], 'accepted')
    const settled = file.settle()
    void file.append([line('c')], 'accepted')
    await settled
    await file.settle()
    expect(durableContent(disk)).toBe('a\nb\nc\n')
  })

  test('cannot be trusted after it has failed', async () => {
    const { disk, file } = start()
    void file.append([line('b')], 'accepted')
    disk.failNth({ operation: 'dataSync', nth: 1, error: 'EIO' })
    await expect(file.settle()).rejects.toMatchObject({ code: 'EIO' })
    disk.journal.length = 0
    await expect(file.settle()).rejects.toThrow('an earlier sync failed')
    expect(disk.calls).toEqual([])
    expect(file.append([line('c')], 'accepted')).toMatchObject({ type: 'appended' })
  })
})
