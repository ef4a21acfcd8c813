import fc from 'fast-check'
import { expect, test } from 'vitest'
import { PersistentList } from './persistent-list.ts'

test('pushes and changes match an array, and earlier lists do not change', () => {
  const steps = fc.array(fc.record({ at: fc.nat(), item: fc.nat(), isPush: fc.boolean() }), { maxLength: 60 })
  fc.assert(
    fc.property(fc.nat({ max: 1100 }), steps, (length, changes) => {
      let list = PersistentList.empty<number>()
      const model: number[] = []
      for (let index = 0; index < length; index++) {
        list = list.push(index)
        model.push(index)
      }
      for (const { at, item, isPush } of changes) {
        const before = list
        const beforeModel = [...model]
        if (isPush || model.length === 0) {
          list = list.push(item)
          model.push(item)
        } else {
          list = list.with(at % model.length, item)
          model[at % model.length] = item
        }
        expect([...before]).toEqual(beforeModel)
      }
      expect([...list]).toEqual(model)
      expect(model.map((_, index) => list.at(index))).toEqual(model)
    }),
    { numRuns: 60 },
  )
})

test('a list of several levels has each item at its index', () => {
  let list = PersistentList.empty<number>()
  for (let index = 0; index < 40_000; index++) list = list.push(index)
  const wrong = Array.from({ length: 40_000 }, (_, index) => index).filter((index) => list.at(index) !== index)
  expect({ length: list.length, wrong, first: list.at(0), last: list.at(-1) }).toEqual({
    length: 40_000,
    wrong: [],
    first: 0,
    last: 39_999,
  })
})

test('slice and at match those of an array, also out of range', () => {
  const model = Array.from({ length: 70 }, (_, index) => index)
  const list = model.reduce((before, item) => before.push(item), PersistentList.empty<number>())
  const bound = fc.integer({ min: -80, max: 80 })
  fc.assert(
    fc.property(bound, bound, (start, end) => {
      expect(list.slice(start, end)).toEqual(model.slice(start, end))
      expect(list.at(start)).toBe(model.at(start))
    }),
  )
  expect(list.slice()).toEqual(model)
})

test('an index out of range cannot be changed', () => {
  expect(() => PersistentList.empty<number>().with(0, 1)).toThrow('No item 0 in a list of 0.')
})

test('two lists say how many items at their start are the same, whatever happened to them', () => {
  const change = fc.record({ at: fc.nat(), isPush: fc.boolean() })
  fc.assert(
    fc.property(fc.nat({ max: 1100 }), fc.array(change, { maxLength: 8 }), fc.nat(), (length, changes, cut) => {
      let list = PersistentList.empty<object>()
      for (let index = 0; index < length; index++) list = list.push({})
      const lists = [PersistentList.empty<object>(), list]
      for (const { at, isPush } of changes) {
        const from = lists[at % lists.length] ?? list
        lists.push(isPush || from.length === 0 ? from.push({}) : from.with(at % from.length, {}))
      }
      // Unrelated chunks with the same items.
      let copy = PersistentList.empty<object>()
      for (const item of list.slice(0, cut % (length + 1))) copy = copy.push(item)
      for (const left of [...lists, copy]) {
        for (const right of lists) {
          const items = left.slice()
          const expected = items.findIndex((item, index) => item !== right.at(index))
          expect(left.commonStart(right)).toBe(expected < 0 ? items.length : expected)
          expect(right.commonStart(left)).toBe(left.commonStart(right))
        }
      }
    }),
    { numRuns: 60 },
  )
})
