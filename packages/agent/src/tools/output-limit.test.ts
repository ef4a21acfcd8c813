import fc from 'fast-check'
import { expect, test } from 'vitest'
import { testContext } from '../testing/tool-context.ts'
import { countLines, limitOutput } from './output-limit.ts'

const lines = (count: number) => Array.from({ length: count }, (_, index) => `line ${index + 1}`).join('\n')

test('short output is unchanged and not stored', async () => {
  const context = testContext({ cwd: '/' })
  expect(await limitOutput(lines(1000), context)).toBe(lines(1000))
  expect(context.blobs.size).toBe(0)
})

test('output of many lines loses its middle, and all of it is stored', async () => {
  const context = testContext({ cwd: '/' })
  const limited = await limitOutput(lines(10), context, { maxLines: 4 })
  const [sha256] = [...context.blobs.keys()]
  expect(limited).toBe(
    `line 1\nline 2\n[… 6 lines, 42 bytes left out here. The whole output is kept as blob ${sha256} …]\nline 9\nline 10`,
  )
  expect(Buffer.from(context.blobs.get(sha256!)!).toString()).toBe(lines(10))
})

test('output with long lines is cut between lines if possible', async () => {
  const context = testContext({ cwd: '/' })
  const limited = await limitOutput(`${'a'.repeat(30)}\n${'b'.repeat(30)}\n${'c'.repeat(30)}\n`, context, {
    maxBytes: 70,
  })
  expect(limited.split('\n')).toEqual([
    'a'.repeat(30),
    expect.stringContaining('1 lines, 31 bytes'),
    'c'.repeat(30),
    '',
  ])
})

test('one endless line is cut between characters', async () => {
  const context = testContext({ cwd: '/' })
  const limited = await limitOutput('€'.repeat(100), context, { maxBytes: 20 })
  const [head, notice, tail] = limited.split('\n')
  expect([head, tail]).toEqual(['€€€', '€€€'])
  expect(notice).toContain('1 lines, 282 bytes left out')
})

test('the shown output begins and ends like the output, within the limits', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.string({ unit: 'grapheme', maxLength: 30 }), { maxLength: 30 }),
      fc.integer({ min: 8, max: 200 }),
      fc.integer({ min: 2, max: 20 }),
      async (parts, maxBytes, maxLines) => {
        const text = parts.join('\n')
        const limited = await limitOutput(text, testContext({ cwd: '/' }), { maxBytes, maxLines })
        const isShort = Buffer.byteLength(text) <= maxBytes && countLines(text) <= maxLines
        expect(limited === text).toBe(isShort)
        fc.pre(!isShort)
        const [head = '', tail = ''] = limited.split(/\n\[… \d+ lines, \d+ bytes left out here\.[^\n]*\n/)
        expect(text.startsWith(head)).toBe(true)
        expect(text.endsWith(tail)).toBe(true)
        expect(Buffer.byteLength(head) + Buffer.byteLength(tail)).toBeLessThanOrEqual(maxBytes)
        expect(countLines(head) + countLines(tail)).toBeLessThanOrEqual(maxLines + 1)
      },
    ),
  )
})

test.each([
  ['', 0],
  ['a', 1],
  ['a\n', 1],
  ['a\nb', 2],
  ['\n\n', 2],
])('%j has %i lines', (text, count) => {
  expect(countLines(text)).toBe(count)
})
