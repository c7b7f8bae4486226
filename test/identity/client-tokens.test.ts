import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { decodeJwt, exportJWK, generateKeyPair, jwtVerify } from 'jose'
import { expect, onTestFinished, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { remoteEvents } from '../../src/remotes/events/index.ts'
import type { ClientAuth } from '../../src/upstream/token-endpoint.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket } from '../support/wire.ts'
import { recorder } from './recorder.ts'

const SECRET = 'a secret: with a colon & more'
const CALLER = 'wonderland-secret-of-alice'

interface Settings {
  /** The metadata, given the URL of the issuer. Default: right ones at the root. */
  readonly metadata?: (url: string) => object
  /** Where metadata is. */
  readonly at?: string
  /** Elsewhere, the uamp server behind it shows its own metadata, which names another host. Default: there is none elsewhere. */
  readonly showsThrough?: boolean
  readonly expiresIn?: number
  /** Answers to requests for a token, instead of tokens. */
  readonly answer?: (form: URLSearchParams) => { status: number; headers?: Record<string, string>; body: string } | undefined
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}

/** An authorization server before a uamp server: everything else goes on to that. */
async function issuer({
  metadata,
  at = '/.well-known/oauth-authorization-server',
  showsThrough = false,
  expiresIn = 300,
  answer,
}: Settings = {}) {
  const asked: { form: URLSearchParams; authorization: string | undefined }[] = []
  const given = new Set<string>()
  const far = await startServer(
    defineAgent('far', async function* (turn) {
      yield turn.principal.id
    }),
    {
      access: {
        schemes: ['Bearer'],
        authenticate: async ({ headers, token = headers?.get('authorization')?.slice('Bearer '.length) }) =>
          token !== undefined && given.has(token) ? { tenant: 'default', id: 'client', scopes: ['*'] } : undefined,
        authorize: () => true,
      },
    },
  )
  const { url: pass, sent } = await recorder(() => far.url)
  const server = createServer((request, response) => {
    void (async () => {
      const { url: path = '' } = request
      if (path === at) return response.end(JSON.stringify(metadata?.(url) ?? { issuer: url, token_endpoint: `${url}/token` }))
      if (!showsThrough && /\.well-known\/(oauth|openid)/.test(path)) return response.writeHead(404).end()
      if (path !== '/token') {
        const answered = await fetch(pass + path, {
          method: request.method ?? 'GET',
          headers: Object.fromEntries(
            Object.entries(request.headers).filter(([name]) => !/^(host|connection|content-length|transfer)/.test(name)),
          ) as Record<string, string>,
          ...(request.method === 'POST' && { body: await bodyOf(request) }),
        })
        response.writeHead(answered.status, { 'content-type': answered.headers.get('content-type') ?? '' })
        return response.end(await answered.text())
      }
      const form = new URLSearchParams(await bodyOf(request))
      asked.push({ form, authorization: request.headers.authorization })
      const other = answer?.(form)
      if (other) return response.writeHead(other.status, other.headers).end(other.body)
      const token = `token-${asked.length}-${crypto.randomUUID()}`
      given.add(token)
      return response.end(JSON.stringify({ access_token: token, token_type: 'Bearer', expires_in: expiresIn }))
    })()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url, asked, given, sent }
}

async function near(url: string, auth: Omit<ClientAuth, 'type' | 'clientId'>) {
  const server = await startServer(
    remoteEvents({ name: 'near', url: `${url}/agents/far`, auth: { type: 'client', clientId: 'me:1', ...auth } }),
    {
      tokens: { alice: CALLER },
    },
  )
  const ask = async () => {
    const wire = await overWebSocket(server.url, { token: CALLER })
    await wire.open()
    return (await say(wire, 'hello')).at(-1)
  }
  return { ...server, ask }
}

verifies(['outbound.client', 'outbound.discovery', 'outbound.cached'], 'one token for many calls, by a secret', async () => {
  const { url, asked, sent } = await issuer()
  const { ask } = await near(url, { clientSecret: SECRET, scope: 'call' })
  const ends = await Promise.all(Array.from({ length: 8 }, ask))
  expect(ends.map((end) => end?.type)).toEqual(Array(8).fill('response.done'))
  expect(asked).toHaveLength(1)
  const [{ form, authorization = '' } = { form: new URLSearchParams() }] = asked
  expect(Object.fromEntries(form)).toEqual({ grant_type: 'client_credentials', scope: 'call', target: `${url}/agents/far` })
  const [id = '', secret = ''] = atob(authorization.slice('Basic '.length)).split(':')
  expect([id, secret].map((text) => new URLSearchParams(`a=${text}`).get('a'))).toEqual(['me:1', SECRET])
  expect(JSON.stringify(sent)).not.toMatch(/wonderland|a secret/)
})

verifies('outbound.discovery', 'a server on this machine is the same, by whichever name it is called', async () => {
  const { url } = await issuer()
  const { ask } = await near(url.replace('127.0.0.1', 'localhost'), { clientSecret: SECRET })
  expect(await ask()).toMatchObject({ type: 'response.done' })
})

verifies('outbound.client', 'by a private key', async () => {
  const { publicKey, privateKey } = await generateKeyPair('EdDSA', { extractable: true })
  const { url, asked } = await issuer()
  const { ask } = await near(url, { privateKey: { ...(await exportJWK(privateKey)), kid: 'k1' } })
  expect(await ask()).toMatchObject({ type: 'response.done' })
  const { client_assertion: assertion = '', ...form } = Object.fromEntries(asked[0]?.form ?? [])
  expect(form).toMatchObject({ client_id: 'me:1', client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer' })
  const { payload, protectedHeader } = await jwtVerify(assertion, publicKey, { audience: `${url}/token`, issuer: 'me:1', subject: 'me:1' })
  expect(protectedHeader).toMatchObject({ kid: 'k1', alg: 'EdDSA' })
  expect(payload.jti).toBeTypeOf('string')
  expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(60)
})

verifies('outbound.exchange', 'a caller’s token of this server in exchange', async () => {
  const { url, asked, sent } = await issuer()
  const { ask, url: own } = await near(url, { clientSecret: SECRET, exchange: true, target: '@far' })
  expect(await ask()).toMatchObject({ type: 'response.done' })
  const form = Object.fromEntries(asked[0]?.form ?? [])
  expect(form).toMatchObject({ grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange', target: '@far', audience: '@far' })
  expect(decodeJwt(form['subject_token'] ?? '')).toMatchObject({ iss: own, sub: 'alice', aud: url, act: { sub: 'near' } })
  expect(JSON.stringify([sent, form])).not.toContain(CALLER)
})

verifies('outbound.cached', 'a token that ends soon, and one that was revoked, are replaced', async () => {
  const { url, asked, given } = await issuer()
  const { ask } = await near(url, { clientSecret: SECRET })
  await ask()
  given.clear()
  expect(await ask()).toMatchObject({ type: 'response.done' })
  expect(asked).toHaveLength(2)
  const short = await issuer({ expiresIn: 0.001 })
  const other = await near(short.url, { clientSecret: SECRET })
  await other.ask()
  await other.ask()
  expect(short.asked.length).toBeGreaterThanOrEqual(2)
})

const ELSEWHERE = 'https://elsewhere.example/token'
const WRONG: readonly (readonly [string, Settings, string])[] = [
  [
    'of another issuer',
    { metadata: () => ({ issuer: 'https://elsewhere.example', token_endpoint: ELSEWHERE }) },
    'metadata of another issuer',
  ],
  ['that leads to another host', { metadata: (url) => ({ issuer: url, token_endpoint: ELSEWHERE }) }, 'on another host'],
  ['without an endpoint', { metadata: (url) => ({ issuer: url }) }, 'set `tokenUrl`'],
  ['that is nowhere', { at: '/nowhere' }, 'names no token endpoint'],
  ['of a server behind this one', { at: '/nowhere', showsThrough: true }, 'metadata of another issuer'],
]
for (const [what, settings, message] of WRONG) {
  verifies('outbound.discovery', `metadata ${what} gets no secret`, async () => {
    const { url, asked, sent } = await issuer(settings)
    const { ask } = await near(url, { clientSecret: SECRET })
    expect(await ask()).toMatchObject({ type: 'response.error', error: { message: expect.stringContaining(message) } })
    expect(asked).toEqual([])
    expect(sent.filter(({ headers }) => headers.authorization !== undefined)).toEqual([])
  })
}

for (const at of [
  '/.well-known/openid-configuration',
  '/agents/far/.well-known/openid-configuration',
  '/.well-known/oauth-authorization-server/agents/far',
]) {
  verifies('outbound.discovery', `metadata at ${at}`, async () => {
    const { url, asked } = await issuer({
      at,
      metadata: (base) => ({ issuer: base + (at.includes('far') ? '/agents/far' : ''), token_endpoint: `${base}/token` }),
    })
    const { ask } = await near(url, { clientSecret: SECRET })
    expect(await ask()).toMatchObject({ type: 'response.done' })
    expect(asked).toHaveLength(1)
  })
}

verifies('outbound.discovery', 'what an agent shows of another issuer is passed over for what its server says', async () => {
  const { url, asked } = await issuer({ showsThrough: true })
  const { ask } = await near(url, { clientSecret: SECRET })
  expect(await ask()).toMatchObject({ type: 'response.done' })
  expect(asked).toHaveLength(1)
})

const NEAR = 'near-has-a-long-secret'
const TARGETS = { 'of the agent': undefined, 'by name': '@far', 'by URL': 'url' } as const
for (const [how, target] of Object.entries(TARGETS)) {
  verifies(
    ['outbound.client', 'outbound.discovery'],
    `two servers of ours: a token for the target ${how}, found by discovery`,
    async () => {
      const far = await startServer(
        defineAgent('far', async function* (turn) {
          yield `${turn.principal.subject} ${turn.principal.agents?.join() ?? 'all'}`
        }),
        { access: { clients: { near: { secret: NEAR, scopes: ['call'] } } } },
      )
      const url = `${far.url}/agents/far`
      const auth = { type: 'client' as const, clientId: 'near', clientSecret: NEAR }
      const server = await startServer(
        remoteEvents({ name: 'near', url, auth: { ...auth, ...(target && { target: target === 'url' ? url : target }) } }),
      )
      const wire = await overWebSocket(server.url)
      await wire.open()
      expect(textOf(await say(wire, 'hello'))).toBe('near far')
    },
  )
}

const BAD = {
  'refuses and repeats the secret': (form: URLSearchParams) => ({
    status: 400,
    body: JSON.stringify({ error: 'invalid_scope', error_description: `no ${SECRET} ${form}` }),
  }),
  redirects: () => ({ status: 302, headers: { location: ELSEWHERE }, body: '' }),
  'sends too much': () => ({ status: 200, body: JSON.stringify({ access_token: 'x'.repeat(100_000) }) }),
  'gives no token': () => ({ status: 200, body: '{}' }),
  'gives a token that breaks a header': () => ({ status: 200, body: JSON.stringify({ access_token: 'a\r\nx: y' }) }),
  'gives a token of another kind': () => ({ status: 200, body: JSON.stringify({ access_token: 'a', token_type: 'DPoP' }) }),
  'is no JSON': () => ({ status: 200, body: '<html>' }),
}
test.each(Object.entries(BAD))('a token endpoint that %s is an error, and nothing secret is told or logged', async (_, answer) => {
  const { url } = await issuer({ answer })
  const { ask, logged } = await near(url, { clientSecret: SECRET })
  const end = await ask()
  expect(end).toMatchObject({ type: 'response.error', error: { code: expect.stringMatching(/provider_error|invalid_request/) } })
  expect(JSON.stringify([end, logged])).not.toMatch(/a secret|client_credentials/)
})
