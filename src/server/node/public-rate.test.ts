import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import type { Route } from '../../core/ports/transport.ts'
import { testServer } from '../../../test/support/test-server.ts'

const secret = 'a-secret-of-alice-0123'
const limits = { strangerRequestBurst: 5, strangerRequestsPerSecond: 1 }

function server(now: () => number = () => 0) {
  const state = { made: 0 }
  const routes: Route[] = [
    { method: 'GET', path: '/open', access: 'public', handle: async () => Response.json(++state.made) },
    { method: 'GET', path: '/me', access: 'request', handle: async (_, { principal }) => Response.json(principal.id) },
  ]
  const options = { routes, limits, tokens: { alice: secret }, anonymous: false, monotonic: now }
  return { state, started: testServer({ ...options, trusts: (address) => address === '127.0.0.1' }) }
}

const by = (address: string, token?: string) => ({
  headers: { 'x-forwarded-for': address, ...(token !== undefined && { authorization: `Bearer ${token}` }) },
})

test('an address may ask public routes so often; probes and whoever has a token are answered all the same', async () => {
  let now = 0
  const { state, started } = server(() => now)
  const { url } = await started
  const status = async (path: string, init: object = by('198.51.100.1')) => (await fetch(url + path, init)).status
  for (let i = 0; i < 5; i++) expect(await status('/open')).toBe(200)
  const refused = await fetch(`${url}/open`, by('198.51.100.1'))
  expect([refused.status, refused.headers.get('retry-after'), refused.headers.get('connection')]).toEqual([429, '1', 'close'])
  expect(await refused.json()).toMatchObject({ error: { code: 'rate_limited', message: 'Too many requests come from this address' } })
  expect(state.made).toBe(5)
  expect(await status('/agents')).toBe(429)
  expect([await status('/health'), await status('/ready')]).toEqual([200, 200])
  expect(await status('/open', by('198.51.100.1', secret))).toBe(200)
  expect(await status('/open', by('198.51.100.1', 'a-wrong-one-0123456789'))).toBe(429)
  expect(await status('/me', by('198.51.100.1', secret))).toBe(200)
  expect(await status('/open', by('198.51.100.2'))).toBe(200)
  now += 1000
  expect([await status('/open'), await status('/open')]).toEqual([200, 429])
})

test('a network of 64 bits is one address', async () => {
  const { started } = server()
  const { url } = await started
  for (let i = 0; i < 5; i++) await fetch(`${url}/open`, by(`2001:db8::${i + 1}`))
  expect((await fetch(`${url}/open`, by('2001:db8::99'))).status).toBe(429)
})

test('what is piled up behind a refusal is not looked at', async () => {
  const { started } = server()
  const { port } = await started
  const client = connect(port, '127.0.0.1')
  const gone = once(client, 'close')
  let heard = ''
  client.setEncoding('latin1').on('data', (chunk: string) => (heard += chunk))
  client.on('error', () => undefined)
  for (let i = 0; i < 20 && !client.destroyed; i++) client.write('GET /open HTTP/1.1\r\nhost: localhost\r\n\r\n')
  await gone
  expect(heard.match(/HTTP\/1\.1 429/g)?.length ?? 0).toBeLessThanOrEqual(1)
})
