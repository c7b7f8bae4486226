/** What nobody reads is held memory, however it is cut into pieces. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { demo } from '../src/agents/demo/index.ts'
import { heldBytes, startServer } from './support/server.ts'

const MIB = 1024 * 1024

/** The server's own ends of the connections on which something is asked. */
function askedOn(): Set<Socket> {
  const sockets = new Set<Socket>()
  const onStart = (message: unknown): void => void sockets.add((message as { socket: Socket }).socket)
  subscribe('http.server.request.start', onStart)
  onTestFinished(() => void unsubscribe('http.server.request.start', onStart))
  return sockets
}

async function pausedClient(port: number): Promise<Socket> {
  const client = connect(port, '127.0.0.1').pause()
  client.on('error', () => undefined)
  onTestFinished(() => void client.destroy())
  await once(client, 'connect')
  return client
}

const requests = (count: number): string => {
  const body = JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: `/big ${MIB}` }] })
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`
  return `${head}\r\n\r\n${body}`.repeat(count)
}

test('answers that wait behind others of their connection count as held memory, and beyond the bound it is cut', async () => {
  const { port, url } = await startServer(demo(), { limits: { heldBytesPerPrincipal: 16 * MIB } })
  const sockets = askedOn()
  const client = await pausedClient(port)
  client.write('GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n')
  await expect.poll(() => sockets.size).toBe(1)
  const [socket] = sockets
  client.write(requests(60))
  await expect.poll(() => socket?.destroyed, { timeout: 15_000 }).toBe(true)
  await expect.poll(() => heldBytes(url), { timeout: 10_000 }).toBe(0)
})

test('what many sessions have told a socket that reads nothing counts as held memory', { timeout: 60_000 }, async () => {
  // Sessions that nobody reads leave memory soon.
  const { port, url } = await startServer(demo(), { limits: { unloadMs: 500, sweepMs: 100 } })
  const socket = new WebSocket(`ws://127.0.0.1:${port}/uamp`)
  onTestFinished(() => socket.terminate())
  await once(socket, 'open')
  const send = (event: object): void => socket.send(JSON.stringify(event))
  const ids: string[] = []
  socket.on('message', (data) => {
    const event = JSON.parse(String(data)) as { type: string; session_id: string }
    if (event.type === 'session.created') ids.push(event.session_id)
  })
  for (let n = 0; n < 40; n++) send({ type: 'session.create' })
  await expect.poll(() => ids.length).toBe(40)
  socket.pause()
  for (const session_id of ids) {
    send({ type: 'input.text', session_id, text: `/big ${400 * 1024}` })
    send({ type: 'response.create', session_id })
  }
  // The conversations are 16 MiB of it. What the logs and the socket keep for the reader is more than that.
  await expect.poll(() => heldBytes(url), { timeout: 10_000 }).toBeGreaterThan(24 * MIB)
  socket.terminate()
  await expect.poll(() => heldBytes(url), { timeout: 25_000 }).toBeLessThan(17 * MIB)
})

test('long ids of events count as held memory', async () => {
  const { url } = await startServer(demo())
  const post = (body: object, session = ''): Promise<Response> =>
    fetch(`${url}/events`, { method: 'POST', body: JSON.stringify(body), headers: session === '' ? {} : { 'x-session-id': session } })
  const opened = await post({ type: 'session.create' })
  const session = opened.headers.get('x-session-id') ?? ''
  const read = { type: 'message.read', chat_id: 'c', message_id: 'm' }
  for (let n = 0; n < 4; n++) {
    await post(
      Array.from({ length: 64 }, (_, index) => ({ ...read, event_id: `${n} ${index} `.padEnd(256, '一') })),
      session,
    )
  }
  await expect.poll(() => heldBytes(url), { timeout: 5_000 }).toBeGreaterThan(128 * 1024)
})

test.each([
  ['a thread', '/ag-ui/threads/t'],
  ['a run that joined one', '/ag-ui/runs/last'],
])('%s of AG-UI that nobody reads is held memory, and beyond the bound it is refused', async (_, path) => {
  const { port, url } = await startServer(demo(), { limits: { heldBytesPerPrincipal: 24 * MIB } })
  const run = async (runId: string, content: string): Promise<void> => {
    const input = { threadId: 't', runId, messages: [{ id: runId, role: 'user', content }], forwardedProps: { uamp: { join: true } } }
    expect(await (await fetch(`${url}/ag-ui`, { method: 'POST', body: JSON.stringify(input) })).text()).toContain('RUN_FINISHED')
  }
  for (let n = 0; n < 4; n++) await run(`r${n}`, `/big ${MIB}`)
  await run('last', 'hello')
  const before = await heldBytes(url)
  const whole = await (await fetch(`${url}${path}`)).text()
  expect(whole.length).toBeGreaterThan(4 * MIB)
  expect(whole).toMatch(/^data: \{"type":"RUN_STARTED"|^id: /)
  expect(whole).toMatch(/"type":"RUN_FINISHED".*\}\n\n$/)
  await expect.poll(() => heldBytes(url)).toBeLessThanOrEqual(before)
  const clients = await Promise.all(Array.from({ length: 12 }, () => pausedClient(port)))
  for (const client of clients) client.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`)
  const refused = async (): Promise<number> => (await fetch(`${url}${path}`)).status
  await expect.poll(refused, { timeout: 10_000 }).toBe(503)
  expect(await heldBytes(url)).toBeLessThanOrEqual(24 * MIB)
  for (const client of clients) client.destroy()
  await expect.poll(() => heldBytes(url), { timeout: 10_000 }).toBeLessThanOrEqual(before)
  expect((await fetch(`${url}${path}`)).status).toBe(200)
})
