import { expect, test } from 'vitest'
import { hashOf } from './request-hash.ts'

test('equal values have equal hashes, whatever the order of their members', () => {
  expect(hashOf({ a: 1, b: [{ c: 2, d: 3 }] })).toBe(hashOf({ b: [{ d: 3, c: 2 }], a: 1 }))
})

test('an undefined member counts as absent', () => {
  expect(hashOf({ a: 1, b: undefined })).toBe(hashOf({ a: 1 }))
})

test.each([
  [{ a: 1 }, { a: 2 }],
  [{ a: [1, 2] }, { a: [2, 1] }],
  [{ a: '1' }, { a: 1 }],
  [{ a: {} }, { a: [] }],
  [{ a: null }, {}],
  [{ a: { b: 1 } }, { 'a.b': 1 }],
  [JSON.parse('{"__proto__": {"a": 1}}'), {}],
])('%j and %j have different ones', (left, right) => {
  expect(hashOf(left)).not.toBe(hashOf(right))
})

test('it is the sha256 of the JSON with sorted members, and stays so', () => {
  expect(hashOf({ b: 1, a: 2 })).toBe('d3626ac30a87e6f7a6428233b3c68299976865fa5508e4267c5415c76af7a772')
})
