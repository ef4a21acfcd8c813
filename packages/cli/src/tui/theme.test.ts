import { expect, test } from 'vitest'
import { themeFor, type Style } from './theme.ts'

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
      for (const code of codes.replaceAll(/[34]8;5;\d+/g, (color) => color.slice(0, 2)).split(';'))
        open.add(closers[code] ?? '39')
  }
  return [...open]
}

test.each(['dark', 'light', 'high-contrast'] as const)('every style of the theme %s closes what it opens', (name) => {
  const { syntax, ...styles } = themeFor({ theme: name, color: true })
  const all: [string, Style][] = [...Object.entries(styles), ...Object.entries(syntax)]
  expect(all.filter(([, style]) => leftOpen(style('text')).length > 0).map(([style]) => style)).toEqual([])
  expect(all.filter(([, style]) => style('') !== '').map(([style]) => style)).toEqual([])
})

test('without color no style adds anything', () => {
  const { syntax, ...styles } = themeFor({ theme: 'light', color: false })
  expect(Object.values(styles).map((style) => style('text'))).toEqual(Object.keys(styles).map(() => 'text'))
  expect(syntax).toEqual({})
})
