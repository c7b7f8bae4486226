/** What a single event fits into; Node keeps a pool for pieces of this size. */
const SIZE = 2048
/** `write` without its look at the arguments, which takes longer than a short text; older and newer versions of Node have it. */
const { utf8Write: write = Buffer.prototype.write } = Buffer.prototype as unknown as {
  readonly utf8Write?: (this: Buffer, text: string, offset: number) => number
}

/** Bytes that a UTF-16 code unit may take in UTF-8. */
const WIDEST = 3

/**
 * Texts as bytes, one after the other, for one write. Bytes and not a joined string: what waits for a socket then lies outside
 * the heap, where the collector need not copy it, and each text can be forgotten as soon as it is written.
 */
export class TextBuffer {
  #bytes = Buffer.allocUnsafe(SIZE)
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Leaves room for what is known only later. Returns where it is. */
  reserve(size: number): number {
    this.#ensure(size)
    const at = this.#length
    this.#length += size
    return at
  }

  /** Returns how many bytes the text takes. */
  add(text: string): number {
    this.#ensure(text.length * WIDEST)
    const size = write.call(this.#bytes, text, this.#length)
    this.#length += size
    return size
  }

  /** What was written so far, to fill the reserved places in. The next `add` may move it. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  #ensure(room: number): void {
    if (this.#length + room <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 4, this.#length + room))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}
