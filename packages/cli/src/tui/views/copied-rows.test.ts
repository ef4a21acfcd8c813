import { expect, test } from 'vitest'
import { themeFor } from '../theme.ts'
import { markdownLines } from '../markdown/markdown-lines.ts'
import { copiedText, markColumns, plainRow, wordAt } from './copied-rows.ts'

const theme = themeFor({ theme: 'dark', color: true })

test('a wrapped line is copied as one line, whatever its indent; other lines keep their breaks', () => {
  const markdown =
    'A **long** paragraph of words.\n\n- one point that is long\n- two\n\n```\nabcdefghijklmnopqrstu\nx\n```'
  const rows = markdownLines(markdown, { theme, width: 16 })
  expect(rows.length).toBeGreaterThan(9)
  expect(copiedText(rows, { from: 0, to: Infinity })).toBe(
    'A long paragraph of words.\n\n• one point that is long\n• two\n\n  abcdefghijklmnopqrstu\n  x',
  )
  expect(copiedText(rows.slice(0, 2), { from: 2, to: 5 })).toBe('long paragraph of wo')
})

test('the cells of a table are copied row by row', () => {
  const rows = markdownLines('| a | b |\n| - | - |\n| some words | more words here |', { theme, width: 20 })
  expect(
    copiedText(rows, { from: 0, to: Infinity })
      .split('\n')
      .map((row) => row.trimEnd()),
  ).toEqual(rows.map(plainRow))
})

test('marks and words are places on the screen, also beside wide letters', () => {
  expect(markColumns('漢字 and', { from: 2, to: 4 })).toBe('漢\u001b[7m字\u001b[27m and')
  expect(wordAt('see 漢字.md, then', 6)).toEqual({ from: 4, to: 11 })
  expect(wordAt('see "a-b/c.ts:12".', 8)).toEqual({ from: 5, to: 16 })
  expect(wordAt('a  b', 1)).toBeUndefined()
})
