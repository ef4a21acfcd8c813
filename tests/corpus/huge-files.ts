import { closeSync, openSync, writeSync } from 'node:fs'
import { sealLine, type DiskLine } from '@tapetree/session/format'
import { sealText } from './mutate-line.ts'

/** A log too large to be kept: written when it is needed. It begins and ends with entries that must be shown. */
export interface HugeFile {
  name: string
  /** The lines between the first entry and the last. */
  middle: () => Iterable<string | Uint8Array>
  /** What the last entry hangs on; else the first one. */
  lastParent?: string
  /** Put behind the last line, without a newline. */
  tail?: () => Iterable<Uint8Array>
}

export const firstId = 'the-first'
export const lastId = 'the-last'

/** Writes the log and says how large it is. */
export function writeHugeFile(path: string, { middle, tail, lastParent = firstId }: HugeFile): number {
  const fd = openSync(path, 'wx', 0o600)
  let size = 0
  const write = (piece: string | Uint8Array): void => {
    const bytes = Buffer.from(piece as string)
    for (let done = 0; done < bytes.length;) done += writeSync(fd, bytes, done)
    size += bytes.length
  }
  try {
    write(`${sealed({ type: 'session', id: 's', version: 1 }, 1)}\n${sealed(message(firstId, null), 2)}\n`)
    for (const piece of middle()) write(piece)
    write(`${sealed(message(lastId, lastParent), lastSeq)}\n`)
    for (const piece of tail?.() ?? []) write(piece)
  } finally {
    closeSync(fd)
  }
  return size
}

const mega = 1024 * 1024
/** Far enough on for all lines in between. */
const lastSeq = 900_000

function sealed(line: DiskLine, seq: number): string {
  return sealLine(line, seq).text
}

function message(id: string, parent: string | null, words = 'words'): DiskLine {
  return {
    type: 'message',
    id,
    parent_id: parent,
    message: { role: 'user', content: [{ type: 'text', text: { content: words } }] },
  }
}

export const linesOfText: HugeFile = {
  name: 'ten lines of 6 MB of text',
  middle: function* () {
    for (let index = 0; index < 10; index++) {
      yield `${sealed(message(`m${index}`, firstId, 'x'.repeat(6 * mega)), 3 + index)}\n`
    }
  },
}

/** About so many bytes of the same piece, in chunks. */
function* repeated(piece: string, size: number): Iterable<Buffer> {
  const chunk = Buffer.from(piece.repeat(Math.ceil(mega / piece.length)))
  for (let written = 0; written < size; written += chunk.length) yield chunk
}

function* line(...parts: (string | Iterable<Uint8Array>)[]): Iterable<string | Uint8Array> {
  for (const part of parts)
    if (typeof part === 'string') yield part
    else yield* part
  yield '\n'
}

function* lines(count: number, make: (index: number) => string): Iterable<string> {
  for (let start = 0; start < count; start += 1000) {
    yield Array.from({ length: Math.min(1000, count - start) }, (_, index) => `${make(start + index)}\n`).join('')
  }
}

/** A line whose checksum is right, with a member given as JSON. */
function* sealedLine(json: string): Iterable<string> {
  const open = JSON.stringify({ seq: 3, ...message('large', firstId) }).slice(0, -1)
  yield `${sealText(`${open},"extra":${json}`)}\n`
}

/** All of them; those that take long for their size are smaller at size `ci`. */
export function hugeFiles(size: 'ci' | 'full'): HugeFile[] {
  const small = size === 'ci' ? 2 : 8
  const medium = size === 'ci' ? 4 : 15
  const count = size === 'ci' ? 20_000 : 100_000
  return [
    ...longLines(),
    { name: `${small} MB of newlines`, middle: () => repeated('\n', small * mega) },
    { name: `${small} MB of lines of one byte`, middle: () => repeated('x\n', small * mega) },
    { name: `${small} MB of empty objects`, middle: () => repeated('{}\n', small * mega) },
    {
      name: `${small} MB of torn lines`,
      middle: () => repeated('{"seq":5,"type":"message","id":"a","me\n', small * mega),
    },
    {
      name: `${small} MB of unsealed lines`,
      middle: () => repeated('{"type":"message","id":"a","parent_id":null}\n', small * mega),
    },
    { name: '10 MB of brackets', middle: () => line(repeated('[', 10 * mega)) },
    { name: '10 MB of nested objects', middle: () => line(repeated('{"a":', 10 * mega)) },
    { name: `${medium} MB of line ends inside a line`, middle: () => line(repeated('"}{"seq":', medium * mega)) },
    { name: `${medium} MB of seals inside a line`, middle: () => line(repeated(',"crc":"00000000"}', medium * mega)) },
    {
      name: `${medium} MB of sealed lines that are none, in one`,
      middle: () => line(repeated('{"seq":3,"type":"a","id":"b","crc":"00000000"}', medium * mega)),
    },
    {
      name: 'a million members',
      middle: () => sealedLine(`{${Array.from({ length: 1_000_000 }, (_, index) => `"k${index}":1`).join(',')}}`),
    },
    { name: '12 MB of empty arrays', middle: () => sealedLine(`[${'[],'.repeat(4_000_000)}[]]`) },
    { name: `${medium} MB of numbers`, middle: () => sealedLine(`[${'1,'.repeat((medium / 2) * mega)}1]`) },
    ...manyEntries(count),
  ]
}

function longLines(): HugeFile[] {
  const begun = '{"seq":3,"type":"message","id":"l","text":"'
  return [
    { name: 'a line of 17 MiB', middle: () => line(begun, repeated('x', 17 * mega), '"}') },
    { name: 'a line of 100 MB', middle: () => line(begun, repeated('x', 100 * mega), '"}') },
    {
      name: '60 MB of white space in a line',
      middle: () => line('{"type":"message","id":"l","parent_id":null}', repeated(' ', 60 * mega)),
    },
    { name: '100 MB behind the last newline', middle: () => [], tail: () => repeated('x', 100 * mega) },
    { name: '60 MB of NUL bytes at the end', middle: () => [], tail: () => repeated('\0', 60 * mega) },
    { name: '60 MB of NUL bytes in the middle', middle: () => line(repeated('\0', 60 * mega)) },
    { name: '12 MB of quotes', middle: () => line('{"a":"', repeated('\\"', 12 * mega), '"}') },
    { name: '12 MB of backslashes', middle: () => line('{"a":"', repeated('\\', 12 * mega), '"}') },
    { name: '12 MB of text', middle: () => sealedLine(JSON.stringify('é'.repeat(6 * mega))) },
    linesOfText,
  ]
}

function manyEntries(count: number): HugeFile[] {
  const deep = 100_000
  return [
    {
      name: `a chain of ${deep}`,
      middle: () =>
        lines(deep, (index) => sealed(message(`m${index}`, index === 0 ? firstId : `m${index - 1}`), 3 + index)),
      lastParent: `m${deep - 1}`,
    },
    {
      name: `${count} phantom parents`,
      middle: () => lines(count, (index) => sealed(message(`m${index}`, `nobody-${index}`), 3 + index)),
    },
    {
      name: `${count} entries of one id`,
      middle: () => lines(count, (index) => sealed(message('same', firstId), 3 + index)),
    },
    {
      name: `${count} damaged lines between good ones`,
      middle: () =>
        lines(count, (index) => {
          const good = sealed(message(`m${index}`, firstId), 3 + 2 * index)
          return `${good}\n{"seq":${4 + 2 * index},"type":"mess`
        }),
    },
  ]
}
