import { expect, onTestFinished, test, vi } from 'vitest'
import { WebSocket } from 'ws'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { company, hashOf, isSignedBy, message, pinned, signed, textIn, type Company, type Frame, type Members } from './company.ts'
import { gate } from './world.ts'

function framed(value: unknown): Buffer {
  const json = Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))
  const head = Buffer.alloc(4)
  head.writeUInt32BE(json.length)
  return Buffer.concat([head, json])
}

async function world(options: { insecureDev?: boolean } = {}, agent: AgentPort = demo()) {
  const client = await company()
  const server = await startServer(agent, { insecureDev: true, ...options, envelope: { keys: pinned(client) } })
  const { id: did } = (await (await fetch(`${server.url}/.well-known/did.json`)).json()) as { id: string }
  return { ...server, client, did }
}

async function open(url: string) {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/uamp/1/ws`, 'uamp.1')
  const heard: Members[] = []
  let code: number | undefined
  socket.on('message', (data: Buffer, isBinary) => {
    expect([isBinary, data.readUInt32BE(0)]).toEqual([true, data.length - 4])
    heard.push(JSON.parse(data.subarray(4).toString()) as Members)
  })
  socket.on('close', (given) => (code = given))
  onTestFinished(() => socket.terminate())
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
  return { socket, heard, code: () => code, send: (value: unknown) => socket.send(framed(value)) }
}

const isFrame = (members: Members): boolean => 'delta_seq' in members
const isControl = (members: Members): boolean => members['stream_id'] === '/uamp/1/ws'
const framesIn = (heard: readonly Members[]) => heard.filter((each) => isFrame(each) && !isControl(each)) as unknown as Frame[]
/** What the connection was told last of what is wrong. */
const problemIn = (heard: readonly Members[]) => heard.findLast(isControl)?.['payload']

const ask = async (client: Company, did: string, content: string, more: Members = {}) =>
  signed(client, message(client, did, { body: { type: 'text/plain', content }, ...more }))

verifies('envelope:websocket', 'a message is accepted, its stream comes on the same socket, and a signed message closes it', async () => {
  const { url, client, did } = await world()
  const { socket, heard, send } = await open(url)
  expect(socket.protocol).toBe('uamp.1')
  const asked = await ask(client, did, '/count 5')
  send(asked)
  await expect.poll(() => heard.at(-1)).toMatchObject({ intent: 'confirm', reply_to: asked['id'], body: { content: '1 2 3 4 5' } })
  expect(heard[0]).toMatchObject({ intent: 'progress', reply_to: asked['id'], context: [{ hash: `sha256:${hashOf(asked)}` }] })
  const all = framesIn(heard)
  expect(textIn(all)).toBe('1 2 3 4 5')
  expect(new Set(all.map(({ stream_id }) => stream_id))).toEqual(new Set([heard[0]?.['stream_id']]))
  const document = (await (await fetch(`${url}/agents/demo/did.json`)).json()) as Members
  for (const envelope of heard.filter((each) => !isFrame(each))) expect(await isSignedBy(envelope, document)).toBe(true)
})

verifies('envelope:missing-seq', 'frames wait for their acknowledgement, which is a frame itself', async () => {
  const { url, client, did } = await world()
  const { heard, send, code } = await open(url)
  send(await ask(client, did, '/count 20', { stream_id: 's', delta_window: 4 }))
  await expect.poll(() => framesIn(heard).length).toBe(4)
  const ack = { delta_seq: 0, stream_id: 's', ts: new Date().toISOString(), type: 'progress', payload: { ack: 3 } }
  const { delta_seq: _, ...unnumbered } = ack
  send(unnumbered)
  await expect.poll(() => problemIn(heard)).toMatchObject({ code: '4.09', reason: 'missing_field', stream_id: 's' })
  expect(framesIn(heard)).toHaveLength(4)
  send(ack)
  await expect.poll(() => framesIn(heard).length).toBe(8)
  expect(code()).toBeUndefined()
})

test('who lost the socket goes on where it was with the same message', async () => {
  const { url, client, did } = await world()
  const first = await open(url)
  const asked = await ask(client, did, '/count 40', { delta_window: 8, stream_id: 's' })
  first.send(asked)
  await expect.poll(() => framesIn(first.heard).length).toBe(8)
  first.socket.terminate()
  const second = await open(url)
  second.send(await signed(client, message(client, did, { intent: 'subscribe', stream_id: 's', ext: { after: 7 } })))
  await expect.poll(() => framesIn(second.heard).length).toBe(8)
  expect(framesIn(second.heard)[0]).toMatchObject({ delta_seq: 8 })
  second.send({ delta_seq: 0, stream_id: 's', ts: new Date().toISOString(), type: 'progress', payload: { ack: 15 } })
  await expect.poll(() => framesIn(second.heard).length).toBe(16)
  const third = await open(url)
  const known = { intent: 'subscribe', reply_to: asked['id'], ext: { after: 38 } }
  third.send(await signed(client, message(client, did, known)))
  await expect.poll(() => third.heard.at(-1)).toMatchObject({ intent: 'confirm', reply_to: asked['id'] })
  expect(framesIn(third.heard).map(({ type }) => type)).toEqual(['chunk', 'done'])
})

const lying: readonly (readonly [name: string, data: Buffer])[] = [
  ['a length that is too small', Buffer.concat([Buffer.from([0, 0, 0, 1]), Buffer.from('{}')])],
  ['a length that is too large', Buffer.concat([Buffer.from([255, 255, 255, 255]), Buffer.from('{}')])],
  ['half a length', Buffer.from([0, 0])],
]
for (const [name, data] of lying) {
  verifies('envelope:websocket-length', `${name} ends the connection, and nothing after it is read`, async () => {
    const { url, client, did } = await world()
    const there = await open(url)
    there.socket.send(data)
    there.send(await ask(client, did, '/count 2'))
    await expect.poll(there.code).toBe(1002)
    expect(there.heard).toMatchObject([{ delta_seq: 0, type: 'error', payload: { code: '4.00', reason: 'frame' } }])
  })
}

test('a forged message ends the connection, and one that is only wrong does not', async () => {
  const { url, client, did } = await world()
  const there = await open(url)
  there.send('{')
  await expect.poll(() => problemIn(there.heard)).toMatchObject({ code: '4.00', reason: 'not_json' })
  there.send(await signed(client, message(client, did, { intent: 'cancel', reply_to: crypto.randomUUID() })))
  await expect.poll(() => problemIn(there.heard)).toMatchObject({ code: '4.04' })
  there.send(await ask(client, did, '/count 2'))
  await expect.poll(() => there.heard.at(-1)).toMatchObject({ intent: 'confirm' })
  there.send({ ...(await ask(client, did, 'pay alice 1')), body: { type: 'text/plain', content: 'pay mallory 999' } })
  await expect.poll(there.code).toBe(1008)
  expect(there.heard.at(-1)).toMatchObject({ delta_seq: 2, type: 'error', payload: { code: '4.01', reason: 'signature' } })
})

test('a conversation that is busy is told so, and the other streams of the connection go on', async () => {
  const { pass, open: goOn, waiting } = gate()
  const slow = defineAgent('slow', async function* () {
    yield 'begun '
    await pass()
    yield 'and ended'
  })
  const { url, client, did } = await world({}, slow)
  const there = await open(url)
  const first = await ask(client, did, 'hello')
  there.send(first)
  await expect.poll(waiting).toBe(1)
  const second = await ask(client, did, 'again', { reply_to: first['id'] })
  there.send(second)
  await expect.poll(() => problemIn(there.heard)).toMatchObject({ code: '5.04', retry: true, reply_to: second['id'] })
  goOn()
  await expect.poll(() => there.heard.at(-1)).toMatchObject({ intent: 'confirm', reply_to: first['id'] })
  expect([textIn(framesIn(there.heard)), there.code()]).toEqual(['begun and ended', undefined])
})

test('a connection that follows as many streams as it may refuses one more before anything is done', async () => {
  const { pass, waiting } = gate()
  const slow = defineAgent('slow', async function* () {
    await pass()
    yield 'done'
  })
  const { url, client, did } = await world({}, slow)
  const there = await open(url)
  for (let number = 0; number < 65; number++) there.send(await ask(client, did, 'hello', { stream_id: `s${number}` }))
  await expect.poll(() => problemIn(there.heard)).toMatchObject({ code: '4.29', retry: true })
  expect([waiting(), there.code()]).toEqual([64, undefined])
  // Others take it.
  expect((await fetch(`${url}/v1/stream/s64`)).status).toBe(404)
})

test('what an ask has in ext is not taken for a place in its stream, and a subscribe must name one that there is', async () => {
  const { url, client, did } = await world()
  const there = await open(url)
  const asked = await ask(client, did, '/count 3', { ext: { after: 2 } })
  there.send(asked)
  await expect.poll(() => there.heard.at(-1)).toMatchObject({ intent: 'confirm' })
  expect(textIn(framesIn(there.heard))).toBe('1 2 3')
  for (const after of [-2, 1.5, 'x', null]) {
    const known = there.heard.length
    there.send(await signed(client, message(client, did, { intent: 'subscribe', reply_to: asked['id'], ext: { after } })))
    await expect.poll(() => there.heard.slice(known)).toMatchObject([{ payload: { code: '4.00', reason: 'after' } }])
  }
  expect(there.code()).toBeUndefined()
})

test('a stream that nobody acknowledges is given up with a word, and goes on when it is asked for', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'], shouldAdvanceTime: true })
  onTestFinished(() => void vi.useRealTimers())
  const { url, client, did } = await world()
  const there = await open(url)
  there.send(await ask(client, did, '/count 20', { stream_id: 's', delta_window: 4 }))
  await expect.poll(() => framesIn(there.heard).length).toBe(4)
  await vi.advanceTimersByTimeAsync(61_000)
  await expect.poll(() => problemIn(there.heard)).toMatchObject({ code: '4.08', retry: true, reason: 'stalled', stream_id: 's' })
  expect([framesIn(there.heard).length, there.code()]).toEqual([4, undefined])
  there.send(await signed(client, message(client, did, { intent: 'subscribe', stream_id: 's', ext: { after: 3 } })))
  await expect.poll(() => framesIn(there.heard).map(({ delta_seq }) => delta_seq)).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
})

const odd: readonly (readonly [name: string, value: unknown, code: string])[] = [
  ['no object', '[]', '4.00'],
  ['nothing', '', '4.00'],
  ['a frame that ends', { delta_seq: 0, stream_id: 's', ts: '2026-01-31T12:00:00Z', type: 'done' }, '4.00'],
  ['a frame of the connection', { delta_seq: 0, stream_id: '/uamp/1/ws', ts: '2026-01-31T12:00:00Z', type: 'progress' }, '4.04'],
  ['a frame that is a message, too', { delta_seq: 0, intent: 'ask' }, '4.00'],
  ['a message without a signature', { intent: 'ask' }, '4.01'],
]
test.each(odd)('%s is refused with a code', async (_, value, code) => {
  const { url } = await world()
  const there = await open(url)
  there.send(value)
  await expect.poll(() => problemIn(there.heard)).toMatchObject({ code })
  const closed = code === '4.01' ? 1008 : undefined
  await expect.poll(there.code).toBe(closed)
})

test('a connection without TLS is refused with a reason', async () => {
  const { url } = await world({ insecureDev: false })
  const there = await open(url)
  await expect.poll(there.code).toBe(1008)
  expect(problemIn(there.heard)).toMatchObject({ code: '4.03', reason: 'tls' })
})

test('2,000 acknowledgements at once are taken one after the other, and the connection lives', async () => {
  const { url, client, did } = await world()
  const there = await open(url)
  there.send(await ask(client, did, '/count 40', { stream_id: 's', delta_window: 8 }))
  await expect.poll(() => framesIn(there.heard).length).toBe(8)
  const ack = { delta_seq: 0, stream_id: 's', ts: new Date().toISOString(), type: 'progress' }
  for (let number = 0; number < 2000; number++) there.send({ ...ack, payload: { ack: 1 } })
  there.send({ ...ack, payload: { ack: 7 } })
  await expect.poll(() => framesIn(there.heard).length, { timeout: 20_000 }).toBe(16)
  expect(there.code()).toBeUndefined()
})
