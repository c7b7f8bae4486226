import { joinedBytes } from '../../protocol/bytes.ts'

/** A PNG of one orange pixel. */
export const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8Dwn4EBAAcCAgEA0Tz1AAAAAElFTkSuQmCC'

export const SAMPLE_RATE = 24_000

/** A tone of 440 Hz as 16-bit PCM, mono, 24 kHz. */
export function tone(seconds: number): Uint8Array {
  const samples = Math.round(seconds * SAMPLE_RATE)
  const view = new DataView(new ArrayBuffer(samples * 2))
  for (let index = 0; index < samples; index++) {
    view.setInt16(index * 2, Math.round(8000 * Math.sin((2 * Math.PI * 440 * index) / SAMPLE_RATE)), true)
  }
  return new Uint8Array(view.buffer)
}

/** A hundred milliseconds of sound. A multiple of three, so that the chunks' base64 can be joined. */
export const CHUNK_BYTES = (SAMPLE_RATE / 10) * 2

/** An MP4 file with a header and no frames. */
export function emptyMp4(): Uint8Array {
  const header = new Uint8Array(100)
  new DataView(header.buffer).setUint32(12, 1000)
  return box('ftyp', joinedBytes([ascii('isom'), new Uint8Array(4), ascii('isommp41')]), box('moov', box('mvhd', header)))
}

function box(type: string, ...contents: readonly Uint8Array[]): Uint8Array {
  const [own = new Uint8Array(), ...after] = contents
  const size = new Uint8Array(4)
  new DataView(size.buffer).setUint32(0, own.length + 8)
  return joinedBytes([size, ascii(type), own, ...after])
}

function ascii(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}
