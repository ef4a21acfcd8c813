/**
 * An iterable whose iterators get their results from `nextOf` instead of the source; leaving the loop early ends the
 * source. Not a generator: every part of an answer passes through here, and a generator costs several microtasks for
 * each.
 */
export function derivedIterable<T>(
  source: AsyncIterable<T>,
  nextOf: (iterator: AsyncIterator<T>) => () => Promise<IteratorResult<T>>,
): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]: () => {
      const iterator = source[Symbol.asyncIterator]()
      return {
        next: nextOf(iterator),
        return: async () => {
          await iterator.return?.()
          return { done: true, value: undefined }
        },
      }
    },
  }
}
