// @ts-check
import { deflateRawSync } from 'node:zlib'

/** @typedef {import('../../support/random.js').Random} Random */

/** What a WebSocket frame says of itself; the payload may be something else. @typedef {{ opcode?: number, fin?: boolean, reserved?: number, masked?: boolean, length?: bigint, short?: boolean }} Odd */

export const TEXT = 1
export const BINARY = 2
export const CLOSE = 8
export const PING = 9

/** @param {Buffer} payload @param {Odd} [odd] @returns {Buffer} */
export function frame(payload, { opcode = TEXT, fin = true, reserved = 0, masked = true, length, short = false } = {}) {
  const size = length ?? BigInt(payload.length)
  const mask = masked ? 0x80 : 0
  const first = (fin ? 0x80 : 0) | (reserved << 4) | opcode
  /** @type {Buffer} */
  let head
  if (size < 126n && !short) head = Buffer.from([first, mask | Number(size)])
  else if (size < 65_536n) {
    head = Buffer.from([first, mask | 126, 0, 0])
    head.writeUInt16BE(Number(size), 2)
  } else {
    head = Buffer.from([first, mask | 127, 0, 0, 0, 0, 0, 0, 0, 0])
    head.writeBigUInt64BE(size, 2)
  }
  if (!masked) return Buffer.concat([head, payload])
  const key = Buffer.from([1, 2, 3, 4])
  const sent = Buffer.from(payload)
  for (let at = 0; at < sent.length; at++) sent[at] = /** @type {number} */ (sent[at]) ^ /** @type {number} */ (key[at % 4])
  return Buffer.concat([head, key, sent])
}

/** @param {number} code @param {string | Buffer} [reason] */
function close(code, reason = '') {
  const head = Buffer.alloc(2)
  head.writeUInt16BE(code)
  return frame(Buffer.concat([head, Buffer.from(reason)]), { opcode: CLOSE })
}

/** Bytes that are sent in place of a frame, or beside it. @param {Buffer} payload of the frame @param {Random} random @returns {Buffer} */
export function oddFrames(payload, random) {
  const at = random.whole(0, payload.length)
  const first = payload.subarray(0, at)
  const rest = payload.subarray(at)
  return random.pick([
    // Allowed, and rare.
    () => Buffer.concat([frame(first, { fin: false }), frame(rest, { opcode: 0 })]),
    () => Buffer.concat([frame(first, { fin: false }), frame(Buffer.from('x'), { opcode: PING }), frame(rest, { opcode: 0 })]),
    () =>
      Buffer.concat([
        frame(first, { fin: false }),
        ...Array.from({ length: 500 }, () => frame(Buffer.alloc(0), { opcode: 0, fin: false })),
        frame(rest, { opcode: 0 }),
      ]),
    () => Buffer.concat(Array.from({ length: random.pick([10, 3000]) }, () => frame(Buffer.from('ping'), { opcode: PING }))),
    () => Buffer.concat(Array.from({ length: 200 }, () => frame(Buffer.alloc(0), { opcode: 10 }))),
    () => Buffer.concat(Array.from({ length: random.pick([20, 300]) }, () => frame(payload.subarray(0, 20_000)))),
    () => frame(payload, { opcode: BINARY }),
    () => frame(Buffer.alloc(0)),
    () => frame(Buffer.alloc(0), { opcode: BINARY }),
    // Not allowed.
    () => frame(payload, { opcode: random.pick([3, 4, 7, 11, 15]) }),
    () => frame(payload, { masked: false }),
    () => frame(payload, { reserved: random.pick([1, 2, 4, 7]) }),
    () => frame(deflateRawSync(payload), { reserved: 4 }),
    () => frame(deflateRawSync(Buffer.alloc(8_000_000)), { reserved: 4 }),
    () => frame(Buffer.from(payload.subarray(0, 50)), { reserved: 4 }),
    () => frame(first, { fin: false }),
    () => Buffer.concat([frame(first, { fin: false }), frame(rest)]),
    () => frame(payload, { opcode: 0 }),
    () => frame(Buffer.alloc(126), { opcode: PING }),
    () => frame(Buffer.alloc(5), { opcode: PING, fin: false }),
    () =>
      frame(payload, { length: random.pick([1n << 63n, (1n << 64n) - 1n, 1n << 32n, 5_000_000n, 70_000n, BigInt(payload.length + 1)]) }),
    () => frame(payload.subarray(0, 100), { short: true }),
    () => frame(Buffer.concat([first, Buffer.from([0xff, 0xc0, 0x80]), rest])),
    () => Buffer.concat([frame(Buffer.from([0xe2, 0x82]), { fin: false }), frame(payload, { opcode: 0 })]),
    () => frame(payload).subarray(0, random.whole(1, 6)),
    () => close(random.pick([0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 3000, 4999, 5000, 65_535]), 'bye'),
    () => close(1000, Buffer.from([0xff])),
    () => close(1000, 'x'.repeat(123)),
    () => frame(Buffer.from([3]), { opcode: CLOSE }),
    () => frame(Buffer.alloc(0), { opcode: CLOSE }),
    () => Buffer.concat([close(1000), frame(payload)]),
    () => Buffer.from('GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n'),
    () => Buffer.from(Array.from({ length: random.whole(1, 200) }, () => random.whole(0, 255))),
  ])()
}

/** Omnia's own header inside of a binary frame: 32 bytes, metadata, payload. @param {{ meta?: unknown, payload?: Buffer, sequence?: number, flags?: number, type?: number }} [parts] */
export function omniaFrame({ meta = {}, payload = Buffer.alloc(0), sequence = 0, flags = 0, type = 1 } = {}) {
  const metadata = Buffer.from(JSON.stringify(meta))
  const head = Buffer.alloc(32)
  head.write('OMNI')
  head[4] = 1
  head[5] = flags
  head.writeUInt16BE(type, 6)
  head.writeUInt32BE(metadata.length, 8)
  head.writeUInt32BE(payload.length, 12)
  head.writeUInt32BE(sequence, 16)
  head.write('media-1', 20)
  return Buffer.concat([head, metadata, payload])
}
