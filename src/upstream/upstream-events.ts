import { UampError } from '../protocol/errors.ts'
import { utf8Decoder } from './utf8-decoder.ts'

/** A stream may keep itself alive with comments for so long before it must say something. */
const SILENCE_MS = 10 * 60_000

/** Turns text into events, wherever it was cut. */
export type Parse<T> = (chunk: string) => readonly T[]

/**
 * The events of a body, all that one piece of it completes at a time: what came together is handled together. A character that
 * was cut in two is put together again.
 */
export function upstreamEvents<T>(
  body: AsyncIterable<Uint8Array>,
  { name, parse, silenceMs = SILENCE_MS }: { readonly name: string; readonly parse: Parse<T>; readonly silenceMs?: number },
): AsyncIterableIterator<readonly T[], undefined> {
  const chunks = body[Symbol.asyncIterator]()
  const decode = utf8Decoder()
  let heardAt = performance.now()

  // Not a generator: a piece goes through one promise less.
  async function next(): Promise<IteratorResult<readonly T[], undefined>> {
    for (;;) {
      const { done, value: chunk } = await chunks.next()
      if (done) return { done: true, value: undefined }
      const events = read(chunk)
      if (events.length === 0 && performance.now() - heardAt > silenceMs) {
        await chunks.return?.()
        throw new UampError('timeout', `${name} said nothing for ${silenceMs} ms`)
      }
      if (events.length === 0) continue
      heardAt = performance.now()
      return { done: false, value: events }
    }
  }

  function read(chunk: Uint8Array): readonly T[] {
    try {
      return parse(decode(chunk))
    } catch (cause) {
      void chunks.return?.()
      throw new UampError('provider_error', `${name} sent something that is no stream of events`, { cause })
    }
  }

  return {
    next,
    async return() {
      await chunks.return?.()
      return { done: true, value: undefined }
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}
