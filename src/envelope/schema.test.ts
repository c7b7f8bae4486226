import { expect, test } from 'vitest'
import { outcome, QUESTION } from '../../test/support/envelopes.ts'
import { verifies } from '../../test/support/verifies.ts'
import { canonicalJson } from '../protocol/canonical-json.ts'
import { parseValue } from '../wire/parse.ts'
import { readEnvelope } from './message.ts'
import { Delta, DELTA_TYPES, INTENTS, Manifest, MessageId, messageKey, StreamId, Timestamp } from './schema.ts'
import { envelopeSchemas } from './schemas.ts'

const V4 = '6f2b1a60-3d7e-4c35-9a5b-0c1d2e3f4a5b'
const read = (more: object) => outcome(() => readEnvelope(JSON.stringify({ ...QUESTION, sig: 'e30..AA', ...more })))
const MALFORMED = '4.00 schema'

/** What becomes of a message with these values of one member. */
async function table(member: string, accepted: readonly unknown[], refused: readonly unknown[]): Promise<void> {
  for (const value of accepted) expect([value, await read({ [member]: value })]).toEqual([value, 'accepted'])
  for (const value of refused) expect([value, await read({ [member]: value })]).toEqual([value, MALFORMED])
}

const IDS = [V4, `urn:uuid:${V4}`, V4.toUpperCase(), `URN:UUID:${V4.toUpperCase()}`, `Urn:Uuid:${V4}`]
const NO_IDS = [
  '2c5ea4c0-4067-11e9-8bad-9b1deb4d3b7d',
  '017f22e2-79b0-7cc3-98c4-dc0c0c07398f',
  '00000000-0000-0000-0000-000000000000',
  'ffffffff-ffff-ffff-ffff-ffffffffffff',
  V4.replace('-9', '-c'),
  V4.replaceAll('-', ''),
  `{${V4}}`,
  `urn:uuid:urn:uuid:${V4}`,
  `urn:${V4}`,
  `${V4}\n`,
  ` ${V4}`,
  `${V4}0`,
  'urn:uuid:1111',
  'yesterday',
  '',
  1,
  null,
  [V4],
]

verifies('envelope:id', 'an id is a UUID of version 4, and stays as it came', async () => {
  await table('id', IDS, NO_IDS)
  for (const id of IDS) expect(readEnvelope(JSON.stringify({ ...QUESTION, sig: '', id })).members['id']).toBe(id)
  expect(new Set(IDS.map(messageKey))).toEqual(new Set([V4]))
})

verifies('envelope:reply-to', 'reply_to, and the ids of context, follow the rule of ids', async () => {
  const hash = `sha256:${'0'.repeat(64)}`
  await table('reply_to', IDS, NO_IDS)
  const inContext = (id: unknown) => [{ id, hash }]
  await table('context', IDS.map(inContext), NO_IDS.map(inContext))
})

verifies('envelope:time-form', 'a time is one in UTC that there is', async () => {
  await table(
    'ts',
    [
      '2026-01-31T12:00:00Z',
      '2026-01-31T12:00:00.123456789Z',
      '2026-01-31T12:00:00+00:00',
      '2024-02-29T23:59:59.9Z',
      '2000-02-29T00:00:00Z',
      '0000-01-01T00:00:00Z',
      '9999-12-31T23:59:59.999Z',
    ],
    [
      '2026-01-31T12:00:00+01:00',
      '2026-01-31T12:00:00-00:00',
      '2026-01-31T12:00:00',
      '2026-01-31 12:00:00Z',
      '2026-01-31t12:00:00z',
      '2026-01-31T12:00Z',
      '2026-01-31T12:00:00,5Z',
      '2026-01-31T12:00:00.Z',
      '2026-01-31T12:00:00.1234567890Z',
      '2016-12-31T23:59:60Z',
      '2026-01-31T24:00:00Z',
      '2026-01-31T12:60:00Z',
      '2026-02-30T00:00:00Z',
      '2026-06-31T00:00:00Z',
      '2025-02-29T00:00:00Z',
      '1900-02-29T00:00:00Z',
      '2026-13-01T00:00:00Z',
      '2026-00-10T00:00:00Z',
      '2026-01-00T00:00:00Z',
      '+012026-01-31T12:00:00Z',
      '-000001-01-31T12:00:00Z',
      '12026-01-31T12:00:00Z',
      '２026-01-31T12:00:00Z',
      '2026-W05-6T12:00:00Z',
      'Sat, 31 Jan 2026 12:00:00 GMT',
      '2026-01-31T12:00:00Z\n',
      '',
      1_769_860_800,
      null,
    ],
  )
})

const URIS = ['did:web:client.example', 'https://a.example/b?c#d', 'urn:x:y%2Fz', 'a:b', `a:${'b'.repeat(2046)}`]
const NO_URIS = [
  'somebody',
  '',
  ':',
  'a:',
  '1a:b',
  'did:web:ä.example',
  'did:web:a b',
  'a:<b>',
  'a:%zz',
  'a:b\n',
  `a:${'b'.repeat(2047)}`,
  1,
  null,
]

verifies('envelope:from', 'from is a URI', () => table('from', URIS, NO_URIS))

verifies('envelope:recipients', 'to names 1 to 64 URIs', () =>
  table(
    'to',
    [...URIS.map((uri) => [uri]), URIS, Array.from({ length: 64 }, () => 'a:b')],
    [...NO_URIS.map((uri) => ['a:b', uri]), [], Array.from({ length: 65 }, () => 'a:b'), 'did:web:worker.example', { 0: 'a:b' }, null],
  ),
)

verifies('envelope:intents', 'the ten intents', () => table('intent', INTENTS, ['gossip', 'ASK', 'Ask', ' ask', '', null, ['ask']]))

verifies('envelope:window-bounds', 'delta_window is a whole number from 1', () =>
  table('delta_window', [1, 64, 1e9, Number.MAX_SAFE_INTEGER], [0, -1, 1.5, 0.5, '64', null, [64], true]),
)

verifies('envelope:unknown-members', 'members that the schema does not have', async () => {
  for (const name of ['mood', 'Id', 'id ', 'toString', 'hasOwnProperty', 'type', '$schema', 'signature', '']) {
    expect([name, await read({ [name]: 'x' })]).toEqual([name, MALFORMED])
  }
})

verifies('envelope:required', 'a message without one of its members', async () => {
  for (const name of ['id', 'ts', 'from', 'to', 'intent', 'body'])
    expect([name, await read({ [name]: undefined })]).toEqual([name, MALFORMED])
  for (const name of ['reply_to', 'context', 'stream_id', 'delta_window', 'cap_token', 'ext']) {
    expect([name, await read({ [name]: undefined })]).toEqual([name, 'accepted'])
  }
  // Who does not sign is not known, which says more than that a member is missing.
  expect(await read({ sig: undefined })).toBe('4.01 signature')
})

test('the other members', async () => {
  const hash = `sha256:${'0'.repeat(64)}`
  await table('sig', ['', 'x'], [null, 1, {}, 'x'.repeat(8193)])
  await table('cap_token', ['', 'x'.repeat(8192)], [null, 1, 'x'.repeat(8193)])
  await table('stream_id', ['str-42', 'x'.repeat(128), '../x'], ['', 'x'.repeat(129), 'a b', 'ä', 'a\n', null, 42])
  await table(
    'context',
    [[], [{ id: V4, hash }], [{ id: V4, hash, more: 1 }], Array.from({ length: 64 }, () => ({ id: V4, hash }))],
    [
      null,
      {},
      [null],
      [{ id: V4 }],
      [{ hash }],
      [{ id: V4, hash: '0'.repeat(64) }],
      [{ id: V4, hash: hash.replace('0', 'A') }],
      [{ id: V4, hash: `${hash}0` }],
      [{ id: V4, hash: hash.replace('sha256', 'SHA256') }],
      Array.from({ length: 65 }, () => ({ id: V4, hash })),
    ],
  )
  const body = { type: 't', content: '' }
  await table(
    'body',
    [body, { ...body, encoding: 'x', compression: 'y' }, { ...body, more: [1] }, { ...body, type: 'x'.repeat(256) }],
    [
      null,
      [],
      'text',
      {},
      { type: 't' },
      { content: '' },
      { ...body, content: 1 },
      { ...body, encoding: null },
      { ...body, type: 'x'.repeat(257) },
    ],
  )
})

verifies('envelope:ext-as-it-came', 'ext is any object, and stays as it came', async () => {
  const ext = { 'x-trace': 'b3:1', '': [null, { a: [[]] }], toString: 1, list: [3.5, -0.25, '😀'] }
  await table('ext', [{}, ext], [null, [], 'x', 1, [ext]])
  const { envelope, members } = readEnvelope(JSON.stringify({ ...QUESTION, sig: '', ext }))
  expect([envelope.ext, members['ext']]).toEqual([ext, ext])
})

test('nothing is added to the members, and nothing is left out', () => {
  const least = {
    id: V4,
    ts: QUESTION.ts,
    from: 'a:b',
    to: ['a:b'],
    intent: 'inform',
    body: { type: 't', content: '', more: { z: 1 } },
    sig: 'x',
  }
  expect(canonicalJson(readEnvelope(JSON.stringify(least)).members)).toBe(canonicalJson(least))
})

test('what is refused is not shown again, and a large one is refused in few words', () => {
  const secret = 'k'.repeat(1_000_000)
  for (const more of [{ [secret]: 1 }, { intent: secret }, { id: secret }, { to: [secret] }, { ext: secret }]) {
    const run = () => readEnvelope(JSON.stringify({ ...QUESTION, sig: 'x', ...more }))
    expect(run).toThrow(/^.{1,250}$/)
    expect(run).not.toThrow('kkk')
  }
})

test('deltas and manifests', async () => {
  const delta = { delta_seq: 0, stream_id: 'str-1', ts: '2026-01-31T12:00:00Z', type: 'chunk' }
  const manifest = { agent: 'uamp/1.0', description: '', intents: [], body_types: [], auth: ['mtls'], limits: {} }
  const deltaWith = (more: object) => outcome(() => parseValue(Delta, { ...delta, ...more }))
  const manifestWith = (more: object) => outcome(() => parseValue(Manifest, { ...manifest, ...more }))
  for (const more of [{}, { payload: {} }, { delta_seq: 1e9 }, ...DELTA_TYPES.map((type) => ({ type }))])
    expect(await deltaWith(more)).toBe('accepted')
  for (const more of [
    { delta_seq: undefined },
    { delta_seq: -1 },
    { delta_seq: 0.5 },
    { type: 'ask' },
    { payload: [] },
    { id: 1 },
    { ts: '' },
  ]) {
    expect(await deltaWith(more)).not.toBe('accepted')
  }
  for (const more of [{}, { agent: 'uamp/1.25' }, { limits: { max_body_kb: 64, rate_lph: 0 } }])
    expect(await manifestWith(more)).toBe('accepted')
  for (const more of [{ agent: 'uamp/1x0' }, { agent: 'uamp/2.0' }, { limits: { x: 1 } }, { did: 'did:web:a' }, { auth: ['basic'] }]) {
    expect(await manifestWith(more)).not.toBe('accepted')
  }
})

test('ids, times and names of streams have the same form alone, as in a path', async () => {
  for (const [schema, good, bad] of [
    [MessageId, V4, `${V4}/..`],
    [Timestamp, QUESTION.ts, 'now'],
    [StreamId, 'str-42', 'a b'],
  ] as const) {
    expect(parseValue(schema, good)).toBe(good)
    expect(await outcome(() => parseValue(schema, bad))).toBe('4.00')
  }
})

test('the published patterns say what is accepted', () => {
  const { $defs } = envelopeSchemas() as { $defs: { Envelope: { properties: Record<string, { pattern: string }> } } }
  const fits = (member: string, value: string) => new RegExp($defs.Envelope.properties[member]?.pattern ?? '^$', 'u').test(value)
  for (const id of IDS) expect(fits('id', id)).toBe(true)
  for (const id of NO_IDS) if (typeof id === 'string') expect(fits('id', id)).toBe(false)
  for (const uri of URIS) expect(fits('from', uri)).toBe(true)
  expect(fits('ts', QUESTION.ts)).toBe(true)
})
