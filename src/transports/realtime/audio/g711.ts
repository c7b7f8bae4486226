/** ITU-T G.711: eight bits a sample, by a logarithmic law. */

const ULAW_BIAS = 0x84
/** The largest sample that the bias leaves in sixteen bits. */
const ULAW_CLIP = 32_635

export const ulaw = {
  decode: (codes: Uint8Array): Int16Array => Int16Array.from(codes, decodeUlaw),
  encode: (samples: Int16Array): Uint8Array => Uint8Array.from(samples, encodeUlaw),
}

export const alaw = {
  decode: (codes: Uint8Array): Int16Array => Int16Array.from(codes, decodeAlaw),
  encode: (samples: Int16Array): Uint8Array => Uint8Array.from(samples, encodeAlaw),
}

/** Codes are sent inverted: sign, three bits of segment, four bits of step. */
function decodeUlaw(code: number): number {
  const bits = ~code & 0xff
  const size = ((((bits & 0x0f) << 3) + ULAW_BIAS) << ((bits & 0x70) >> 4)) - ULAW_BIAS
  return (bits & 0x80) !== 0 ? -size : size
}

function encodeUlaw(sample: number): number {
  const biased = Math.min(Math.abs(sample), ULAW_CLIP) + ULAW_BIAS
  const segment = 24 - Math.clz32(biased)
  const step = (biased >> (segment + 3)) & 0x0f
  return ~((sample < 0 ? 0x80 : 0) | (segment << 4) | step) & 0xff
}

/** Every other bit is sent inverted, so that silence is no run of zeros. */
function decodeAlaw(code: number): number {
  const bits = code ^ 0x55
  const segment = (bits & 0x70) >> 4
  const step = ((bits & 0x0f) << 4) + 8
  const size = segment === 0 ? step : (step + 0x100) << (segment - 1)
  return (bits & 0x80) !== 0 ? size : -size
}

/** Below zero the law is that of the ones' complement: -1 and 0 are equally near to it. */
function encodeAlaw(sample: number): number {
  const size = sample < 0 ? ~sample : sample
  const segment = Math.max(0, 24 - Math.clz32(size))
  const step = (size >> (segment === 0 ? 4 : segment + 3)) & 0x0f
  return ((sample < 0 ? 0 : 0x80) | (segment << 4) | step) ^ 0x55
}
