// @ts-check
/** @typedef {import('../../support/random.js').Random} Random */

const INVALID_UTF8 = [
  Buffer.from([0xff]),
  Buffer.from([0xc0, 0x80]),
  Buffer.from([0xed, 0xa0, 0x80]),
  Buffer.from([0xf5, 0x80, 0x80, 0x80]),
  Buffer.from([0xe2, 0x82]),
  Buffer.from([0x80]),
  Buffer.from([0]),
]

/** Does one thing to some bytes. @param {Buffer} bytes is not changed @param {Random} random @returns {Buffer} */
export function mutateBytes(bytes, random) {
  const at = random.whole(0, bytes.length)
  return random.pick([
    () => bytes.subarray(0, at),
    () => bytes.subarray(at),
    () => flipped(bytes, random),
    () => Buffer.concat([bytes.subarray(0, at), random.pick(INVALID_UTF8), bytes.subarray(at)]),
    () => Buffer.concat([bytes, bytes]),
    () => Buffer.concat([bytes.subarray(0, at), bytes.subarray(at, at + 100), bytes.subarray(at)]),
    () => Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes]),
    () => Buffer.from(bytes.toString('latin1'), 'utf16le'),
    () => Buffer.alloc(random.pick([1, 1000, 300_000]), random.whole(0, 255)),
    () => Buffer.from(Array.from({ length: random.whole(1, 600) }, () => random.whole(0, 255))),
  ])()
}

/** @param {Buffer} bytes @param {Random} random */
function flipped(bytes, random) {
  const copy = Buffer.from(bytes)
  for (let times = random.pick([1, 1, 4, 30]); times > 0 && copy.length > 0; times--) {
    const at = random.whole(0, copy.length - 1)
    copy[at] = /** @type {number} */ (copy[at]) ^ (1 << random.whole(0, 7))
  }
  return copy
}
