import { UampError } from '../protocol/errors.ts'

/** A stream may keep itself alive with comments for so long before it must say something. */
const SILENCE_MS = 10 * 60_000

/** Turns text into events, wherever it was cut. */
export type Parse<T> = (chunk: string) => readonly T[]

/**
 * The events of a body, all that one piece of it completes at a time: what came together is handled together. A character that
 * was cut in two is put together again.
 */
export async function* upstreamEvents<T>(
  body: AsyncIterable<Uint8Array>,
  { name, parse, silenceMs = SILENCE_MS }: { readonly name: string; readonly parse: Parse<T>; readonly silenceMs?: number },
): AsyncGenerator<readonly T[], void> {
  const decoder = new TextDecoder()
  let heardAt = performance.now()
  for await (const chunk of body) {
    const events = parsed(name, () => parse(decoder.decode(chunk, { stream: true })))
    if (events.length > 0) {
      heardAt = performance.now()
      yield events
    } else if (performance.now() - heardAt > silenceMs) {
      throw new UampError('timeout', `${name} said nothing for ${silenceMs} ms`)
    }
  }
}

function parsed<T>(name: string, parse: () => readonly T[]): readonly T[] {
  try {
    return parse()
  } catch (cause) {
    throw new UampError('provider_error', `${name} sent something that is no stream of events`, { cause })
  }
}
