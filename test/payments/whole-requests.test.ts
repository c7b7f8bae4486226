/** Protocols without a way back: each request brings its own payment, also the one with the results of the client's tools. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { coin, left, settled } from '../support/money.ts'
import { json, sse, Told as Refused, type Wire } from '../support/raw.ts'
import { startServer } from '../support/server.ts'
import { messagesOf, type Heard } from '../ag-ui/wire.ts'

/** Charges before its client's tool runs, and after it. */
const guide = defineAgent('guide', async function* (turn) {
  await turn.charge({ amount: '0.03', key: 'before' })
  const { result } = await turn.ask('tool.call', { name: 'weather', arguments: '{}' })
  await turn.charge({ amount: '0.04', key: 'after' })
  yield `It is ${result}.`
})

const tools = [{ type: 'function', name: 'weather', parameters: { type: 'object', properties: {} } }]

async function called(server: { readonly url: string }, token: string) {
  const url = `${server.url}/v1/responses`
  const first: Wire = await json(url, { model: 'guide', input: 'hello', tools }, { headers: { 'x-payment': token } })
  const { call_id } = first['output'].find(({ type }: Wire) => type === 'function_call')
  const input = [{ type: 'function_call_output', call_id, output: 'sunny' }]
  const body = { model: 'guide', input, tools, previous_response_id: first['id'] }
  return (paying?: string): Promise<Wire> => json(url, body, { headers: paying === undefined ? {} : { 'x-payment': paying } })
}

const textIn = ({ output }: Wire): string => output.flatMap(({ content = [] }: Wire) => content.map(({ text }: Wire) => text)).join('')

describe('Responses: the results of tools', () => {
  test('come with a payment of their own, which pays for what follows', async () => {
    const server = await startServer(guide)
    const [one, two] = [await coin(server, '1'), await coin(server, '1')]
    const answer = await (await called(server, one))(two)
    expect(textIn(answer)).toBe('It is sunny.')
    expect(answer['uamp'].payments).toMatchObject([{ amount: '0.04' }])
    expect([await left(server, one), await left(server, two)]).toEqual(['0.97', '0.96'])
    await settled(server, [one, two])
  })

  test('without one are refused with what the request costs when it comes again', async () => {
    const server = await startServer(guide)
    const [one, two] = [await coin(server, '0.03'), await coin(server, '0.07')]
    const again = await called(server, one)
    const refused: unknown = await again().catch((thrown: unknown) => thrown)
    expect(refused).toBeInstanceOf(Refused)
    const [accepted] = JSON.parse((refused as Refused).body ?? '{}').error.accepts
    expect(accepted).toMatchObject({ amount: '0.07', currency: 'USD' })
    expect(textIn(await again(two))).toBe('It is sunny.')
    expect(await left(server, two)).toBe('0.00')
    await settled(server, [one, two])
  })
})

test.each([false, true])(
  'Responses: the refusal says all that the request costs when it comes again [restarted: %s]',
  async (isRestarted) => {
    const data = mkdtempSync(join(tmpdir(), 'uamp-whole-'))
    onTestFinished(() => rmSync(data, { recursive: true, force: true }))
    let server = await startServer(guide, { data })
    const url = (): string => `${server.url}/v1/responses`
    const one = { 'x-payment': await coin(server, '0.03') }
    const first: Wire = await json(url(), { model: 'guide', input: 'hello', tools }, { headers: one })
    if (isRestarted) {
      await server.close({ graceMs: 0 })
      server = await startServer(guide, { data })
    }
    const [{ call_id }] = first['output']
    const input = [{ type: 'function_call_output', call_id, output: 'sunny' }]
    const body = { model: 'guide', input, tools, previous_response_id: first['id'] }
    const refused: unknown = await json(url(), body, { headers: one }).catch((thrown: unknown) => thrown)
    const [{ amount }] = JSON.parse((refused as Refused).body ?? '{}').error.accepts
    const all = await coin(server, amount)
    expect(textIn(await json(url(), body, { headers: { 'x-payment': all } }))).toBe('It is sunny.')
    expect(await left(server, all)).toBe('0.00')
    await settled(server, [all])
  },
)

/** Charges after its client's tool has answered: before it says anything, and in the middle. */
const late = defineAgent('late', async function* (turn) {
  const { result } = await turn.ask('tool.call', { name: 'weather', arguments: '{}' })
  await turn.charge({ amount: '0.03', key: 'first' })
  yield `It is ${result}`
  await turn.charge({ amount: '0.05', key: 'second' })
  yield ' today.'
})

const CELLS = [false, true].flatMap((isRestarted) =>
  [false, true].flatMap((isFirst) => [false, true].map((isSecond) => [isRestarted, isFirst, isSecond] as const)),
)

test.each(CELLS)(
  'Responses: what is said after the results of tools costs if it was heard [restarted: %s, streamed: %s, then %s]',
  async (isRestarted, isFirst, isSecond) => {
    const data = mkdtempSync(join(tmpdir(), 'uamp-whole-'))
    onTestFinished(() => rmSync(data, { recursive: true, force: true }))
    let server = await startServer(late, { data })
    const ask = async (body: object, stream: boolean, token?: string): Promise<Wire> => {
      const [url, sending] = [`${server.url}/v1/responses`, token === undefined ? {} : { headers: { 'x-payment': token } }]
      if (!stream) return json(url, { model: 'late', tools, ...body }, sending)
      let last: Wire
      for await (const event of sse(url, { model: 'late', tools, ...body, stream }, sending)) last = JSON.parse(event.data)
      return last.response
    }
    const first = await ask({ input: 'hello' }, isFirst)
    const token = await coin(server, '0.04')
    if (isRestarted) {
      await server.close({ graceMs: 0 })
      server = await startServer(late, { data })
    }
    const input = [{ type: 'function_call_output', call_id: first['output'][0].call_id, output: 'sunny' }]
    const told = await ask({ input, previous_response_id: first['id'] }, isSecond, token).catch((thrown: unknown) => thrown)
    const refusal: Wire = told instanceof Refused ? JSON.parse(told.body ?? '{}') : told
    expect(refusal.error).toMatchObject({ code: 'payment_required', accepts: [{ amount: '0.08' }] })
    await expect.poll(() => left(server, token)).toBe(isSecond ? '0.01' : '0.04')
    await settled(server, [token])
  },
)

test('Completions: the whole answer tells what was paid, for each choice, and so does the stored one', async () => {
  const server = await startServer(
    defineAgent('poet', async function* (turn) {
      await turn.charge({ amount: '0.01' })
      yield 'Roses are red.'
    }),
  )
  const token = await coin(server, '1')
  const url = `${server.url}/v1/chat/completions`
  const body = { model: 'poet', messages: [{ role: 'user', content: 'A poem' }], n: 2, store: true }
  const told: Wire = await json(url, body, { headers: { 'x-payment': token } })
  const payment = { payment_id: expect.any(String) as string, scheme: 'token', amount: '0.01', currency: 'USD' }
  expect(told['uamp']).toEqual({ payments: [payment, payment] })
  expect((await json(`${url}/${told['id']}`)) as Wire).toMatchObject({ uamp: told['uamp'] })
  expect(await left(server, token)).toBe('0.98')
})

/** As the guide, but it has said something before the second charge. */
const talker = defineAgent('talker', async function* (turn) {
  await turn.charge({ amount: '0.03', key: 'before' })
  const { result } = await turn.ask('tool.call', { name: 'weather', arguments: '{}' })
  yield `It is ${result}`
  await turn.charge({ amount: '0.04', key: 'after' })
  yield ' today.'
})

describe('A2A: a payment that comes before it is asked for', () => {
  const call = async (url: string, message: object, headers: Record<string, string> = {}): Promise<Wire> => {
    const about = { messageId: crypto.randomUUID(), role: 'ROLE_USER', ...message }
    const body = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message: about } }
    return (await json(`${url}/a2a`, body, { headers: { 'a2a-version': '1.0', ...headers } }))['result'].task
  }
  const states = async (task: Wire): Promise<unknown> => [
    task['status'].state,
    task['artifacts'].flatMap(({ parts }: Wire) => parts.map(({ text }: Wire) => text)).join(''),
  ]

  test('pays with the first message, and with the results of tools', async () => {
    const server = await startServer(talker)
    const [one, two] = [await coin(server, '0.03'), await coin(server, '1')]
    const metadata = { 'x402.payment.status': 'payment-submitted', 'x402.payment.payload': one }
    const asked = await call(server.url, { parts: [{ text: 'hello' }], metadata })
    const data = asked['status'].message.parts.find((part: Wire) => part['data'])['data']
    expect(data).toMatchObject({ type: 'tool.call' })
    const result = { data: { type: 'tool.result', call_id: data.call_id, result: 'sunny' } }
    const done = await call(server.url, { taskId: asked['id'], parts: [result] }, { 'x-payment': two })
    expect(await states(done)).toEqual(['TASK_STATE_COMPLETED', 'It is sunny today.'])
    expect([await left(server, one), await left(server, two)]).toEqual(['0.00', '0.96'])
    await settled(server, [one, two])
  })
})

test('AG-UI: the results of tools come with a payment for what is charged in the middle of the answer', async () => {
  const server = await startServer(talker)
  const [one, two] = [await coin(server, '0.03'), await coin(server, '1')]
  const messages: object[] = [{ id: 'm1', role: 'user', content: 'hello' }]
  const run = async (runId: string, token: string): Promise<Heard[]> => {
    const tool = { name: 'weather', description: 'It', parameters: {} }
    const body = { threadId: 'thread', runId, protocolVersion: '1.0', messages, tools: [tool] }
    const heard: Heard[] = []
    for await (const { data } of sse(`${server.url}/ag-ui`, body, { headers: { 'x-payment': token } })) heard.push(JSON.parse(data))
    return heard
  }
  const first = await run('r1', one)
  const toolCallId: unknown = first.find(({ type }) => type === 'TOOL_CALL_START')?.['toolCallId']
  messages.push(...messagesOf(first), { id: 'm3', role: 'tool', toolCallId, content: 'sunny' })
  const second = await run('r2', two)
  expect(second.map(({ delta = '' }) => delta as string).join('')).toBe('It is sunny today.')
  expect(second.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } })
  expect([await left(server, one), await left(server, two)]).toEqual(['0.00', '0.96'])
  await settled(server, [one, two])
})
