/** Enough for a single event. Node keeps a pool for buffers of this size. */
const SIZE = 2048
/** `write` without its checks of the arguments, which take longer than a short text. Some versions of Node lack it. */
const { utf8Write: write = Buffer.prototype.write } = Buffer.prototype as unknown as {
  readonly utf8Write?: (this: Buffer, text: string, offset: number) => number
}

/** Bytes that a UTF-16 code unit may take in UTF-8. */
const WIDEST = 3

/**
 * Collects texts as bytes for one write. Bytes that wait for a socket lie outside the heap, where the collector does not copy them, and
 * each text is free as soon as it is written.
 */
export class TextBuffer {
  #bytes = Buffer.allocUnsafe(SIZE)
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Leaves room to fill in later, and returns its position. */
  reserve(size: number): number {
    this.#ensure(size)
    const at = this.#length
    this.#length += size
    return at
  }

  /** Returns the text's length in bytes. */
  add(text: string): number {
    this.#ensure(text.length * WIDEST)
    const size = write.call(this.#bytes, text, this.#length)
    this.#length += size
    return size
  }

  /** The bytes so far, to fill reserved room. The next `add` may move them. */
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
