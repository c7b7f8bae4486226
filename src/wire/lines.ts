import { joinedBytes } from '../protocol/bytes.ts'

/**
 * Cuts bytes into lines of text. A line of more than `max` bytes becomes one `undefined`, and its bytes are not kept. Feed it
 * `undefined` at the end: the rest is a line too.
 */
export function lineReader(max: number): (chunk: Uint8Array | undefined) => (string | undefined)[] {
  let parts: Uint8Array[] = []
  let length = 0
  let over = false

  const add = (part: Uint8Array): void => {
    length += part.length
    over ||= length > max
    if (over) parts = []
    else if (part.length > 0) parts.push(part)
  }
  const take = (): string | undefined => {
    const line = over ? undefined : new TextDecoder().decode(joinedBytes(parts))
    parts = []
    length = 0
    over = false
    return line
  }
  return (chunk) => {
    const lines: (string | undefined)[] = []
    if (chunk === undefined) return length > 0 ? [take()] : lines
    let from = 0
    for (let at = chunk.indexOf(0x0a); at >= 0; at = chunk.indexOf(0x0a, from)) {
      add(chunk.subarray(from, at))
      lines.push(take())
      from = at + 1
    }
    // Copied, because the caller may reuse its buffer.
    if (from < chunk.length) add(chunk.slice(from))
    return lines
  }
}

/**
 * The lines of a stream, without blank ones. A line of more than `max` bytes is `undefined`. A reader that has enough destroys the
 * stream, which ends the lines without an error.
 */
export async function* linesIn(
  input: AsyncIterable<unknown> & { readonly destroyed: boolean },
  max: number,
): AsyncGenerator<string | undefined, void> {
  const read = lineReader(max)
  const isBlank = (line: string | undefined): boolean => line?.trim() === ''
  try {
    for await (const chunk of input) for (const line of read(chunk as Uint8Array)) if (!isBlank(line)) yield line
  } catch (error) {
    if (!input.destroyed) throw error
    return
  }
  for (const line of read(undefined)) if (!isBlank(line)) yield line
}
