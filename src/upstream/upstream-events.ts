import { UampError } from '../protocol/errors.ts'

/** How long a stream may send only comments before it must say something. */
const SILENCE_MS = 10 * 60_000

/** Turns text into events. The text may be cut anywhere. */
export type Parse<T> = (chunk: string) => readonly T[]

/**
 * The events of a body. Each batch holds all that one piece of the body completes, so that they are handled together. A character
 * that was cut in two is put together again.
 */
export function upstreamEvents<T>(
  body: AsyncIterable<Uint8Array>,
  { name, parse, silenceMs = SILENCE_MS }: { readonly name: string; readonly parse: Parse<T>; readonly silenceMs?: number },
): AsyncIterableIterator<readonly T[], undefined> {
  const chunks = body[Symbol.asyncIterator]()
  const decode = utf8Decoder()
  let heardAt = performance.now()

  // Not a generator, which would cost each piece another promise.
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
      throw new UampError('provider_error', `${name} sent something that is not a stream of events`, { cause })
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

/** For pieces that end with a whole character: it keeps nothing between them. */
const WHOLE = new TextDecoder('utf-8', { ignoreBOM: true })

/**
 * Decodes UTF-8 that comes in pieces. A decoder that keeps a cut character costs more than a short answer, so it is made only when a
 * piece ends within a character. Most end with a line break.
 */
function utf8Decoder(): (chunk: Uint8Array) => string {
  let keeping: TextDecoder | undefined
  return (chunk) => {
    const last = chunk[chunk.length - 1]
    if (!keeping && (last === undefined || last < 0x80)) return WHOLE.decode(chunk)
    keeping ??= new TextDecoder('utf-8', { ignoreBOM: true })
    return keeping.decode(chunk, { stream: true })
  }
}
