import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { demo } from '../../src/agents/demo/index.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { company, hashOf, isSignedBy, message, pinned, signed, textIn, type Company, type Frame, type Members } from './company.ts'

function framed(value: unknown): Buffer {
  const json = Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))
  const head = Buffer.alloc(4)
  head.writeUInt32BE(json.length)
  return Buffer.concat([head, json])
}

async function world() {
  const client = await company()
  const server = await startServer(demo(), { insecureDev: true, envelope: { keys: pinned(client) } })
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
