import { expect, test } from 'vitest'
import { camelCase, isDeeperThan, isObject, parseJson, snakeCase } from './json.ts'

test('only objects with members are objects', () => {
  expect([{}, Object.create(null), [], null, 'text', undefined].map(isObject)).toEqual([
    true,
    true,
    false,
    false,
    false,
    false,
  ])
})

test('the depth of a value counts lists and objects, however many there are', () => {
  expect([{}, { a: [1] }, { a: [[1]] }, 'text'].map((value) => isDeeperThan(2, value))).toEqual([
    false,
    false,
    true,
    false,
  ])
  let deep: unknown = 1
  for (let depth = 0; depth < 100_000; depth++) deep = [deep]
  expect(isDeeperThan(99_999, deep)).toBe(true)
  expect(isDeeperThan(100_000, deep)).toBe(false)
})

test('text that is not JSON parses as undefined', () => {
  expect(['{"a":1}', 'null', '', '{'].map(parseJson)).toEqual([{ a: 1 }, null, undefined, undefined])
})

test('names of members are converted to snake case and back', () => {
  expect(['first_kept_entry_id', 'sha256_before', 'id'].map(camelCase)).toEqual([
    'firstKeptEntryId',
    'sha256Before',
    'id',
  ])
  expect(['firstKeptEntryId', 'sha256Before', 'id'].map(snakeCase)).toEqual([
    'first_kept_entry_id',
    'sha256_before',
    'id',
  ])
})
