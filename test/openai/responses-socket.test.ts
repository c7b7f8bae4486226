import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import { startServer } from '../support/server.ts'
import { refusedUpgrade } from '../support/test-server.ts'
import { verifies } from '../support/verifies.ts'
import { client, deltasOf, fn, type Json, type Told } from './responses-wire.ts'

const ENDS = new Set(['response.completed', 'response.incomplete', 'response.failed', 'error'])

async function connect(url: string, path = '/v1/responses', headers: Record<string, string> = {}) {
  const socket = new WebSocket(url.replace('http', 'ws') + path, { headers })
  onTestFinished(() => socket.terminate())
  const heard: Told[] = []
  let wake = (): void => undefined
  socket.on('message', (data: Buffer) => {
    heard.push(JSON.parse(data.toString()) as Told)
    wake()
  })
  await new Promise<void>((resolve, reject) => socket.once('open', resolve).once('error', reject))
  const until = async (fits: () => boolean): Promise<void> => {
    while (!fits()) await new Promise<void>((resolve) => (wake = resolve))
  }
  return {
    socket,
    heard,
    until,
    /** The events of one answer, or the error instead of it. */
    async ask(event: object | string): Promise<Told[]> {
      const from = heard.length
      socket.send(typeof event === 'string' ? event : JSON.stringify({ type: 'response.create', ...event }))
      await until(() => heard.slice(from).some(({ type }) => ENDS.has(type)))
      return heard.slice(from)
    },
  }
}

const server = (agents: AgentPort | readonly AgentPort[] = demo(), options: Parameters<typeof startServer>[1] = {}) =>
  startServer(agents, options)

verifies('openai-responses.socket-unstored', 'an unstored response is gone on from on its own socket, and on no other', async () => {
  const { url } = await server(demo(), { tokens: { alice: 'alice-0123456789abcdef' } })
  const headers = { authorization: 'Bearer alice-0123456789abcdef' }
  const wire = await connect(url, '/v1/responses', headers)
  const idOf = (events: readonly Told[]): string => (events.at(-1)?.['response'] as Json)['id'] as string
  const first = await wire.ask({ model: 'demo', input: 'one', store: false })
  const second = await wire.ask({ model: 'demo', input: 'two', store: false, previous_response_id: idOf(first) })
  expect((second.at(-1)?.['response'] as Json)['previous_response_id']).toBe(idOf(first))
  const third = await wire.ask({ model: 'demo', input: '/history', previous_response_id: idOf(second), store: false })
  for (const said of ['one', 'You said: one', 'two', 'You said: two']) expect(deltasOf(third)).toContain(said)
  // An earlier one is still there: that forks the conversation.
  const fork = await wire.ask({ model: 'demo', input: '/history', previous_response_id: idOf(first), store: false })
  expect(deltasOf(fork)).toContain('You said: one')
  expect(deltasOf(fork)).not.toContain('two')

  const called = await wire.ask({ model: 'demo', input: '/tool f {}', tools: [fn('f')], store: false })
  const { call_id } = (called.at(-1)?.['response'] as Json)['output'].find(({ type }: Json) => type === 'function_call') as Json
  const output = [{ type: 'function_call_output', call_id, output: 'sun' }]
  const answered = await wire.ask({ model: 'demo', input: output, tools: [fn('f')], store: false, previous_response_id: idOf(called) })
  expect(deltasOf(answered)).toContain('sun')

  const other = await connect(url, '/v1/responses', headers)
  const refused = await other.ask({ model: 'demo', input: 'x', previous_response_id: idOf(first) })
  expect(refused.at(-1)).toMatchObject({ type: 'error', status: 400, error: { code: 'previous_response_not_found' } })
  // Nobody goes on from a response whose next turn has failed.
  const again = await wire.ask({ model: 'demo', input: 'again', store: false })
  const stray = [{ type: 'function_call_output', call_id: 'call_missing', output: 'x' }]
  const failed = await wire.ask({ model: 'demo', input: stray, store: false, previous_response_id: idOf(again) })
  expect(failed.at(-1)).toMatchObject({ type: 'error', status: 400 })
  const evicted = await wire.ask({ model: 'demo', input: 'x', store: false, previous_response_id: idOf(again) })
  expect(evicted.at(-1)).toMatchObject({ type: 'error', error: { code: 'previous_response_not_found' } })
  // After sixteen others the first one is forgotten.
  for (let n = 0; n < 16; n++) await wire.ask({ model: 'demo', input: `${n}`, store: false })
  const late = await wire.ask({ model: 'demo', input: 'x', store: false, previous_response_id: idOf(first) })
  expect(late.at(-1)).toMatchObject({ type: 'error', error: { code: 'previous_response_not_found' } })
})

verifies('openai-responses.websocket', 'several responses in sequence on one socket, each going on from the last', async () => {
  const { url } = await server()
  const wire = await connect(url)
  const first = await wire.ask({ model: 'demo', input: 'one' })
  expect(deltasOf(first)).toBe('You said: one')
  expect(first.map(({ sequence_number }) => sequence_number)).toEqual(first.map((_, index) => index))
  const response = first.at(-1)?.['response'] as Json
  const second = await wire.ask({ model: 'demo', input: '/history', previous_response_id: response['id'] })
  expect(deltasOf(second)).toBe('user: one\nassistant: You said: one\nuser: /history')
  // It is the same response over HTTP.
  const over = await client(url).replay(response['id'] as string)
  expect(over.slice(0, -1)).toEqual(first.slice(0, -1))
  const call = await wire.ask({ input: '/tool f {}', tools: [fn('f')] })
  const asked = call.at(-1)?.['response'] as Json
  const output = { type: 'function_call_output', call_id: asked['output'][0].call_id, output: 'F' }
  expect(deltasOf(await wire.ask({ previous_response_id: asked['id'], input: [output], tools: [fn('f')] }))).toBe('f answered: F')
})

verifies('openai-responses.websocket', 'the path may name the agent', async () => {
  const { url } = await server([
    demo(),
    defineAgent('bob', async function* () {
      yield text('I am bob')
    }),
  ])
  expect(deltasOf(await (await connect(url, '/agents/bob/v1/responses')).ask({ input: 'x' }))).toBe('I am bob')
  expect(deltasOf(await (await connect(url, '/responses')).ask({ model: 'bob', input: 'x' }))).toBe('I am bob')
})

verifies('openai-responses.websocket', 'answers run at once in lanes of their own', async () => {
  let go = (): void => undefined
  const gate = new Promise<void>((resolve) => (go = resolve))
  const { url } = await server(
    defineAgent('slow', async function* ({ messages }) {
      const said = messages.at(-1)?.content
      if (said === 'wait') await gate
      yield text(`${said}`)
    }),
  )
  const wire = await connect(url)
  const of = (lane: string): Told[] => wire.heard.filter((event) => event['stream_id'] === lane)
  const send = (lane: string, input: string): void => wire.socket.send(JSON.stringify({ type: 'response.create', stream_id: lane, input }))
  send('a', 'wait')
  send('b', 'quick')
  await wire.until(() => of('b').some(({ type }) => type === 'response.completed'))
  send('a', 'again')
  await wire.until(() => of('a').some(({ type }) => type === 'error'))
  expect(of('a').find(({ type }) => type === 'error')).toMatchObject({ status: 409, error: { param: 'stream_id' } })
  go()
  await wire.until(() => of('a').some(({ type }) => type === 'response.completed'))
  expect([deltasOf(of('a')), deltasOf(of('b'))]).toEqual(['wait', 'quick'])
})

verifies('openai-responses.websocket-errors', 'what is refused is an error event, and the socket lives', async () => {
  const { url } = await server(
    defineAgent('fails', async function* ({ messages }) {
      const said = messages.at(-1)?.content ?? ''
      if (said === 'fail') throw new Error('secret')
      yield text(said)
    }),
  )
  const wire = await connect(url)
  const rows: readonly (readonly [object | string, object])[] = [
    ['{"type":', { status: 400, error: { type: 'invalid_request_error', code: 'invalid_json' } }],
    ['[]', { status: 400 }],
    ['{"type":"session.update"}', { status: 400, error: { param: 'type' } }],
    [{}, { status: 400, error: { param: 'input', code: 'missing_required_parameter' } }],
    [
      { input: 'x', stream_id: 'lane', temperature: 'hot' },
      { status: 400, stream_id: 'lane', error: { param: 'temperature' } },
    ],
    [
      { input: 'x', previous_response_id: 'resp_1' },
      { status: 400, error: { code: 'previous_response_not_found' } },
    ],
    [
      { input: 'x', generate: false },
      { status: 400, error: { param: 'generate' } },
    ],
    [{ input: 'fail' }, { status: 500, error: { message: 'Internal error' } }],
  ]
  for (const [event, error] of rows) {
    const told = await wire.ask(event)
    expect(told).toMatchObject([{ type: 'error', ...error }])
  }
  wire.socket.send(Buffer.from([1, 2, 3]))
  await wire.until(() => wire.heard.length === rows.length + 1)
  expect(wire.heard.at(-1)).toMatchObject({ type: 'error', status: 400 })
  expect(deltasOf(await wire.ask({ input: 'alive' }))).toBe('alive')
})

verifies(
  ['openai-responses.websocket', 'openai-responses.disconnect'],
  'a socket that closes stops what runs on it, and needs a token where HTTP does',
  async () => {
    let ended = 0
    const agent = defineAgent('endless', async function* ({ signal }) {
      try {
        yield text('x')
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      } finally {
        ended++
      }
    })
    const { url, gateway } = await server(agent, { tokens: { alice: 'a-0123456789abcdef' } })
    const wire = await connect(url, '/v1/responses', { authorization: 'Bearer a-0123456789abcdef' })
    wire.socket.send(JSON.stringify({ type: 'response.create', input: 'x' }))
    wire.socket.send(JSON.stringify({ type: 'response.create', input: 'x', stream_id: 'other' }))
    await wire.until(() => deltasOf(wire.heard) === 'x')
    wire.socket.terminate()
    await expect.poll(() => [ended, gateway.openSessions]).toEqual([1, 0])
    const { status, body } = await refusedUpgrade(new WebSocket(url.replace('http', 'ws') + '/v1/responses'))
    expect([status, (body as Json)['error'].code]).toEqual([401, 'invalid_api_key'])
  },
)

test('a response in the background goes on when its socket has gone', async () => {
  let go = (): void => undefined
  const gate = new Promise<void>((resolve) => (go = resolve))
  const patient = defineAgent('patient', async function* ({ signal }) {
    yield text('begun')
    await gate
    yield text(signal.aborted ? ' stopped' : ' done')
  })
  const { url, gateway } = await server(patient)
  const api = client(url)
  const wire = await connect(url)
  wire.socket.send(JSON.stringify({ type: 'response.create', input: 'x', background: true }))
  await wire.until(() => wire.heard.some(({ type }) => type === 'response.output_text.delta'))
  const { id, background } = wire.heard[0]?.['response'] as Json
  expect(background).toBe(true)
  wire.socket.terminate()
  await expect.poll(async () => (await fetch(`${url}/metrics`)).text()).toMatch(/sockets\S* 0$/m)
  go()
  await expect.poll(async () => (await api.get(id as string)).body['status']).toBe('completed')
  expect((await api.get(id as string)).body['output'][0].content[0].text).toBe('begun done')
  await expect.poll(() => gateway.openSessions).toBe(0)
})

test('a response in the background must be stored', async () => {
  const { url } = await server()
  const wire = await connect(url)
  const [refused] = await wire.ask({ input: 'x', background: true, store: false })
  expect(refused).toMatchObject({ type: 'error', status: 400, error: { code: 'invalid_value', param: 'background' } })
})
