import { CURSOR_MARKER } from '@earendil-works/pi-tui'
import { expect, test } from 'vitest'
import { plainTheme, press } from '../testing/panel-driver.ts'
import { TextField } from './text-field.ts'

test('editing works on graphemes, not on code units', () => {
  const field = new TextField({ theme: plainTheme })
  press(field, 'a', 'b')
  field.handleInput('👩‍👩‍👧')
  press(field, 'left', 'left', 'x', 'end', 'backspace')
  expect(field.text).toBe('axb')
})

test('a word is removed at once', () => {
  const field = new TextField({ theme: plainTheme, text: 'one two three' })
  press(field, 'ctrl+w', 'ctrl+w')
  expect(field.text).toBe('one ')
})

test('pasted text is made harmless, arrives in pieces, and keeps its lines only in a multi-line field', () => {
  const pasted = ['\u001b[200~one\r\ntwo\u001b]0;ti', 'tle\u0007\u001b[201~']
  const [line, text] = [false, true].map((isMultiline) => {
    const field = new TextField({ theme: plainTheme, isMultiline })
    for (const piece of pasted) field.handleInput(piece)
    return field.text
  })
  expect([line, text]).toEqual(['one two\u241b]0;title\u2407', 'one\ntwo\u241b]0;title\u2407'])
})

test('the cursor moves between lines, and the lines around it are shown', () => {
  const field = new TextField({ theme: plainTheme, text: 'first\nsecond\nthird', isMultiline: true })
  press(field, 'up', 'X', 'up', 'up', 'Y')
  expect(field.text).toBe('Yfirst\nseconXd\nthird')
  expect(field.render({ width: 20, rows: 2, focused: false })).toEqual(['Y▏first', 'seconXd'])
})

test('a focused field tells the terminal its cursor position, even with wide letters', () => {
  const field = new TextField({ theme: plainTheme, text: '漢字漢字' })
  expect(field.render({ width: 5, rows: 2, focused: true })).toEqual(['漢字', `漢字${CURSOR_MARKER}▏`])
})
