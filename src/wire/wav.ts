import { base64, fromBase64 } from '../protocol/base64.ts'
import { joinedBytes } from '../protocol/bytes.ts'
import { SAMPLE_RATE } from './audio/samples.ts'

const SAMPLE_BYTES = 2
const HEADER_BYTES = 44

/** A WAV file around samples of pcm16, both as base64. */
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
  return base64(joinedBytes([new Uint8Array(view.buffer), fromBase64(samples)]))
}
