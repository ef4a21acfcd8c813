import fc from 'fast-check'
import { expect, test } from 'vitest'
import { similarityTo } from './similarity.ts'

test.each([
  ['night', 'nacht', 0.25],
  ['Read.ts', 'read.ts', 1],
  ['e\u0301t', 'ét', 1],
  ['abc', 'xyz', 0],
  ['a', 'A', 1],
  ['a', 'b', 0],
  ['', '', 1],
  ['aaaa', 'aa', 0.5],
])('%j and %j: %f', (left, right, expected) => {
  expect(similarityTo(left)(right)).toBe(expected)
})

test('is the same both ways, and 1 for the same', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (left, right) => {
      expect(similarityTo(left)(right)).toBe(similarityTo(right)(left))
      expect(similarityTo(left)(left)).toBe(1)
    }),
  )
})
