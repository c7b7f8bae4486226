/** Whatever is changed in a signed envelope, it is refused, with a code and a reason. */
import { expect, test } from 'vitest'
import { readEnvelope, readSignature, signEnvelope, verifySignature, type Envelope } from '../../src/envelope/index.ts'
import { signedText } from '../../src/envelope/canonical.ts'
import type { Unsigned } from '../../src/envelope/schema.ts'
import { makeSigner, outcome, QUESTION } from '../support/envelopes.ts'
import { verifies } from '../support/verifies.ts'

const signers = await Promise.all([makeSigner('ES256'), makeSigner('EdDSA')])
const KEYS = signers.map(({ key }) => key)
const LEAST: Unsigned = {
  id: '6f2b1a60-3d7e-4c35-9a5b-0c1d2e3f4a5b',
  ts: '2026-01-31T12:00:00Z',
  from: QUESTION.from,
  to: ['did:web:a', 'did:web:b'],
  intent: 'inform',
  body: { type: '', content: '\u0000\\" \u2028é😀' },
}
const envelopes: readonly Envelope[] = await Promise.all(
  [QUESTION, LEAST].flatMap((unsigned) => signers.map(({ signing }) => signEnvelope(unsigned, signing))),
)
const texts = envelopes.map((envelope) => JSON.stringify(envelope))

/** All that is done with a message before it counts as one of its sender. */
const received = (message: Uint8Array | string): Promise<string> =>
  outcome(() => {
    const { members, envelope } = readEnvelope(message)
    return verifySignature(members, readSignature(envelope.sig), KEYS)
  })

const REFUSED = /^4\.0[01] [a-z0-9_]+$/

/** The message is refused; or else it says the same, in other letters. */
async function isRefused(message: Uint8Array | string, original: Envelope): Promise<boolean> {
  const code = await received(message)
  if (code !== 'accepted') {
    expect(code).toMatch(REFUSED)
    return true
  }
  const { members } = readEnvelope(message)
  expect([signedText(members), members['sig']]).toEqual([signedText(original), original.sig])
  return false
}

test('what nobody changed is accepted', async () => {
  for (const text of texts) expect(await received(text)).toBe('accepted')
})

test('no byte of a message can be another', async () => {
  const same: string[] = []
  for (const [index, envelope] of envelopes.entries()) {
    const bytes = Buffer.from(texts[index] ?? '')
    for (let at = 0; at < bytes.length; at++) {
      for (const flip of [0x01, 0x10, 0x20, 0x80]) {
        const changed = Buffer.from(bytes)
        changed[at] = (bytes[at] ?? 0) ^ flip
        if (!(await isRefused(changed, envelope))) same.push(changed.toString().slice(at - 3, at + 3))
      }
    }
  }
  expect(same).toEqual([])
})

/** JSON in which every character of a text is an escape. */
function escaped(value: unknown): string {
  if (typeof value === 'string') return `"${value.replaceAll(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)}"`
  if (Array.isArray(value)) return `[${value.map(escaped).join()}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  return `{${Object.entries(value)
    .map(([name, member]) => `${escaped(name)}:${escaped(member)}`)
    .join()}}`
}

verifies('envelope:canonical', 'white space, escapes and the order of members are not signed', async () => {
  for (const envelope of envelopes) {
    const backwards = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(backwards)
      if (typeof value !== 'object' || value === null) return value
      return Object.fromEntries(
        Object.entries(value)
          .toReversed()
          .map(([name, member]) => [name, backwards(member)]),
      )
    }
    const text = JSON.stringify(backwards(envelope), null, '\t')
    expect(text).not.toBe(JSON.stringify(envelope, null, '\t'))
    for (const other of [text, ` \r\n${text}\n`, escaped(envelope)]) expect(await received(other)).toBe('accepted')
  }
})

test('no byte can be missing, doubled, or put in', async () => {
  for (const [index, envelope] of envelopes.entries()) {
    const bytes = Buffer.from(texts[index] ?? '')
    for (let at = 0; at < bytes.length; at++) {
      const [before, after] = [bytes.subarray(0, at), bytes.subarray(at)]
      const changes = [
        Buffer.concat([before, after.subarray(1)]),
        Buffer.concat([before, after.subarray(0, 1), after]),
        Buffer.concat([before, Buffer.from('"'), after]),
        Buffer.concat([before, Buffer.from([0]), after]),
      ]
      for (const changed of changes) await isRefused(changed, envelope)
      if (at > 0) expect(await isRefused(before, envelope)).toBe(true)
    }
  }
})

type Path = readonly string[]

/** The way to every member, and to every entry of a list. */
function pathsIn(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) => [[...path, name], ...pathsIn(member, [...path, name])])
}

/** The same, with another value at the end of the way. Undefined leaves it out. */
function changed(value: unknown, [name, ...rest]: Path, change: (old: unknown) => unknown): unknown {
  if (name === undefined) return change(value)
  if (Array.isArray(value)) {
    return value.flatMap((entry: unknown, at) =>
      String(at) === name ? [changed(entry, rest, change)].filter((each) => each !== undefined) : [entry],
    )
  }
  const members = value as Readonly<Record<string, unknown>>
  return { ...members, [name]: changed(members[name], rest, change) }
}

const CHANGES: readonly ((old: unknown) => unknown)[] = [
  () => undefined,
  () => null,
  () => '',
  () => 0,
  () => [],
  () => ({}),
  (old) => [old],
  (old) => (typeof old === 'string' ? `${old} ` : undefined),
  (old) => (typeof old === 'string' ? old.toUpperCase() : undefined),
  (old) => (typeof old === 'number' ? String(old) : undefined),
  (old) => (typeof old === 'number' ? old + 1e-9 : undefined),
  (old) => (Array.isArray(old) ? [...(old as unknown[]), null] : undefined),
  (old) => (Array.isArray(old) ? [...(old as unknown[]), ...(old as unknown[])] : undefined),
  (old) => (Array.isArray(old) && old.length > 1 ? old.toReversed() : undefined),
  (old) => (typeof old === 'object' && old !== null && !Array.isArray(old) ? { ...old, more: 1 } : undefined),
  (old) => (typeof old === 'object' && old !== null && !Array.isArray(old) ? { ...old, sig: 'x' } : undefined),
]

test('no member, at any depth, can be another, be missing, or be more', async () => {
  for (const envelope of envelopes) {
    for (const path of pathsIn(envelope)) {
      for (const change of CHANGES) {
        const text = JSON.stringify(changed(envelope, path, change))
        if (text !== JSON.stringify(envelope)) await isRefused(text, envelope)
      }
    }
    // A default that the sender left out is not signed either.
    for (const more of [
      { delta_window: 64 },
      { context: [] },
      { ext: {} },
      { stream_id: 'str-1' },
      { cap_token: '' },
      { mood: 1 },
      { SIG: envelope.sig },
    ]) {
      const text = JSON.stringify({ ...envelope, ...more })
      if (signedText(JSON.parse(text) as Envelope) !== signedText(envelope)) expect(await isRefused(text, envelope)).toBe(true)
    }
    expect(
      await isRefused(JSON.stringify({ ...envelope, body: { encoding: 'utf-8', ...envelope.body, compression: 'gzip' } }), envelope),
    ).toBe(true)
  }
})

/** The text of a value in which the object at the end of the way has its first member twice. */
function doubled(value: unknown, path: Path | undefined): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const next = (name: string) => (path?.[0] === name ? path.slice(1) : undefined)
  if (Array.isArray(value)) return `[${value.map((entry, at) => doubled(entry, next(String(at)))).join()}]`
  const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}:${doubled(member, next(name))}`)
  return `{${[...(path?.length === 0 ? members.slice(0, 1) : []), ...members].join()}}`
}

test('no object, at any depth, can have a member twice', async () => {
  for (const envelope of envelopes) {
    expect(doubled(envelope, undefined)).toBe(JSON.stringify(envelope))
    const objects = [[], ...pathsIn(envelope)].map((path) => doubled(envelope, path)).filter((text) => text !== JSON.stringify(envelope))
    expect(objects.length).toBeGreaterThan(1)
    for (const text of objects) expect(await received(text)).toBe('4.00 duplicate')
  }
})

verifies('envelope:signature', 'the signature of one message does not fit another', async () => {
  for (const one of envelopes) {
    for (const other of envelopes) {
      const swapped = JSON.stringify({ ...one, sig: other.sig })
      // Both have signed the same message.
      const isSame = signedText(one) === signedText(other)
      expect(await received(swapped)).toBe(isSame ? 'accepted' : '4.01 signature')
    }
  }
})

verifies('envelope:signature', 'no signature, and parts of two, are refused', async () => {
  const [ec, ed] = envelopes
  if (!ec || !ed) throw new Error('There are two')
  const [headOfEc, headOfEd] = [ec, ed].map(({ sig }) => sig.split('..')[0])
  const [tailOfEc, tailOfEd] = [ec, ed].map(({ sig }) => sig.split('..')[1])
  const sigs: readonly (readonly [sig: unknown, refusal: string])[] = [
    [`${headOfEc}..${tailOfEd}`, '4.01 signature'],
    [`${headOfEd}..${tailOfEc}`, '4.01 signature'],
    [`${headOfEc}.${tailOfEc}.${tailOfEc}`, '4.01 signature'],
    [`${ec.sig}.${ed.sig}`, '4.01 signature'],
    [`${ec.sig},${ed.sig}`, '4.01 signature'],
    [[ec.sig, ed.sig], '4.00 schema'],
    [[ec.sig], '4.00 schema'],
    [{ protected: headOfEc, signature: tailOfEc }, '4.00 schema'],
    [{ signatures: [{ protected: headOfEc, signature: tailOfEc }] }, '4.00 schema'],
    [null, '4.00 schema'],
    [true, '4.00 schema'],
    ['', '4.01 signature'],
    [undefined, '4.01 signature'],
  ]
  for (const [sig, refusal] of sigs) expect([sig, await received(JSON.stringify({ ...ec, sig }))]).toEqual([sig, refusal])
  const twice = JSON.stringify(ec).replace(/}$/, `,"sig":${JSON.stringify(ed.sig)}}`)
  expect(await received(twice)).toBe('4.00 duplicate')
})
