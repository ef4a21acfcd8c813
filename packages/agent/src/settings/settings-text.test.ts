import { describe, expect, test } from 'vitest'
import { readSettingsText } from './settings-text.ts'

const read = (text: string, format: 'json' | 'yaml' = 'yaml') =>
  readSettingsText(new TextEncoder().encode(text), format)

describe('malformed JSON is reported with line and column', () => {
  test.each([
    ['{"a":}', 1, 6, "Unexpected token '}'"],
    ['{"a":1,}', 1, 8, 'Expected double-quoted property name'],
    ['{"a":tr', 1, 8, 'Unexpected end'],
    ['{\n  "a" 1}', 2, 7, "Expected ':' after property name"],
    ['{"a":1}x', 1, 8, 'Unexpected non-whitespace character'],
    ['{\n "a": "b\n"}', 2, 9, 'Bad control character in string literal'],
    ['// no\n{}', 1, 1, "Unexpected token '/'"],
  ])('%j', (text, line, column, what) => {
    expect(read(text, 'json')).toEqual({ type: 'malformed', message: `It is not JSON: ${what}.`, line, column })
  })
})

describe('unusable YAML is reported with line and column', () => {
  test.each([
    ['a: &x 1\nb: *x', 2, 4, 'It uses an alias (*name), which is not supported.'],
    ['a: 1\na: 2', 2, 1, 'This name occurs twice.'],
    ['a: 1\n---\nb: 2', 2, 1, 'It contains more than one document.'],
    ['a: !!js/function x', 1, 4, 'Unresolved tag: tag:yaml.org,2002:js/function.'],
    ['a: 1\n? [1]\n: 2', 2, 3, 'A name is not a text.'],
    ['a:\n  __proto__: 1', 2, 3, 'A name cannot be __proto__.'],
    ['a: "\0"', 1, 5, 'It contains a NUL byte.'],
    ['x: 1\n- '.concat('- '.repeat(100)), 2, 1, 'It is nested too deeply.'],
    ['{'.repeat(100), 1, 65, 'It is nested too deeply.'],
    ['a:\n\t- 1', 2, 1, 'Tabs are not allowed as indentation.'],
  ])('%j', (text, line, column, message) => {
    expect(read(text)).toEqual({ type: 'malformed', message, line, column })
  })
})

test('a file that is too large or not UTF-8 is not parsed', () => {
  expect(read('#'.repeat(70_000))).toEqual({ type: 'malformed', message: 'It is larger than 64 KiB.' })
  expect(readSettingsText(Uint8Array.of(0xff), 'json')).toEqual({ type: 'malformed', message: 'It is not UTF-8 text.' })
})

test('a byte order mark is ignored, and an empty file sets nothing', () => {
  expect(read('\uFEFF{"a":1}', 'json')).toMatchObject({ written: { value: { a: 1 } } })
  expect(read('', 'json')).toMatchObject({ written: { value: {} } })
  expect(read('# nothing yet\n')).toMatchObject({ written: { value: {} } })
})

test('the line of every value is known', () => {
  const result = read('{\n\t"a": 1,\n\t"b": {\n\t\t"c": [\n\t\t\t2]}}', 'json')
  if (result.type !== 'read') throw new Error(result.message)
  const { value, lineOf } = result.written
  expect(value).toEqual({ a: 1, b: { c: [2] } })
  expect([lineOf(['a']), lineOf(['b', 'c']), lineOf(['b', 'c', 0]), lineOf(['d'])]).toEqual([2, 4, 5, undefined])
})
