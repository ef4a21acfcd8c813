import { expect, test } from 'vitest'
import { EventQueue } from './event-queue.ts'

const limits = { count: 4, bytes: 100 }

async function hasRoom(queue: EventQueue<string>): Promise<boolean> {
  const full = new Promise<boolean>((resolve) => setImmediate(() => resolve(false)))
  return Promise.race([queue.roomFor(limits).then(() => true), full])
}

test('a queue with too many events has no room until one is taken', async () => {
  const queue = new EventQueue<string>()
  for (const event of ['a', 'b', 'c']) queue.push(event)
  expect(await hasRoom(queue)).toBe(true)
  queue.push('d')
  const room = queue.roomFor(limits)
  expect(await hasRoom(queue)).toBe(false)
  await queue.next()
  await room
})

test('a queue with few large events has no room until they are taken, in order', async () => {
  const queue = new EventQueue<string>()
  queue.push('large', 100)
  queue.push('small', 1)
  const room = queue.roomFor(limits)
  expect(await hasRoom(queue)).toBe(false)
  expect(await queue.next()).toBe('large')
  await room
  expect(await queue.next()).toBe('small')
  expect(await hasRoom(queue)).toBe(true)
})

test('a queue that is cleared has room', async () => {
  const queue = new EventQueue<string>()
  queue.push('large', 1000)
  const room = queue.roomFor(limits)
  queue.clear()
  await room
  expect(await hasRoom(queue)).toBe(true)
})
