import { expect, test } from 'vitest'
import { harmless, harmlessLine } from './harmless.ts'

test('colors and links of programs are removed, their text stays', () => {
  const link = '\u001b]8;;https://example.org\u0007a page\u001b]8;;\u0007'
  expect(harmless(`\u001b[1;31mred\u001b[0m and ${link}`)).toBe('red and a page')
})

test('the rest of an escape sequence is visible and has no effect', () => {
  expect(harmless('\u001b]0;title\u0007\u009b2J\u001bc\r')).toBe('␛]0;title␇�2J␛c␍')
})

test('a sequence cut anywhere is harmless in both parts', () => {
  const sequence = '\u001b]52;c;aGVsbG8=\u0007\u001b[2J\u001bP1$r\u001b\\'
  for (let at = 0; at <= sequence.length; at++) {
    // oxlint-disable-next-line no-control-regex
    expect(harmless(sequence.slice(0, at)) + harmless(sequence.slice(at))).not.toMatch(
      /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/,
    )
  }
})

test('removing one sequence does not create another from the text around it', () => {
  expect(harmless('\u001b\u001b[0m[31mred')).toBe('␛[31mred')
})

test('characters that change the text direction become visible, tabs and newlines stay', () => {
  expect(harmless('a\tb\nc\u202egpj.exe')).toBe('a\tb\nc�gpj.exe')
})

test('a title is one line', () => {
  expect(harmlessLine('first\r\n  second\tthird')).toBe('first second third')
})
