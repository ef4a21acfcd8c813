import { expect, test } from 'vitest'
import { ValueQueue } from './value-queue.ts'

async function readAll<Value>(queue: ValueQueue<Value>, read: Value[] = []): Promise<Value[]> {
  for await (const value of queue) read.push(value)
  return read
}

test('yields values in order, whether they come before or after the consumer', async () => {
  const queue = new ValueQueue<number>()
  queue.push(1)
  const read = readAll(queue)
  queue.push(2)
  await Promise.resolve()
  queue.push(3)
  queue.end()
  queue.fail(new Error('too late'))
  expect(await read).toEqual([1, 2, 3])
})

test('a failure follows the values before it', async () => {
  const queue = new ValueQueue<string>()
  queue.push('a')
  queue.fail(new Error('broken'))
  const read: string[] = []
  await expect(readAll(queue, read)).rejects.toThrow('broken')
  expect(read).toEqual(['a'])
})
