import { expect, test } from 'vitest'
import { splitArguments } from './template-arguments.ts'

test.each([
  ['', []],
  ['  \n\t ', []],
  ['a b', ['a', 'b']],
  [' a\n  b\tc ', ['a', 'b', 'c']],
  ['"a b" c', ['a b', 'c']],
  ["'a b' c", ['a b', 'c']],
  ['"" \'\' a', ['', '', 'a']],
  ['name="a b"', ['name=a b']],
  ["name='a b'", ['name=a b']],
  ['"a"\'b\'c', ['abc']],
  [String.raw`"say \"a\" \\ \n"`, [String.raw`say "a" \ \n`]],
  [String.raw`'a\b' "c"`, [String.raw`a\b`, 'c']],
  [String.raw`a\ b`, ['a b']],
  [String.raw`\"a b\"`, ['"a', 'b"']],
  [String.raw`a\\b`, [String.raw`a\b`]],
  ['a\\', ['a\\']],
  [String.raw`C:\folder\file`, [String.raw`C:\folder\file`]],
  ["don't and won't", ["don't", 'and', "won't"]],
  ['a "b c', ['a', '"b', 'c']],
  ["'a b", ["'a", 'b']],
  ['"a\nb"', ['a\nb']],
  ["it is 'so' they said", ['it', 'is', 'so', 'they', 'said']],
])('%j is split into %j', (text, words) => {
  expect(splitArguments(text)).toEqual(words)
})

test('a long text of quotes and backslashes is split in reasonable time', () => {
  const start = process.cpuUsage().user
  for (const piece of ['"', "'", '\\"', '"\\"', '\'"', '" \'']) splitArguments(piece.repeat(100_000))
  expect(process.cpuUsage().user - start).toBeLessThan(2_000_000)
})
