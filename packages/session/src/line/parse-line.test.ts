import { describe, expect, test } from 'vitest'
import { maxNesting, maxReadLineBytes } from './line.ts'
import { parseLine, salvageHead } from './parse-line.ts'
import { checksum, sealLine } from './seal-line.ts'

const encoder = new TextEncoder()
const bytes = (text: string): Uint8Array => encoder.encode(text)
const line = { type: 'message', id: 'a', parent_id: null, extra: 'é' }
const { text, crc } = sealLine(line, 7)

/** The reason why a line is damaged, or `fine`. */
function faultOf(content: string | Uint8Array): string {
  const parsed = parseLine(typeof content === 'string' ? bytes(content) : content)
  return parsed.type === 'damaged' ? parsed.reason : 'fine'
}

/** A line with these members and a valid checksum. */
function sealed(members: string): string {
  const open = `{${members}`
  return `${open},"crc":"${checksum(open)}"}`
}

describe('a line', () => {
  test('is read with its seq and checksum', () => {
    expect(parseLine(bytes(text))).toEqual({ type: 'line', line: { seq: 7, ...line, crc }, sealed: true, crc })
  })

  test('of a plain file is read without seq and checksum', () => {
    const plain = '{"type":"message","id":"a","parent_id":null}'
    const parsed = { type: 'line', line: JSON.parse(plain) as unknown, sealed: false, crc: checksum(plain) }
    expect(parseLine(bytes(plain))).toEqual(parsed)
  })

  test('may end in CR, once', () => {
    expect([faultOf(`${text}\r`), faultOf(`${text}\r\r`)]).toEqual(['fine', 'checksum is missing'])
  })

  test('is damaged by any change, including the case of its checksum', () => {
    expect(faultOf(text.replace('é', 'e'))).toBe('checksum does not match')
    expect(faultOf(sealed('"seq":8,"type":"x","id":"a"').replace(/\w+"\}$/, (end) => end.toUpperCase()))).toBe(
      'checksum does not match',
    )
    expect(faultOf(text.slice(0, -1))).toBe('checksum is missing')
    expect(faultOf(text.replace(`,"crc":"${crc}"`, ''))).toBe('checksum is missing')
    expect(faultOf('')).toBe('not valid JSON')
  })

  test('must be UTF-8, JSON, and an object', () => {
    expect(faultOf(Uint8Array.from([...bytes('{"type":"x","id":"a","t":"'), 0xff, ...bytes('"}')]))).toBe(
      'not valid UTF-8',
    )
    expect(faultOf('{"type":"x","id":"a",,,}')).toBe('not valid JSON')
    expect(faultOf('["type","x","id","a","b"]')).toBe('not an object')
    expect(faultOf('\0'.repeat(100))).toBe('not valid JSON')
  })

  test.for([
    ['"seq":1,"id":"a"', 'no type'],
    ['"seq":1,"type":5,"id":"a"', 'no type'],
    ['"seq":1,"type":"x"', 'no valid id'],
    ['"seq":1,"type":"x","id":"../a"', 'no valid id'],
    ['"seq":1,"type":"x","id":"a","parent_id":""', 'no valid parent_id'],
    ['"seq":1,"type":"x","id":"a","parent_id":5', 'no valid parent_id'],
    ['"seq":0,"type":"x","id":"a"', 'no valid seq'],
    ['"seq":1.5,"type":"x","id":"a"', 'no valid seq'],
    ['"seq":1e999,"type":"x","id":"a"', 'no valid seq'],
    ['"seq":9007199254740993,"type":"x","id":"a"', 'no valid seq'],
    ['"type":"x","id":"a"', 'seq is missing'],
    ['"seq":1,"type":"x","id":"__proto__"', 'fine'],
  ] as const)('with %s and a valid checksum: %s', ([members, fault]) => {
    expect(faultOf(sealed(members))).toBe(fault)
  })

  test('may be nested as deeply as the writer allows and no deeper, in short and in long lines', () => {
    const nested = (levels: number, padding: string): string =>
      sealed(`"seq":1,"type":"x","id":"a","pad":"${padding}","deep":${'['.repeat(levels)}${']'.repeat(levels)}`)
    const tooDeep = `nested deeper than ${maxNesting}`
    for (const padding of ['', 'x'.repeat(5000)]) {
      expect(faultOf(nested(maxNesting - 1, padding))).toBe('fine')
      expect(faultOf(nested(maxNesting, padding))).toBe(tooDeep)
    }
    // Brackets in strings do not nest, whatever escapes they contain.
    expect(faultOf(sealed(`"seq":1,"type":"x","id":"a","t":"\\\\\\"${'['.repeat(5000)}"`))).toBe('fine')
  })

  test('with more values than a writer can store is rejected before it is parsed', () => {
    const many = (count: number): string => sealed(`"seq":1,"type":"x","id":"a","many":[${'0,'.repeat(count)}0]`)
    expect([faultOf(many(100_000)), faultOf(many(300_000))]).toEqual(['fine', 'more than 262144 values'])
  })

  test('over 16 MiB is rejected', () => {
    expect(faultOf('x'.repeat(maxReadLineBytes + 1))).toBe(`longer than ${maxReadLineBytes} bytes`)
  })
})

describe('the head of a damaged line', () => {
  test('contains what can still be read before the damage', () => {
    const head = (content: string): unknown => salvageHead(bytes(content))
    expect(head('{"seq":7,"type":"message","id":"a","parent_id":"b","tim')).toEqual({
      seq: 7,
      type: 'message',
      id: 'a',
      parentId: 'b',
    })
    expect(head('{"seq":7,"type":"message","id":"a","parent_id":null,')).toMatchObject({ parentId: null })
    expect(head('{"type":"leaf","id":"a","time')).toEqual({ type: 'leaf', id: 'a' })
    expect(head('{"seq":7,"type":"message","id":"a","parent_id":"b')).toEqual({ seq: 7, type: 'message', id: 'a' })
    expect(head('{"seq":7,"type":"mess')).toEqual({ seq: 7 })
    expect(head('{"seq":7')).toEqual({})
    expect(head('x{"seq":7,')).toEqual({})
    expect(head('')).toEqual({})
  })
})
