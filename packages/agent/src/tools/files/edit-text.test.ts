import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { editText, type TextEdit } from './edit-text.ts'

function edited(text: string, oldText: string, newText: string, options: Partial<TextEdit> = {}) {
  const result = editText(text, { oldText, newText, replaceAll: false, ...options })
  return result.type === 'edited' ? result.text : result.reason
}

describe('line ends', () => {
  test('text with line feeds is found in a file with Windows line ends, which stay', () => {
    expect(edited('a\r\nb\r\nc\r\n', 'a\nb\n', 'a\nx\ny\nb\n')).toBe('a\r\nx\r\ny\r\nb\r\nc\r\n')
  })

  test('lines that are not changed keep the ends they have, each its own', () => {
    expect(edited('a\r\nb\nc\r\nd\n', 'a\nb\nc\nd', 'a\nb\nX\nc\nd')).toBe('a\r\nb\nX\r\nc\r\nd\n')
  })

  test('new lines after the last line take the end of the one before', () => {
    expect(edited('a\r\nb', 'b', 'b\nc\nd')).toBe('a\r\nb\r\nc\r\nd')
    expect(edited('a\nb', 'b', 'b\nc')).toBe('a\nb\nc')
    expect(edited('b', 'b', 'b\nc')).toBe('b\nc')
  })

  test('text with carriage returns is taken literally', () => {
    expect(edited('a\r\nb\r\n', 'a\r\nb', 'a\nb')).toBe('a\nb\r\n')
    expect(edited('a\nb\n', 'a', 'a\r\nx')).toBe('a\r\nx\nb\n')
    expect(edited('a\nb\n', 'a\r\nb', 'c')).toContain('other line ends')
  })

  test('an old carriage return alone is a character like any other', () => {
    expect(edited('a\rb\rc', 'b', 'x')).toBe('a\rx\rc')
  })

  test('lines are joined and deleted with their ends', () => {
    expect(edited('a\r\nb\r\nc', 'a\nb', 'ab')).toBe('ab\r\nc')
    expect(edited('a\r\nb\r\nc', 'b\n', '')).toBe('a\r\nc')
  })
})

test('a text may not contain what it is replaced by, and dollars mean nothing', () => {
  expect(edited('a b', 'a', '$& $1 $$')).toBe('$& $1 $$ b')
})

test('overlapping places are counted from the left', () => {
  expect(editText('aaa', { oldText: 'aa', newText: 'b', replaceAll: true })).toEqual({
    type: 'edited',
    text: 'ba',
    count: 1,
  })
})

test('on random files an edit does what it does without carriage returns, and touches nothing else', () => {
  const line = fc.tuple(fc.constantFrom('a', 'b', 'ab', ''), fc.constantFrom('\n', '\r\n'))
  const file = fc.array(line, { maxLength: 12 }).map((lines) => lines.flat().join(''))
  const piece = fc.array(fc.constantFrom('a', 'b', '\n'), { minLength: 1, maxLength: 4 }).map((parts) => parts.join(''))
  fc.assert(
    fc.property(file, piece, piece, (text, oldText, newText) => {
      const plain = text.replaceAll('\r\n', '\n')
      fc.pre(plain.includes(oldText))
      const result = editText(text, { oldText, newText, replaceAll: true })
      if (result.type !== 'edited') throw new Error(result.reason)
      expect(result.text.replaceAll('\r\n', '\n')).toBe(plain.replaceAll(oldText, () => newText))
      const before = plain.indexOf(oldText)
      const crBefore = [...text.matchAll(/\r\n/g)].filter(({ index }, count) => index - count < before).length
      expect(result.text.slice(0, before + crBefore)).toBe(text.slice(0, before + crBefore))
      expect(result.text).not.toMatch(/\r(?!\n)/)
    }),
  )
})

describe('a text that is not there is explained', () => {
  test('by whitespace', () => {
    expect(edited('if (x) {\n\treturn 1\n}\n', 'if (x) {\n  return 1\n}', '')).toBe(
      'oldText is not in the file. It is there from line 1 on, but with other whitespace. ' +
        String.raw`The file has "\treturn 1" where oldText has "  return 1".`,
    )
    expect(edited('a\n  foo( bar )\n', 'foo(bar)\n', '')).toContain('from line 2 on, but with other whitespace')
  })

  test('by line numbers', () => {
    expect(edited('one\ntwo\n', '1\tone\n2\ttwo', '')).toContain('leave out the number and the tab')
  })

  test('by the line that is most like it', () => {
    expect(edited('alpha\nfunction total(items) {\nomega\n', 'function totals(item) {', '')).toContain(
      'The most similar line is line 2: "function total(items) {".',
    )
  })

  test('by nothing where nothing is like it', () => {
    expect(edited('alpha\n', 'completely different', '')).toBe(
      'oldText is not in the file. Read the file again and copy the text exactly.',
    )
  })

  test('in little time, also in a large file', () => {
    const text = Array.from({ length: 200_000 }, (_, index) => `some line of text number ${index} (${index % 7})`).join(
      '\n',
    )
    expect(edited(text, 'some line of texts number x', '')).toContain('The most similar line')
  })
})

test('many places are shown by the first ten', () => {
  expect(edited('x\n'.repeat(20), 'x', 'y')).toContain('20 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and more.')
})
