import { expect, test } from 'vitest'
import { withoutControls, withoutHidden } from './foreign-text.ts'

test.each([
  ['plain text, ä 漢 👍', 'plain text, ä 漢 👍'],
  ['two\r\nlines\tand a tab', 'two\nlines\tand a tab'],
  ['\x1b[31mred\x1b[0m', 'red'],
  ['\x1b]8;;https://evil.example\x07link\x1b]8;;\x07', 'link'],
  ['\x1b]0;title that never ends\nnext', '\nnext'],
  ['\x9b31mred', 'red'],
  ['a\0b\x08c\x7fd', 'abcd'],
  ['zero\u200bwidth\u2060', 'zerowidth'],
  ['\u202etxet\u202c', 'txet'],
  ['tags\u{e0041}\u{e0042}', 'tags'],
  ['variants\ufe0f\u{e0101}', 'variants'],
  ['line\u2028separator', 'lineseparator'],
  ['private\ue000', 'private'],
  ['filler\u3164\u2800', 'filler'],
  ['half\ud800', 'half\ufffd'],
])('%j is read as %j', (text, shown) => {
  expect(withoutHidden(text)).toBe(shown)
})

test('letters of all scripts stay in the result of a tool', () => {
  expect(withoutControls('👩\u200d🚀 می\u200cخواهم\x1b[2J')).toBe('👩\u200d🚀 می\u200cخواهم')
})

test('hostile long text takes little time', () => {
  const started = performance.now()
  for (const piece of ['\x1b]', '\x1b[', '\x1b', '\x9b0', '\u200b', '\r']) withoutHidden(piece.repeat(500_000))
  expect(performance.now() - started).toBeLessThan(5000)
})
