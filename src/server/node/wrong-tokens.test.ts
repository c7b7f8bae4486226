import { once } from 'node:events'
import { expect, test } from 'vitest'
import type { WebSocket } from 'ws'
import { admitted } from '../../core/basics/principal.ts'
import { refusedUpgrade, testServer } from '../../../test/support/test-server.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { Call, Route, Socket } from '../../core/ports/transport.ts'

const secret = 'a-secret-of-alice-0123'
const tokens = { alice: secret }
const limits = { wrongTokenBurst: 5, wrongTokensPerSecond: 1 }
const routes: Route[] = [
  { method: 'GET', path: '/me', access: 'request', handle: async (_, { principal }) => Response.json(principal.id) },
  { method: 'GET', path: '/open', access: 'public', handle: async () => Response.json('open') },
  {
    method: 'POST',
    path: '/token-in-body',
    access: 'request',
    handle: async (request, { access }) => Response.json((await access.authenticate({ token: await request.text() })) ?? null),
  },
  { method: 'WS', path: '/request', access: 'request', handle: tellNames },
  { method: 'WS', path: '/first-message', access: 'first-message', handle: tellNames },
]

/** Answers each token with whose it is. */
async function tellNames(socket: Socket, { access }: Call): Promise<void> {
  for await (const token of socket) {
    const refused = ({ code }: { code: string }): Principal => ({ tenant: '', id: code, scopes: [] })
    const found = await access.authenticate({ token: String(token) }).catch(refused)
    await socket.send([admitted(found)?.id ?? 'nobody'])
  }
}

const bearer = (token: string, more: Record<string, string> = {}) => ({ headers: { authorization: `Bearer ${token}`, ...more } })

test('wrong tokens of one address are throttled, and a valid one works all the while', async () => {
  let now = 0
  const { url, connect, logged } = await testServer({ routes, tokens, anonymous: false, limits, monotonic: () => now })
  const status = async (token: string) => (await fetch(`${url}/me`, bearer(token))).status
  for (let i = 0; i < 5; i++) expect(await status(`guess-${i}`)).toBe(401)
  const refused = await fetch(`${url}/me`, bearer('guess-5'))
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
  expect(await refused.json()).toMatchObject({ error: { code: 'rate_limited', message: expect.stringContaining('wrong tokens') } })
  expect(await refusedUpgrade(connect('/request', bearer('guess-6')))).toMatchObject({ status: 429 })
  // Many may share an address: whoever has a token is let in, and whoever shows none is told so as ever.
  expect(await status(secret)).toBe(200)
  expect((await fetch(`${url}/me`)).status).toBe(401)
  expect((await fetch(`${url}/open`)).status).toBe(200)
  now += 1000
  expect([await status('guess-7'), await status('guess-8')]).toEqual([401, 429])
  // Whoever runs the server learns of it, and not by a line for each.
  const told = logged.map(({ message }) => message)
  expect(told.filter((message) => message !== 'A token was refused')).toEqual(['Many wrong tokens come from one address'])
  expect(told.length).toBeLessThan(10)
})

test.each(['/request', '/first-message'])('a socket at %s is closed after three wrong tokens', async (path) => {
  const { connect } = await testServer({ routes, tokens, anonymous: true })
  const client = connect(path)
  const heard: string[] = []
  client.on('message', (data) => heard.push(String(data)))
  await once(client, 'open')
  for (let i = 0; i < 50; i++) client.send(`guess-${i}`)
  client.send(secret)
  const [code, reason] = (await once(client, 'close')) as [number, Buffer]
  expect([code, String(reason)]).toEqual([4401, 'Three wrong tokens'])
  expect(heard.slice(0, 2)).toEqual(['nobody', 'nobody'])
  expect(heard).not.toContain('alice')
})

test('tokens in messages and bodies count as those in headers do', async () => {
  const { url, connect } = await testServer({ routes, tokens, anonymous: true, limits, monotonic: () => 0 })
  const guess = async (token: string) => (await fetch(`${url}/token-in-body`, { method: 'POST', body: token })).status
  expect([await guess('guess-1'), await guess('guess-2'), await guess('guess-3')]).toEqual([200, 200, 200])
  const ask = async (client: WebSocket, token: string) => {
    client.send(token)
    return String((await once(client, 'message'))[0])
  }
  const client = connect('/request')
  await once(client, 'open')
  expect([await ask(client, 'guess-4'), await ask(client, 'guess-5')]).toEqual(['nobody', 'nobody'])
  expect(await guess('guess-6')).toBe(429)
  const other = connect('/request')
  await once(other, 'open')
  expect([await ask(other, 'guess-7'), await ask(other, secret)]).toEqual(['rate_limited', 'alice'])
})

test('behind a proxy that is named each client has its own share, and nobody can take the name of another', async () => {
  const options = { routes, tokens, anonymous: false, limits, monotonic: () => 0 }
  const guesses = async (url: string, headers: (i: number) => Record<string, string>) => {
    const all: number[] = []
    for (let i = 0; i < 6; i++) all.push((await fetch(`${url}/me`, bearer(`guess-${i}`, headers(i)))).status)
    return all
  }
  const throttled = [401, 401, 401, 401, 401, 429]
  const named = await testServer({ ...options, trusts: (address) => address === '127.0.0.1' || address.startsWith('10.') })
  expect(await guesses(named.url, () => ({ 'x-forwarded-for': '198.51.100.1' }))).toEqual(throttled)
  expect(await guesses(named.url, () => ({ forwarded: 'for="[2001:db8:1:2::3]:4711"' }))).toEqual(throttled)
  // One customer has a whole /64 of addresses.
  expect((await fetch(`${named.url}/me`, bearer('guess', { 'x-forwarded-for': '2001:db8:1:2:ffff::1' }))).status).toBe(429)
  expect((await fetch(`${named.url}/me`, bearer('guess', { 'x-forwarded-for': '2001:db8:1:3::1' }))).status).toBe(401)
  // What the client wrote itself stands before what the proxies added.
  expect(await guesses(named.url, (i) => ({ 'x-forwarded-for': `192.0.2.${i}, 198.51.100.7, 10.0.0.1` }))).toEqual(throttled)
  const unnamed = await testServer(options)
  expect(await guesses(unnamed.url, (i) => ({ 'x-forwarded-for': `192.0.2.${i}` }))).toEqual(throttled)
  const other = await testServer({ ...options, trusts: (address) => address === '10.0.0.1' })
  expect(await guesses(other.url, (i) => ({ 'x-forwarded-for': `192.0.2.${i}`, forwarded: `for=192.0.2.${i}` }))).toEqual(throttled)
})
