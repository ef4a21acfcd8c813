import { describe, expect, test } from 'vitest'
import { readLogLines } from './log-lines.ts'
import type { DiskLine } from '../line/line.ts'
import type { ReadableLog } from './log-store.ts'
import { sealLine } from '../line/seal-line.ts'

const said = (id: string): DiskLine => ({ type: 'message', id, parent_id: null })
const writer: DiskLine = { type: 'writer', id: 'w', writer: { term: 1 } }

function sealed(...lines: DiskLine[]): string[] {
  return lines.map((line, index) => sealLine(line, index + 1).text)
}

/** The lines sent for a log: ids, and the losses between them. */
async function travelled(texts: readonly string[], through: number, after = 0): Promise<string[]> {
  let at = 0
  const stored = texts.map((text) => {
    const bytes = new TextEncoder().encode(text)
    const line = { at, size: bytes.length, next: at + bytes.length + 1, bytes }
    at = line.next
    return line
  })
  const log: Pick<ReadableLog, 'lines' | 'seek'> = {
    lines: async function* (from: number) {
      yield stored.filter((line) => line.at >= from)
    },
    seek: async () => 0,
  }
  const found: string[] = []
  const options = { after, through: () => through, isDamaged: true }
  for await (const line of readLogLines(log as ReadableLog, options)) {
    if (line.type === 'lost') found.push(`lost ${line.seq}+${line.count}`)
    else found.push(`${line.seq} ${(JSON.parse(line.text) as DiskLine).id}`)
  }
  return found
}

describe('the lines of a log', () => {
  test('do not end at a line with a damaged, higher seq', async () => {
    const lines = sealed(writer, said('a'), said('b'), said('c'))
    const damaged = (lines[1] as string).replace('"seq":2', '"seq":9')
    expect(await travelled(lines.with(1, damaged), 4)).toEqual(['1 w', 'lost 2+1', '3 b', '4 c'])
  })

  test('are the accepted ones: a plain line among sealed ones is skipped and takes no seq', async () => {
    const lines = sealed(writer, said('a'), said('b'))
    expect(await travelled(lines.toSpliced(2, 0, JSON.stringify(said('x'))), 3)).toEqual(['1 w', '2 a', '3 b'])
  })

  test('exclude a line with a foreign seq', async () => {
    const lines = [...sealed(writer, said('a')), sealLine(said('x'), 2).text, sealLine(said('y'), 2 ** 50).text]
    expect(await travelled([...lines, sealLine(said('b'), 3).text], 3)).toEqual(['1 w', '2 a', '3 b'])
  })

  test('of a plain file are numbered, skipping blank ones', async () => {
    const lines = ['\ufeff{"type":"session","id":"s"}', '\r', '', JSON.stringify(said('a')), 'junk of some length']
    expect(await travelled([...lines, JSON.stringify(said('b'))], 4)).toEqual(['1 s', '2 a', 'lost 3+1', '4 b'])
  })

  test('end at the last durable one, and report losses before it', async () => {
    const lines = sealed(writer, said('a'), said('b'), said('c'))
    expect(await travelled(lines, 2)).toEqual(['1 w', '2 a'])
    expect(await travelled(lines.with(2, 'x'), 3)).toEqual(['1 w', '2 a', 'lost 3+1'])
    expect(await travelled(lines.slice(0, 2), 4)).toEqual(['1 w', '2 a', 'lost 3+2'])
    expect(await travelled(lines, 4, 3)).toEqual(['4 c'])
  })

  test('that were merged come one by one', async () => {
    const [first = '', second = '', third = ''] = sealed(writer, said('a'), said('b'))
    expect(await travelled([`${first}*${second}`, third], 3)).toEqual(['1 w', '2 a', '3 b'])
  })
})
