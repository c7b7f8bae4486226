import { brotliDecompress } from 'node:zlib'

/** Unpacks brotli. Rejects with a `RangeError` beyond `maxBytes`: zlib stops there. */
export function unpackBrotli(packed: Uint8Array, maxBytes: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    brotliDecompress(packed, { maxOutputLength: maxBytes }, (error, bytes) => {
      if (!error) resolve(bytes)
      else reject((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE' ? new RangeError('It is too large') : error)
    })
  })
}
