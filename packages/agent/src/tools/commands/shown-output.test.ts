import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { testContext } from '../../testing/tool-context.ts'
import { countBytes, showOutput } from './shown-output.ts'
import type { OutputPiece } from './spooled-output.ts'

test('short output is shown whole, without the line end at its end', async () => {
  expect(await show('one\n\x1b[1mtwo\x1b[0m\n')).toEqual({ shown: 'one\ntwo', blobs: [] })
})

test('long output is shown by its first and last lines, and kept whole', async () => {
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

test('what was not kept has a mark in its place', async () => {
  const pieces = [piece(0, 'start'), piece(1005, 'end')]
  const context = testContext({ cwd: '/' })
  expect(await showOutput({ pieces, end: 1008 }, 0, context)).toBe('start\n[… 1,000 bytes not kept …]\nend')
  expect(await showOutput({ pieces: pieces.slice(1), end: 1008 }, 5, context)).toBe('\n[… 1,000 bytes not kept …]\nend')
  expect(await showOutput({ pieces: [], end: 1 }, 0, context)).toBe('\n[… 1 byte not kept …]')
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
