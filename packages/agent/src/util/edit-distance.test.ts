import fc from 'fast-check'
import { expect, test } from 'vitest'
import { editDistance, similarityTo } from './edit-distance.ts'

test.each([
  ['', '', 0],
  ['', 'abc', 3],
  ['kitten', 'sitting', 3],
  ['sessoins', 'sessions', 1],
  ['ab', 'ba', 1],
  ['', '😀', 1],
  ['a😀b', 'ab', 1],
])('from %j to %j it is %i', (from, to, distance) => {
  expect([editDistance(from, to), editDistance(to, from)]).toEqual([distance, distance])
})

/** The definition of the distance, without memoization. */
function slowDistance(from: readonly string[], to: readonly string[]): number {
  if (from.length === 0 || to.length === 0) return from.length + to.length
  const [a, b] = [from.slice(1), to.slice(1)]
  const isSwap = from.length > 1 && to.length > 1 && from[0] === to[1] && from[1] === to[0]
  return Math.min(
    slowDistance(a, b) + (from[0] === to[0] ? 0 : 1),
    slowDistance(a, to) + 1,
    slowDistance(from, b) + 1,
    isSwap ? slowDistance(from.slice(2), to.slice(2)) + 1 : Infinity,
  )
}

test('it is the smallest number of changes', () => {
  const word = fc.stringMatching(/^[abc]{0,5}$/)
  fc.assert(
    fc.property(word, word, (from, to) => {
      expect(editDistance(from, to)).toBe(slowDistance([...from], [...to]))
    }),
  )
})

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

test('is symmetric, and 1 for equal texts', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (left, right) => {
      expect(similarityTo(left)(right)).toBe(similarityTo(right)(left))
      expect(similarityTo(left)(left)).toBe(1)
    }),
  )
})
