import { expect, test } from 'vitest'
import { derivedIterable } from './derived-iterable.ts'

function counting(): { source: AsyncIterable<number>; ended: () => number } {
  let ended = 0
  async function* count(): AsyncGenerator<number> {
    try {
      for (let number = 1; number <= 3; number++) yield number
    } finally {
      ended++
    }
  }
  return { source: { [Symbol.asyncIterator]: count }, ended: () => ended }
}

const doubled = (source: AsyncIterable<number>): AsyncIterable<number> =>
  derivedIterable(source, (iterator) => async () => {
    const result = await iterator.next()
    return result.done ? result : { done: false, value: 2 * result.value }
  })

test('yields the mapped results, to each loop anew', async () => {
  const { source, ended } = counting()
  const derived = doubled(source)
  const seen: number[] = []
  for await (const number of derived) seen.push(number)
  for await (const number of derived) seen.push(number)
  expect(seen).toEqual([2, 4, 6, 2, 4, 6])
  expect(ended()).toBe(2)
})

test('a loop that ends early ends the source', async () => {
  const { source, ended } = counting()
  for await (const _ of doubled(source)) break
  expect(ended()).toBe(1)
})

test('a source without `return` is abandoned', async () => {
  const source: AsyncIterable<number> = {
    [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: false, value: 1 }) }),
  }
  for await (const number of doubled(source)) {
    expect(number).toBe(2)
    break
  }
})
