import { expect, test } from 'vitest'
import { families } from './families.ts'
import { partialPattern } from './partial-pattern.ts'

test('every prefix of a match is a match that reaches the end', () => {
  const pattern = partialPattern(/ab[cd]{2,3}(?:x|yz)?(?!w)\.(?=[e"])/y)
  const match = (text: string): string | undefined => {
    pattern.lastIndex = 0
    return pattern.exec(text)?.[0]
  }
  for (const whole of ['abcd.e', 'abcdcx."', 'abddyz.e']) {
    for (let length = 1; length < whole.length; length++) {
      expect(match(whole.slice(0, length))).toBe(whole.slice(0, length))
    }
  }
  expect(['abx', 'abcc!', 'abccy.', 'abccw', 'abcc.f'].map(match)).toEqual(Array(5).fill(undefined))
})

test('the patterns of all families have one, with the same groups', () => {
  for (const { pattern } of families) {
    expect(new RegExp(`${partialPattern(pattern).source}|`).exec('')?.length).toBe(
      new RegExp(`${pattern.source}|`).exec('')?.length,
    )
  }
})

test('an unbounded repetition is rejected', () => {
  expect(() => partialPattern(/a+/)).toThrow('No partial pattern for a+ at 1')
})
