import { describe, expect } from 'vitest'
import { eventCases, type EventCase } from '../../test/support/event-cases.ts'
import { verifies } from '../../test/support/verifies.ts'
import { ServerEvent } from './events.ts'
import { parseClientEvent } from './parse.ts'
import { SystemEvent } from './system-events.ts'

const config = { modalities: ['text'] }
const error = { code: 'agent_offline', message: 'Nobody is there', details: { retry_after: 30 } }
const capabilities = {
  id: 'm-1',
  provider: 'acme',
  modalities: ['text'],
  supports_streaming: true,
  supports_thinking: false,
  supports_caching: false,
}
const usage = {
  input_tokens: 20,
  output_tokens: 10,
  total_tokens: 30,
  cached_tokens: 5,
  input_uncached: 15,
  cache_read: 5,
  cache_write: 0,
  output: 8,
  reasoning: 2,
  cost: { input_cost: 0.1, output_cost: 0.2, total_cost: 0.3, currency: 'USD' },
  audio: { input_seconds: 1.5, output_seconds: 2.5 },
}
const text = { type: 'text', text: 'At nine.' }
const logged = { seq: 7 }
const ofResponse = { seq: 7, response_id: 'resp_1' }
const patch = [{ op: 'add', path: '/a', value: 1 }]

const cases: EventCase[] = [
  {
    verifies: 'uamp:events:session.created',
    event: {
      type: 'session.created',
      ...logged,
      uamp_version: '1.0',
      session: { id: 'sess_1', created_at: 1704067200, config, status: 'active' },
      chat: 'c',
      agent: 'trains',
      extensions: { uamp: { resumed: true } },
    },
    required: ['uamp_version', 'session'],
  },
  { verifies: 'uamp:events:session.updated', event: { type: 'session.updated', ...logged } },
  { verifies: 'uamp:events:session.error', event: { type: 'session.error', ...logged, error }, required: ['error'] },
  { verifies: 'uamp:events:capabilities', event: { type: 'capabilities', ...logged, capabilities }, required: ['capabilities'] },
  { verifies: 'uamp:events:response.created', event: { type: 'response.created', ...ofResponse }, required: ['response_id'] },
  {
    verifies: 'uamp:events:response.delta',
    event: { type: 'response.delta', ...ofResponse, delta: text },
    required: ['response_id', 'delta'],
  },
  {
    verifies: 'uamp:events:response.done',
    event: {
      type: 'response.done',
      ...ofResponse,
      response: { id: 'resp_1', status: 'completed', output: [text], usage, extensions: { a: 1 } },
      signature: 'jwt',
    },
    required: ['response_id', 'response'],
  },
  { verifies: 'uamp:events:response.error', event: { type: 'response.error', ...ofResponse, error }, required: ['error'] },
  {
    verifies: 'uamp:events:response.cancelled',
    event: { type: 'response.cancelled', ...ofResponse, partial_output: [text] },
    required: ['response_id'],
  },
  {
    verifies: 'uamp:events:tool.call',
    event: { type: 'tool.call', ...ofResponse, call_id: 'call_1', name: 'find_trains', arguments: '{"to":"Ulm"}' },
    required: ['call_id', 'name', 'arguments'],
  },
  { verifies: 'uamp:events:tool.call_done', event: { type: 'tool.call_done', ...ofResponse, call_id: 'call_1' }, required: ['call_id'] },
  {
    verifies: 'uamp:events:progress',
    event: {
      type: 'progress',
      ...ofResponse,
      target: 'tool',
      target_id: 'call_1',
      stage: 'looking',
      message: 'Looking …',
      percent: 50,
      step: 1,
      total_steps: 2,
    },
    required: ['target'],
  },
  {
    verifies: 'uamp:events:thinking',
    event: { type: 'thinking', ...ofResponse, content: 'Hm', stage: 'planning', redacted: false, is_delta: true, signature: 's' },
    required: ['content'],
  },
  {
    verifies: 'uamp:events:audio.delta',
    event: { type: 'audio.delta', ...ofResponse, audio: 'AAAA', format: 'pcm16' },
    required: ['audio'],
  },
  { verifies: 'uamp:events:audio.done', event: { type: 'audio.done', ...ofResponse, duration_ms: 900 } },
  {
    verifies: 'uamp:events:transcript.delta',
    event: { type: 'transcript.delta', ...ofResponse, transcript: 'At' },
    required: ['transcript'],
  },
  { verifies: 'uamp:events:transcript.done', event: { type: 'transcript.done', ...ofResponse, transcript: 'At nine.' } },
  {
    verifies: ['uamp:events:usage.delta', 'uamp:events:usage'],
    event: { type: 'usage.delta', ...ofResponse, delta: usage },
    required: ['delta'],
  },
  {
    verifies: 'uamp:events:rate_limit',
    event: { type: 'rate_limit', ...logged, limit: 100, remaining: 0, reset_at: 1704067260 },
    required: ['limit', 'remaining'],
  },
  {
    verifies: 'uamp:events:presence.typing',
    event: { type: 'presence.typing', ...logged, user_id: 'u', username: 'ann', is_typing: true, chat_id: 'c' },
    required: ['user_id', 'is_typing'],
  },
  {
    verifies: 'uamp:events:presence.online',
    event: { type: 'presence.online', ...logged, user_id: 'u', username: 'ann' },
    required: ['user_id'],
  },
  {
    verifies: 'uamp:events:presence.offline',
    event: { type: 'presence.offline', ...logged, user_id: 'u', username: 'ann' },
    required: ['user_id'],
  },
  {
    verifies: 'uamp:events:message.created',
    event: { type: 'message.created', ...logged, message: { id: 'm', content: 'hi', sender: { any: 'thing' } }, chat_id: 'c' },
    required: ['message'],
  },
  {
    verifies: 'uamp:events:payment.required',
    event: {
      type: 'payment.required',
      ...ofResponse,
      requirements: {
        amount: '1.00',
        currency: 'EUR',
        schemes: [{ scheme: 'token', network: 'acme', address: '0x1', min_amount: '0.10', max_amount: '5.00' }],
        expires_at: 1704067500,
        reason: 'tool_call',
        ap2: { mandate_uri: 'https://a', credential_types: ['VC'], checkout_session_uri: 'https://b' },
      },
      extra: { action: 'topup' },
    },
    required: ['requirements'],
  },
  {
    verifies: 'uamp:events:payment.accepted',
    event: { type: 'payment.accepted', ...ofResponse, payment_id: 'p', balance_remaining: '3.00', expires_at: 1704067500 },
    required: ['payment_id'],
  },
  {
    verifies: 'uamp:events:payment.balance',
    event: {
      type: 'payment.balance',
      ...ofResponse,
      balance: '3.00',
      currency: 'EUR',
      low_balance_warning: true,
      estimated_remaining: 12,
      expires_at: 1704067500,
      balance_remaining: '3.00',
      threshold: '5.00',
    },
    required: ['balance', 'currency'],
  },
  {
    verifies: 'uamp:events:payment.error',
    event: {
      type: 'payment.error',
      ...ofResponse,
      code: 'mandate_revoked',
      message: 'No longer',
      balance_required: '1',
      balance_current: '0',
      can_retry: false,
    },
    required: ['code', 'message'],
  },
  { verifies: 'uamp:events:pong', event: { type: 'pong', ...logged } },

  { event: { type: 'x.state.snapshot', ...ofResponse, snapshot: { a: 1 } }, required: ['snapshot'], anything: ['snapshot'] },
  { event: { type: 'x.state.delta', ...ofResponse, delta: patch }, required: ['delta'] },
  { event: { type: 'x.messages.snapshot', ...ofResponse, messages: [{ role: 'user', content: 'hi' }] }, required: ['messages'] },
  {
    event: { type: 'x.activity.snapshot', ...ofResponse, activity_id: 'a', activity_type: 'search', content: { a: 1 }, replace: true },
    required: ['activity_id', 'activity_type', 'content'],
  },
  {
    event: { type: 'x.activity.delta', ...ofResponse, activity_id: 'a', activity_type: 'search', patch },
    required: ['activity_id', 'activity_type', 'patch'],
  },
  { event: { type: 'x.step.started', ...ofResponse, name: 'look' }, required: ['name'] },
  { event: { type: 'x.step.finished', ...ofResponse, name: 'look' }, required: ['name'] },
  {
    event: {
      type: 'x.approval.request',
      ...ofResponse,
      approval_id: 'a',
      message: 'May I?',
      tool_call: { id: 'call_1', name: 'buy', arguments: '{}' },
      options: [{ id: 'once', label: 'Once', kind: 'allow_once' }],
    },
    required: ['approval_id', 'message'],
  },
  {
    event: { type: 'x.plan', ...ofResponse, entries: [{ content: 'look', status: 'pending', priority: 'high' }] },
    required: ['entries'],
  },
  {
    event: { type: 'x.subagent.started', ...ofResponse, subagent_id: 's', name: 'clerk', parent_id: 'p', call_id: 'call_1' },
    required: ['subagent_id', 'name'],
  },
  {
    event: { type: 'x.subagent.finished', ...ofResponse, subagent_id: 's', status: 'completed', result: { a: 1 } },
    required: ['subagent_id', 'status'],
    anything: ['result'],
  },
  { event: { type: 'x.reasoning.encrypted', ...ofResponse, value: 'v', entity_id: 'e', subtype: 's' }, required: ['value'] },
  { event: { type: 'x.custom', ...ofResponse, name: 'n', value: [1] }, required: ['name', 'value'], anything: ['value'] },
  { event: { type: 'x.raw', ...ofResponse, event: { a: 1 }, source: 'acme' }, required: ['event'], anything: ['event'] },
  { event: { type: 'x.ack', ...ofResponse, event_ids: ['e'] }, required: ['event_ids'] },
]

const system: EventCase[] = [
  { event: { type: 'system.error', error }, required: ['error'] },
  { event: { type: 'system.stop', reason: 'enough' } },
  { event: { type: 'system.cancel', reason: 'enough' } },
  { event: { type: 'system.ping' } },
  { event: { type: 'system.pong' } },
  { event: { type: 'system.unroutable', original_event: { type: 'a' } }, required: ['original_event'], anything: ['original_event'] },
]

/** Fails with the paths of what is wrong. */
function reader(schema: typeof ServerEvent | typeof SystemEvent): (event: unknown) => unknown {
  return (event) => {
    const result = schema.safeParse(event)
    if (result.success) return result.data
    throw new Error(result.error.issues.map(({ path }) => path.join('.')).join())
  }
}
const read = reader(ServerEvent)

describe('server events', () => {
  eventCases(cases, read)
})

describe('system events', () => {
  eventCases(system, reader(SystemEvent))
})

describe('their parts', () => {
  const delta = (value: object) => () => read({ type: 'response.delta', event_id: 'e', response_id: 'r', delta: value })

  verifies('uamp:events:delta-kinds', 'a delta has the fields of its kind', () => {
    const kinds = [
      text,
      { type: 'audio', audio: 'AAAA' },
      { type: 'tool_call', tool_call: { id: 'call_1', name: 'find_trains', arguments: '{"to":' } },
      { type: 'tool_result', tool_result: { call_id: 'call_1', result: '{}', status: 'completed' } },
      { type: 'tool_progress', tool_progress: { call_id: 'call_1', text: 'half way' } },
    ]
    for (const kind of kinds) {
      expect(delta(kind)()).toMatchObject({ delta: kind })
      expect(delta({ type: kind.type })).toThrow(`delta.${kind.type}`)
    }
    expect(delta({ type: 'tool_call', tool_call: { id: 'call_1' } })).toThrow('delta.tool_call.name')
    expect(delta({ type: 'tool_result', tool_result: { call_id: 'call_1', result: '', status: 'so so' } })).toThrow(
      'delta.tool_result.status',
    )
    expect(delta({ type: 'smell' })).toThrow('delta.type')
  })

  verifies('uamp:events:session-object', 'a session object needs all four of its fields', () => {
    const session = { id: 's', created_at: 1704067200, config, status: 'closed' }
    const created = (value: object) => () => read({ type: 'session.created', event_id: 'e', uamp_version: '1.0', session: value })
    expect(created(session)()).toMatchObject({ session })
    for (const name of Object.keys(session)) expect(created({ ...session, [name]: undefined }), name).toThrow(`session.${name}`)
    expect(created({ ...session, status: 'asleep' })).toThrow('session.status')
  })

  verifies(['uamp:events:response.done', 'uamp:events:progress'], 'statuses, targets and percents are those of the specification', () => {
    const done = (status: string) => () =>
      read({ type: 'response.done', event_id: 'e', response_id: 'r', response: { id: 'r', status, output: [] } })
    for (const status of ['completed', 'cancelled', 'failed']) expect(done(status)).not.toThrow()
    expect(done('unsure')).toThrow('response.status')
    const progress = (fields: object) => () => read({ type: 'progress', event_id: 'e', ...fields })
    for (const target of ['tool', 'response', 'upload', 'reasoning']) expect(progress({ target, percent: 100 })).not.toThrow()
    expect(progress({ target: 'lunch' })).toThrow('target')
    expect(progress({ target: 'tool', percent: 101 })).toThrow('percent')
  })

  verifies('uamp:events:both-ways', 'what goes both ways can be read on either side', () => {
    for (const event of [
      { type: 'session.end', event_id: 'e', reason: 'timeout', seq: 3 },
      { type: 'message.read', event_id: 'e', chat_id: 'c', user_id: 'u' },
      { type: 'voice.invite', event_id: 'e' },
      { type: 'voice.accept', event_id: 'e' },
      { type: 'voice.decline', event_id: 'e' },
      { type: 'voice.end', event_id: 'e', duration_ms: 3 },
    ]) {
      expect(read(event)).toEqual(event)
      expect(parseClientEvent(event, () => 'new')).toEqual({ kind: 'event', event })
    }
  })
})
