import { describe, expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { eventSchemas } from './schemas.ts'

const CLIENT = `session.create session.update session.end capabilities.query client.capabilities input.text input.audio input.image
  input.video input.file input.typing response.create response.cancel tool.result payment.submit voice.invite voice.accept
  voice.decline voice.end ping`
const SERVER = `session.created session.updated session.error capabilities response.created response.delta response.done
  response.error response.cancelled tool.call tool.call_done progress thinking audio.delta audio.done transcript.delta
  transcript.done usage.delta rate_limit presence.typing presence.online presence.offline message.created message.read
  payment.required payment.accepted payment.balance payment.error voice.accept voice.decline voice.end pong`
const SYSTEM = 'system.error system.stop system.cancel system.ping system.pong system.unroutable'
const EXTENSION = `x.state.snapshot x.state.delta x.messages.snapshot x.activity.snapshot x.activity.delta x.step.started
  x.step.finished x.approval.request x.approval.response x.plan x.subagent.started x.subagent.finished x.reasoning.encrypted
  x.custom x.raw x.ack`

type Node = { readonly [key: string]: unknown }
const words = (text: string) => text.split(/\s+/).toSorted()
const document = eventSchemas()
const defs = document['$defs'] as Record<string, Node>
const group = (name: string) =>
  ((defs[name]?.['oneOf'] ?? []) as { $ref: string }[]).map(({ $ref }) => $ref.slice('#/$defs/'.length)).toSorted()
const notExtensions = (types: readonly string[]) => types.filter((type) => !type.startsWith('x.'))

/** Every object in the document, with the path to it. */
function* nodes(value: unknown, path = '#'): Generator<[string, Node]> {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) yield [path, value as Node]
  for (const [key, member] of Object.entries(value)) yield* nodes(member, `${path}/${key}`)
}

describe('the JSON Schema of the events', () => {
  verifies('uamp:events:client-set', 'a client sends its 20 events, and the read receipt', () => {
    expect(words(CLIENT)).toHaveLength(20)
    expect(notExtensions(group('ClientEvent'))).toEqual([...words(CLIENT), 'message.read'].toSorted())
  })

  verifies('uamp:events:server-set', 'a server sends its 32 events, the end of a session, and an invitation', () => {
    expect(words(SERVER)).toHaveLength(32)
    expect(notExtensions(group('ServerEvent'))).toEqual([...words(SERVER), 'session.end', 'voice.invite'].toSorted())
  })

  verifies('uamp:events:system-set', 'there are six system events, and they are in no other group', () => {
    expect(group('SystemEvent')).toEqual(words(SYSTEM))
    expect([...group('ClientEvent'), ...group('ServerEvent')].filter((type) => type.startsWith('system.'))).toEqual([])
  })

  test('extension events are a group, and belong to whoever sends them', () => {
    expect(group('ExtensionEvent')).toEqual(words(EXTENSION))
    expect(group('ClientEvent').filter((type) => type.startsWith('x.'))).toEqual(['x.approval.response'])
    expect(group('ServerEvent').filter((type) => type.startsWith('x.'))).toEqual(
      words(EXTENSION).filter((type) => type !== 'x.approval.response'),
    )
  })

  test('each event stands under its type and demands it', () => {
    for (const type of [CLIENT, SERVER, SYSTEM, EXTENSION].flatMap(words)) {
      expect(defs[type], type).toMatchObject({ type: 'object', properties: { type: { const: type }, event_id: { type: 'string' } } })
      expect(defs[type]?.['required'], type).toEqual(expect.arrayContaining(['type', 'event_id']))
    }
  })

  test('it is JSON Schema 2020-12 whose references all lead somewhere', () => {
    expect(document['$schema']).toBe('https://json-schema.org/draft/2020-12/schema')
    expect(JSON.parse(JSON.stringify(document))).toEqual(document)
    const names = new Set(Object.keys(defs).map((name) => `#/$defs/${name}`))
    const references = [...nodes(document)].flatMap(([, node]) => (typeof node['$ref'] === 'string' ? [node['$ref']] : []))
    expect(references.length).toBeGreaterThan(100)
    expect(references.filter((reference) => !names.has(reference))).toEqual([])
    const kinds = new Set([...nodes(document)].flatMap(([path, { type }]) => (path.endsWith('/properties') ? [] : [type])))
    expect(kinds).toEqual(new Set(['array', 'boolean', 'number', 'object', 'string', undefined]))
  })

  test('extension slots are objects, and other fields are nowhere forbidden', () => {
    const slots = [...nodes(document)].filter(([path]) => /properties\/(extensions|metadata|context|parameters|offer|answer)$/.test(path))
    expect(slots.length).toBeGreaterThan(50)
    for (const [path, slot] of slots) expect(slot, path).toEqual({ type: 'object' })
    expect([...nodes(document)].filter(([, node]) => node['additionalProperties'] === false)).toEqual([])
  })

  verifies('uamp:capabilities:required', 'capabilities have their six fields', () => {
    expect(defs['Capabilities']?.['required']).toEqual([
      'id',
      'provider',
      'modalities',
      'supports_streaming',
      'supports_thinking',
      'supports_caching',
    ])
  })

  test('limits are part of it', () => {
    expect(defs['SessionConfig']).toMatchObject({ properties: { tools: { maxItems: 128 } } })
    expect(defs['input.text']).toMatchObject({ properties: { messages: { maxItems: 512 } } })
    expect(defs['ToolDefinition']).toMatchObject({
      properties: { function: { properties: { name: { pattern: '^[a-zA-Z0-9_-]{1,64}$' } } } },
    })
  })
})
