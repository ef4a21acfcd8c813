import fc from 'fast-check'
import { expect, test } from 'vitest'
import { PersistentMap } from './persistent-map.ts'

test('sets and deletes match a Map, and earlier maps do not change', () => {
  const key = fc.oneof(fc.nat({ max: 500 }).map(String), fc.constantFrom('__proto__', 'constructor', ''))
  const steps = fc.array(fc.record({ key, value: fc.nat(), isDelete: fc.boolean() }), { maxLength: 60 })
  fc.assert(
    fc.property(fc.nat({ max: 500 }), steps, (size, changes) => {
      let map = PersistentMap.empty<number>()
      const model = new Map<string, number>()
      for (let index = 0; index < size; index++) {
        map = map.set(String(index), index)
        model.set(String(index), index)
      }
      for (const { key, value, isDelete } of changes) {
        const before = map
        const beforeModel = new Map(model)
        map = isDelete ? map.delete(key) : map.set(key, value)
        if (isDelete) model.delete(key)
        else model.set(key, value)
        expect(new Map(before)).toEqual(beforeModel)
        expect([map.get(key), map.has(key)]).toEqual([model.get(key), model.has(key)])
      }
      expect(new Map(map)).toEqual(model)
    }),
    { numRuns: 60 },
  )
})

test('a large map finds every key and no other', () => {
  let map = PersistentMap.empty<number>()
  for (let index = 0; index < 50_000; index++) map = map.set(`key-${index}`, index)
  const missing = Array.from({ length: 50_000 }, (_, index) => index).filter(
    (index) => map.get(`key-${index}`) !== index,
  )
  expect({ missing, size: [...map].length, other: map.has('key-50000') }).toEqual({
    missing: [],
    size: 50_000,
    other: false,
  })
})

test('deleting a missing key returns the same map', () => {
  const map = PersistentMap.empty<number>().set('a', 1)
  expect(map.delete('b')).toBe(map)
})
