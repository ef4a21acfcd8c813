import fc from 'fast-check'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { lateExpression, lateSegmenter, plainText } from './late-segmenter.ts'
import { withLateUnicode } from './late-unicode.ts'

const real = new Intl.Segmenter()
const late = lateSegmenter()

/** Where it begins and what it is, of each segment. */
function divided(segmenter: { segment: (text: string) => Iterable<Intl.SegmentData> }, text: string): string {
  return Array.from(segmenter.segment(text), ({ segment, index }) => `${index} ${JSON.stringify(segment)}`).join('\n')
}

test('characters that are called plain stand by themselves beside each other, as the segmenter of the system has it', () => {
  const plain = Array.from({ length: 0x3000 }, (_, code) => String.fromCharCode(code)).filter((each) =>
    plainText.test(each),
  )
  expect(plain.length).toBeGreaterThan(1000)
  for (const neighbour of ['a', '\u00e9', '\u02bc', '\u2026', '\u2192', '\u2500', '\u25cf', '1', '.']) {
    const text = plain.map((each) => neighbour + each).join('')
    expect(divided(late, text) === divided(real, text)).toBe(true)
  }
})

test('texts of all kinds are divided as the segmenter of the system does, also by words', () => {
  const parts = ['plain text', '→ │ ●', 'e\u0301', '👩‍👩‍👧', '\r\n', '한국', '🇩🇪', 'a\u200db', '✔\ufe0f']
  const isTheSame = (text: string): boolean => divided(late, text) === divided(real, text)
  fc.assert(fc.property(fc.array(fc.constantFrom(...parts), { maxLength: 6 }), (some) => isTheSame(some.join(''))))
  fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 40 }), isTheSame))
  const words = { granularity: 'word' } as const
  expect(divided(lateSegmenter(undefined, words), 'two words')).toBe(
    divided(new Intl.Segmenter(undefined, words), 'two words'),
  )
  expect(late.segment('abc').containing(1)).toEqual(real.segment('abc').containing(1))
  expect(late.segment('abc').containing(7)).toBeUndefined()
  expect(lateExpression(String.raw`^\p{RGI_Emoji}$`).test('👩‍👩‍👧')).toBe(true)
})

test('the code of the screen is as the build expects it: nothing makes a segmenter or the expression when it is loaded', () => {
  const code = withLateUnicode(readFileSync('node_modules/@earendil-works/pi-tui/dist/utils.js', 'utf8'))
  expect(code).not.toContain('new Intl.Segmenter(')
  expect(code).toContain('const rgiEmojiRegex = lateExpression(')
})
