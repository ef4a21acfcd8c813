import { describe, expect, test } from 'vitest'
import { blobsOf, mayBeTooLarge, moveLargeValues, restoreLargeValues } from './large-values.ts'
import { maxWrittenLineBytes, type DiskLine } from './line.ts'
import type { BlobReference } from './message.ts'
import { sealLine } from './seal-line.ts'

/** Blobs in memory, under a hash that only has the right format. */
class Blobs {
  readonly kept = new Map<string, Uint8Array>()

  async putBlob(bytes: Uint8Array): Promise<BlobReference> {
    const sha256 = String(this.kept.size).padStart(64, '0')
    this.kept.set(sha256, bytes)
    return { sha256, size: bytes.length }
  }

  async getBlob(sha256: string): Promise<Uint8Array | undefined> {
    return this.kept.get(sha256)
  }
}

const lineOf = (message: unknown): DiskLine => ({ type: 'message', id: 'a', parent_id: null, message })
const large = (letter: string): string => letter.repeat(150_000)
const sizeOf = (line: DiskLine): number => new TextEncoder().encode(sealLine(line, 999_999_999).text).length

describe('large values', () => {
  test('the largest values move to blobs until the line fits, and are restored unchanged', async () => {
    const blobs = new Blobs()
    const line = lineOf({
      small: 'stays',
      list: [large('x'), large('é'), { 'a/b~c': large('"') }],
      middle: 'm'.repeat(50_000),
    })
    const moved = await moveLargeValues(line, blobs)
    expect(sizeOf(moved)).toBeLessThan(maxWrittenLineBytes)
    expect(moved).toMatchObject({ message: { small: 'stays', middle: 'm'.repeat(50_000) } })
    expect(await restoreLargeValues(moved, blobs)).toEqual(line)
    expect(blobsOf(moved).toSorted()).toEqual([...blobs.kept.keys()].toSorted())
  })

  test.each<[string, unknown]>([
    ['numbers', { content: [{ input: { numbers: Array.from({ length: 100_000 }, (_, index) => index) } }] }],
    [
      'short texts',
      { content: Array.from({ length: 3000 }, (_, index) => ({ text: `${index} ${'word '.repeat(30)}` })) },
    ],
    ['texts of middle size', { content: Array.from({ length: 900 }, (_, index) => `${index} ${'word '.repeat(300)}`) }],
    ['texts that take many bytes', { content: Array.from({ length: 150 }, () => '\u0001'.repeat(400)) }],
    ['members', { data: Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`member ${index}`, index])) }],
    ['two lists', { one: Array.from({ length: 50_000 }, () => 1234), two: Array.from({ length: 60_000 }, () => 5678) }],
    ['a list and a text', { list: Array.from({ length: 50_000 }, () => 12_345), text: large('x') }],
  ])('a line with many small values (%s) fits, and is restored unchanged', async (_, payload) => {
    const blobs = new Blobs()
    const line = lineOf({ role: 'user', ...(payload as object) })
    const moved = await moveLargeValues(line, blobs)
    expect(sizeOf(moved)).toBeLessThan(maxWrittenLineBytes)
    expect(moved).toMatchObject({ message: { role: 'user' } })
    expect(await restoreLargeValues(moved, blobs)).toEqual(line)
  })

  test('blobs that a moved list refers to are still found', async () => {
    const blobs = new Blobs()
    const sha256 = 'a'.repeat(64)
    const list = [{ sha256, size: 7 }, ...Array.from({ length: 100_000 }, (_, index) => index)]
    const moved = await moveLargeValues(lineOf({ list }), blobs)
    expect(blobsOf(moved).toSorted()).toEqual([...blobs.kept.keys(), sha256].toSorted())
  })

  test('a line that fits is unchanged', async () => {
    const line = lineOf({ text: 'x'.repeat(1000) })
    expect(await moveLargeValues(line, new Blobs())).toEqual(line)
    expect([mayBeTooLarge('x'.repeat(1000)), mayBeTooLarge('é'.repeat(100_000))]).toEqual([false, true])
  })

  test('an image becomes a reference to its bytes, unless it is not base64', async () => {
    const blobs = new Blobs()
    const image = (data: string): DiskLine => lineOf({ source: { type: 'base64', media_type: 'image/png', data } })
    const moved = await moveLargeValues(image('AAEC'.repeat(100_000)), blobs)
    expect(moved).toMatchObject({ message: { source: { type: 'blob', media_type: 'image/png', size: 300_000 } } })
    for (const odd of [`${'AAEC'.repeat(100_000)}A`, `${'AAEC'.repeat(100_000)}!`]) {
      const kept = await moveLargeValues(image(odd), blobs)
      expect(await restoreLargeValues(kept, blobs)).toEqual(image(odd))
    }
  })

  test('a value whose blob is missing keeps its first characters', async () => {
    const moved = await moveLargeValues(lineOf({ text: large('x') + large('x') }), new Blobs())
    expect(await restoreLargeValues(moved, new Blobs())).toEqual(lineOf({ text: 'x'.repeat(200) }))
  })

  test('a foreign list of moved values breaks nothing', async () => {
    const blobs = new Blobs()
    const { sha256, size } = await blobs.putBlob(new TextEncoder().encode('not JSON'))
    const moved = (...values: unknown[]): DiskLine => ({ ...lineOf({ text: 'begins' }), blobs: values })
    const untouched = lineOf({ text: 'begins' })
    for (const value of [
      null,
      5,
      {},
      { path: '/message/text', sha256: 'no hash' },
      { path: '/message/text/deeper', sha256, size },
      { path: '/message/missing', sha256, size },
      { path: '/__proto__/polluted', sha256, size },
      { path: '', sha256, size },
      { path: '/message/text', sha256, size, encoding: 'json' },
    ]) {
      expect(await restoreLargeValues(moved(value), blobs)).toEqual(untouched)
    }
    expect(Object.keys(Object.prototype)).toEqual([])
    expect(await restoreLargeValues({ ...untouched, blobs: 'text' }, blobs)).toEqual({ ...untouched, blobs: 'text' })
  })

  test.each<[string, unknown]>([
    ['{"role":"user"}', 'begins'],
    ['"text"', []],
    ['[1]', {}],
    ['null', {}],
    ['{"a":1}', []],
    ['['.repeat(100_000), []],
  ])('a blob of another kind (%.20s) is not restored', async (json, stays) => {
    const blobs = new Blobs()
    const { sha256, size } = await blobs.putBlob(new TextEncoder().encode(json))
    const line = { ...lineOf({ value: stays }), blobs: [{ path: '/message/value', sha256, size, encoding: 'json' }] }
    expect(await restoreLargeValues(line, blobs)).toEqual(lineOf({ value: stays }))
  })

  test('the blobs of a line are found in messages, attempts and moved values, once each', () => {
    const hash = (digit: string): string => digit.repeat(64)
    const source = (digit: string): object => ({ source: { type: 'blob', sha256: hash(digit), size: 1 } })
    const line: DiskLine = {
      ...lineOf({ content: [source('a'), source('a'), { sha256: 'x', size: 1 }, { sha256: hash('b') }] }),
      attempt: source('c'),
      custom: source('d'),
      blobs: [{ path: '/x', sha256: hash('e'), size: 1 }],
    }
    expect(blobsOf(line)).toEqual([hash('a'), hash('c'), hash('e')])
  })
})
