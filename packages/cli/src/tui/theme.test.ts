import { expect, test } from 'vitest'
import { isTrueColor, themeFor, type Style, type Theme } from './theme.ts'

const closers: Readonly<Record<string, string>> = {
  '1': '22',
  '3': '23',
  '4': '24',
  '7': '27',
  '9': '29',
  '38': '39',
  '48': '49',
}

/** The codes that are still open at the end of a text. */
function leftOpen(text: string): string[] {
  const open = new Set<string>()
  for (const [, codes = ''] of text.matchAll(/\u001b\[([\d;]*)m/g)) {
    const [first = ''] = codes.split(';')
    if (Object.values(closers).includes(first)) for (const code of codes.split(';')) open.delete(code)
    else
      for (const code of codes.replaceAll(/[34]8;(?:5;\d+|2;\d+;\d+;\d+)/g, (color) => color.slice(0, 2)).split(';'))
        open.add(closers[code] ?? '39')
  }
  return [...open]
}

test.each([
  ['dark', false],
  ['dark', true],
  ['light', false],
  ['light', true],
  ['high-contrast', true],
] as const)('every style of the theme %s closes what it opens, with 24-bit color: %s', (name, isTrueColor) => {
  const { syntax, ...styles } = themeFor({ theme: name, color: true, isTrueColor })
  const all: [string, Style][] = [...Object.entries(styles), ...Object.entries(syntax)]
  expect(all.filter(([, style]) => leftOpen(style('text')).length > 0).map(([style]) => style)).toEqual([])
  expect(all.filter(([, style]) => style('') !== '').map(([style]) => style)).toEqual([])
})

test('without color no style adds anything', () => {
  const { syntax, ...styles } = themeFor({ theme: 'light', color: false })
  expect(Object.values(styles).map((style) => style('text'))).toEqual(Object.keys(styles).map(() => 'text'))
  expect(syntax).toEqual({})
})

test('24-bit color is used where the terminal says that it has it', () => {
  expect([{ COLORTERM: 'truecolor' }, { COLORTERM: '24bit' }, { TERM: 'xterm-direct' }].map(isTrueColor)).toEqual([
    true,
    true,
    true,
  ])
  const others = [{}, { TERM: 'xterm-256color' }, { COLORTERM: 'yes' }, { COLORTERM: 'truecolor', STY: '1.pts' }]
  expect(others.filter(isTrueColor)).toEqual([])
})

test('a changed line is close to the background of its terminal, and its changed words are told apart', () => {
  for (const [name, ground] of [
    ['dark', 0x17],
    ['light', 0xff],
  ] as const) {
    const theme = themeFor({ theme: name, color: true, isTrueColor: true })
    const far = (style: Style): number => Math.max(...exact(style).map((part) => Math.abs(part - ground)))
    for (const [line, words] of [
      [theme.diffAddedLine, theme.diffAddedWords],
      [theme.diffRemovedLine, theme.diffRemovedWords],
    ] as const) {
      expect(far(line)).toBeLessThan(48)
      expect(far(words)).toBeGreaterThan(far(line) + 24)
    }
  }
})

test('without 24-bit color, a dark theme has only the sign and the changed words on green or red', () => {
  const theme: Theme = themeFor({ theme: 'dark', color: true })
  expect(theme.diffAddedLine('x')).toBe(theme.diffRemovedLine('x'))
  expect(theme.diffAddedSign('x')).not.toBe(theme.diffRemovedSign('x'))
  expect(theme.diffAddedWords('x')).not.toBe(theme.diffRemovedWords('x'))
})

function exact(style: Style): number[] {
  const [, red = '', green = '', blue = ''] = /48;2;(\d+);(\d+);(\d+)m/.exec(style('x')) ?? []
  return [red, green, blue].map(Number)
}
