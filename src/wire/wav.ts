/** Samples of 16 bits, one channel, 24 kHz: what `pcm16` means here. */
const SAMPLE_RATE = 24_000
const SAMPLE_BYTES = 2
const HEADER_BYTES = 44

/** A WAV file around raw samples, both as base64. */
export function wav(samples: string): string {
  const padding = samples.endsWith('==') ? 2 : samples.endsWith('=') ? 1 : 0
  const size = (samples.length / 4) * 3 - padding
  const view = new DataView(new ArrayBuffer(HEADER_BYTES))
  const tag = (at: number, name: string): void => {
    for (let index = 0; index < name.length; index++) view.setUint8(at + index, name.charCodeAt(index))
  }
  tag(0, 'RIFF')
  view.setUint32(4, HEADER_BYTES - 8 + size, true)
  tag(8, 'WAVEfmt ')
  view.setUint32(16, 16, true)
  view.setUint16(20, 1, true)
  view.setUint16(22, 1, true)
  view.setUint32(24, SAMPLE_RATE, true)
  view.setUint32(28, SAMPLE_RATE * SAMPLE_BYTES, true)
  view.setUint16(32, SAMPLE_BYTES, true)
  view.setUint16(34, SAMPLE_BYTES * 8, true)
  tag(36, 'data')
  view.setUint32(40, size, true)
  // The header is no multiple of three bytes: its last two go with the first sample's first.
  return btoa(String.fromCharCode(...new Uint8Array(view.buffer)) + atob(samples))
}
