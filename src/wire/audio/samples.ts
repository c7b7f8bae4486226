import { base64 } from '../../protocol/base64.ts'
import { joinedBytes } from '../../protocol/bytes.ts'

/** The sound of agents, `pcm16`: samples of 16 bits, one channel, 24 kHz. */
export const SAMPLE_RATE = 24_000
export const SAMPLES_PER_MS = SAMPLE_RATE / 1000

/** pcm16 is little-endian on every machine. */
export function toSamples(bytes: Uint8Array): Int16Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const samples = new Int16Array(bytes.length >> 1)
  for (let index = 0; index < samples.length; index++) samples[index] = view.getInt16(index * 2, true)
  return samples
}

/** Samples in base64, as in events. */
export function pcm16(samples: Int16Array): string {
  const view = new DataView(new ArrayBuffer(samples.length * 2))
  for (let index = 0; index < samples.length; index++) view.setInt16(index * 2, samples[index] as number, true)
  return base64(new Uint8Array(view.buffer))
}

/** Pieces of pcm16 may end in the middle of a sample, or between channels. What is not whole waits for the next piece. */
export function wholeSamples(channels = 1): (piece: Uint8Array) => Uint8Array {
  const size = 2 * channels
  let half = new Uint8Array()
  return (piece) => {
    const bytes = half.length === 0 ? piece : joinedBytes([half, piece])
    const end = bytes.length - (bytes.length % size)
    half = bytes.slice(end)
    return bytes.subarray(0, end)
  }
}
