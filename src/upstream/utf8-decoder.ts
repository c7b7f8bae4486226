/** Keeps nothing: for pieces that end with a whole character. */
const WHOLE = new TextDecoder('utf-8', { ignoreBOM: true })

/**
 * Decodes UTF-8 that comes in pieces. A decoder that keeps a character that was cut in two costs more than a short answer, so it is
 * made only when there is one: most pieces end with a line break.
 */
export function utf8Decoder(): (chunk: Uint8Array) => string {
  let keeping: TextDecoder | undefined
  return (chunk) => {
    const last = chunk[chunk.length - 1]
    if (!keeping && (last === undefined || last < 0x80)) return WHOLE.decode(chunk)
    keeping ??= new TextDecoder('utf-8', { ignoreBOM: true })
    return keeping.decode(chunk, { stream: true })
  }
}
