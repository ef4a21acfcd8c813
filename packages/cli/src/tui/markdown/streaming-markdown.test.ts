import fc from 'fast-check'
import { expect, test } from 'vitest'
import { themeFor, type Theme } from '../theme.ts'
import { markdownLines } from './markdown-lines.ts'
import { shownText } from './shown-text.ts'
import { StreamingMarkdown } from './streaming-markdown.ts'

const plain = themeFor({ theme: 'dark', color: false })

test('streamed text looks as if it had arrived at once', () => {
  const block = fc.constantFrom(
    '# Title',
    'Some **bold** words.',
    '- one\n- two\n\n  more\n  - deep',
    '1. a\n2. b',
    '> quoted\n> text',
    '```ts\nconst a = 1\n\nconst b = 2\n```',
    `\`\`\`\n${'line\n'.repeat(90)}\`\`\``,
    '| a | b |\n|---|---|\n| 1 | 2 |',
    '---',
    'colors \u001b[31mred\u001b[0m and a\ttab\r',
  )
  fc.assert(
    fc.property(
      fc.array(block, { maxLength: 6 }),
      fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1 }),
      (blocks, steps) => {
        const text = `${blocks.join('\n\n')}\n\nend.`
        const streaming = new StreamingMarkdown({ theme: plain, width: 40 })
        for (let end = 0, step = 0; end < text.length; step++) {
          streaming.lines(text.slice(0, end))
          end += steps[step % steps.length] ?? 1
        }
        expect(streaming.lines(text)).toEqual(markdownLines(shownText(text), { theme: plain, width: 40 }))
      },
    ),
    { numRuns: 100 },
  )
})

test('finished blocks are not rendered again', () => {
  let headings = 0
  let codeLines = 0
  const counting: Theme = { ...plain, heading: (text) => (headings++, text), code: (text) => (codeLines++, text) }
  const streaming = new StreamingMarkdown({ theme: counting, width: 40 })
  let text = '# Title\n\nwords'
  for (let token = 0; token < 1000; token++) streaming.lines((text += ' word'))
  expect(headings).toBe(1)
  streaming.lines((text += '\n\n```\n'))
  for (let line = 0; line < 1000; line++) streaming.lines((text += `line ${line}\n`))
  expect(codeLines).toBeLessThan(1000 * 60)
  expect(streaming.lines(text).at(-1)).toBe('  line 999')
})

test.each([
  ['empty lines', '\n'.repeat(100_000)],
  ['empty lines behind a word', `a${' \n'.repeat(50_000)}`],
  ['empty lines of code', `\`\`\`\n${'\n'.repeat(100_000)}x`],
  ['lines of code', `\`\`\`\n${'x\n'.repeat(50_000)}`],
  ['items of a list', '- *a*\n'.repeat(8000)],
  ['rows of a table', `| a |\n|---|\n${'| b |\n'.repeat(8000)}`],
  ['quotations in quotations', `${'>'.repeat(50)} a\n${'b\n'.repeat(50_000)}`],
])('%s that stream in take at most ten times as long as at once', (_, text) => {
  const cpuMs = (work: () => void): number => {
    const before = process.cpuUsage()
    work()
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000
  }
  const options = { theme: plain, width: 40 }
  let [whole, streamed] = [Infinity, Infinity]
  for (let tries = 0; tries < 5; tries++) {
    whole = Math.min(
      whole,
      cpuMs(() => markdownLines(shownText(text), options)),
    )
    streamed = Math.min(
      streamed,
      cpuMs(() => {
        const streaming = new StreamingMarkdown(options)
        for (let piece = 1; piece <= 40; piece++) streaming.lines(text.slice(0, (text.length / 40) * piece))
      }),
    )
  }
  expect(streamed / whole).toBeLessThan(10)
})

test('text nested too deeply stays plain to its end', () => {
  const text = `# Title\n\n${'>'.repeat(50)} a\n\n\n  b **c**\n\nend`
  const streaming = new StreamingMarkdown({ theme: plain, width: 40 })
  let lines: readonly string[] = []
  for (let end = 1; end <= text.length; end++) lines = streaming.lines(text.slice(0, end))
  const bare = lines.map((line) => line.replaceAll(/\u001b\[25m/g, ''))
  expect(bare).toEqual(['Title', '═════', '', '>'.repeat(40), `${'>'.repeat(10)} a`, '', '', '  b **c**', '', 'end'])
})

test('text added to a very long list is plain until the list is rendered again', () => {
  const items = Array.from({ length: 2000 }, (_, index) => `- item ${index}\n`)
  const streaming = new StreamingMarkdown({ theme: plain, width: 40 })
  streaming.lines(items.slice(0, 1500).join(''))
  expect(streaming.lines(items.slice(0, 1501).join('')).slice(-2)).toEqual(['• item 1499', '- item 1500'])
  expect(streaming.lines(items.join('')).slice(-2)).toEqual(['• item 1998', '• item 1999'])
})

test('an incomplete marker is not taken for another one', () => {
  const streaming = new StreamingMarkdown({ theme: plain, width: 40 })
  expect(streaming.lines('Points:\n-')).toEqual(['Points:'])
  expect(streaming.lines('Points:\n- a')).toEqual(['Points:', '', '• a'])
  expect(streaming.lines('Points:\n- a\n\n``')).toEqual(['Points:', '', '• a'])
})

test('another text needs another object', () => {
  const streaming = new StreamingMarkdown({ theme: plain, width: 40 })
  streaming.lines('# a\n\nb')
  expect([streaming.continues('# a\n\nb c'), streaming.continues('# other')]).toEqual([true, false])
})

test('a very long block that changed in the middle is a different text', () => {
  const items = Array.from({ length: 1500 }, (_, index) => `- item ${index}\n`).join('')
  const changed = items.replace('item 7\n', 'item X\n')
  const streaming = new StreamingMarkdown({ theme: plain, width: 40 })
  streaming.lines(items)
  expect([streaming.continues(`${items}- more`), streaming.continues(`${changed}- more`)]).toEqual([true, false])
})

test('a text continues the rendered one exactly if it begins with all of it', () => {
  const piece = fc.constantFrom('# a\n\n', 'b ', '- c\n', '\n\n', '```\n', '- long\n'.repeat(2000))
  fc.assert(
    fc.property(
      fc.array(piece, { minLength: 1, maxLength: 6 }),
      fc.array(piece, { minLength: 1, maxLength: 6 }),
      (before, after) => {
        const streaming = new StreamingMarkdown({ theme: plain, width: 40 })
        streaming.lines(before.join(''))
        expect(streaming.continues(after.join(''))).toBe(after.join('').startsWith(before.join('')))
      },
    ),
    { numRuns: 50 },
  )
})
