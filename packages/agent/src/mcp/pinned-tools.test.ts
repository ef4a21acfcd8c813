import { expect, test } from 'vitest'
import { compareOrigin, compareTools, pinOf } from './pinned-tools.ts'

const tools = [
  { name: 'a', sha256: '1' },
  { name: 'b', sha256: '2' },
]

test('the same tools in another order are the same', () => {
  expect(compareTools(pinOf('o', tools), tools.toReversed())).toBe(undefined)
})

test('a change says what was added, removed and changed, and what would be accepted', () => {
  const now = [
    { name: 'b', sha256: '3' },
    { name: 'c', sha256: '4' },
  ]
  const change = compareTools(pinOf('o', tools), now)
  expect(change).toMatchObject({ isOriginChanged: false, added: ['c'], removed: ['a'], changed: ['b'] })
  expect(change?.pin).toEqual({ origin: 'o', tools: { b: '3', c: '4' } })
  expect(compareTools(change?.pin ?? { origin: '' }, now)).toBe(undefined)
})

test('another origin keeps the tools that are known, so that other tools are still a change', () => {
  const change = compareOrigin(pinOf('o', tools), 'p')
  expect(change).toMatchObject({ isOriginChanged: true, pin: { origin: 'p', tools: { a: '1', b: '2' } } })
  expect(compareOrigin(pinOf('p', tools), 'p')).toBe(undefined)
})

test('a tool with a name that every object has is a tool like any other', () => {
  const odd = [
    { name: 'constructor', sha256: '1' },
    { name: '__proto__', sha256: '2' },
  ]
  const pin = pinOf('o', odd)
  expect(compareTools(JSON.parse(JSON.stringify(pin)) as typeof pin, odd)).toBe(undefined)
  expect(compareTools(pin, tools)).toMatchObject({ removed: ['__proto__', 'constructor'], added: ['a', 'b'] })
})
