import { expect, test } from 'vitest'
import { maxReadLineBytes } from '../../line/line.ts'
import { sealLine } from '../../line/seal-line.ts'
import { MemoryDisk } from '../../testing/memory-disk.ts'
import { scanLines, seekLine } from './log-scan.ts'

const log = '/log'
const chunkBytes = 1024 * 1024

function diskWith(content: string | Uint8Array): { disk: MemoryDisk; fd: number } {
  const disk = new MemoryDisk({ journal: true })
  disk.put(log, content)
  const fd = disk.openAppend(log)
  disk.journal.length = 0
  return { disk, fd }
}

interface Found {
  at: number
  size: number
  text: string
}

async function scan({ disk, fd }: { disk: MemoryDisk; fd: number }, from = 0): Promise<Found[][]> {
  const batches: Found[][] = []
  for await (const batch of scanLines(disk, fd, from)) {
    batches.push(batch.map(({ at, size, bytes }) => ({ at, size, text: Buffer.from(bytes).toString('latin1') })))
  }
  return batches
}

test('complete lines come with their positions; unfinished and empty ones are skipped', async () => {
  expect(await scan(diskWith('\none\n\n\ntwo\r\nthr'))).toEqual([
    [
      { at: 1, size: 3, text: 'one' },
      { at: 7, size: 4, text: 'two\r' },
    ],
  ])
  expect(await scan(diskWith('\n\n'))).toEqual([])
})

test('many short lines come in batches', async () => {
  const batches = await scan(diskWith('a\n'.repeat(2 * 512 + 1)))
  expect(batches.map((batch) => batch.length)).toEqual([512, 512, 1])
  expect(batches[2]).toEqual([{ at: 2 * 2 * 512, size: 1, text: 'a' }])
  expect((await scan(diskWith('a\n'.repeat(512)))).map((batch) => batch.length)).toEqual([512])
})

test('only byte 0x0A ends a line', async () => {
  const line = Buffer.from('a\u2028b\u0085c\r\0d')
  const [[found] = []] = await scan(diskWith(Buffer.concat([line, Buffer.from('\n')])))
  expect(found?.size).toBe(line.length)
})

test('a scan starts at the given offset', async () => {
  expect(await scan(diskWith('one\ntwo\n'), 4)).toEqual([[{ at: 4, size: 3, text: 'two' }]])
  expect(await scan(diskWith('one\ntwo\n'), 2)).toEqual([
    [
      { at: 2, size: 1, text: 'e' },
      { at: 4, size: 3, text: 'two' },
    ],
  ])
})

test('a small log is one read of its own size, and an empty one none', async () => {
  const small = diskWith('one\n')
  await scan(small)
  expect(small.disk.calls).toEqual([`read ${log} 4`])
  const empty = diskWith('')
  expect([await scan(empty), empty.disk.calls]).toEqual([[], []])
  expect(await scan(diskWith('one\n'), 9)).toEqual([])
})

test('a line that spans chunks is joined, with its own position', async () => {
  const long = 'x'.repeat(2 * chunkBytes)
  const found = diskWith(`a\n${long}\nb\n`)
  expect(await scan(found)).toEqual([
    [{ at: 0, size: 1, text: 'a' }],
    [
      { at: 2, size: long.length, text: long },
      { at: 3 + long.length, size: 1, text: 'b' },
    ],
  ])
  expect(found.disk.calls).toEqual([`read ${log} ${chunkBytes}`, `read ${log} ${chunkBytes}`, `read ${log} 5`])
})

test('a newline that is the last or the first byte of a chunk ends the line before it', async () => {
  const exact = 'x'.repeat(chunkBytes - 1)
  expect((await scan(diskWith(`${exact}\nb\n`))).flat().map(({ at, size }) => ({ at, size }))).toEqual([
    { at: 0, size: chunkBytes - 1 },
    { at: chunkBytes, size: 1 },
  ])
  expect((await scan(diskWith(`${exact}x\nb\n`))).flat().map(({ at, size }) => ({ at, size }))).toEqual([
    { at: 0, size: chunkBytes },
    { at: chunkBytes + 1, size: 1 },
  ])
})

test('only the start of an over-long line is kept, and the next line is complete', async () => {
  const tooLong = maxReadLineBytes + 1
  const content = Buffer.alloc(tooLong + 3, 'x')
  content.write('head', 0)
  content.write('\nb\n', tooLong)
  expect((await scan(diskWith(content))).flat()).toEqual([
    { at: 0, size: tooLong, text: `head${'x'.repeat(1020)}` },
    { at: tooLong + 1, size: 1, text: 'b' },
  ])
})

test('a line of exactly the maximum length is complete', async () => {
  const content = Buffer.alloc(maxReadLineBytes + 1, 'x')
  content.write('\n', maxReadLineBytes)
  const [[found] = []] = await scan(diskWith(content))
  expect([found?.size, found?.text.length]).toEqual([maxReadLineBytes, maxReadLineBytes])
})

test('lines written during a scan are found too', async () => {
  const { disk, fd } = diskWith('one\ntw')
  const found: string[] = []
  const read = disk.read.bind(disk)
  let isFirst = true
  disk.read = async (file, bytes, position) => {
    const count = await read(file, bytes, position)
    if (isFirst) disk.write(fd, Buffer.from('o\n'))
    isFirst = false
    return count
  }
  for await (const batch of scanLines(disk, fd, 0))
    found.push(...batch.map(({ bytes }) => Buffer.from(bytes).toString()))
  expect(found).toEqual(['one', 'two'])
})

test('a failed read ends the scan with its error', async () => {
  const { disk, fd } = diskWith(`a\n${'x'.repeat(chunkBytes)}\n`)
  disk.failNth({ operation: 'read', nth: 2, error: 'EIO' })
  const seen: number[] = []
  const scanning = (async (): Promise<void> => {
    for await (const batch of scanLines(disk, fd, 0)) seen.push(batch.length)
  })()
  await expect(scanning).rejects.toMatchObject({ code: 'EIO' })
  expect(seen).toEqual([1])
})

test('an abandoned scan leaves no unhandled rejection', async () => {
  const { disk, fd } = diskWith(`a\n${'x'.repeat(chunkBytes)}\n`)
  disk.failNth({ operation: 'read', nth: 2, error: 'EIO' })
  for await (const batch of scanLines(disk, fd, 0)) {
    expect(batch).toHaveLength(1)
    break
  }
})

const sealed = (seq: number, padding = 0): string => {
  return `${sealLine({ type: 'custom', id: `e${seq}`, parent_id: null, text: 'x'.repeat(padding) }, seq).text}\n`
}

/** The offset of each line. */
function offsetsOf(lines: readonly string[]): number[] {
  let at = 0
  return lines.map((line) => (at += line.length) - line.length)
}

test('a line is found by its seq in a short log', async () => {
  const lines = [sealed(1), sealed(2), sealed(5)]
  const offsets = offsetsOf(lines)
  const { disk, fd } = diskWith(lines.join(''))
  const found = await Promise.all([1, 2, 3, 5, 6].map((seq) => seekLine(disk, fd, seq)))
  expect(found).toEqual([offsets[0], offsets[1], offsets[2], offsets[2], undefined])
})

test('in a long log every line is found with a few reads, whatever its length', async () => {
  const lines = Array.from({ length: 3000 }, (_, index) => sealed(index + 1, 1000))
  const offsets = offsetsOf(lines)
  const { disk, fd } = diskWith(lines.join(''))
  for (const seq of [1, 2, 250, 1499, 1500, 1501, 2999, 3000]) {
    disk.journal.length = 0
    expect(await seekLine(disk, fd, seq)).toBe(offsets[seq - 1])
    expect(disk.calls.length).toBeLessThan(20)
  }
  expect(await seekLine(disk, fd, 3001)).toBeUndefined()
})

test('a line is found between lines longer than a probe', async () => {
  const lines = [
    sealed(1),
    sealed(2, 400_000),
    sealed(3),
    sealed(4, 700_000),
    sealed(5),
    sealed(6, 300_000),
    sealed(7, 900_000),
  ]
  const offsets = offsetsOf(lines)
  const { disk, fd } = diskWith(lines.join(''))
  for (const [index, offset] of offsets.entries()) expect(await seekLine(disk, fd, index + 1)).toBe(offset)
})

test('damaged lines do not mislead the search', async () => {
  const lines = Array.from({ length: 1200 }, (_, index) => sealed(index + 1, 1000))
  const offsets = offsetsOf(lines)
  // They have a seq, but an invalid checksum.
  for (let index = 500; index < 700; index++) lines[index] = lines[index]!.replace(/"seq":\d{3}/, '"seq":999')
  const { disk, fd } = diskWith(lines.join(''))
  for (const seq of [100, 400, 800, 1100]) expect(await seekLine(disk, fd, seq)).toBe(offsets[seq - 1])
})

test('a plain log has no seqs, so it is read from its start', async () => {
  const { disk, fd } = diskWith('{"type":"session","id":"a"}\n{"type":"custom","id":"b","parent_id":null}\n')
  expect(await seekLine(disk, fd, 2)).toBe(0)
})

test('a later line without a seq is skipped', async () => {
  const lines = [sealed(1), 'damage\n', sealed(3)]
  const { disk, fd } = diskWith(lines.join(''))
  expect(await seekLine(disk, fd, 2)).toBe(offsetsOf(lines)[2])
})

test('an invalid seq is rejected', async () => {
  const lines = [sealed(1), '{"seq":9999999999999999,"type":"x"}\n', ' {"seq":3,"type":"x"}\n', sealed(4)]
  const { disk, fd } = diskWith(lines.join(''))
  expect(await seekLine(disk, fd, 2)).toBe(offsetsOf(lines)[3])
})
