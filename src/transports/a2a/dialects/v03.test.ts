import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Message, Part, Struct } from '../model.ts'
import { parseParams } from '../request.ts'
import { partIn } from '../../../wire/a2a/parts.ts'
import { protoEvent, protoMessage, protoPush, protoTask, toMessageSendParams, toSetPushParams } from './v03-proto.ts'
import { LoosePart, Message as WireMessage, MessageSendParams, Part as WirePart, Push, SetPushParams } from './v03-schema.ts'
import { fromEvent, fromMessage, fromPush, fromTask, toMessage, toPart, toPush, toSendRequest } from './v03.ts'

const overTheWire = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

const word = fc.string({ minLength: 1, maxLength: 12 })
const key = word.filter((name) => !['uamp', 'data_part_compat', '__proto__'].includes(name))
const json = fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.parse(JSON.stringify(value)) as Struct[string])
const struct = fc.dictionary(key, json, { minKeys: 1, maxKeys: 3 }).map((value) => ({ ...value }) as Struct)
const bytes = fc.uint8Array({ maxLength: 9 }).map((array) => btoa(String.fromCharCode(...array)))

const content = fc.oneof(
  fc.record({ text: fc.string() }),
  fc.record({ raw: bytes }),
  fc.record({ url: fc.webUrl() }),
  fc.record({ data: json }),
)
const optional = fc.record({ filename: word, mediaType: word, metadata: struct }, { requiredKeys: [] })
const part: fc.Arbitrary<Part> = fc.tuple(content, optional).map(([first, rest]) => ({ ...first, ...rest }))

const message: fc.Arbitrary<Message> = fc
  .tuple(
    fc.record({ messageId: word, role: fc.constant('ROLE_USER' as const), parts: fc.array(part, { minLength: 1, maxLength: 4 }) }),
    fc.record(
      {
        contextId: word,
        taskId: word,
        metadata: struct,
        extensions: fc.array(word, { maxLength: 3 }),
        referenceTaskIds: fc.array(word, { maxLength: 3 }),
      },
      { requiredKeys: [] },
    ),
  )
  .map(([required, more]) => ({ ...required, ...more }))

describe('what 0.3 can say comes back as it went', () => {
  test('a message', () => {
    fc.assert(
      fc.property(message, (given) => {
        expect(toMessage(parseParams(WireMessage, overTheWire(fromMessage(given))))).toEqual(given)
      }),
    )
  })

  test('a message as ProtoJSON', () => {
    fc.assert(
      fc.property(message, (given) => {
        const body = toMessageSendParams(overTheWire({ request: protoMessage(given) }))
        expect(toMessage(parseParams(MessageSendParams, body).message)).toEqual(given)
      }),
    )
  })

  test('a part of 0.1', () => {
    fc.assert(
      fc.property(part, (given) => {
        expect(toPart(parseParams(LoosePart, overTheWire(partIn('type')(given))))).toEqual(given)
      }),
    )
  })

  test('a push configuration', () => {
    const config = {
      id: 'c',
      taskId: 't',
      url: 'https://a.example/hook',
      token: 'x',
      authentication: { scheme: 'Bearer', credentials: 'y' },
    }
    expect(fromPush(config)).toEqual({
      taskId: 't',
      pushNotificationConfig: {
        id: 'c',
        url: 'https://a.example/hook',
        token: 'x',
        authentication: { schemes: ['Bearer'], credentials: 'y' },
      },
    })
    const back = parseParams(SetPushParams, fromPush(config))
    expect({ ...toPush(back.pushNotificationConfig), taskId: back.taskId }).toEqual(config)
    const proto = parseParams(SetPushParams, toSetPushParams({ ...protoPush(config), taskId: 't' }))
    expect({ ...toPush(proto.pushNotificationConfig), taskId: proto.taskId }).toEqual(config)
  })
})

test('parts have the forms of 0.3', () => {
  const shown = [
    [{ text: 'a' }, { kind: 'text', text: 'a' }],
    [
      { raw: 'AAEC', mediaType: 'image/png', filename: 'a.png' },
      { kind: 'file', file: { bytes: 'AAEC', mimeType: 'image/png', name: 'a.png' } },
    ],
    [{ url: 'https://a.example/b' }, { kind: 'file', file: { uri: 'https://a.example/b' } }],
    [
      { data: { a: 1 }, metadata: { m: true } },
      { kind: 'data', data: { a: 1 }, metadata: { m: true } },
    ],
    [{ data: [1, 2] }, { kind: 'data', data: { value: [1, 2] }, metadata: { data_part_compat: true } }],
    [
      { text: '# a', mediaType: 'text/markdown' },
      { kind: 'text', text: '# a', metadata: { uamp: { mediaType: 'text/markdown' } } },
    ],
  ] as const satisfies readonly (readonly [Part, object])[]
  for (const [given, wire] of shown) expect(partIn('kind')(given)).toEqual(wire)
})

const status = { state: 'TASK_STATE_CANCELED', timestamp: '2025-01-01T00:00:00.000Z' } as const

test('tasks and events have the forms of 0.3, in JSON-RPC and in REST', () => {
  const task = {
    id: 't',
    contextId: 'c',
    status: { ...status, message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'bye' }] } },
    artifacts: [{ artifactId: 'a', name: 'n', parts: [{ data: { x: 1 } }] }],
    history: [{ messageId: 'u', role: 'ROLE_USER', parts: [{ raw: 'AAEC' }] }],
    metadata: { k: 1 },
  } as const
  expect(fromTask(task)).toEqual({
    kind: 'task',
    id: 't',
    contextId: 'c',
    status: {
      state: 'canceled',
      timestamp: status.timestamp,
      message: { kind: 'message', messageId: 'm', role: 'agent', parts: [{ kind: 'text', text: 'bye' }] },
    },
    artifacts: [{ artifactId: 'a', name: 'n', parts: [{ kind: 'data', data: { x: 1 } }] }],
    history: [{ kind: 'message', messageId: 'u', role: 'user', parts: [{ kind: 'file', file: { bytes: 'AAEC' } }] }],
    metadata: { k: 1 },
  })
  expect(protoTask(task)).toEqual({
    id: 't',
    contextId: 'c',
    status: {
      state: 'TASK_STATE_CANCELLED',
      timestamp: status.timestamp,
      message: { messageId: 'm', role: 'ROLE_AGENT', content: [{ text: 'bye' }] },
    },
    artifacts: [{ artifactId: 'a', name: 'n', parts: [{ data: { data: { x: 1 } } }] }],
    history: [{ messageId: 'u', role: 'ROLE_USER', content: [{ file: { fileWithBytes: 'AAEC' } }] }],
    metadata: { k: 1 },
  })
  const place = { taskId: 't', contextId: 'c' }
  expect(fromEvent({ statusUpdate: { ...place, status } })).toEqual({
    kind: 'status-update',
    ...place,
    status: { state: 'canceled', timestamp: status.timestamp },
    final: true,
  })
  const update = { artifactUpdate: { ...place, artifact: { artifactId: 'a', parts: [{ text: 'x' }] }, append: true, lastChunk: false } }
  expect(fromEvent(update)).toEqual({
    kind: 'artifact-update',
    ...place,
    artifact: { artifactId: 'a', parts: [{ kind: 'text', text: 'x' }] },
    append: true,
    lastChunk: false,
  })
  expect(protoEvent(update)).toEqual(update)
})

test('only what ends a stream is final', () => {
  const states = ['SUBMITTED', 'WORKING', 'INPUT_REQUIRED', 'AUTH_REQUIRED', 'COMPLETED', 'FAILED', 'REJECTED', 'CANCELED'] as const
  const final = states.map((state) => {
    const event = { statusUpdate: { taskId: 't', contextId: 'c', status: { ...status, state: `TASK_STATE_${state}` as const } } }
    return (fromEvent(event) as { final: boolean }).final
  })
  expect(final).toEqual([false, false, true, false, true, true, true, true])
})

test('who does not say whether to block is kept waiting, but ProtoJSON leaves out what is false', () => {
  const message = { messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'a' }] }
  const rpc = (configuration?: object) => toSendRequest(parseParams(MessageSendParams, { message, configuration })).returnImmediately
  const rest = (configuration?: object) =>
    toSendRequest(parseParams(MessageSendParams, toMessageSendParams({ message, configuration }))).returnImmediately
  expect([rpc(), rpc({}), rpc({ blocking: true }), rpc({ blocking: false })]).toEqual([false, false, false, true])
  expect([rest(), rest({}), rest({ blocking: true }), rest({ blocking: false })]).toEqual([false, true, false, true])
})

test('REST takes ProtoJSON with either names, and what JSON-RPC has', () => {
  const wanted = {
    message: {
      messageId: 'm',
      role: 'ROLE_USER',
      contextId: 'c',
      parts: [{ text: 'a' }, { url: 'https://a.example/b', mediaType: 'text/csv' }, { raw: 'AAEC' }, { data: { file_with_uri: 1 } }],
    },
    generation: '0.3',
    returnImmediately: true,
    historyLength: 2,
    acceptedOutputModes: ['text/plain'],
    push: { url: 'https://a.example/hook' },
  }
  const bodies = [
    {
      message: {
        message_id: 'm',
        role: 'ROLE_USER',
        context_id: 'c',
        content: [
          { text: 'a' },
          { file: { file_with_uri: 'https://a.example/b', mime_type: 'text/csv' } },
          { file: { file_with_uri: '', file_with_bytes: 'AAEC' } },
          { data: { data: { file_with_uri: 1 } } },
        ],
      },
      configuration: {
        accepted_output_modes: ['text/plain'],
        history_length: 2,
        push_notification: { url: 'https://a.example/hook', token: '' },
      },
    },
    {
      message: {
        kind: 'message',
        messageId: 'm',
        role: 'user',
        contextId: 'c',
        parts: [
          { kind: 'text', text: 'a' },
          { kind: 'file', file: { uri: 'https://a.example/b', mimeType: 'text/csv' } },
          { kind: 'file', file: { bytes: 'AAEC' } },
          { kind: 'data', data: { file_with_uri: 1 } },
        ],
      },
      configuration: {
        acceptedOutputModes: ['text/plain'],
        historyLength: 2,
        blocking: false,
        pushNotificationConfig: { url: 'https://a.example/hook' },
      },
    },
  ]
  for (const body of bodies) expect(toSendRequest(parseParams(MessageSendParams, toMessageSendParams(body)))).toEqual(wanted)
})

test.each([
  ['no parts', { messageId: 'm', role: 'user', parts: [] }, /"parts" must have at least one part/],
  ['an unknown role', { messageId: 'm', role: 'ROLE_USER', parts: [{ kind: 'text', text: '' }] }, /"role" must be "user"/],
  ['no id', { role: 'user', parts: [{ kind: 'text', text: '' }] }, /"messageId" must be a string, but is missing/],
  ['an unknown kind', { messageId: 'm', role: 'user', parts: [{ kind: 'image' }] }, /"parts\[0\].kind" must be one of/],
  [
    'another kind of object',
    { kind: 'task', messageId: 'm', role: 'user', parts: [{ kind: 'text', text: '' }] },
    /"kind" must be "message"/,
  ],
])('a message with %s is refused', (_, wire, message) => {
  expect(() => parseParams(WireMessage, wire)).toThrow(message)
})

test.each([
  ['bytes and a uri', { kind: 'file', file: { bytes: 'AAEC', uri: 'https://a.example' } }, /either "bytes" or "uri"/],
  ['neither', { kind: 'file', file: { name: 'a' } }, /either "bytes" or "uri"/],
  ['no base64', { kind: 'file', file: { bytes: '!' } }, /must be base64/],
  ['no address', { kind: 'file', file: { uri: 'somewhere' } }, /must be an absolute URL/],
  ['data that is no object', { kind: 'data', data: [1] }, /"data" must be an object/],
])('a part with %s is refused', (_, wire, message) => {
  expect(() => parseParams(WirePart, wire)).toThrow(message)
})

test('a token with a line break cannot become a header', () => {
  expect(() => parseParams(Push, { url: 'https://a.example', token: 'a\r\nb: c' })).toThrow(/"token" must be one line/)
})
