import { expect, test } from 'vitest'
import { sealLine } from '../../line/seal-line.ts'
import { MemoryDisk } from '../../testing/memory-disk.ts'
import { endOfLastLine, mendTail, readRange, type Mended } from './recover.ts'

const log = '/s/log'
const first = `${sealLine({ type: 'session', id: 'a' }, 1).text}\n`
const second = sealLine({ type: 'custom', id: 'b', parent_id: null }, 2).text
const chunkBytes = 64 * 1024

function diskWith(content: string): { disk: MemoryDisk; fd: number } {
  const disk = new MemoryDisk({ journal: true })
  disk.put(log, content)
  const fd = disk.openAppend(log)
  disk.journal.length = 0
  return { disk, fd }
}

function textOf(disk: MemoryDisk, path: string): string | undefined {
  const content = disk.contentOf(path)
  return content && Buffer.from(content).toString('latin1')
}

/** The result of mending a log, and the files beside it afterwards. */
async function mend(
  content: string,
): Promise<{ mended: Omit<Mended, 'end'>; log?: string; torn?: string; calls: string[] }> {
  const { disk, fd } = diskWith(content)
  const { end, ...mended } = await mendTail(disk, log, fd)
  expect(end).toBe(disk.size(fd))
  const torn = textOf(disk, `${log}.torn-1`)
  return { mended, log: textOf(disk, log)!, ...(torn !== undefined && { torn }), calls: disk.calls }
}

test('a log that ends with a newline is not changed', async () => {
  const size = first.length
  expect(await mend(first)).toEqual({
    mended: { tornBytes: 0, keptAs: undefined },
    log: first,
    calls: [`read ${log} ${size}`],
  })
})

test('an empty log needs nothing', async () => {
  expect(await mend('')).toEqual({ mended: { tornBytes: 0, keptAs: undefined }, log: '', calls: [] })
})

test('torn bytes are copied aside durably, and only then truncated', async () => {
  const torn = '{"seq":2,"type":"cus'
  expect(await mend(first + torn)).toEqual({
    mended: { tornBytes: torn.length, keptAs: `${log}.torn-1` },
    log: first,
    torn,
    calls: [
      `read ${log} ${first.length + torn.length}`,
      `read ${log} ${torn.length}`,
      `create ${log}.torn-1`,
      `read ${log} ${torn.length}`,
      `write ${log}.torn-1 ${torn.length}`,
      `dataSync ${log}.torn-1`,
      'syncFolder /s',
      `close ${log}.torn-1`,
      `truncate ${log} ${first.length}`,
    ],
  })
})

test('a log without any newline is torn completely', async () => {
  expect(await mend('{"seq":1')).toMatchObject({ mended: { tornBytes: 8 }, log: '', torn: '{"seq":1' })
})

test('a final run of NUL bytes is torn', async () => {
  expect(await mend(`${first}\0\0\0`)).toMatchObject({ mended: { tornBytes: 3 }, log: first, torn: '\0\0\0' })
})

test('a complete line without its newline gets it back, and nothing is copied aside', async () => {
  const { calls, ...rest } = await mend(first + second)
  expect(rest).toEqual({ mended: { tornBytes: 0, keptAs: undefined }, log: `${first}${second}\n` })
  expect(calls.slice(2)).toEqual([`write ${log} 1`])
})

test('one stray byte in place of the newline is copied aside with its line and removed', async () => {
  expect(await mend(`${first}${second}\0`)).toMatchObject({
    mended: { tornBytes: 1, keptAs: `${log}.torn-1` },
    log: `${first}${second}\n`,
    torn: `${second}\0`,
  })
})

test('two stray bytes after a line are more than a lost newline', async () => {
  const torn = `${second}\0\0`
  expect(await mend(first + torn)).toMatchObject({ mended: { tornBytes: torn.length }, log: first, torn })
})

test('a line without a valid checksum is torn', async () => {
  const changed = second.replace('custom', 'custon')
  expect(await mend(first + changed)).toMatchObject({
    mended: { tornBytes: changed.length },
    log: first,
    torn: changed,
  })
  const plain = '{"type":"custom","id":"b","parent_id":null}'
  expect(await mend(first + plain)).toMatchObject({ mended: { tornBytes: plain.length }, log: first, torn: plain })
})

test('a tail longer than any line of ours is copied aside in pieces', async () => {
  const torn = sealLine({ type: 'custom', id: 'b', parent_id: null, text: 'x'.repeat(256 * 1024) }, 2).text
  const { mended, calls, ...rest } = await mend(first + torn)
  expect(mended.tornBytes).toBe(torn.length)
  expect(rest).toEqual({ log: first, torn })
  const writes = calls.filter((call) => call.startsWith('write'))
  const last = torn.length - 4 * chunkBytes
  expect(writes).toEqual(
    [...Array.from({ length: 4 }, () => chunkBytes), last].map((size) => `write ${log}.torn-1 ${size}`),
  )
})

test('the longest possible line at the tail is still restored', async () => {
  const empty = sealLine({ type: 'custom', id: 'b', parent_id: null, text: '' }, 2).text
  const fitting = sealLine({ type: 'custom', id: 'b', parent_id: null, text: 'x'.repeat(256 * 1024 - empty.length) }, 2)
  expect(fitting.text).toHaveLength(256 * 1024)
  expect(await mend(first + fitting.text)).toMatchObject({ mended: { tornBytes: 0 }, log: `${first}${fitting.text}\n` })
})

test('earlier copies stay', async () => {
  const { disk, fd } = diskWith(`${first}new`)
  disk.put(`${log}.torn-1`, 'old')
  expect(await mendTail(disk, log, fd)).toMatchObject({ tornBytes: 3, keptAs: `${log}.torn-2` })
  expect([textOf(disk, `${log}.torn-1`), textOf(disk, `${log}.torn-2`)]).toEqual(['old', 'new'])
})

test.each([
  ['create', { error: 'ENOSPC' }, 'ENOSPC'],
  ['write', { error: 'ENOSPC' }, 'ENOSPC'],
  ['write', { short: 2 }, `could not write all of ${log}.torn-1`],
  ['dataSync', { error: 'EIO' }, 'EIO'],
  ['syncFolder', { error: 'EIO' }, 'EIO'],
] as const)(
  'if copying aside fails at %s %o, nothing is truncated and nothing is left',
  async (operation, how, message) => {
    const { disk, fd } = diskWith(`${first}torn`)
    disk.failNth({ operation, nth: 1, ...how })
    await expect(mendTail(disk, log, fd)).rejects.toThrow(message)
    expect([textOf(disk, log), disk.names('/s'), disk.openPaths]).toEqual([`${first}torn`, ['log'], [log]])
    disk.clearFaults()
    expect(await mendTail(disk, log, fd)).toMatchObject({ tornBytes: 4, keptAs: `${log}.torn-1` })
  },
)

test('a newline that cannot be written fails', async () => {
  const { disk, fd } = diskWith(first + second)
  disk.failNth({ operation: 'write', nth: 1, short: 0 })
  await expect(mendTail(disk, log, fd)).rejects.toThrow('could not write the last newline')
  await mendTail(disk, log, fd)
  expect(textOf(disk, log)).toBe(`${first}${second}\n`)
})

test('the end of the last line is found across pieces of any length', async () => {
  const endOf = async (content: string): Promise<number> => {
    const { disk, fd } = diskWith(content)
    return endOfLastLine(disk, fd, content.length)
  }
  expect(await endOf(`a\n${'x'.repeat(chunkBytes)}`)).toBe(2)
  expect(await endOf(`a\n${'x'.repeat(chunkBytes - 1)}`)).toBe(2)
  expect(await endOf(`${'x'.repeat(chunkBytes)}\n`)).toBe(chunkBytes + 1)
  expect(await endOf(`\n${'x'.repeat(2 * chunkBytes)}`)).toBe(1)
  expect(await endOf('x'.repeat(chunkBytes + 5))).toBe(0)
})

test('the search for the end starts at the back and reads no more than needed', async () => {
  const { disk, fd } = diskWith(`${'x'.repeat(3 * chunkBytes)}\ny`)
  await endOfLastLine(disk, fd, 3 * chunkBytes + 2)
  expect(disk.calls).toEqual([`read ${log} ${chunkBytes}`])
})

test('a range is read completely, even if reads are short', async () => {
  const { disk, fd } = diskWith('0123456789')
  const read = disk.read.bind(disk)
  disk.read = (file, bytes, position) => read(file, bytes.subarray(0, 3), position)
  expect(Buffer.from(await readRange(disk, fd, { from: 1, to: 9 })).toString()).toBe('12345678')
  expect(disk.calls).toEqual([`read ${log} 3`, `read ${log} 3`, `read ${log} 2`])
})

test('a range past the end of the file gives the available bytes', async () => {
  const { disk, fd } = diskWith('01234')
  expect(Buffer.from(await readRange(disk, fd, { from: 3, to: 9 })).toString()).toBe('34')
  expect(await readRange(disk, fd, { from: 9, to: 12 })).toHaveLength(0)
})
