/** Bytes that are too many for a record. Who they belong to, and until when, is for whoever puts them there. */
export interface Blobs {
  /**
   * Takes the bytes as they come, and gives their number. Rejects with `conflict` when there are some under that key or
   * somebody is putting them there, with `too_large` as soon as there are more than `most`, and with the reason when the body breaks off; nothing of it is left then.
   */
  put(key: string, body: AsyncIterable<Uint8Array>, options: { readonly most: number }): Promise<number>
  /** How many bytes there are under a key; undefined: there is nothing. */
  size(key: string): Promise<number | undefined>
  /** The bytes from `start` up to, and without, `end`. Fails when there is nothing. */
  read(key: string, range?: { readonly start: number; readonly end: number }): AsyncIterable<Uint8Array>
  delete(key: string): Promise<void>
  /** Deletes what was put before that time, also what a crash left half done. */
  sweep(before: number): Promise<void>
}
