import { once } from 'node:events'
import { connect as netConnect } from 'node:net'
import { expect, test } from 'vitest'
import { refusedUpgrade, testServer } from '../../../test/support/test-server.ts'
import type { Route } from '../../core/ports/transport.ts'
import { hostPolicy } from '../web-pages.ts'

const routes: Route[] = [
  { method: 'GET', path: '/secrets', access: 'request', handle: async () => Response.json({ said: 'in private' }) },
  { method: 'WS', path: '/ws', access: 'request', handle: (socket) => socket.send(['hello']) },
]

/** One request on a bare connection, as no client library would send it. */
async function raw(port: number, head: readonly string[]): Promise<{ status: number; body: string }> {
  const client = netConnect(port, '127.0.0.1')
  client.end(`${head.join('\r\n')}\r\n\r\n`)
  let text = ''
  for await (const chunk of client) text += String(chunk)
  return { status: Number(text.split(' ')[1]), body: text.split('\r\n\r\n')[1] ?? '' }
}

const get = (port: number, ...headers: string[]) => raw(port, ['GET /secrets HTTP/1.1', 'connection: close', ...headers])

test.each([
  ['localhost', 200],
  ['localhost:1234', 200],
  ['LOCALHOST:1234', 200],
  ['localhost.:1234', 200],
  ['app.localhost', 200],
  ['127.0.0.1', 200],
  ['127.0.0.1:8787', 200],
  ['10.1.2.3:8787', 200],
  ['[::1]', 200],
  ['[::1]:8787', 200],
  ['[fd00::1234]:8787', 200],
  ['evil.example', 421],
  ['evil.example:8787', 421],
  ['localhost.evil.example', 421],
  ['127.0.0.1.evil.example', 421],
  ['evil.example.', 421],
  ['notlocalhost', 421],
  ['local host', 400],
  ['localhost, evil.example', 400],
  ['user@localhost', 400],
  ['localhost:port', 400],
  ['[::1', 400],
  ['', 400],
])('a request for the host "%s" is answered with %s', async (host, status) => {
  const { port } = await testServer({ routes })
  const answer = await get(port, `host: ${host}`)
  expect([answer.status, answer.body.includes('in private')]).toEqual([status, status === 200])
})

test('a page whose name was pointed at this machine gets nothing, by request or by upgrade', async () => {
  const { port, connect } = await testServer({ routes })
  const answer = await get(port, 'host: rebound.example')
  expect(answer.status).toBe(421)
  const { error } = JSON.parse(answer.body) as { error: { code: string; message: string } }
  expect(error.code).toBe('forbidden')
  // Whoever runs the server reads this in the answer: it has to say what to set.
  expect(error.message).toMatch(/rebound\.example.*allowedHosts.*publicUrl/)
  const refused = await refusedUpgrade(connect('/ws', { headers: { host: 'rebound.example' } }))
  expect(refused).toMatchObject({ status: 421, body: { error: { code: 'forbidden' } } })
  expect(String((await once(connect('/ws', { headers: { host: 'localhost' } }), 'message'))[0])).toBe('hello')
})

test('the names that were configured, and that of the public URL, are answered', async () => {
  const { port } = await testServer({
    routes,
    allowedHosts: ['Agents.Internal', 'bücher.example'],
    publicUrl: 'https://agents.example/bots',
  })
  const status = async (host: string) => (await get(port, `host: ${host}`)).status
  expect(await status('agents.internal:8787')).toBe(200)
  expect(await status('AGENTS.EXAMPLE.')).toBe(200)
  expect(await status('xn--bcher-kva.example')).toBe(200)
  expect(await status('other.internal')).toBe(421)
  const { port: open } = await testServer({ routes, allowedHosts: ['*'] })
  expect((await get(open, 'host: any.example')).status).toBe(200)
})

test('a request with two hosts, or none, is refused, and one with its host in the target is judged by that', async () => {
  const { port } = await testServer({ routes })
  expect((await get(port, 'host: localhost', 'host: evil.example')).status).toBe(400)
  expect((await get(port, 'host: localhost', 'host: localhost')).status).toBe(400)
  expect((await get(port)).status).toBe(400)
  expect((await raw(port, ['GET /secrets HTTP/1.0'])).status).toBe(400)
  expect((await raw(port, ['GET /secrets HTTP/1.0', 'host: localhost'])).status).toBe(200)
  expect((await raw(port, ['GET http://localhost/secrets HTTP/1.0'])).status).toBe(200)
  const absolute = (target: string, host: string) =>
    raw(port, [`GET http://${target}/secrets HTTP/1.1`, `host: ${host}`, 'connection: close'])
  expect((await absolute('evil.example', 'localhost')).status).toBe(421)
  expect((await absolute('localhost', 'evil.example')).status).toBe(421)
  expect((await absolute('localhost', 'localhost')).status).toBe(200)
})

test('a request that another site sends is refused, unless its page may call', async () => {
  const { port, connect } = await testServer({ routes, origins: ['https://app.example'] })
  const from = async (...headers: string[]) => (await get(port, 'host: localhost', ...headers)).status
  expect(await from('sec-fetch-site: cross-site')).toBe(403)
  expect(await from('sec-fetch-site: cross-site', 'sec-fetch-mode: no-cors', 'sec-fetch-dest: image')).toBe(403)
  expect(await from('sec-fetch-site: cross-site', 'origin: https://evil.example')).toBe(403)
  expect(await from('sec-fetch-site: cross-site', 'origin: https://app.example')).toBe(200)
  for (const site of ['same-origin', 'same-site', 'none']) expect(await from(`sec-fetch-site: ${site}`)).toBe(200)
  const crossSite = { 'sec-fetch-site': 'cross-site' }
  expect(await refusedUpgrade(connect('/ws', { headers: crossSite }))).toMatchObject({ status: 403 })
  await once(connect('/ws', { headers: { ...crossSite, origin: 'https://app.example' } }), 'message')
  const { port: open } = await testServer({ routes, origins: ['*'] })
  expect((await get(open, 'host: localhost', 'sec-fetch-site: cross-site')).status).toBe(200)
})

test('also routes that a user added are behind the check', async () => {
  const { app, port } = await testServer({ routes })
  app.get('/mine', (c) => c.text('a route of the user'))
  const mine = (host: string) => raw(port, ['GET /mine HTTP/1.1', 'connection: close', `host: ${host}`])
  expect([(await mine('localhost')).status, (await mine('evil.example')).status]).toEqual([200, 421])
})

test.each(['https://example.com', 'example.com/path', 'example.com:8787', 'a b', ''])('"%s" cannot be configured as a host', (name) => {
  expect(() => hostPolicy({ allowedHosts: [name] })).toThrow('is not the name of a host')
})
