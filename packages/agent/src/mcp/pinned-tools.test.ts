import { expect, test } from 'vitest'
import { compareOrigin, compareTools, pinOf } from './pinned-tools.ts'

const tools = [
  { name: 'a', sha256: '1' },
  { name: 'b', sha256: '2' },
]

test('the order of the tools does not matter', () => {
  expect(compareTools(pinOf('o', tools), tools.toReversed())).toBe(undefined)
})

test('a change lists what was added, removed and changed, and the hash to accept', () => {
  const now = [
    { name: 'b', sha256: '3' },
    { name: 'c', sha256: '4' },
  ]
  const change = compareTools(pinOf('o', tools), now)
  expect(change).toMatchObject({ isOriginChanged: false, added: ['c'], removed: ['a'], changed: ['b'] })
  expect(change?.pin).toEqual({ origin: 'o', tools: { b: '3', c: '4' } })
  expect(compareTools(change?.pin ?? { origin: '' }, now)).toBe(undefined)
})

test('a changed origin keeps the known tools, so that other tools are still a change', () => {
  const change = compareOrigin(pinOf('o', tools), 'p')
  expect(change).toMatchObject({ isOriginChanged: true, pin: { origin: 'p', tools: { a: '1', b: '2' } } })
  expect(compareOrigin(pinOf('p', tools), 'p')).toBe(undefined)
})

test('a tool with the name of an Object.prototype member is an ordinary tool', () => {
  const odd = [
    { name: 'constructor', sha256: '1' },
    { name: '__proto__', sha256: '2' },
  ]
  const pin = pinOf('o', odd)
  expect(compareTools(JSON.parse(JSON.stringify(pin)) as typeof pin, odd)).toBe(undefined)
  expect(compareTools(pin, tools)).toMatchObject({ removed: ['__proto__', 'constructor'], added: ['a', 'b'] })
})
