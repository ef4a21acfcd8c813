import { visibleWidth } from '@earendil-works/pi-tui'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fitText } from '../../text/display-width.ts'
import { hardWrapLine, hardWrapRows, joinOf, paint, textOf, withoutJoins, wrapLine } from './wrap-line.ts'

function wrap(text: string, width: number): string[] {
  return wrapLine([{ text }], width).map(textOf)
}

test('a line is wrapped at spaces, between wide characters, and inside a word that does not fit', () => {
  expect(wrap('the quick brown fox', 10)).toEqual(['the quick', 'brown fox'])
  expect(wrap('  indented line of code', 12)).toEqual(['  indented', 'line of code'])
  expect(wrap('abcdefghijkl', 5)).toEqual(['abcde', 'fghij', 'kl'])
  expect(wrap('漢字漢字漢', 5)).toEqual(['漢字', '漢字', '漢'])
  expect(wrap('see 漢字漢字', 8)).toEqual(['see 漢字', '漢字'])
  expect(wrap('👨‍👩‍👧👨‍👩‍👧👨‍👩‍👧', 4)).toEqual(['👨‍👩‍👧👨‍👩‍👧', '👨‍👩‍👧'])
  expect(wrap('e\u0301e\u0301e\u0301e\u0301', 3)).toEqual(['e\u0301e\u0301e\u0301', 'e\u0301'])
  expect(wrap('', 5)).toEqual([''])
})

test('each part of a wrapped line opens and closes its own color', () => {
  const red = (text: string): string => `<r>${text}</r>`
  const lines = wrapLine([{ text: 'plain ' }, { text: 'red words here', style: red }], 10)
  expect(lines.map(paint)).toEqual(['plain <r>red</r>', '\u001b[28m<r>words here</r>'])
})

test('a painted row says where it continues the row above, and whether a space stood between', () => {
  const rows = [...wrapLine([{ text: 'two words' }], 5), ...hardWrapLine([{ text: 'abcdef' }], 4)]
  const painted = rows.map((row) => paint([{ text: '  ' }, ...row]))
  expect(painted.map(joinOf)).toEqual([undefined, { at: 2, between: ' ' }, undefined, { at: 2, between: '' }])
  expect(rows.map((row) => joinOf(paint(withoutJoins(row))))).toEqual([undefined, undefined, undefined, undefined])
})

test('no line is too wide, and no word is lost', () => {
  const piece = fc.constantFrom(
    'a',
    'word',
    ' ',
    '  ',
    '漢',
    '🙂',
    '👩‍🚀',
    'e\u0301',
    '\u200b',
    'ไทย',
    '한국',
    '…',
    'é',
    '─',
    '🇩🇪',
    'ก็',
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), fc.integer({ min: 2, max: 30 }), (pieces, width) => {
      const text = pieces.join('')
      const lines = wrap(text, width)
      expect(lines.join('').replaceAll(' ', '')).toBe(text.replaceAll(' ', ''))
      expect(Math.max(...lines.map(visibleWidth))).toBeLessThanOrEqual(width)
      expect(visibleWidth(fitText(text, width))).toBeLessThanOrEqual(width)
      expect(hardWrapRows(text, width)).toBe(hardWrapLine([{ text }], width).length)
    }),
    { numRuns: 500 },
  )
})
