/** Stores bytes that are too many for a record. The caller keeps track of who owns them, and for how long. */
export interface Blobs {
  /**
   * Stores the bytes as they arrive, and returns their number. Rejects with `conflict` if the key is in use or being written, with
   * `too_large` beyond `most`, and with the body's own error if that breaks off. A rejected `put` leaves nothing behind.
   */
  put(key: string, body: AsyncIterable<Uint8Array>, options: { readonly most: number }): Promise<number>
  /** The number of bytes under a key; undefined if there is no such key. */
  size(key: string): Promise<number | undefined>
  /** The bytes from `start` up to, but not including, `end`. Fails if there is no such key. */
  read(key: string, range?: { readonly start: number; readonly end: number }): AsyncIterable<Uint8Array>
  delete(key: string): Promise<void>
  /** Deletes everything that was put before that time, including writes that a crash interrupted. */
  sweep(before: number): Promise<void>
}
