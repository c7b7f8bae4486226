/** One event of a `text/event-stream`. `id` is the last id so far (HTML standard §9.2.6). */
export interface ParsedSse {
  readonly data: string
  readonly event?: string
  readonly id?: string
}

/** Characters of one unfinished event. A stream with a longer one is given up, as it would fill the memory. */
const LIMIT = 32 * 1024 * 1024

/**
 * An incremental parser (HTML standard §9.2.6). It takes text, cut anywhere, and returns the events that the text completes. An event
 * without its end is dropped, as the standard wants.
 */
export function sseParser({ limit = LIMIT }: { readonly limit?: number } = {}): (chunk: string) => ParsedSse[] {
  let rest = ''
  let held = 0
  let afterCr = false
  let begun = false
  let data: string[] = []
  let event: string | undefined
  let id: string | undefined

  function line(text: string, out: ParsedSse[]): void {
    if (text === '') {
      if (data.length > 0) out.push({ data: data.join('\n'), ...(event && { event }), ...(id !== undefined && { id }) })
      data = []
      event = undefined
      held = 0
      return
    }
    const colon = text.indexOf(':')
    if (colon === 0) return
    const field = colon < 0 ? text : text.slice(0, colon)
    const value = colon < 0 ? '' : text.slice(text[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (field === 'data') {
      data.push(value)
      // The line break counts too, as empty lines are kept.
      held += value.length + 1
    } else if (field === 'event') event = value
    else if (field === 'id' && !value.includes('\0')) id = value
  }

  return (chunk) => {
    if (chunk === '') return []
    const out: ParsedSse[] = []
    const marked = !begun && chunk.startsWith('\uFEFF')
    begun = true
    // A CR ends its line at once; the LF that may follow it in the next chunk is the other half of the same break.
    let start = marked || (afterCr && chunk.startsWith('\n')) ? 1 : 0
    const breaks = /\r\n?|\n/g
    breaks.lastIndex = start
    for (let match = breaks.exec(chunk); match; match = breaks.exec(chunk)) {
      line(rest + chunk.slice(start, match.index), out)
      rest = ''
      start = breaks.lastIndex
    }
    afterCr = chunk.endsWith('\r')
    // Joined, and not searched again: a long line in small chunks must not take quadratic time.
    rest += chunk.slice(start)
    if (held + rest.length > limit) throw new RangeError(`an event of more than ${limit} characters`)
    return out
  }
}

/** Reads a `text/event-stream` body. Leaving the loop cancels the body. */
export async function* parseSse(
  body: ReadableStream<Uint8Array>,
  options?: Parameters<typeof sseParser>[0],
): AsyncGenerator<ParsedSse, void> {
  // Not `for await (… of body)`: Safari's streams cannot be iterated.
  const reader = body.getReader()
  const decoder = new TextDecoder()
  const parse = sseParser(options)
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield* parse(decoder.decode(value, { stream: true }))
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}
