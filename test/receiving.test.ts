import { once } from 'node:events'
import { connect as netConnect, type Socket } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { demo } from '../src/agents/demo/index.ts'
import { startServer } from './support/server.ts'

/** What is on its way in is held for somebody, before it is a request or a message. */
const MIB = 1024 * 1024
const TOKENS = { alice: 'alice-secret-0123456789', bob: 'bobby-secret-0123456789' }
type Name = keyof typeof TOKENS

const start = (limits: Record<string, number>) => startServer(demo(), { limits, tokens: TOKENS })
type Server = Awaited<ReturnType<typeof start>>

const FRAMINGS = {
  'content-length': (bytes: number) => [`content-length: ${bytes + 1}`, ' '.repeat(bytes)],
  chunked: (bytes: number) => ['transfer-encoding: chunked', `${bytes.toString(16)}\r\n${' '.repeat(bytes)}\r\n`],
} satisfies Record<string, (bytes: number) => [string, string]>

interface Sending {
  readonly client: Socket
  answer: string
}

/** Begins a request and does not end it. */
function post({ port }: Server, { path, who, framing, bytes }: { path: string; who: Name; framing: keyof typeof FRAMINGS; bytes: number }) {
  const client = netConnect(port, '127.0.0.1')
  onTestFinished(() => void client.destroy())
  const sending: Sending = { client, answer: '' }
  client.on('data', (chunk) => (sending.answer += String(chunk)))
  client.on('error', () => undefined)
  const [length, body] = FRAMINGS[framing](bytes)
  const head = [
    `POST ${path} HTTP/1.1`,
    'host: localhost',
    `authorization: Bearer ${TOKENS[who]}`,
    'content-type: application/json',
    length,
  ]
  client.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  return sending
}

const heldBytes = async ({ url }: Server): Promise<number> => {
  const text = await (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${TOKENS.bob}` } })).text()
  return Number(/uamp_held_bytes (\d+)/.exec(text)?.[1])
}

const PATHS = ['/v1/responses', '/v1/chat/completions', '/events', '/a2a', '/ag-ui']

describe.each(Object.keys(FRAMINGS) as (keyof typeof FRAMINGS)[])('unfinished bodies (%s)', (framing) => {
  test.each(PATHS)('%s: count for whoever sends them, and are refused beyond what they may hold', async (path) => {
    const server = await start({ heldBytesPerPrincipal: 4 * MIB })
    const sent = Array.from({ length: 8 }, () => post(server, { path, who: 'alice', framing, bytes: MIB }))
    const refused = () => sent.filter(({ answer }) => answer !== '')
    await expect.poll(() => refused().length).toBe(4)
    for (const { answer } of refused()) expect(answer).toMatch(/^HTTP\/1.1 503 .*too much in memory/s)
    expect(await heldBytes(server)).toBeGreaterThan(3 * MIB)
    expect(await heldBytes(server)).toBeLessThan(5 * MIB)
    // Somebody else is not touched.
    const other = post(server, { path, who: 'bob', framing, bytes: MIB })
    await expect.poll(() => heldBytes(server)).toBeGreaterThan(4.5 * MIB)
    expect(other.answer).toBe('')
    for (const { client } of [...sent, other]) client.destroy()
    await expect.poll(() => heldBytes(server)).toBe(0)
  })

  test('are cut when next to nothing more comes of them', async () => {
    const server = await start({ stallMs: 200 })
    const large = post(server, { path: '/v1/responses', who: 'alice', framing, bytes: MIB })
    const small = post(server, { path: '/v1/responses', who: 'alice', framing, bytes: 100 })
    await expect.poll(() => large.answer).toMatch('HTTP/1.1 408')
    expect(large.answer).toMatch('"error":{')
    expect(small.answer).toBe('')
    await expect.poll(() => heldBytes(server)).toBe(0)
  })
})

test('a body may take its time as long as it goes on', async () => {
  const server = await start({ stallMs: 1000 })
  const sending = post(server, { path: '/v1/responses', who: 'alice', framing: 'chunked', bytes: 64 * 1024 })
  for (let n = 0; n < 24; n++) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    sending.client.write(FRAMINGS.chunked(16 * 1024)[1])
  }
  expect(sending.answer).toBe('')
  sending.client.write('0\r\n\r\n')
  await expect.poll(() => sending.answer).toMatch('HTTP/1.1 400')
})

describe.each(['/uamp', '/v1/realtime?model=demo', '/acp', '/v1/responses', '/omnia?agent=demo'])('unfinished messages on %s', (path) => {
  const open = async ({ port }: Server, who: Name) => {
    const client = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers: { authorization: `Bearer ${TOKENS[who]}` } })
    onTestFinished(() => client.terminate())
    client.on('error', () => undefined)
    const closed = once(client, 'close').then(([code]) => code as number)
    await once(client, 'open')
    return { client, closed }
  }
  const part = Buffer.alloc(MIB, 0x20).toString()

  test('count for whoever sends them; beyond what they may hold the socket is closed with 1013', async () => {
    const server = await start({ heldBytesPerPrincipal: 4 * MIB })
    const sockets = await Promise.all(Array.from({ length: 8 }, () => open(server, 'alice')))
    const codes: number[] = []
    for (const { client, closed } of sockets) {
      void closed.then((code) => codes.push(code))
      client.send(part, { fin: false })
    }
    await expect.poll(() => codes.length).toBeGreaterThan(3)
    expect(new Set(codes)).toEqual(new Set([1013]))
    expect(await heldBytes(server)).toBeGreaterThan(2.5 * MIB)
    expect(await heldBytes(server)).toBeLessThan(5 * MIB)
    const other = await open(server, 'bob')
    other.client.send(part, { fin: false })
    await expect.poll(() => heldBytes(server)).toBeGreaterThan(3.5 * MIB)
    expect(other.client.readyState).toBe(WebSocket.OPEN)
    for (const { client } of [...sockets, other]) client.terminate()
    await expect.poll(() => heldBytes(server)).toBeLessThan(10_000)
  })

  test('are cut when next to nothing more comes of them', async () => {
    const server = await start({ stallMs: 200 })
    const [large, small] = [await open(server, 'alice'), await open(server, 'alice')]
    large.client.send(part, { fin: false })
    small.client.send('x', { fin: false })
    expect(await large.closed).toBe(1013)
    expect(small.client.readyState).toBe(WebSocket.OPEN)
  })
})
