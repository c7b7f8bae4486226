import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { verifies } from '../../../test/support/verifies.ts'
import { CHUNKED, COMPRESSED, decodeFrame, encodeFrame, LAST, MEDIA, mediaFrames, type BinaryFrame } from './frame.ts'

/** Bytes as hexadecimal, with room between them for the eye. */
const bytes = (hex: string): Uint8Array => Uint8Array.from(hex.replace(/\s/g, '').match(/../g) ?? [], (pair) => parseInt(pair, 16))

const FRAMES: readonly { readonly name: string; readonly hex: string; readonly frame: BinaryFrame }[] = [
  {
    name: 'an empty frame',
    hex: '4f4d4e49 01 00 0001 00000002 00000000 00000000 000000000000000000000000 7b7d',
    frame: { flags: 0, type: 1, sequence: 0, mediaId: '', meta: {}, payload: new Uint8Array() },
  },
  {
    name: 'the last piece of sound',
    // {"a":1}
    hex: '4f4d4e49 01 04 0001 00000007 00000003 00000102 61622d3132330000000000ff 7b2261223a317d 0080ff',
    frame: { flags: 4, type: 1, sequence: 258, mediaId: 'ab-123', meta: { a: 1 }, payload: bytes('0080ff') },
  },
  {
    name: 'numbers of four bytes, an id of twelve',
    hex: '4f4d4e49 01 07 0002 00000002 00000001 ffffffff 414243444546474849 4a4b4c 7b7d 09',
    frame: { flags: 7, type: 2, sequence: 0xffff_ffff, mediaId: 'ABCDEFGHIJKL', meta: {}, payload: bytes('09') },
  },
]

describe('the header', () => {
  for (const { name, hex, frame } of FRAMES) {
    verifies(['omnia.frame-header', 'omnia.frame-flags'], `is read byte by byte: ${name}`, () => {
      expect(decodeFrame(bytes(hex))).toEqual(frame)
    })
  }

  verifies('omnia.frame-header', 'is written byte by byte', () => {
    const [empty, , large] = FRAMES
    expect(encodeFrame(empty!.frame)).toEqual(bytes(empty!.hex))
    expect(encodeFrame(large!.frame)).toEqual(bytes(large!.hex))
    expect(encodeFrame(large!.frame).length).toBe(32 + 2 + 1)
  })

  verifies('omnia.frame-flags', 'has the flags of Omnia', () => {
    expect([COMPRESSED, CHUNKED, LAST]).toEqual([0x01, 0x02, 0x04])
    const piece = { sequence: 7, mediaId: 'm', meta: {}, payload: bytes('01') }
    expect(mediaFrames({ ...piece, last: false })).toEqual([
      bytes('4f4d4e49 01 00 0001 00000002 00000001 00000007 6d0000000000000000000000 7b7d 01'),
    ])
    expect(mediaFrames({ ...piece, last: true })).toEqual([
      bytes('4f4d4e49 01 04 0001 00000002 00000001 00000007 6d0000000000000000000000 7b7d 01'),
    ])
  })

  test('may stand anywhere in the memory it came in', () => {
    const { hex, frame } = FRAMES[2]!
    const larger = new Uint8Array([9, 9, 9, ...bytes(hex)])
    expect(decodeFrame(larger.subarray(3))).toEqual(frame)
  })

  test('needs no metadata', () => {
    expect(decodeFrame(bytes('4f4d4e49 01 00 0001 00000000 00000001 00000000 000000000000000000000000 05'))).toEqual({
      flags: 0,
      type: 1,
      sequence: 0,
      mediaId: '',
      meta: {},
      payload: bytes('05'),
    })
  })
})

describe('chunks', () => {
  const MIB = 1024 * 1024
  const KIB64 = 64 * 1024
  const piece = (size: number, last: boolean) =>
    mediaFrames({ sequence: 9, mediaId: 'm', meta: {}, last, payload: Uint8Array.from({ length: size }, (_, at) => at % 251) })

  verifies('omnia.frame-chunks', 'are made above 1 MiB, and not before', () => {
    expect(piece(MIB, false)).toHaveLength(1)
    expect(piece(MIB + 1, false)).toHaveLength(17)
  })

  verifies('omnia.frame-chunks', 'have 64 KiB, count from 0, tell their total, and the last of all is the last', () => {
    const frames = piece(MIB + 1, true).map(decodeFrame)
    expect(frames.map(({ payload }) => payload.length)).toEqual([...Array.from({ length: 16 }, () => KIB64), 1])
    expect(frames.map(({ sequence }) => sequence)).toEqual([...frames.keys()])
    expect(frames.map(({ flags }) => flags)).toEqual([...Array.from({ length: 16 }, () => 0x02), 0x06])
    expect(new Set(frames.map(({ meta }) => meta['total_chunks']))).toEqual(new Set([17]))
    const whole = Buffer.from(Uint8Array.from({ length: MIB + 1 }, (_, at) => at % 251))
    expect(Buffer.concat(frames.map(({ payload }) => payload)).equals(whole)).toBe(true)
  })

  verifies('omnia.frame-chunks', 'of what is not the last are not the last either', () => {
    expect(piece(MIB + 1, false).map((frame) => frame[5])).toEqual(Array.from({ length: 17 }, () => 0x02))
  })

  verifies('omnia.frame-chunks', 'have this header', () => {
    const [first] = piece(MIB + 1, false)
    // {"total_chunks":17} has 19 bytes.
    expect(first?.subarray(0, 32 + 19)).toEqual(
      bytes('4f4d4e49 01 02 0001 00000013 00010000 00000000 6d0000000000000000000000 7b22746f74616c5f6368756e6b73223a31377d'),
    )
  })
})

describe('what is no frame', () => {
  const good = '4f4d4e49 01 00 0001 00000002 00000001 00000000 000000000000000000000000 7b7d 05'
  const cases: readonly (readonly [name: string, hex: string, message: string])[] = [
    ['nothing', '', 'header of 32 bytes'],
    ['a byte too few for a header', good.replace(/\s/g, '').slice(0, 62), 'header of 32 bytes'],
    ['another magic', good.replace('4f4d4e49', '4f4d4e4a'), 'begins with "OMNI"'],
    ['another version', good.replace(' 01 ', ' 02 '), 'version 1'],
    ['less metadata than announced', good.replace('00000002', '00000004'), 'less metadata'],
    ['less payload than announced', good.replace('00000001', '00000002'), 'less payload'],
    ['lengths that leave the memory', good.replace('00000001', 'ffffffff'), 'less payload'],
    ['metadata without an end', good.replace('00000002', 'ffffffff'), 'at most 65536 bytes'],
    ['metadata that is no JSON', good.replace('7b7d', '7b7b'), 'must be a JSON object'],
    ['metadata that is no object', good.replace('7b7d', '3132'), 'must be a JSON object'],
    ['metadata that is no UTF-8', good.replace('7b7d', 'ff7d'), 'must be a JSON object'],
  ]
  for (const [name, hex, message] of cases) {
    verifies('omnia.frame-bad', name, () => {
      expect(() => decodeFrame(bytes(hex))).toThrow(
        expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining(message) }),
      )
    })
  }
})

const frames = fc.record({
  flags: fc.integer({ min: 0, max: 7 }),
  type: fc.integer({ min: 0, max: 0xffff }),
  sequence: fc.integer({ min: 0, max: 0xffff_ffff }),
  mediaId: fc.string({ unit: fc.integer({ min: 1, max: 255 }).map((code) => String.fromCharCode(code)), maxLength: 12 }),
  meta: fc
    .dictionary(
      fc.string().filter((key) => key !== '__proto__'),
      fc.jsonValue(),
    )
    .map((meta) => JSON.parse(JSON.stringify(meta)) as object),
  payload: fc.uint8Array({ maxLength: 300 }),
})

test('every frame comes back as it was', () => {
  fc.assert(
    fc.property(frames, (frame) => {
      expect(decodeFrame(encodeFrame(frame as BinaryFrame))).toEqual(frame)
    }),
  )
})

test('a frame that was cut short, wherever, is refused', () => {
  fc.assert(
    fc.property(frames, fc.double({ min: 0, max: 0.999, noNaN: true }), (frame, share) => {
      const whole = encodeFrame(frame as BinaryFrame)
      expect(() => decodeFrame(whole.subarray(0, Math.floor(whole.length * share)))).toThrow()
    }),
  )
})

test('any bytes are a frame or refused, and never more is read than there is', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.boolean(), (noise, begun) => {
      const given = begun ? new Uint8Array([0x4f, 0x4d, 0x4e, 0x49, 1, ...noise]) : noise
      try {
        expect(decodeFrame(given).payload.length).toBeLessThanOrEqual(given.length - 32)
      } catch (error) {
        expect(error).toMatchObject({ code: 'invalid_request' })
      }
    }),
  )
})

test('pieces put together again are what was sent', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 3_000_000 }), fc.boolean(), (size, last) => {
      const payload = new Uint8Array(size).fill(size % 256)
      const got = mediaFrames({ sequence: 3, mediaId: 'm', meta: {}, payload, last }).map(decodeFrame)
      expect(got.reduce((sum, frame) => sum + frame.payload.length, 0)).toBe(size)
      expect(got.map(({ flags }) => (flags & LAST) !== 0).indexOf(true)).toBe(last ? got.length - 1 : -1)
      expect(got.every(({ type }) => type === MEDIA)).toBe(true)
    }),
    { numRuns: 20 },
  )
})
