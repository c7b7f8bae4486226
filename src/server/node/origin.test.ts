import { once } from 'node:events'
import { expect, test } from 'vitest'
import { refusedUpgrade, testServer } from '../../../test/support/test-server.ts'
import type { Route } from '../../core/ports/transport.ts'
import { originPolicy } from '../web-pages.ts'

const routes: Route[] = [
  { method: 'POST', path: '/events', access: 'request', handle: async () => Response.json({}, { status: 202 }) },
  { method: 'GET', path: '/proxied', access: 'public', handle: async () => fetch('data:text/plain,elsewhere') },
  { method: 'WS', path: '/ws', access: 'request', handle: (socket) => socket.send(['hello']) },
]

test.each([
  ['http://localhost:5173', true],
  ['https://127.0.0.1', true],
  ['http://[::1]:80', true],
  ['http://localhost.evil.example', false],
  ['http://127.0.0.1.evil.example:80', false],
  ['https://evil.example', false],
  ['null', false],
  ['file://', false],
])('on loopback the origin %s is allowed: %s', async (origin, allowed) => {
  const { url, connect } = await testServer({ routes })
  const response = await fetch(`${url}/events`, { method: 'POST', body: '{}', headers: { origin } })
  expect(response.status).toBe(allowed ? 202 : 403)
  expect(response.headers.get('access-control-allow-origin')).toBe(allowed ? origin : null)
  expect(response.headers.get('access-control-allow-credentials')).toBeNull()
  const client = connect('/ws', { headers: { origin } })
  if (allowed) expect(String((await once(client, 'message'))[0])).toBe('hello')
  else expect(await refusedUpgrade(client)).toMatchObject({ status: 403, body: { error: { code: 'forbidden' } } })
})

test('elsewhere only the listed origins are allowed, and none by its own name', async () => {
  const { url, port, app } = await testServer({ routes, loopback: false, origins: ['https://app.example/'] })
  app.get('/mine', (c) => c.text('a route of the user'))
  const status = async (origin: string, path = '/events') =>
    (await fetch(url + path, { method: path === '/events' ? 'POST' : 'GET', headers: { origin } })).status
  expect(await status('https://app.example')).toBe(202)
  expect(await status('http://localhost:5173')).toBe(403)
  expect(await status(`http://127.0.0.1:${port}`)).toBe(403)
  expect(await status('https://app.example', '/mine')).toBe(200)
  expect(await status('https://evil.example', '/mine')).toBe(403)
  expect((await fetch(`${url}/events`, { method: 'POST' })).status).toBe(202)
})

test('a preflight is answered for allowed origins', async () => {
  const { url } = await testServer({ routes, tokens: { alice: 's-0123456789abcdef' }, anonymous: false })
  const preflight = (origin: string) =>
    fetch(`${url}/events`, { method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'POST' } })
  const { status, headers } = await preflight('http://localhost:3000')
  expect(status).toBe(204)
  expect(headers.get('access-control-allow-origin')).toBe('http://localhost:3000')
  expect(headers.get('access-control-allow-methods')).toContain('POST')
  for (const name of ['Last-Event-ID', 'X-Session-ID', 'Authorization', 'Content-Type']) {
    expect(headers.get('access-control-allow-headers')).toContain(name)
  }
  expect((await preflight('https://evil.example')).status).toBe(403)
  // The clients of OpenAI's have a dozen of their own.
  const asked = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization,x-stainless-lang' }
  const answer = await fetch(`${url}/events`, { method: 'OPTIONS', headers: { origin: 'http://localhost:3000', ...asked } })
  expect(answer.headers.get('access-control-allow-headers')).toBe('authorization,x-stainless-lang')
})

test('what an allowed page must read it can read: errors, the session id, answers from elsewhere', async () => {
  const { url } = await testServer({ routes, tokens: { alice: 's-0123456789abcdef' }, anonymous: false })
  const page = { headers: { origin: 'http://localhost:3000' } }
  for (const path of ['/events', '/nowhere', '/proxied']) {
    const { headers } = await fetch(url + path, page)
    expect(headers.get('access-control-allow-origin')).toBe('http://localhost:3000')
    for (const name of ['X-Session-ID', 'WWW-Authenticate', 'DPoP-Nonce'])
      expect(headers.get('access-control-expose-headers')).toContain(name)
    expect(headers.get('vary')).toBe('Origin')
  }
})

test('an origin that is none is refused when it is configured', () => {
  expect(() => originPolicy({ origins: ['example.com'], loopback: false })).toThrow('write it like https://example.com')
  expect(originPolicy({ origins: ['*'], loopback: false })('https://anything.example')).toBe(true)
})
