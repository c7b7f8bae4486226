/** After so many different chunks in a row, no more are compared. */
const MISSES = 4
const FIELD = '"content":"'

/**
 * Most chunks of an answer differ only in their text. The JSON around the text was parsed once: a chunk with the same JSON around a text
 * without quotes and escapes needs no parsing.
 */
export class SameShape {
  #before = ''
  #after = ''
  #misses = 0

  /** The text of a chunk that looks like the learned one; undefined for any other. */
  textOf(data: string): string | undefined {
    const before = this.#before
    const end = data.length - this.#after.length
    if (before === '' || end <= before.length || !data.startsWith(before) || !data.endsWith(this.#after)) return undefined
    const text = data.slice(before.length, end)
    if (text.includes('"') || text.includes('\\')) return undefined
    this.#misses = 0
    return text
  }

  /** Learns from a parsed chunk that holds nothing but this text. */
  learn(data: string, text: string): void {
    if (this.#misses >= MISSES) return
    const at = data.indexOf(FIELD) + FIELD.length
    const plain = at >= FIELD.length && data.startsWith(text, at) && data[at + text.length] === '"'
    if (!plain || text.includes('\\')) return
    this.#misses++
    this.#before = data.slice(0, at)
    this.#after = data.slice(at + text.length)
  }
}
