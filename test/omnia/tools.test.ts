import { describe, expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { coin } from '../support/money.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket } from '../support/wire.ts'
import { OmniaClient, typesOf, type Heard } from './omnia-client.ts'

const WEATHER = {
  type: 'function' as const,
  function: { name: 'weather', parameters: { type: 'object', properties: { location: { type: 'string' } } } },
}
const ask = '/tool weather {"location":"San Francisco"}'

describe('tools of the client', () => {
  verifies(['omnia.tool-call', 'omnia.tool-ack'], 'are called, acknowledged, answered', async () => {
    const { url } = await startServer(demo(), { omnia: { clientTools: [WEATHER], limits: { toolAckMs: 60_000 } } })
    const client = await OmniaClient.open(url)
    const call = await client.ask({ type: 'message', session_id: client.sessionId, content: ask }, 'tool_call')
    expect(call).toMatchObject({ session_id: client.sessionId, timestamp: expect.any(String) })
    expect(call['tool_call']).toEqual({ id: expect.any(String), name: 'weather', arguments: { location: 'San Francisco' } })
    const { id } = call['tool_call']
    client.send({ type: 'tool_call_ack', tool_call_ack: { call_id: id } })
    client.send({ type: 'tool_result', tool_result: { call_id: id, result: { temperature: 72 } } })
    expect((await client.next('done'))['content']).toBe('weather answered: {"temperature":72}')
    expect(typesOf(client.heard as Heard[]).filter((type) => type.startsWith('tool'))).toEqual(['tool_call'])
  })

  verifies(
    'omnia.tool-call',
    'can be named by a client that knows us, and need no acknowledgement when the result comes at once',
    async () => {
      const { url } = await startServer(demo())
      const client = await OmniaClient.open(url)
      const call = await client.ask({ type: 'message', session_id: client.sessionId, content: ask, ext: { tools: [WEATHER] } }, 'tool_call')
      client.send({ type: 'tool_result', tool_result: { call_id: call['tool_call'].id, result: '72°F, Sunny' } })
      expect((await client.next('done'))['content']).toBe('weather answered: 72°F, Sunny')
    },
  )

  verifies('omnia.tool-nack', 'can be rejected, or fail', async () => {
    const { url } = await startServer(demo(), { omnia: { clientTools: [WEATHER] } })
    const client = await OmniaClient.open(url)
    const refusals = [
      (call_id: string) => ({ type: 'tool_call_nack', tool_call_nack: { call_id, reason: 'tool not supported' } }),
      (call_id: string) => ({ type: 'tool_result', tool_result: { call_id, error: 'tool not supported' } }),
    ]
    for (const refuse of refusals) {
      const call = await client.ask({ type: 'message', session_id: client.sessionId, content: ask }, 'tool_call')
      client.send(refuse(call['tool_call'].id as string))
      expect((await client.next('done'))['content']).toBe('weather failed: tool not supported')
    }
  })

  verifies('omnia.tool-ack', 'fail when nobody acknowledges them, or nobody answers then', async () => {
    const { url } = await startServer(demo(), { omnia: { clientTools: [WEATHER], limits: { toolAckMs: 20, toolResultMs: 20 } } })
    const client = await OmniaClient.open(url)
    expect((await client.say(ask)).at(-1)?.['content']).toBe('weather failed: client did not acknowledge tool call within timeout')
    const patient = await startServer(demo(), { omnia: { clientTools: [WEATHER], limits: { toolAckMs: 60_000, toolResultMs: 20 } } })
    const second = await OmniaClient.open(patient.url)
    const call = await second.ask({ type: 'message', session_id: second.sessionId, content: ask }, 'tool_call')
    second.send({ type: 'tool_call_ack', tool_call_ack: { call_id: call['tool_call'].id } })
    expect((await second.next('done'))['content']).toBe('weather failed: client did not answer tool call within timeout')
  })

  verifies('omnia.tool-unmatched', 'a result for no call is an error, an acknowledgement of none is not', async () => {
    const { url } = await startServer(demo())
    const client = await OmniaClient.open(url)
    client.send({ type: 'tool_call_ack', tool_call_ack: { call_id: 'none' } })
    expect(await client.fails({ type: 'tool_result', tool_result: { call_id: 'none', result: 1 } })).toMatchObject({
      code: 'INVALID_MESSAGE',
      message: 'no pending tool call',
    })
    expect((await client.say('hi')).at(-1)?.['content']).toBe('You said: hi')
  })

  test('several at once are told apart', async () => {
    const agent = defineAgent('demo', async function* (turn) {
      const [one, two] = await Promise.all(
        ['one', 'two'].map((name) => turn.ask('tool.call', { call_id: name, name, arguments: '{}' }, { key: name })),
      )
      yield { type: 'response.delta', delta: { type: 'text', text: `${one?.result} ${two?.result}` } }
    })
    const { url } = await startServer(agent)
    const client = await OmniaClient.open(url)
    client.send({ type: 'message', content: 'go' })
    await client.next('tool_call')
    await client.next('tool_call')
    for (const call_id of ['two', 'one']) client.send({ type: 'tool_result', tool_result: { call_id, result: `${call_id}!` } })
    expect((await client.next('done'))['content']).toBe('one! two!')
  })
})

describe('tools of the agent', () => {
  const add = '/tool add {"a":1,"b":2}'

  test('are its own business', async () => {
    const { url } = await startServer(demo())
    const client = await OmniaClient.open(url)
    expect(new Set(typesOf(await client.say(add)))).toEqual(new Set(['chunk', 'done']))
  })

  verifies('omnia.tool-messages', 'are shown where that is switched on, and those of the client only as calls', async () => {
    const { url } = await startServer(demo(), { omnia: { toolMessages: true, clientTools: [WEATHER] } })
    const client = await OmniaClient.open(url)
    const shown = (await client.say(add)).filter(({ type }) => type.startsWith('tool'))
    expect(shown).toMatchObject([
      { type: 'tool_call', tool_call: { name: 'add', arguments: { a: 1, b: 2 } } },
      { type: 'tool_result', tool_result: { result: expect.anything() } },
    ])
    expect(shown[0]?.['tool_call'].id).toBe(shown[1]?.['tool_result'].id)
    const failed = (await client.say('/tool add {}')).find(({ type }) => type === 'tool_result')
    expect(failed?.['tool_result'].error).toContain('invalid_request')
    const from = client.heard.length
    const call = await client.ask({ type: 'message', session_id: client.sessionId, content: ask }, 'tool_call')
    client.send({ type: 'tool_result', tool_result: { call_id: call['tool_call'].id, result: 'sun' } })
    await client.next('done')
    expect(typesOf((client.heard as Heard[]).slice(from)).filter((type) => type.startsWith('tool'))).toEqual(['tool_call'])
  })

  verifies('omnia.tool-messages', 'are shown when their arguments, which come in pieces, are whole', async () => {
    const agent = defineAgent('demo', async function* () {
      for (const piece of ['{"a":{}', ',"b":"}"', '}']) {
        yield { type: 'response.delta', delta: { type: 'tool_call', tool_call: { id: 'c', name: 'f', arguments: piece } } }
      }
      yield { type: 'response.delta', delta: { type: 'tool_call', tool_call: { id: 'd', name: 'g', arguments: '' } } }
      for (const call_id of ['c', 'd'])
        yield { type: 'response.delta', delta: { type: 'tool_result', tool_result: { call_id, result: 'ok' } } }
    })
    const { url } = await startServer(agent, { omnia: { toolMessages: true } })
    const client = await OmniaClient.open(url)
    expect((await client.say('go')).slice(0, -1).map(({ tool_call, tool_result }) => tool_call ?? tool_result)).toEqual([
      { id: 'c', name: 'f', arguments: { a: {}, b: '}' } },
      { id: 'c', result: 'ok' },
      { id: 'd', name: 'g', arguments: {} },
      { id: 'd', result: 'ok' },
    ])
  })
})

verifies('omnia.consent', 'what must be allowed is asked with a consent message', async () => {
  const { url } = await startServer(demo())
  const client = await OmniaClient.open(url)
  const answers = [
    [(call_id: string) => ({ type: 'tool_result', tool_result: { call_id, result: true } }), 'Approved: to delete it'],
    [(call_id: string) => ({ type: 'tool_call_nack', tool_call_nack: { call_id, reason: 'no!' } }), 'Denied: to delete it (no!)'],
  ] as const
  for (const [answer, expected] of answers) {
    const call = await client.ask({ type: 'message', session_id: client.sessionId, content: '/approve to delete it' }, 'tool_call')
    expect(call['tool_call']).toMatchObject({ consent_message: 'to delete it', arguments: {} })
    client.send(answer(call['tool_call'].id as string))
    expect((await client.next('done'))['content']).toBe(expected)
  }
})

test('consent that was asked for before a break is given after it', async () => {
  const { url } = await startServer(demo())
  const client = await OmniaClient.open(url)
  const call = await client.ask({ type: 'message', session_id: client.sessionId, content: '/approve to delete it' }, 'tool_call')
  client.socket.terminate()
  await expect.poll(async () => (await fetch(`${url}/metrics`)).text()).toMatch(/sockets\S* 0$/m)
  const back = await OmniaClient.open(url, { path: `/omnia?agent=demo&resume=${client.sessionId}` })
  const answer = { type: 'tool_result', tool_result: { call_id: call['tool_call'].id, result: true } }
  expect((await back.ask(answer, 'done'))['content']).toBe('Approved: to delete it')
})

describe('who only watches', () => {
  const limits = { toolAckMs: 100, toolResultMs: 60_000 }
  const approve = '/approve to delete it'

  /** Waits as long as a call waits that nobody acknowledges: one that was put before has failed by then, if it fails. */
  async function untilLate(url: string): Promise<void> {
    const other = await OmniaClient.open(url)
    expect((await other.say(ask, { ext: { tools: [WEATHER] } })).at(-1)?.['content']).toMatch(/^weather failed: client did not acknowledge/)
  }

  verifies('omnia.tool-ack', 'did not acknowledge a call, and so answered it for the client that works on it', async () => {
    const { url } = await startServer(demo(), { omnia: { clientTools: [WEATHER], limits } })
    const client = await OmniaClient.open(url)
    const watcher = await OmniaClient.open(url, { path: `/omnia?agent=demo&resume=${client.sessionId}` })
    const call = await client.ask({ type: 'message', session_id: client.sessionId, content: ask }, 'tool_call')
    client.send({ type: 'tool_call_ack', tool_call_ack: { call_id: call['tool_call'].id } })
    await watcher.next('tool_call')
    await untilLate(url)
    client.send({ type: 'tool_result', tool_result: { call_id: call['tool_call'].id, result: 'sun' } })
    for (const each of [client, watcher]) expect((await each.next('done'))['content']).toBe('weather answered: sun')
  })

  verifies('omnia.tool-ack', 'may acknowledge a call, and answer it', async () => {
    const { url } = await startServer(demo(), { omnia: { clientTools: [WEATHER], limits } })
    const client = await OmniaClient.open(url)
    const watcher = await OmniaClient.open(url, { path: `/omnia?agent=demo&resume=${client.sessionId}` })
    client.send({ type: 'message', session_id: client.sessionId, content: ask })
    const { id } = (await watcher.next('tool_call'))['tool_call']
    watcher.send({ type: 'tool_call_ack', tool_call_ack: { call_id: id } })
    await untilLate(url)
    watcher.send({ type: 'tool_result', tool_result: { call_id: id, result: 'sun' } })
    expect((await client.next('done'))['content']).toBe('weather answered: sun')
  })

  test('a session of another protocol refused for its client what that was asked', async () => {
    const { url } = await startServer(demo(), { omnia: { limits } })
    const owner = await overWebSocket(url)
    const session = await owner.open({ session: { modalities: ['text'], tools: [WEATHER] } })
    const watcher = await OmniaClient.open(url, { path: `/omnia?agent=demo&resume=${session}` })
    const questions = [
      [ask, 'tool.call', (id: string) => ({ type: 'tool.result', call_id: id, result: 'sun' }), 'weather answered: sun'],
      [
        approve,
        'x.approval.request',
        (id: string) => ({ type: 'x.approval.response', approval_id: id, approved: true }),
        'Approved: to delete it',
      ],
    ] as const
    for (const [content, type, answer, expected] of questions) {
      await owner.send({ type: 'input.text', text: content })
      await owner.send({ type: 'response.create' })
      const question = await owner.next(type)
      await watcher.next('tool_call')
      await untilLate(url)
      await owner.send(answer((question['call_id'] ?? question['approval_id']) as string))
      expect((await watcher.next('done'))['content']).toBe(expected)
    }
    owner.close()
  })
})

describe('payment', () => {
  const shop = defineAgent('demo', async function* (turn) {
    const said = turn.messages.at(-1)?.content
    if (said === 'buy') {
      const { payment } = await turn.ask('payment.required', { requirements: { amount: '0.01', currency: 'USD' } })
      yield { type: 'response.delta', delta: { type: 'text', text: `paid with a ${payment.scheme}` } }
    } else {
      yield { type: 'response.delta', delta: { type: 'text', text: `${said}` } }
    }
  })

  verifies('omnia.payment-asked', 'is asked for with every way to pay, and a token in the metadata pays', async () => {
    const server = await startServer(shop)
    const client = await OmniaClient.open(server.url)
    const message = { type: 'message', session_id: client.sessionId, content: 'buy' }
    const error = await client.fails(message)
    expect(error).toMatchObject({ code: 'PAYMENT_REQUIRED', details: { accepts: [{ scheme: 'token', amount: '0.01', currency: 'USD' }] } })
    const done = await client.ask({ ...message, metadata: { payment_token: await coin(server, '0.01') } }, 'done')
    expect(done['content']).toBe('paid with a token')
  })

  verifies('omnia.payment-asked', 'may be left, and something else said', async () => {
    const { url } = await startServer(shop)
    const client = await OmniaClient.open(url)
    await client.fails({ type: 'message', session_id: client.sessionId, content: 'buy' })
    const answer = await client.say('something else')
    expect(typesOf(answer)).toEqual(['chunk', 'done'])
    expect(answer.at(-1)?.['content']).toBe('something else')
  })

  test('that was asked for before a break could not be made after it', async () => {
    const server = await startServer(shop)
    const { url } = server
    const client = await OmniaClient.open(url)
    const metadata = { payment_token: await coin(server, '0.01') }
    const message = { type: 'message', session_id: client.sessionId, content: 'buy', metadata }
    await client.fails({ ...message, metadata: {} })
    client.socket.terminate()
    await expect.poll(async () => (await fetch(`${url}/metrics`)).text()).toMatch(/sockets\S* 0$/m)
    const back = await OmniaClient.open(url, { path: `/omnia?agent=demo&resume=${client.sessionId}` })
    expect((await back.ask(message, 'done'))['content']).toBe('paid with a token')
  })
})
