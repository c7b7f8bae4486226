import { base64 as toBase64, bytesIn } from '../../../protocol/base64.ts'
import { SAMPLES_PER_MS, toSamples, wholeSamples } from '../../../wire/audio/samples.ts'
import { invalid } from '../../../wire/parse.ts'
import { alaw, ulaw } from './g711.ts'
import { downsampler, upsampler } from './resample.ts'

/** Formats on the wire. Inside, and for agents, audio is always pcm16: mono, 24 kHz, little-endian. */
export type AudioFormat = 'pcm16' | 'g711_ulaw' | 'g711_alaw'

const G711 = { g711_ulaw: ulaw, g711_alaw: alaw }

/** Decodes the audio of a client, piece by piece. */
export type Decode = (base64: string, param: string) => Int16Array

export function decoder(format: AudioFormat): Decode {
  const widen = upsampler()
  return (base64, param) => {
    const bytes = bytesIn(base64)
    if (!bytes) throw invalid(`"${param}" is not base64`, param, 'invalid_base64')
    if (format !== 'pcm16') return widen(G711[format].decode(bytes))
    if (bytes.length % 2 !== 0) throw invalid(`"${param}" has an odd number of bytes; a sample of pcm16 has two`, param, 'invalid_audio')
    return toSamples(bytes)
  }
}

/** Encodes an agent's pcm16, piece by piece, in the client's format. Pieces may end in the middle of a sample. */
export type Encode = (base64: string) => string

export function encoder(format: AudioFormat): Encode {
  if (format === 'pcm16') return (base64) => base64
  const narrow = downsampler()
  const whole = wholeSamples()
  return (base64) => {
    const piece = bytesIn(base64)
    if (!piece) return ''
    return toBase64(G711[format].encode(narrow(toSamples(whole(piece)))))
  }
}

/** How long pcm16 in base64 is. */
export function durationMs(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0
  return Math.floor(((base64.length / 4) * 3 - padding) / 2 / SAMPLES_PER_MS)
}

/** The beginning of a recording of pcm16. */
export function cutAt(base64: string, ms: number): string {
  const bytes = bytesIn(base64) ?? new Uint8Array()
  return toBase64(bytes.subarray(0, ms * SAMPLES_PER_MS * 2))
}
