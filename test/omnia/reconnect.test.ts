/** Several connections of one session: those that break, those that take over, and those that only watch. */
import { describe, expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import type { Draft } from '../../src/protocol/events.ts'
import { coin } from '../support/money.ts'
import { startChild } from '../support/child.ts'
import { temporaryFolder } from './folder.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { flags, frame, OmniaClient, type Heard, type HeardFrame } from './omnia-client.ts'

const WEATHER = { type: 'function' as const, function: { name: 'weather', parameters: { type: 'object' } } }
const text = (said: string): Draft => ({ type: 'response.delta', delta: { type: 'text', text: said } })
const said = (client: OmniaClient): string[] =>
  (client.heard as Heard[]).flatMap(({ type, content }) => (type === 'chunk' ? [content as string] : []))
const typesOf = (client: OmniaClient): string[] => client.heard.map(({ type }) => type)
const back = (url: string, session: string, more = '') =>
  OmniaClient.open(url, { path: `/omnia?agent=demo&resume=${encodeURIComponent(session)}${more}` })
const gauge = (url: string, name: string, count: number) =>
  expect.poll(async () => (await fetch(`${url}/metrics`)).text()).toMatch(new RegExp(`${name}\\S* ${count}$`, 'm'))

/** Breaks off, and waits until the server knows: so many are left. */
async function breakOff(url: string, { socket }: OmniaClient, left = 0): Promise<void> {
  socket.terminate()
  await gauge(url, 'sockets', left)
}

/** What it is told to say, when it is told to. */
function puppet(first: readonly Draft[] = []) {
  const queue: (Draft | undefined)[] = [...first]
  let wake: () => void = () => undefined
  const agent = defineAgent(
    'demo',
    async function* ({ signal }) {
      signal.addEventListener('abort', () => wake())
      for (;;) {
        while (queue.length === 0 && !signal.aborted) await new Promise<void>((resolve) => (wake = resolve))
        const next = queue.shift()
        if (next === undefined) return
        yield next
      }
    },
    { capabilities: { modalities: ['text', 'audio'] } },
  )
  const say = (...drafts: (Draft | undefined)[]): void => {
    queue.push(...drafts)
    wake()
  }
  return { agent, say }
}

const go = ({ sessionId }: OmniaClient) => ({ type: 'message', session_id: sessionId, content: 'go' })

describe('a session that was only greeted', () => {
  test('was destroyed for those who use it when that connection closed', async () => {
    const { url } = await startServer(demo())
    const silent = await OmniaClient.open(url)
    const other = await back(url, silent.sessionId)
    await other.say('remember me')
    await breakOff(url, silent, 1)
    expect((await other.say('/history')).at(-1)?.['content']).toContain('user: remember me')
    expect(typesOf(other).filter((type) => type === 'connected')).toHaveLength(1)
  })

  test('lost what was uploaded for it over HTTP', async () => {
    const { url } = await startServer(demo())
    const silent = await OmniaClient.open(url)
    const body = JSON.stringify({ session_id: silent.sessionId, filename: 'a.txt', mime_type: 'text/plain', size_bytes: 3 })
    const asked = await fetch(`${url}/media/request-upload`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    const { upload_url, storage_ref } = (await asked.json()) as Record<string, string>
    await fetch(upload_url as string, { method: 'PUT', body: 'abc' })
    await breakOff(url, silent)
    const returned = await back(url, silent.sessionId)
    const part = { type: 'file', media: { storage_ref, mime_type: 'text/plain' } }
    await returned.ask({ type: 'message', session_id: silent.sessionId, parts: [part] }, 'done')
    expect(returned.sessionId).toBe(silent.sessionId)
  })
})

describe('what was said while a client was away', () => {
  test('after a break between answers was never told', async () => {
    const { url } = await startServer(demo())
    const client = await OmniaClient.open(url)
    await client.say('one')
    await breakOff(url, client)
    const other = await OmniaClient.open(url)
    await other.say('from elsewhere', { session_id: client.sessionId })
    await breakOff(url, other)
    const returned = await back(url, client.sessionId)
    expect((await returned.next('done'))['content']).toBe('You said: from elsewhere')
  })

  test('was told to one of two who broke off, and lost for the other', async () => {
    const { agent, say } = puppet([text('a')])
    const { url } = await startServer(agent)
    const one = await OmniaClient.open(url)
    const two = await back(url, one.sessionId)
    one.send(go(one))
    for (const each of [one, two]) await each.next('chunk')
    await breakOff(url, one, 1)
    say(text('b'))
    await two.next('chunk')
    await breakOff(url, two)
    say(text('c'), undefined)
    await gauge(url, 'responses', 0)
    for (let count = 0; count < 2; count++) {
      const returned = await back(url, one.sessionId)
      expect((await returned.next('done'))['content']).toBe('abc')
      expect(said(returned)).toEqual(['b', 'c'])
    }
  })

  test('an old connection that was found dead late put a newer one back for good', async () => {
    const { agent, say } = puppet([text('a')])
    const { url } = await startServer(agent)
    const stale = await OmniaClient.open(url)
    await stale.ask(go(stale), 'chunk')
    const newer = await back(url, stale.sessionId)
    say(text('b'))
    for (const each of [newer, stale]) await each.next('chunk')
    await breakOff(url, newer, 1)
    await breakOff(url, stale)
    const third = await back(url, stale.sessionId)
    say(text('c'))
    await third.next('chunk')
    expect(said(third)).toEqual(['c'])
    await breakOff(url, third)
    const fourth = await back(url, stale.sessionId)
    say(undefined)
    expect((await fourth.next('done'))['content']).toBe('abc')
    expect(said(fourth)).toEqual([])
  })

  verifies('omnia.resume-call', 'an answer that died while its client was away ended without done', async () => {
    const data = temporaryFolder()
    const first = await startChild(data)
    const client = await OmniaClient.open(first.url)
    client.send({ ...go(client), content: '/count 100000 5' })
    // Until some of it is in the store.
    for (let count = 0; count < 50; count++) await client.next('chunk')
    await breakOff(first.url, client)
    await first.kill()
    const second = await startChild(data)
    const returned = await back(second.url, client.sessionId)
    expect((await returned.next('error'))['error'].details.code).toBe('interrupted')
    expect(await returned.next('done')).toMatchObject({ content: expect.stringMatching(/^1 /), ext: { status: 'failed' } })
  })

  test('half a sample was lost in a break', async () => {
    const piece = (...bytes: number[]): Draft => ({ type: 'audio.delta', audio: Buffer.from(bytes).toString('base64'), format: 'pcm16' })
    const { agent, say } = puppet([piece(1, 2, 3), piece(4, 5)])
    const { url } = await startServer(agent)
    const client = await OmniaClient.open(url, { path: '/omnia?agent=demo&binary=true' })
    await client.ask(go(client), 'binary')
    await breakOff(url, client)
    const returned = await back(url, client.sessionId, '&binary=true')
    say(piece(6), undefined)
    await returned.next('done')
    const frames = [client, returned].map(({ heard }) => (heard as HeardFrame[]).filter(({ type }) => type === 'binary'))
    expect(frames.map((each) => each.flatMap(({ payload, sequence }) => [sequence, ...payload]))).toEqual([
      [0, 1, 2],
      [0, 3, 4, 1, 5, 6],
    ])
  })
})

describe('questions', () => {
  const limits = { toolAckMs: 60_000, toolResultMs: 60_000 }
  const impatient = { toolAckMs: 50, toolResultMs: 50 }
  const ask = '/tool weather {}'

  test.each([false, true])('of a client that came back had no time limit (acknowledged: %s)', async (acknowledges) => {
    const { url } = await startServer(demo(), {
      omnia: { clientTools: [WEATHER], limits: acknowledges ? { ...impatient, toolAckMs: 60_000 } : { ...impatient, toolAckMs: 3_000 } },
    })
    const client = await OmniaClient.open(url)
    const { id } = (await client.ask({ ...go(client), content: ask }, 'tool_call'))['tool_call']
    await breakOff(url, client)
    const returned = await back(url, client.sessionId)
    // It may have been lost with the connection, so it is put again.
    expect((await returned.next('tool_call'))['tool_call'].id).toBe(id)
    if (acknowledges) returned.send({ type: 'tool_call_ack', tool_call_ack: { call_id: id } })
    expect((await returned.next('done'))['content']).toBe(
      `weather failed: client did not ${acknowledges ? 'answer' : 'acknowledge'} tool call within timeout`,
    )
  })

  test('one that another had acknowledged waited for ever when the asker left', async () => {
    const { url } = await startServer(demo(), { omnia: { clientTools: [WEATHER], limits: { ...limits, toolResultMs: 500 } } })
    const asker = await OmniaClient.open(url)
    const other = await back(url, asker.sessionId)
    asker.send({ ...go(asker), content: ask })
    const { id } = (await other.next('tool_call'))['tool_call']
    other.send({ type: 'tool_call_ack', tool_call_ack: { call_id: id } })
    await breakOff(url, asker, 1)
    expect((await other.next('done'))['content']).toBe('weather failed: client did not answer tool call within timeout')
  })

  test('an approval that came up while its client was away was refused', async () => {
    let go!: () => void
    const gate = new Promise<void>((resolve) => (go = resolve))
    const agent = defineAgent('demo', async function* (turn) {
      yield text('wait')
      await gate
      const { approved } = await turn.ask('x.approval.request', { message: 'Really?' })
      yield text(` ${approved}`)
    })
    const { url } = await startServer(agent)
    const client = await OmniaClient.open(url)
    await client.ask({ type: 'message', session_id: client.sessionId, content: 'go' }, 'chunk')
    await breakOff(url, client)
    go()
    const returned = await back(url, client.sessionId)
    const { id } = (await returned.next('tool_call'))['tool_call']
    expect((await returned.ask({ type: 'tool_result', tool_result: { call_id: id, result: true } }, 'done'))['content']).toBe('wait true')
  })

  test('with toolMessages, a result after a break had no call, and tools of the client were told twice', async () => {
    const call = { id: 'c', name: 'own', arguments: '{}' }
    const mine = { id: 'm', name: 'weather', arguments: '{}' }
    const first: Draft[] = [{ type: 'response.delta', delta: { type: 'tool_call', tool_call: call } }]
    const { agent, say } = puppet(first)
    const { url } = await startServer(agent, { omnia: { toolMessages: true } })
    const client = await OmniaClient.open(url)
    await client.ask({ ...go(client), ext: { tools: [WEATHER] } }, 'tool_call')
    await breakOff(url, client)
    const returned = await back(url, client.sessionId)
    say(
      { type: 'response.delta', delta: { type: 'tool_result', tool_result: { call_id: 'c', result: 'ok' } } },
      { type: 'response.delta', delta: { type: 'tool_call', tool_call: mine } },
      undefined,
    )
    await returned.next('done')
    expect(typesOf(returned)).toEqual(['connected', 'tool_result', 'done'])
  })
})

describe('a payment that was asked for', () => {
  const shop = defineAgent('demo', async function* (turn) {
    const { payment } = await turn.ask('payment.required', { requirements: { amount: '0.01', currency: 'USD' } })
    yield text(`paid with a ${payment.scheme}`)
  })

  test.each(['resume', 'message', 'alias'])('could not be made on another connection, which came by %s', async (how) => {
    const server = await startServer(shop)
    const { url } = server
    const paid = { metadata: { payment_token: await coin(server, '0.01') } }
    const first = await OmniaClient.open(url)
    const session = how === 'alias' ? 'an old one' : first.sessionId
    await first.fails({ ...go(first), session_id: session })
    // The server does not know yet that the first one is dead.
    const second = how === 'message' ? await OmniaClient.open(url) : await back(url, session)
    expect((await second.say('go', { session_id: session, ...paid })).at(-1)?.['content']).toBe('paid with a token')
  })
})

describe('who only watches', () => {
  test('hung up, and cancelled the answer of another', async () => {
    const { agent, say } = puppet([text('a')])
    const { url } = await startServer(agent)
    const client = await OmniaClient.open(url)
    const watcher = await back(url, client.sessionId)
    client.send(go(client))
    await watcher.next('chunk')
    watcher.send({ type: 'hangup' })
    await watcher.closed
    say(text('b'), undefined)
    expect(await client.next('done')).toMatchObject({ content: 'ab', ext: { status: 'completed' } })
  })

  test('a message that was refused took the connection to the session that it was for', async () => {
    const { agent, say } = puppet([text('a')])
    const { url } = await startServer(agent)
    const client = await OmniaClient.open(url)
    await client.ask(go(client), 'chunk')
    const other = await OmniaClient.open(url)
    const refused = [
      [{ ...go(other), session_id: client.sessionId }, 'RATE_LIMITED'],
      [{ type: 'message', session_id: 'never was' }, 'INVALID_MESSAGE'],
    ] as const
    for (const [message, code] of refused) expect((await other.fails(message)).code).toBe(code)
    say(text('b'), undefined)
    await client.next('done')
    say(text('c'), undefined)
    await other.say('mine')
    expect(typesOf(other)).toEqual(['connected', 'error', 'error', 'chunk', 'done'])
    // The one that was never there is replaced all the same, and the client told.
    say(undefined)
    await other.ask({ ...go(other), session_id: 'never was' }, 'connected')
  })
})

test('who spoke up before the answer had begun heard it all the same', async () => {
  const { agent, say } = puppet([text('not this')])
  const { url } = await startServer(agent)
  const client = await OmniaClient.open(url)
  const loud = Buffer.alloc(300 * 48)
  for (let at = 0; at < loud.length; at += 2) loud.writeInt16LE(Math.round(8000 * Math.sin(at / 10)), at)
  client.send(go(client))
  client.send(frame({ payload: loud }))
  await client.next('interrupt')
  expect((await client.next('done'))['ext'].status).toBe('cancelled')
  const from = typesOf(client).indexOf('interrupt')
  expect(typesOf(client).slice(from)).toEqual(['interrupt', 'done'])
  say(text('this'), undefined)
  client.send(frame({ flags: flags.last }))
  expect((await client.next('done'))['content']).toContain('this')
})

test.each([0, 1.5, 1e300, 2 ** 31, -1, NaN])(
  'a limit of %d was taken, and then nothing was limited or everything',
  async (messageBytes) => {
    await expect((async () => startServer(demo(), { omnia: { limits: { messageBytes } } }))()).rejects.toThrow(
      /omnia\.limits\.messageBytes/,
    )
  },
)
