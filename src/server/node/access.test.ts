import { once } from 'node:events'
import { expect, test } from 'vitest'
import { admitted } from '../../core/basics/principal.ts'
import { refusedUpgrade, testServer } from '../../../test/support/test-server.ts'
import type { Route } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'

const tokens = { alice: 'wonderland-0123456789abcdef', bob: 'builder-0123456789abcdef' }
const tokenProtocol = (secret: string) => `uamp.token.${Buffer.from(secret).toString('base64url')}`
const bearer = (secret: string) => ({ headers: { authorization: `Bearer ${secret}` } })

const routes: Route[] = [
  { method: 'GET', path: '/me', access: 'request', handle: async (_, { principal }) => Response.json(principal) },
  { method: 'GET', path: '/open', access: 'public', handle: async (_, { principal }) => Response.json(principal ?? null) },
  { method: 'WS', path: '/strict', access: 'request', handle: (socket, { principal }) => socket.send([principal?.id ?? 'nobody']) },
  {
    method: 'WS',
    path: '/late',
    access: 'first-message',
    async handle(socket, { principal, access }) {
      if (principal) await socket.send([principal.id])
      for await (const token of socket) {
        const found = admitted(await access.authenticate({ token: String(token) }))
        await socket.send([found?.id ?? 'nobody'])
      }
    },
  },
]

test('a request without a valid token is refused', async () => {
  const { url } = await testServer({ routes, tokens, anonymous: false })
  for (const init of [{}, bearer('wrong')]) {
    const response = await fetch(`${url}/me`, init)
    expect([response.status, response.headers.get('www-authenticate')]).toEqual([401, 'Bearer realm="uamp"'])
    expect(await response.json()).toEqual({ error: { code: 'unauthorized', message: expect.any(String) } })
  }
  const told = async (init: RequestInit) =>
    ((await (await fetch(`${url}/me`, init)).json()) as { error: { message: string } }).error.message
  for (const headers of [{}, { authorization: 'wonderland-0123456789abcdef' }, { authorization: 'Basic YTpi' }, { 'x-api-key': 'x' }]) {
    expect(await told({ headers })).toBe('This needs a valid token, sent as Authorization: Bearer <token>')
  }
  expect(await told(bearer('wrong'))).toBe('This needs a valid token')
  expect(await (await fetch(`${url}/me`, bearer('wonderland-0123456789abcdef'))).json()).toEqual({
    tenant: 'default',
    id: 'alice',
    scopes: ['*'],
  })
  expect(await (await fetch(`${url}/open`)).json()).toBeNull()
  expect((await fetch(`${url}/metrics`)).status).toBe(401)
  expect((await fetch(`${url}/metrics`, bearer('builder-0123456789abcdef'))).status).toBe(200)
})

test('a wrong token is refused also where none is needed', async () => {
  const { url, connect } = await testServer({ routes, tokens })
  expect(await (await fetch(`${url}/me`)).json()).toMatchObject({ id: 'anonymous' })
  expect((await fetch(`${url}/me`, bearer('wrong'))).status).toBe(401)
  for (const path of ['/strict', '/late']) {
    expect(await refusedUpgrade(connect(path, bearer('wrong')))).toMatchObject({ status: 401, body: { error: { code: 'unauthorized' } } })
    expect(await refusedUpgrade(connect(path, { protocols: ['uamp', tokenProtocol('wrong')] }))).toMatchObject({ status: 401 })
  }
})

test('a socket is opened by a header or by a subprotocol, and the token is never echoed', async () => {
  const { connect } = await testServer({ routes, tokens, anonymous: false })
  expect(await refusedUpgrade(connect('/strict'))).toMatchObject({ status: 401, headers: { 'www-authenticate': 'Bearer realm="uamp"' } })
  const byHeader = connect('/strict', bearer('builder-0123456789abcdef'))
  expect(String((await once(byHeader, 'message'))[0])).toBe('bob')
  const byProtocol = connect('/strict', { protocols: ['uamp', tokenProtocol('wonderland-0123456789abcdef')] })
  const [[response], [message]] = await Promise.all([once(byProtocol, 'upgrade'), once(byProtocol, 'message')])
  expect(response.headers['sec-websocket-protocol']).toBe('uamp')
  expect(String(message)).toBe('alice')
})

test('a socket is opened without a token where it may come with the first message', async () => {
  const { connect } = await testServer({ routes, tokens, anonymous: false, limits: { authenticateMs: 200 } })
  const client = connect('/late')
  await once(client, 'open')
  client.send('wonderland-0123456789abcdef')
  expect(String((await once(client, 'message'))[0])).toBe('alice')
  const silent = connect('/late')
  const wrong = connect('/late')
  wrong.once('open', () => wrong.send('nonsense'))
  const [[code], [wrongCode]] = await Promise.all([once(silent, 'close'), once(wrong, 'close')])
  expect([code, wrongCode]).toEqual([4401, 4401])
  // Who was let in in time stays, though it is now later than that.
  client.send('builder-0123456789abcdef')
  expect(String((await once(client, 'message'))[0])).toBe('bob')
})

test('a socket without a token is anonymous at once where that is allowed', async () => {
  const { connect } = await testServer({ routes, tokens })
  const client = connect('/late')
  expect(String((await once(client, 'message'))[0])).toBe('anonymous')
})

test('a handler that ends, fails, or is refused closes its socket with the code that says so', async () => {
  const failing = (path: string, thrown: unknown): Route => ({
    method: 'WS',
    path,
    access: 'public',
    handle: () => Promise.reject(thrown as Error),
  })
  const { connect, logged, metrics } = await testServer({
    routes: [
      { method: 'WS', path: '/done', access: 'public', handle: async () => {} },
      failing('/broken', new Error('secret')),
      failing('/unauthorized', new UampError('unauthorized', 'The token has expired')),
    ],
  })
  const closed = async (path: string) => {
    const [code, reason] = await once(connect(path), 'close')
    return [code, String(reason)]
  }
  expect(await closed('/done')).toEqual([1000, ''])
  expect(await closed('/broken')).toEqual([1011, 'Internal error'])
  expect(await closed('/unauthorized')).toEqual([4401, 'The token has expired'])
  expect(logged.map(({ message }) => message)).toEqual(['A socket failed'])
  expect(metrics.openSockets).toBe(0)
})
