/** So many chunks in a row that were not like the one before, and no more are compared. */
const MISSES = 4
const FIELD = '"content":"'

/**
 * Chunks of one answer mostly differ in their text alone. What stands before and after it was parsed once; as long as a chunk has the
 * same around a text without quotes and escapes, it says the same with that text, and is not parsed again.
 */
export class SameShape {
  #before = ''
  #after = ''
  #misses = 0

  /** The text of a chunk that is like the one learnt from; undefined if it is not. */
  textOf(data: string): string | undefined {
    const before = this.#before
    const end = data.length - this.#after.length
    if (before === '' || end <= before.length || !data.startsWith(before) || !data.endsWith(this.#after)) return undefined
    const text = data.slice(before.length, end)
    if (text.includes('"') || text.includes('\\')) return undefined
    this.#misses = 0
    return text
  }

  /** This chunk was parsed, and does nothing but say this text. */
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
