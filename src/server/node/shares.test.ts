import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { demo } from '../../agents/demo/index.ts'
import { startServer } from '../../../test/support/server.ts'

const TOKENS = { alice: 'alice-0123456789abcdef' }
const LIMITS = { requestsPerSecond: 0.001, requestBurst: 2, socketsPerPrincipal: 2 }

const from = (address: string, token?: string) => ({ 'x-forwarded-for': address, ...(token && { authorization: `Bearer ${token}` }) })

test('a caller without a token uses up the requests of its own address alone', async () => {
  const { url } = await startServer(demo(), { limits: LIMITS, trustProxy: ['127.0.0.1'], tokens: TOKENS, allowAnonymous: true })
  const ask = async (headers: Record<string, string>) => (await fetch(`${url}/v1/models`, { headers })).status
  const [one, other] = [from('192.0.2.1'), from('192.0.2.2')]
  expect([await ask(one), await ask(one), await ask(one)]).toEqual([200, 200, 429])
  expect(await ask(other)).toBe(200)
  // Who shows a token is known, wherever they call from.
  const [here, there] = [from('192.0.2.1', TOKENS.alice), from('192.0.2.2', TOKENS.alice)]
  expect([await ask(here), await ask(there), await ask(here)]).toEqual([200, 200, 429])
})

test('and so it is with sockets; together they leave room for callers with a token', async () => {
  const limits = { ...LIMITS, requestBurst: 100, socketsPerPrincipal: 2, connections: 10 }
  const { url } = await startServer(demo(), { limits, trustProxy: ['127.0.0.1'], tokens: TOKENS, allowAnonymous: true })
  const open = async (headers: Record<string, string>) => {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/uamp`, { headers })
    onTestFinished(() => socket.terminate())
    const opened = once(socket, 'open').then(() => 101)
    const refused = once(socket, 'unexpected-response').then(([, response]) => response.statusCode)
    return Promise.race([opened, refused])
  }
  const times = async (count: number, headers: Record<string, string>) => {
    const statuses = []
    while (statuses.length < count) statuses.push(await open(headers))
    return statuses
  }
  for (const address of ['192.0.2.1', '2001:db8::1', '192.0.2.3', '192.0.2.4']) {
    expect(await times(3, from(address)), address).toEqual([101, 101, 429])
  }
  expect(await open(from('192.0.2.5'))).toBe(429)
  expect(await times(2, from('192.0.2.1', TOKENS.alice))).toEqual([101, 101])
})
