import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { testContext } from '../../testing/tool-context.ts'
import { countBytes, showOutput, LiveOutput, plainText } from './shown-output.ts'
import type { OutputPiece } from './spooled-output.ts'

test('short output is complete, without its final line break', async () => {
  expect(await show('one\n\x1b[1mtwo\x1b[0m\n')).toEqual({ shown: 'one\ntwo', blobs: [] })
})

test('long output shows its first and last lines, and is stored completely', async () => {
  const whole = lines(0, 10_000)
  const { shown, blobs } = await show(whole)
  expect(blobs).toEqual([whole])
  const [, head = '', left = '', sha256 = '', tail = ''] =
    /^([^]*)\n\[… ([\d,]+) bytes left out here\. The whole output is kept as blob (\w+) …\]\n([^]*)$/.exec(shown) ?? []
  expect(sha256).toBe(createHash('sha256').update(whole).digest('hex'))
  expect(whole.startsWith(`${head}\n`)).toBe(true)
  expect(whole.endsWith(`\n${tail}\n`)).toBe(true)
  expect(head.length + tail.length + 2 + Number(left.replaceAll(',', ''))).toBe(whole.length)
  expect(shown.length).toBeGreaterThan(29_000)
  expect(shown.length).toBeLessThan(31_000)
})

test('a line without an end is cut between two characters', async () => {
  const { shown } = await show('ü'.repeat(40_000).slice(1) + 'x')
  expect(shown).not.toContain('\ufffd')
  expect(shown.startsWith('üü')).toBe(true)
  expect(shown.endsWith('üx')).toBe(true)
})

test('a marker stands for output that was not stored', async () => {
  const pieces = [piece(0, 'start'), piece(1005, 'end')]
  const context = testContext({ cwd: '/' })
  expect(await showOutput({ pieces, end: 1008 }, 0, context)).toBe('start\n[… 1,000 bytes not stored …]\nend')
  expect(await showOutput({ pieces: pieces.slice(1), end: 1008 }, 5, context)).toBe(
    '\n[… 1,000 bytes not stored …]\nend',
  )
  expect(await showOutput({ pieces: [], end: 1 }, 0, context)).toBe('\n[… 1 byte not stored …]')
})

test('bytes are counted in thousands, and one is one byte', () => {
  expect([1, 2, 1_234_567].map(countBytes)).toEqual(['1 byte', '2 bytes', '1,234,567 bytes'])
})

async function show(text: string): Promise<{ shown: string; blobs: string[] }> {
  const context = testContext({ cwd: '/' })
  const output = { pieces: [piece(0, text)], end: Buffer.byteLength(text) }
  const shown = await showOutput(output, 0, context)
  return { shown, blobs: [...context.blobs.values()].map((bytes) => Buffer.from(bytes).toString()) }
}

function piece(offset: number, text: string): OutputPiece {
  return { offset, bytes: Buffer.from(text) }
}

function lines(from: number, to: number): string {
  return Array.from({ length: to - from }, (_, index) => `line ${from + index}\n`).join('')
}

test('a character that spans two pieces appears once it is complete', () => {
  const told: string[] = []
  const live = new LiveOutput((text) => void told.push(text))
  const bytes = Buffer.from('aü')
  live.take({ offset: 0, bytes: bytes.subarray(0, 1) })
  live.take({ offset: 1, bytes: bytes.subarray(1, 2) })
  live.take({ offset: 2, bytes: bytes.subarray(2) })
  expect(told).toEqual(['a', 'ü'])
})

test('a follower is told how much it missed', () => {
  const told: string[] = []
  const live = new LiveOutput((text) => void told.push(text))
  live.take({ offset: 0, bytes: Buffer.from([0x61, 0xc3]) })
  live.take({ offset: 1002, bytes: Buffer.from('b') })
  expect(told).toEqual(['a', '\n[1,000 bytes skipped]\n', 'b'])
})

const cases: [what: string, given: string, shown: string][] = [
  ['plain lines are unchanged', 'a\tb\n\nc – ü 漢 🙂\n', 'a\tb\n\nc – ü 漢 🙂\n'],
  ['colours go', '\x1b[1;31mred\x1b[0m \x9b32mgreen\x9b0m', 'red green'],
  ['cursor movements are removed', '\x1b[2J\x1b[Hhome\x1b[?25l\x1b[10;20H', 'home'],
  [
    'titles, links and clipboard sequences are removed',
    '\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1b]8;;\x1b\\\x1b]52;c;aGk=\x07',
    'ab',
  ],
  ['an unterminated string is removed up to the end of its line', '\x1b]0;title\nnext', '\nnext'],
  ['device strings go', '\x1bPq#0;2\x1b\\a\x90x\x9cb\x1b_apc\x1b\\', 'ab'],
  ['short sequences go', '\x1b(Ba\x1b7b\x1bMc', 'abc'],
  ['an escape at the end is removed', 'a\x1b', 'a'],
  ['other line endings become line feeds', 'a\r\nb\r\r\nc', 'a\nb\nc'],
  ['an overwritten line keeps its last version', 'x\n10%\r50%\r100%\ndone', 'x\n100%\ndone'],
  ['a line that ends with a carriage return stays', '50%\r', '50%'],
  ['other controls go', 'a\x00b\x07c\x08d\x7fe\x85f', 'abcdef'],
]

test.each(cases)('%s', (_, given, shown) => {
  expect(plainText(Buffer.from(given))).toBe(shown)
})

test('invalid bytes are replaced', () => {
  expect(plainText(Buffer.from([0x61, 0xff, 0x62]))).toBe('a\ufffdb')
})

test('for any repeated input, twice the length takes at most a few times as long', () => {
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
    // Quadratic time would be sixteen times as long, which at this length is minutes.
    expect(long, JSON.stringify(part)).toBeLessThan(Math.max(1000, short * 12))
  }
})

function timeOf(text: string): number {
  const bytes = Buffer.from(text)
  const start = performance.now()
  plainText(bytes)
  return performance.now() - start
}
