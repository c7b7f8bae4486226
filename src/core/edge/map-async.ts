/**
 * Maps the items of an iterable. Not a generator, because a generator that waits for its next item keeps the last one in memory: with
 * a thousand idle streams, a thousand texts of tens of kilobytes.
 */
export function mapAsync<T, U>(source: AsyncIterable<T>, map: (item: T) => U): AsyncIterable<U> {
  return {
    [Symbol.asyncIterator]() {
      const items = source[Symbol.asyncIterator]()
      return {
        async next(): Promise<IteratorResult<U, undefined>> {
          const step = await items.next()
          return step.done ? { done: true, value: undefined } : { done: false, value: map(step.value) }
        },
        async return(): Promise<IteratorResult<U, undefined>> {
          await items.return?.()
          return { done: true, value: undefined }
        },
      }
    },
  }
}
