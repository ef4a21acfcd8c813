import { expect, test } from 'vitest'
import { plainText } from './plain-text.ts'

const cases: [what: string, given: string, shown: string][] = [
  ['plain lines stay as they are', 'a\tb\n\nc – ü 漢 🙂\n', 'a\tb\n\nc – ü 漢 🙂\n'],
  ['colours go', '\x1b[1;31mred\x1b[0m \x9b32mgreen\x9b0m', 'red green'],
  ['moves of the cursor go', '\x1b[2J\x1b[Hhome\x1b[?25l\x1b[10;20H', 'home'],
  [
    'titles, links and the clipboard go',
    '\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1b]8;;\x1b\\\x1b]52;c;aGk=\x07',
    'ab',
  ],
  ['a string that is not ended goes to the end of its line', '\x1b]0;title\nnext', '\nnext'],
  ['device strings go', '\x1bPq#0;2\x1b\\a\x90x\x9cb\x1b_apc\x1b\\', 'ab'],
  ['short sequences go', '\x1b(Ba\x1b7b\x1bMc', 'abc'],
  ['an escape at the end goes', 'a\x1b', 'a'],
  ['line ends of other systems become ours', 'a\r\nb\r\r\nc', 'a\nb\nc'],
  ['of a line drawn over the last state stays', 'x\n10%\r50%\r100%\ndone', 'x\n100%\ndone'],
  ['a line that ends with a return stays', '50%\r', '50%'],
  ['other controls go', 'a\x00b\x07c\x08d\x7fe\x85f', 'abcdef'],
]

test.each(cases)('%s', (_, given, shown) => {
  expect(plainText(Buffer.from(given))).toBe(shown)
})

test('bytes that are no text are replaced', () => {
  expect(plainText(Buffer.from([0x61, 0xff, 0x62]))).toBe('a\ufffdb')
})

test('whatever is repeated, twice as much takes no more than a few times as long', () => {
  for (const part of [
    '\x1b[',
    '\x1b]0;',
    '\x1b]0;\x1b',
    '\r',
    'a\r',
    '\x1b[0',
    '\x1b(',
    '\x9b;',
    '\x00',
    '\r\n\r',
    '\x1bP\r',
  ]) {
    const short = timeOf(part.repeat(50_000))
    const long = timeOf(part.repeat(200_000))
    // A quadratic one would take sixteen times as long, which at this length is minutes.
    expect(long, JSON.stringify(part)).toBeLessThan(Math.max(1000, short * 12))
  }
})

function timeOf(text: string): number {
  const bytes = Buffer.from(text)
  const start = performance.now()
  plainText(bytes)
  return performance.now() - start
}
