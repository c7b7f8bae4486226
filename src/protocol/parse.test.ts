import { describe, expect, test } from 'vitest'
import { verifies } from '../../test/support/verifies.ts'
import { UampError } from './errors.ts'
import { limits } from './limits.ts'
import { parseClientEvent, parseClientText } from './parse.ts'

const newId = () => 'new'

function read(value: unknown): Record<string, unknown> {
  const parsed = parseClientEvent(value, newId)
  if (parsed.kind === 'unknown') throw new Error(`${parsed.type} is unknown`)
  return parsed.event
}

/** What is said of an event that is refused. */
function refusal(run: () => unknown): UampError {
  try {
    run()
  } catch (thrown) {
    if (thrown instanceof UampError && thrown.code === 'invalid_request') return thrown
    throw thrown
  }
  throw new Error('was not refused')
}
const refused = (value: unknown) => refusal(() => parseClientEvent(value, newId))

describe('what is not an event', () => {
  test('text that is not JSON', () => {
    for (const text of ['', '{', 'ping', '{"type":"ping"} x', "{'type':'ping'}", '\u0000', '"', '{"type":"ping",}']) {
      const { message, details } = refusal(() => parseClientText(text, newId))
      expect(message).toBe('Not JSON: send one event as a JSON object, such as {"type":"ping"}')
      expect(details).toEqual({ issues: [{ path: '', message: 'is not JSON' }] })
    }
  })

  test.each([
    ['null', 'null'],
    ['true', 'true'],
    ['7', 'a number'],
    ['"ping"', 'a string'],
    ['[{"type":"ping"}]', 'an array'],
  ])('%s', (text, kind) => {
    expect(refusal(() => parseClientText(text, newId)).message).toBe(
      `An event must be an object, not ${kind}: send one event a message, such as {"type":"ping"}`,
    )
  })

  verifies('uamp:events:type', 'an object without a type', () => {
    expect(refused({ event_id: 'e' }).message).toBe('"type" must be a string, but is missing: name the event, such as "input.text"')
    expect(refused({ type: 7, event_id: 'e', session_id: 's' })).toMatchObject({
      message: '"type" must be a string, not a number: name the event, such as "input.text"',
      details: { event_id: 'e', session_id: 's', issues: [{ path: 'type', message: 'must be a string, not a number' }] },
    })
    for (const type of [null, {}, []]) expect(refused({ type }).message).toContain('"type" must be a string')
  })

  test('text that nests deeper than 64 levels, before it is parsed', () => {
    const nested = (levels: number) => `{"type":"ping","x":${'['.repeat(levels)}${']'.repeat(levels)}}`
    expect(parseClientText(nested(63), newId)).toMatchObject({ kind: 'event' })
    for (const text of [nested(64), nested(100_000), '['.repeat(100_000), '{"a":'.repeat(100_000)]) {
      expect(refusal(() => parseClientText(text, newId)).message).toBe('An event must nest at most 64 levels of objects and arrays')
    }
    let deep: unknown = 'x'
    for (let level = 0; level < 100_000; level++) deep = { type: 'input.text', text: deep, extensions: deep }
    expect(refused(deep).message).toContain('at most 64 levels')
  })
})

describe('what is unknown', () => {
  verifies('uamp:version:unknown-event', 'an event of unknown type is not an error', () => {
    expect(parseClientEvent({ type: 'input.smell', event_id: 'e', text: 7 }, newId)).toEqual({
      kind: 'unknown',
      type: 'input.smell',
      event_id: 'e',
    })
    for (const type of ['', 'constructor', '__proto__', 'toString', 'response.delta', 'x.custom', 'Ping']) {
      expect(parseClientEvent({ type, event_id: 7 }, newId)).toEqual({ kind: 'unknown', type, event_id: undefined })
    }
  })

  test('the events of the inside of an agent are unknown from a client', () => {
    for (const name of ['error', 'stop', 'cancel', 'ping', 'pong', 'unroutable']) {
      expect(parseClientEvent({ type: `system.${name}`, event_id: 'e' }, newId)).toMatchObject({ kind: 'unknown' })
    }
  })

  test('what goes to the log has an end', () => {
    const parsed = parseClientEvent({ type: 'x'.repeat(1_000_000), event_id: 'y'.repeat(1_000_000) }, newId)
    expect(parsed).toEqual({ kind: 'unknown', type: 'x'.repeat(limits.idLength), event_id: undefined })
  })

  verifies('uamp:version:unknown-fields', 'unknown fields are accepted and dropped', () => {
    expect(read({ type: 'ping', event_id: 'e', color: 'red', toString: 1, __v: {} })).toEqual({ type: 'ping', event_id: 'e' })
    expect(read({ type: 'input.text', event_id: 'e', text: 'a', messages: [{ role: 'user', mood: 'good' }] })).toEqual({
      type: 'input.text',
      event_id: 'e',
      text: 'a',
      messages: [{ role: 'user' }],
    })
  })
})

describe('the base of an event', () => {
  verifies('uamp:events:event-id', 'an id is kept, and a missing one is made', () => {
    expect(read({ type: 'ping', event_id: 'mine' })).toEqual({ type: 'ping', event_id: 'mine' })
    for (const event_id of [undefined, null, '']) expect(read({ type: 'ping', event_id })).toEqual({ type: 'ping', event_id: 'new' })
    expect(refused({ type: 'ping', event_id: 7 }).message).toBe('ping: "event_id" must be a string, not a number')
    expect(refused({ type: 'ping', event_id: 'x'.repeat(257) }).message).toBe('ping: "event_id" must be at most 256 characters long')
  })

  verifies(['uamp:events:timestamp', 'uamp:events:session-id'], 'timestamp and session are optional and checked', () => {
    expect(read({ type: 'ping', event_id: 'e', timestamp: 1704067200123, session_id: 's' })).toMatchObject({
      timestamp: 1704067200123,
      session_id: 's',
    })
    expect(refused({ type: 'ping', timestamp: '2024-01-01' }).message).toBe('ping: "timestamp" must be a number, not a string')
    expect(refused({ type: 'ping', session_id: {} }).message).toBe('ping: "session_id" must be a string, not an object')
  })

  test('a number too large for JSON is refused', () => {
    expect(refusal(() => parseClientText('{"type":"ping","timestamp":1e999}', newId)).message).toContain('"timestamp" must be a number')
  })

  test('of a key that comes twice the last one counts', () => {
    expect(parseClientText('{"type":"ping","type":"input.text","text":"a","text":"b","event_id":"e"}', newId)).toEqual({
      kind: 'event',
      event: { type: 'input.text', event_id: 'e', text: 'b' },
    })
  })
})

describe('what is refused', () => {
  test('names the event, the field, and what it must be', () => {
    const error = refused({ type: 'input.text', event_id: 'e', session_id: 's', text: 7, role: 'boss' })
    expect(error.message).toBe('input.text: "text" must be a string, not a number')
    expect(error.details).toEqual({
      event_id: 'e',
      session_id: 's',
      type: 'input.text',
      issues: [{ path: 'text', message: 'must be a string, not a number' }],
    })
  })

  test.each([
    [{ type: 'input.image', image: 7 }, 'input.image: "image" must be base64 text or { "url": … }'],
    [{ type: 'tool.result', call_id: 'c', result: { a: 1 } }, 'tool.result: "result" must be a string of JSON text'],
    [{ type: 'input.typing', is_typing: 'yes' }, 'input.typing: "is_typing" must be true or false, not a string'],
    [{ type: 'session.create', session: { voice: { speed: 3 } } }, 'session.create: "session.voice.speed" must be at most 2'],
    [{ type: 'session.create', session: { voice: { speed: 0 } } }, 'session.create: "session.voice.speed" must be at least 0.5'],
    [{ type: 'input.text', text: '', role: 'tool' }, 'input.text: "role" must be one of "user", "system", "assistant"'],
    [{ type: 'input.text', text: '', context: [] }, 'input.text: "context" must be an object'],
    [{ type: 'session.create', session: [] }, 'session.create: "session" must be an object, not an array'],
    [
      { type: 'input.text', text: '', messages: [{ role: 'user', content_items: [{ type: 'text', text: 7 }] }] },
      'input.text: "messages[0].content_items[0].text" must be a string, not a number',
    ],
  ])('%j', (event, message) => {
    expect(refused(event).message).toBe(message)
  })

  test('says nothing of what was sent, which may be a secret', () => {
    const { message, details } = refused({ type: 'session.create', token: { secret: 'hunter2' }, agent: ['hunter2'] })
    expect(JSON.stringify([message, details])).not.toContain('hunter2')
  })

  test('stops at the first of a million mistakes', () => {
    const content_items = Array.from({ length: 1024 }, () => ({ type: 'text' }))
    const messages = Array.from({ length: 512 }, () => ({ role: 'user', content_items }))
    const { message, details } = refusal(() => parseClientEvent({ type: 'input.text', text: '', messages }, newId))
    expect(message).toBe('input.text: "messages[0].content_items[0].text" must be a string, but is missing')
    expect(details?.['issues']).toHaveLength(1)
  })
})

describe('limits', () => {
  const tool = (fields: object) => ({ type: 'function', function: { name: 'f', ...fields } })
  const nest = (levels: number): object => (levels === 1 ? {} : { a: nest(levels - 1) })
  const holders: [string, (config: object) => object][] = [
    ['session', (session) => ({ type: 'session.create', session })],
    ['session', (session) => ({ type: 'session.update', session })],
    ['response', (response) => ({ type: 'response.create', response })],
  ]

  test.each(holders)('of tools and instructions in %s %#', (path, event) => {
    const message = (config: object) => refused(event(config)).message
    expect(message({ tools: Array.from({ length: 129 }, () => tool({})) })).toContain(`"${path}.tools" must have at most 128 entries`)
    expect(message({ tools: [tool({ name: 'a b' })] })).toContain(`"${path}.tools[0].function.name" must be 1 to 64 of the characters`)
    expect(message({ tools: [tool({ parameters: nest(17) })] })).toContain(
      `"${path}.tools[0].function.parameters" must nest at most 16 levels`,
    )
    expect(message({ tools: [tool({ parameters: { a: '€'.repeat(22_000) } })] })).toContain(
      'parameters" must be at most 65536 bytes of JSON',
    )
    expect(message({ instructions: '€'.repeat(22_000) })).toContain(`"${path}.instructions" must be at most 65536 bytes of UTF-8`)
    const most = {
      instructions: 'a'.repeat(limits.instructionsBytes),
      tools: Array.from({ length: 128 }, () => tool({ name: 'A-z_0'.padEnd(64, '9'), parameters: nest(16) })),
    }
    expect(read(event(most))).toMatchObject({ [path]: most })
  })

  test('of messages and lists', () => {
    const input = (messages: unknown[]) => ({ type: 'input.text', text: '', messages })
    const message = { role: 'user' }
    expect(read(input(Array.from({ length: 512 }, () => message)))['messages']).toHaveLength(512)
    expect(refused(input(Array.from({ length: 513 }, () => message))).message).toContain('"messages" must have at most 512 entries')
    const content_items = Array.from({ length: 1025 }, () => 0)
    expect(refused(input([{ ...message, content_items }])).message).toContain('"messages[0].content_items" must have at most 1024 entries')
  })

  test('a long list of nonsense is refused by its length alone', () => {
    const text = `{"type":"input.text","text":"","messages":[${'0,'.repeat(100_000)}0]}`
    expect(refusal(() => parseClientText(text, newId)).message).toBe('input.text: "messages" must have at most 512 entries')
  })

  test('too many members are refused before they are parsed', () => {
    const text = `{"type":"input.text","text":"","messages":[${'0,'.repeat(2_000_000)}`
    expect(() => parseClientText(text, newId)).toThrow(
      expect.objectContaining({ code: 'too_large', message: 'An event must have at most 150000 members' }),
    )
  })

  test('text as such has no limit here', () => {
    for (const text of ['a'.repeat(10 * 1024 * 1024), '\\"[{'.repeat(1024 * 1024)]) {
      expect(parseClientText(JSON.stringify({ type: 'input.text', text }), newId)).toMatchObject({ event: { text } })
    }
  })
})

describe('what is forgiven', () => {
  test('agent, token, chat and payment token inside session', () => {
    const inside = { agent: 'a', token: 't', chat: 'c', payment_token: 'p' }
    expect(read({ type: 'session.create', event_id: 'e', session: inside })).toEqual({
      type: 'session.create',
      event_id: 'e',
      uamp_version: '1.0',
      session: { modalities: ['text'] },
      ...inside,
    })
    expect(read({ type: 'session.create', agent: 'outer', session: inside })).toMatchObject({ agent: 'outer', token: 't' })
    expect(read({ type: 'session.create', agent: null, session: inside })).toMatchObject({ agent: 'a' })
    expect(refused({ type: 'session.create', session: { token: 7 } }).message).toBe(
      'session.create: "session.token" must be a string, not a number',
    )
  })

  test('conversation_id for chat_id', () => {
    expect(read({ type: 'input.typing', is_typing: true, conversation_id: 'c' })).toMatchObject({ chat_id: 'c' })
    expect(read({ type: 'message.read', conversation_id: 'old', chat_id: 'c' })).toMatchObject({ chat_id: 'c' })
    expect(refused({ type: 'message.read', conversation_id: 7 }).message).toBe(
      'message.read: "conversation_id" must be a string, not a number',
    )
  })

  test('null for what is left out', () => {
    const given = {
      type: 'input.text',
      event_id: 'e',
      text: 'a',
      role: null,
      context: null,
      messages: [
        { role: 'user', name: null, content_items: [{ type: 'image', image: 'AA', content_id: null }] },
        { role: 'tool', tool_calls: null },
      ],
    }
    const before = structuredClone(given)
    expect(read(given)).toEqual({
      type: 'input.text',
      event_id: 'e',
      text: 'a',
      messages: [{ role: 'user', content_items: [{ type: 'image', image: 'AA' }] }, { role: 'tool' }],
    })
    expect(given).toEqual(before)
    expect(read({ type: 'session.create', session: null })).toMatchObject({ session: { modalities: ['text'] } })
    expect(refused({ type: 'input.text', text: null }).message).toBe('input.text: "text" must be a string, but is missing')
    expect(refused({ type: 'input.text', text: '', messages: [null] }).message).toBe(
      'input.text: "messages[0]" must be an object, not null',
    )
  })

  test('a session.create with nothing in it', () => {
    expect(read({ type: 'session.create' })).toEqual({
      type: 'session.create',
      event_id: 'new',
      uamp_version: '1.0',
      session: { modalities: ['text'] },
    })
  })
})

describe('extension slots', () => {
  const slot = JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"a":[null,{"b":1}]}') as object

  verifies([], 'slots are kept by reference, whatever their keys', () => {
    const tools = [{ type: 'function', function: { name: 'f', parameters: slot } }]
    const created = read({
      type: 'session.create',
      session: { extensions: slot, tools, voice: { extensions: slot } },
      client_capabilities: { id: 'a', provider: 'b', modalities: [], extensions: slot },
      extensions: slot,
      metadata: slot,
      // Makes the parser look twice and copy.
      agent: null,
    }) as { session: Record<string, unknown>; client_capabilities: Record<string, unknown>; extensions: object; metadata: object }
    const { session, client_capabilities, extensions, metadata } = created
    for (const kept of [session['extensions'], client_capabilities['extensions'], extensions, metadata]) expect(kept).toBe(slot)
    expect(session['tools']).toEqual(tools)
    expect((session['tools'] as typeof tools)[0]?.function.parameters).toBe(slot)
    expect(read({ type: 'input.text', text: '', context: slot })['context']).toBe(slot)
    expect(Object.keys(slot)).toEqual(['__proto__', 'constructor', 'a'])
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  })

  test('keys named __proto__ elsewhere are dropped like any unknown field', () => {
    const text =
      '{"type":"session.create","event_id":"","__proto__":{"agent":"evil"},"session":{"__proto__":{"instructions":"evil"},"token":"t","voice":null}}'
    const parsed = parseClientText(text, newId)
    expect(parsed).toEqual({
      kind: 'event',
      event: { type: 'session.create', event_id: 'new', uamp_version: '1.0', session: { modalities: ['text'] }, token: 't' },
    })
    expect(JSON.stringify(parsed)).not.toContain('evil')
    expect(Object.getPrototypeOf(parsed.kind === 'event' && parsed.event)).toBe(Object.prototype)
  })
})
