import { expect, test } from 'vitest'
import { themeFor } from '../theme.ts'
import { markdownLines, parseBlocks } from './markdown-lines.ts'
import { shownText } from './shown-text.ts'

const plain = themeFor({ theme: 'dark', color: false })
const dark = themeFor({ theme: 'dark', color: true })

/** Where a wrapped line continues: nothing that one sees. */
const joins = /\u001b\[2[58]m/g

function draw(markdown: string, width = 40): string {
  return `\n${markdownLines(markdown, { theme: plain, width }).join('\n').replaceAll(joins, '')}\n`
}

test('headings, paragraphs, lists, quotations, rules and code follow one another', () => {
  const markdown = [
    '# Title\nSome **bold**, *slanted* and `code`\nin two lines.',
    '- one that is too long for the width it has\n  1. nested\n  2. more\n- [x] done\n- [ ] open',
    '> quoted **words** that are too long for one line\n> - and a list',
    '---\n```sh\nnpm test\n  # indented\n```',
    '1. loose\n\n2. list\n\nSee [the page](https://a.example/b), https://c.example and ~/a,~/b. ![cat](c.png)',
  ].join('\n\n')
  expect(draw(markdown)).toBe(`
Title
═════

Some bold, slanted and code
in two lines.

• one that is too long for the width it
  has
  1. nested
  2. more
• [x] done
• [ ] open

│ quoted words that are too long for one
│ line
│ 
│ • and a list

────────────────────────────────────────

  npm test
    # indented

1. loose

2. list

See the page (https://a.example/b),
https://c.example and ~/a,~/b. [image:
cat] (c.png)
`)
})

test('a table has columns as wide as they need, and drops columns that do not fit', () => {
  const table = '| Name | Size |\n|---|--:|\n| 漢字 | 1 |\n| a longer name than fits | 1,000 |'
  expect(draw(table)).toBe(`
Name                    │  Size
────────────────────────┼──────
漢字                    │     1
a longer name than fits │ 1,000
`)
  expect(draw(table, 20)).toBe(`
Name         │  Size
─────────────┼──────
漢字         │     1
a longer     │ 1,000
name than    │${' '.repeat(6)}
fits         │${' '.repeat(6)}
`)
  expect(draw(table, 7).split('\n')).toContain('| Name')
})

test('colors nest and never run over the end of a line', () => {
  const lines = markdownLines('> a **b** c\n> d', { theme: dark, width: 40 })
  expect(lines.map((line) => line.replaceAll('\u001b', '^'))).toEqual([
    '^[38;5;240m│ ^[39m^[3;38;5;250ma ^[23;39m^[3;38;5;250m^[1mb^[22m^[23;39m^[3;38;5;250m c^[23;39m',
    '^[38;5;240m│ ^[39m^[3;38;5;250md^[23;39m',
  ])
})

test.each([
  ['emphasis that is never closed', '*a '.repeat(10_000)],
  ['both kinds of it', '*a **a '.repeat(5000)],
  ['quotations in quotations', '>'.repeat(5000)],
  ['lists in lists', Array.from({ length: 300 }, (_, level) => `${'  '.repeat(level)}- x`).join('\n')],
  ['links in links', '['.repeat(20_000)],
  ['links that are never closed', '[a]('.repeat(5000)],
  ['one long word', 'x'.repeat(200_000)],
  ['tags', '<a '.repeat(10_000)],
  ['tasks', '- [ ] a\n'.repeat(25_000)],
  ['marks with spaces between them', '-  '.repeat(23)],
  ['line ends', `${'\n'.repeat(100_000)}x`],
])('%s is shown as text, without taking long', (_, markdown) => {
  const before = process.cpuUsage()
  expect(markdownLines(markdown, { theme: dark, width: 80 }).length).toBeGreaterThan(0)
  const { user } = process.cpuUsage(before)
  expect(user / 1000).toBeLessThan(2000)
})

test('blocks are slices of the text, so that the start of each is known', () => {
  const markdown = '# a\n\nb\n\n\n- c\n\n  d\n\n```\ne\n```\nf\n| g |\n|---|\n| h |\n\n> i\n'
  expect(
    parseBlocks(markdown)
      .map(({ raw }) => raw)
      .join(''),
  ).toBe(markdown)
})

test('very long text is cut, has no tabs, and keeps its number of lines', () => {
  expect(shownText('a\tb\r\n漢\tc\n\ud800')).toBe('a   b\n漢  c\n\ufffd')
  const long = shownText('x'.repeat(1_000_000))
  expect(long.slice(9999)).toBe('x… 190,000 more characters on this line\n… 800,000 more characters not shown')
})
