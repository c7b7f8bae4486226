import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT, type JWK, type JWTPayload } from 'jose'
import { onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { demo } from '../../src/agents/demo/index.ts'
import { mintToken, type TokenRequest } from '../../src/auth/mint.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { Host, Logger } from '../../src/core/ports/transport.ts'
import { serve, type ServeOptions } from '../../src/serve/index.ts'

export const now = (): number => Math.floor(Date.now() / 1000)

/** A key pair, and how it signs. */
export async function keyPair(kid: string, alg = 'RS256') {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
  const jwk: JWK = { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' }
  const sign = (claims: JWTPayload, header: Record<string, unknown> = {}) =>
    new SignJWT(claims).setProtectedHeader({ alg, kid, typ: 'at+jwt', ...header }).sign(privateKey)
  return { jwk, sign, publicKey, privateKey }
}

export type Pair = Awaited<ReturnType<typeof keyPair>>
type Answer = (request: IncomingMessage, response: ServerResponse) => void

export function json(response: ServerResponse, value: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value))
}

/** An issuer of its own on a free port, which publishes whatever a test sets. Everything that is asked of it is written down. */
async function openIssuer(pairs: readonly Pair[], atEnd: AtEnd) {
  const asked: string[] = []
  const published = { keys: pairs.map(({ jwk }) => jwk), answer: undefined as Answer | undefined, headers: {} as Record<string, string> }
  const server = createServer((request, response) => {
    asked.push(request.url ?? '')
    if (published.answer) return published.answer(request, response)
    if (request.url === '/.well-known/jwks.json') return json(response, { keys: published.keys }, published.headers)
    response.writeHead(404).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  return { url, host: `127.0.0.1:${port}`, asked, published }
}

type End = () => Promise<void> | void
type AtEnd = (end: End) => void

/** Gone when the test is. `kept`: for all tests of a file, which ends it itself. */
export const issuer = Object.assign((...pairs: readonly Pair[]) => openIssuer(pairs, onTestFinished), {
  kept: (pairs: readonly Pair[], ends: End[]) => openIssuer(pairs, (end) => ends.push(end)),
})

const secret = defineAgent('secret', async function* () {
  yield text('not for everybody')
})

/** A server with two agents, and what its transports know of it. */
async function openServer(options: Partial<ServeOptions>, atEnd: AtEnd) {
  let host: Host | undefined
  const probe = {
    name: 'probe',
    routes: (given: Host) => {
      host = given
      return []
    },
  }
  const logged: { level: string; message: string; fields?: Readonly<Record<string, unknown>> | undefined }[] = []
  const log: Logger = (level, message, fields) => void logged.push({ level, message, fields })
  const started = await serve([demo(), secret], { port: 0, data: 'memory', log, defaultAgent: 'demo', transports: [probe], ...options })
  atEnd(() => started.close({ graceMs: 0 }))
  const server = { ...started, logged }
  const signer = host?.signer
  if (!host || !signer) throw new Error('the server has no keys')
  const mint = (request: Partial<TokenRequest> = {}) =>
    mintToken(signer, { issuer: server.url, subject: 'alice', audience: server.url, scope: ['write'], now: Date.now(), ...request })
  return { ...server, host, signer, mint }
}

export const identityServer = Object.assign((options: Partial<ServeOptions> = {}) => openServer(options, onTestFinished), {
  kept: (options: Partial<ServeOptions>, ends: End[]) => openServer(options, (end) => ends.push(end)),
})

/** The claims of a good token for a server. */
export function claimsFor(url: string, from: string, more: object = {}): JWTPayload {
  return {
    iss: from,
    sub: 'bob',
    aud: url,
    iat: now(),
    exp: now() + 300,
    jti: crypto.randomUUID(),
    scope: 'write',
    client_id: 'bob',
    ...more,
  }
}

/** What became of a call: its HTTP status, or the error of the protocol. */
export interface Outcome {
  readonly accepted: boolean
  readonly status: number | undefined
  readonly error: { readonly code?: string; readonly type?: string; readonly message?: string; readonly details?: Record<string, unknown> }
  readonly challenge: string | undefined
}

export async function byHeader(url: string, token: string, scheme = 'Bearer', path = '/v1/chat/completions'): Promise<Outcome> {
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { authorization: `${scheme} ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'Hello' }] }),
  })
  const body = (await response.json()) as { error?: Outcome['error'] }
  const { status, headers } = response
  return { accepted: status === 200, status, error: body.error ?? {}, challenge: headers.get('www-authenticate') ?? undefined }
}

export function bySubprotocol(url: string, token: string): Promise<Outcome> {
  const offered = `uamp.token.${Buffer.from(token).toString('base64url')}`
  const socket = new WebSocket(`${url.replace('http', 'ws')}/uamp`, ['uamp', offered])
  return new Promise((resolve, reject) => {
    socket.once('open', () => {
      resolve({ accepted: true, status: 101, error: {}, challenge: undefined })
      socket.terminate()
    })
    socket.once('unexpected-response', (_, response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
      response.on('end', () => {
        const { error = {} } = JSON.parse(body) as { error?: Outcome['error'] }
        resolve({ accepted: false, status: response.statusCode, error, challenge: response.headers['www-authenticate'] })
      })
    })
    socket.on('error', reject)
  })
}

export function byMessage(url: string, token: string): Promise<Outcome> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/uamp`)
  return new Promise((resolve, reject) => {
    socket.once('open', () =>
      socket.send(JSON.stringify({ type: 'session.create', uamp_version: '1.0', event_id: '1', agent: 'demo', token, session: {} })),
    )
    socket.on('message', (data: Buffer) => {
      const event = JSON.parse(data.toString()) as { type: string; error?: Outcome['error'] }
      if (event.type !== 'session.created' && event.type !== 'session.error') return
      resolve({ accepted: event.type === 'session.created', status: undefined, error: event.error ?? {}, challenge: undefined })
      socket.terminate()
    })
    socket.once('close', () => reject(new Error('The socket was closed without an answer')))
    socket.on('error', reject)
  })
}

export const WAYS = { header: byHeader, subprotocol: bySubprotocol, 'session.create': byMessage } as const
