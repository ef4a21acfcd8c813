import { expect, onTestFinished, test, vi } from 'vitest'
import { diffTexts } from '../../text/line-diff.ts'
import { displayWidth } from '../../text/display-width.ts'
import { Highlighter } from '../markdown/highlight.ts'
import { themeFor } from '../theme.ts'
import { plainRow } from './copied-rows.ts'
import { DiffView } from './diff-view.ts'

const plain = themeFor({ theme: 'dark', color: false })
const dark = themeFor({ theme: 'dark', color: true })

const before = Array.from({ length: 40 }, (_, index) => `const value${index + 1} = ${index + 1}\n`).join('')
const after = before.replace('value10 = 10\n', 'value10 = 11\nconst added = true\n').replace('const value30 = 30\n', '')
const change = diffTexts({ name: 'src/values.ts', before, after })

test('has line numbers and signs, and counts the unchanged lines between changes', () => {
  expect(new DiffView([change], { theme: plain }).render(60).map((row) => row.trimEnd())).toEqual([
    '⋯ 6 unchanged lines',
    '  7   const value7 = 7',
    '  8   const value8 = 8',
    '  9   const value9 = 9',
    ' 10 - const value10 = 10',
    ' 10 + const value10 = 11',
    ' 11 + const added = true',
    ' 12   const value11 = 11',
    ' 13   const value12 = 12',
    ' 14   const value13 = 13',
    '⋯ 13 unchanged lines',
    ' 28   const value27 = 27',
    ' 29   const value28 = 28',
    ' 30   const value29 = 29',
    ' 30 - const value30 = 30',
    ' 31   const value31 = 31',
    ' 32   const value32 = 32',
    ' 33   const value33 = 33',
  ])
})

test('on a wide screen the old file is beside the new one', () => {
  const rows = new DiffView([change], { theme: plain }).render(124)
  expect(rows[4]).toBe(` 10 - const value10 = 10${' '.repeat(36)} │  10 + const value10 = 11`)
  expect(rows[5]).toBe(`${' '.repeat(60)} │  11 + const added = true`)
})

test('a file that is only added is never split', () => {
  const view = new DiffView([diffTexts({ name: 'a', before: undefined, after: 'one\n' })], { theme: plain })
  expect(view.render(200)).toEqual(['  1 + one'])
})

test('several files have their names and counts', () => {
  const view = new DiffView([change, { ...change, newName: 'b' }], { theme: plain })
  const names = view.render(60).filter((row) => row.includes('−'))
  expect(names).toEqual(['src/values.ts  +2 −2', 'b  +2 −2'])
  expect(view.fileRows(60).map((row) => view.render(60, { from: row, to: row + 1 })[0])).toEqual(names)
})

test('changed words and syntax have their colors once the grammar is there', async () => {
  const loaded = Promise.withResolvers<void>()
  const view = new DiffView([change], { theme: dark, highlighter: new Highlighter(() => loaded.resolve()) })
  view.render(60)
  await loaded.promise
  view.forget()
  const row = view.render(60)[5] ?? ''
  expect(row).toContain(dark.diffAddedWords(dark.syntax['number']?.('11') ?? ''))
  expect(row).toContain(dark.diffAddedLine(dark.syntax['keyword']?.('const') ?? ''))
})

test('no row is wider than its place, nothing is lost, and any part equals that part of the whole', () => {
  const text = '漢字 and a long line '.repeat(8)
  const long = diffTexts({ name: 'a', before: `${text}\nx\n`, after: `${text}y\nx` })
  for (const width of [12, 20, 61, 130]) {
    const view = new DiffView([long, change], { theme: plain })
    const rows = view.render(width)
    expect(Math.max(...rows.map(displayWidth))).toBeLessThanOrEqual(width)
    expect(rows).toHaveLength(view.rowCount(width))
    for (let from = 0; from < rows.length; from += 3) {
      expect(view.render(width, { from, to: from + 5 })).toEqual(rows.slice(from, from + 5))
    }
  }
  const letters = new DiffView([long], { theme: plain }).render(20).map(plainRow).join('').replaceAll(/\s/g, '')
  expect(letters).toContain(`${text}y`.replaceAll(/\s/g, '').slice(0, 12))
})

test('a line that is cut ends between letters', () => {
  const view = new DiffView([diffTexts({ name: 'a', before: undefined, after: '𠀀'.repeat(30) })], {
    theme: plain,
    rowsPerLine: 1,
  })
  expect(view.render(12)).toEqual(['  1 + 𠀀𠀀…'])
})

test('any page of a diff with 5,000 lines draws within 50 ms', async () => {
  const old = Array.from({ length: 5000 }, (_, index) => `  const value${index} = compute(${index}, 'text')`)
  const now = old.map((line, index) => (index % 2 === 0 ? line.replace('compute', 'derive') : line))
  const loaded = Promise.withResolvers<void>()
  const highlighter = new Highlighter(() => loaded.resolve())
  highlighter.highlight('const a = 1', 'ts', dark)
  await loaded.promise
  const view = new DiffView([diffTexts({ name: 'a.ts', before: old.join('\n'), after: now.join('\n') })], {
    theme: dark,
    highlighter,
  })
  const times: number[] = []
  const rows = view.rowCount(150)
  for (let from = 0; from < rows; from += 50) {
    const started = process.threadCpuUsage()
    expect(view.render(150, { from, to: from + 50 }).length).toBeGreaterThan(0)
    const { user, system } = process.threadCpuUsage(started)
    times.push((user + system) / 1000)
  }
  times.sort((left, right) => left - right)
  expect(times[Math.floor(times.length * 0.99)]).toBeLessThan(50)
})

test('coloring never holds up a frame: the next frames have the rest of the colors', async () => {
  const lines = Array.from({ length: 1000 }, (_, index) => `const value${index} = ${index}\n`)
  const file = diffTexts({ name: 'a.ts', before: undefined, after: lines.join('') })
  const loaded = Promise.withResolvers<void>()
  const highlighter = new Highlighter(loaded.resolve)
  const whole = new DiffView([file], { theme: dark, highlighter })
  whole.render(100)
  await loaded.promise
  const colored = whole.render(100)
  // Each chunk takes longer than a frame may.
  let now = 0
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => (now += 100))
  onTestFinished(() => clock.mockRestore())
  let more = Promise.withResolvers<void>()
  const view = new DiffView([file], { theme: dark, highlighter, onMore: () => more.resolve() })
  const highlight = vi.spyOn(highlighter, 'highlight')
  for (let frame = 1; ; frame++) {
    const rows = view.render(100)
    expect(rows).toHaveLength(1000)
    expect(highlight).toHaveBeenCalledTimes(frame)
    if (frame === 1000 / 40) {
      expect(rows).toEqual(colored)
      return
    }
    await more.promise
    more = Promise.withResolvers<void>()
  }
})
