import { describe, expect, test } from 'vitest'
import { isId, newId, newSubmissionId, requireId } from './ids.ts'

describe('ids', () => {
  test('ids made one after another are unique and sort in that order', () => {
    const ids = Array.from({ length: 100_000 }, () => newId())
    expect(ids.toSorted()).toEqual(ids)
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('an id is a version 7 UUID', () => {
    for (let index = 0; index < 1000; index++) {
      expect(newId()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    }
    expect(parseInt(newId().replace('-', '').slice(0, 12), 16)).toBeCloseTo(Date.now(), -3)
  })

  test('submission ids have the documented form and sort within one millisecond and after the clock goes back', () => {
    const now = Date.parse('2030-02-01T08:00:00.123Z')
    const ids = Array.from({ length: 10_000 }, (_, index) => newSubmissionId(index % 7 === 0 ? now - 5000 : now))
    for (const id of ids) expect(id).toMatch(/^q-\d{10}-[0-9a-f]{8}$/)
    expect(ids.toSorted()).toEqual(ids)
    expect(new Set(ids).size).toBe(ids.length)
  })

  test.each(['../up', 'a/b', '', 'x'.repeat(65), 'ü', 'a b', '.hidden', 'a\n', 'C:', undefined, null, 7, {}])(
    '%j is not an id',
    (value) => {
      expect(isId(value)).toBe(false)
      expect(() => requireId(value, 'session id')).toThrow(/not a valid session id/)
    },
  )

  test('up to 64 letters, digits, dashes and underscores are an id', () => {
    for (const id of ['a', '__proto__', 'constructor', 'x'.repeat(64), 'A-9_z']) expect(requireId(id, 'id')).toBe(id)
  })
})
