import { expect, test } from 'vitest'
import { displayWidth, fitText, padded } from './display-width.ts'

test.each([
  ['plain', 5],
  ['漢字', 4],
  ['🙂', 2],
  ['👩‍💻', 2],
  ['🇩🇪', 2],
  ['e\u0301', 1],
  ['\u001b[1mbold\u001b[22m', 4],
])('%j takes %i columns', (text, width) => {
  expect(displayWidth(text)).toBe(width)
})

test('text that does not fit is cut before a whole character', () => {
  expect(fitText('漢字漢字', 5)).toBe('漢字…')
  expect(fitText('漢字漢字', 6)).toBe('漢字…')
  expect(fitText('漢字', 4)).toBe('漢字')
  expect(fitText('short of it', 7)).toBe('short…')
  expect(fitText('x'.repeat(1_000_000), 4)).toBe('xxx…')
  expect(fitText('any', 0)).toBe('')
  expect(padded('漢', 4)).toBe('漢  ')
})
