import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeTextFile, encodeTextFile } from './text-file.ts'

test('decoded text encodes to the same bytes', () => {
  const bom = fc.constantFrom([], [0xef, 0xbb, 0xbf], [0xff, 0xfe], [0xfe, 0xff])
  const content = fc.oneof(
    fc.uint8Array({ maxLength: 20 }),
    fc.string({ unit: 'binary' }).map((text) => Buffer.from(text, 'utf16le')),
    fc.string({ unit: 'grapheme' }).map((text) => Buffer.from(text)),
  )
  fc.assert(
    fc.property(bom, content, (mark, rest) => {
      const bytes = Buffer.from([...mark, ...rest])
      const file = decodeTextFile(bytes)
      fc.pre(file !== undefined)
      expect(encodeTextFile(file)).toEqual(bytes)
    }),
    { numRuns: 100 },
  )
})

test.each([
  ['UTF-8', Buffer.from('é'), { text: 'é', encoding: 'utf-8', hasBom: false }],
  ['UTF-8 with a mark', Buffer.from('\ufeffé'), { text: 'é', encoding: 'utf-8', hasBom: true }],
  ['two marks', Buffer.from('\ufeff\ufeffé'), { text: '\ufeffé', encoding: 'utf-8', hasBom: true }],
  ['UTF-16', Buffer.from('\ufeffé', 'utf16le'), { text: 'é', encoding: 'utf-16le', hasBom: true }],
  ['nothing', Buffer.alloc(0), { text: '', encoding: 'utf-8', hasBom: false }],
])('%s is known', (_, bytes, expected) => {
  expect(decodeTextFile(bytes)).toEqual(expected)
})

test.each([
  ['half a character', Buffer.from([0x61, 0xc3])],
  ['Latin-1', Buffer.from('grün', 'latin1')],
  ['half of a pair', Buffer.from([0xff, 0xfe, 0x00, 0xd8])],
  ['an image', Buffer.from('GIF89a')],
])('%s is not text', (_, bytes) => {
  expect(decodeTextFile(bytes)).toBeUndefined()
})
