import { writeSync } from 'node:fs'

/** How long a line may wait for others, and how many characters. */
const WAIT_MS = 20
const WAITING = 64 * 1024
const STDERR = 2
/** How often a full pipe is tried again, and how long it has in between: five seconds in all. */
const TRIES = 1_000
const TRY_MS = 5

/** Writes the lines of busy moments together: a write for each request would cost more than to make its line. */
export class StandardError {
  #waiting = ''
  #timer: NodeJS.Timeout | undefined
  readonly #flush = (): void => this.flush()

  write(line: string): void {
    if (this.#waiting === '') {
      // Not `unref`: it is soon over, and the line must come.
      this.#timer = setTimeout(this.#flush, WAIT_MS)
      process.once('exit', this.#flush)
    }
    this.#waiting += line
    if (this.#waiting.length >= WAITING) this.flush()
  }

  flush(): void {
    const text = this.#waiting
    this.#waiting = ''
    clearTimeout(this.#timer)
    process.off('exit', this.#flush)
    if (text !== '') writeAll(text)
  }
}

/** A reader that is slow makes the program wait, and one that has gone is no reason to fail. */
function writeAll(text: string): void {
  const bytes = Buffer.from(text)
  for (let at = 0, tries = 0; at < bytes.length && tries < TRIES;) {
    try {
      at += writeSync(STDERR, bytes, at)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return
      tries++
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, TRY_MS)
    }
  }
}
