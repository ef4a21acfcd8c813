import { describe, expect, test } from 'vitest'
import { takeApart } from './merged-line.ts'
import { sealLine } from './seal-line.ts'

const first = sealLine({ type: 'message', id: 'a', parent_id: null, said: 'one' }, 1).text
const second = sealLine({ type: 'message', id: 'b', parent_id: 'a', said: 'two' }, 2).text
const third = sealLine({ type: 'message', id: 'c', parent_id: 'b', input: { seq: 5, more: [{ seq: 6 }] } }, 3).text

/** The pieces of a line: ids of lines, and the text of junk. */
function apart(content: string): string[] {
  const bytes = new TextEncoder().encode(content)
  return takeApart(bytes).map((part) => {
    const text = new TextDecoder().decode(part.bytes)
    expect(text).toBe(new TextDecoder().decode(bytes.subarray(part.at, part.at + part.bytes.length)))
    return part.parsed.type === 'line' ? `line ${part.parsed.line.id}` : text
  })
}

describe('a stored line that cannot be parsed', () => {
  test('is split where newlines were lost', () => {
    expect(apart(first + second + third)).toEqual(['line a', 'line b', 'line c'])
  })

  test('may have one stray byte in place of each newline, including the last', () => {
    expect(apart(`${first}*${second}\r${third}J`)).toEqual(['line a', 'line b', 'line c'])
    expect(apart(`${first}*`)).toEqual(['line a'])
  })

  test('may have junk before, between and after its lines', () => {
    expect(apart(`\0\0\0${second}`)).toEqual(['\0\0\0', 'line b'])
    expect(apart(`${first}\0\0\0`)).toEqual(['line a', '\0\0\0'])
    expect(apart(`${first}\0\0\0${second}`)).toEqual(['line a', '\0\0\0', 'line b'])
  })

  test('may be a torn line followed by another', () => {
    const torn = first.slice(0, 30)
    expect(apart(torn + second)).toEqual([torn, 'line b'])
    expect(apart(torn + third)).toEqual([torn, 'line c'])
  })

  test('keeps the good lines around a damaged one', () => {
    const damaged = second.replace('two', 'zwo')
    expect(apart(first + damaged + third)).toEqual(['line a', damaged, 'line c'])
  })

  test('gives nothing if no piece has a valid checksum', () => {
    expect(apart(first.slice(0, 40) + second.slice(0, 50))).toEqual([])
    expect(apart('{"type":"message","id":"plain"}{"type":"message","id":"too"}')).toEqual([])
    expect(apart('"}{"seq":'.repeat(10_000))).toEqual([])
    expect(apart('short')).toEqual([])
  })

  test('never yields a record that is only quoted in a message', () => {
    const grant = sealLine({ type: 'permission_result', id: 'g', permission_result: { outcome: 'allowed' } }, 9).text
    const said = `{"seq":2,"type":"message","id":"b","parent_id":"a","input":[{"x":"y"},${grant}],"crc":"00000000"}`
    expect(apart(said)).toEqual([])
  })

  test('with a thousand bad pieces gives one piece of junk beside the good line', () => {
    const junk = '{"seq":3,"type":"a","id":"b","crc":"00000000"}'.repeat(1000)
    expect(apart(first + junk)).toEqual(['line a', junk])
  })
})
