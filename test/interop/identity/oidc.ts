/** An identity provider of somebody else: `oidc-provider` 9 on a free port. */
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import Provider from 'oidc-provider'
import { onTestFinished, vi } from 'vitest'
import { basic, postForm } from '../../identity/oauth.ts'

const CALLBACK = 'https://app.example/callback'
const ROBOT = { client_id: 'robot', client_secret: 'robot-has-a-long-secret' }
const APP = { client_id: 'app', client_secret: 'app-has-a-long-secret' }
const WORDS = 'read call admin service:billing'

let kids = 0

async function signingKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  return { ...(await exportJWK(privateKey)), kid: `key-${++kids}`, alg: 'RS256', use: 'sig' }
}

function configuration(keys: readonly JWK[]): object {
  return {
    jwks: { keys },
    clients: [
      { ...ROBOT, grant_types: ['client_credentials'], redirect_uris: [], response_types: [] },
      { ...APP, grant_types: ['authorization_code'], redirect_uris: [CALLBACK], response_types: ['code'] },
    ],
    cookies: { keys: ['a-key-for-cookies'] },
    pkce: { required: () => false },
    findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
    extraTokenClaims: () => ({ org: { id: 'acme' } }),
    features: {
      clientCredentials: { enabled: true },
      dPoP: { enabled: true },
      devInteractions: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_: unknown, audience: string) => ({
          scope: WORDS,
          audience,
          accessTokenTTL: 300,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  }
}

/** What a client may ask for. Without a `resource` the token is opaque. */
interface Asked {
  readonly resource?: string
  readonly scope?: string
  /** A proof for the token endpoint: the token is then bound to its key. */
  readonly proof?: (url: string) => Promise<string>
}

export async function oidcProvider() {
  // It says at length that it is configured for a test.
  for (const method of ['warn', 'info'] as const) vi.spyOn(console, method).mockImplementation(() => undefined)
  onTestFinished(() => void vi.restoreAllMocks())
  const asked: string[] = []
  let handle: RequestListener = (_, response) => void response.writeHead(503).end()
  let server: Server
  const listen = async (port: number): Promise<number> => {
    server = createServer((request, response) => {
      asked.push(request.url ?? '')
      handle(request, response)
    })
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
    return (server.address() as AddressInfo).port
  }
  const stop = async (): Promise<void> => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  const port = await listen(0)
  onTestFinished(() => stop())
  const issuer = `http://127.0.0.1:${port}`
  let keys = [await signingKey()]
  const open = (): void => void (handle = new Provider(issuer, configuration(keys)).callback())
  open()

  const token = async ({ resource, scope = 'read call', proof }: Asked = {}): Promise<string> => {
    const fields = { grant_type: 'client_credentials', ...(resource !== undefined && { resource, scope }) }
    const headers = { authorization: basic(ROBOT.client_id, ROBOT.client_secret) }
    const url = `${issuer}/token`
    return accessToken(await postForm(url, fields, { ...headers, ...(proof && { dpop: await proof(url) }) }))
  }
  /** The same with a new first key, as after a rotation. The ones before are still published. */
  const rotate = async (): Promise<void> => {
    keys = [await signingKey(), ...keys]
    open()
  }
  return { issuer, asked, token, rotate, stop, start: () => listen(port), signIn: (resource: string) => signIn(issuer, resource) }
}

function accessToken({ body }: { readonly body: Readonly<Record<string, unknown>> }): string {
  if (typeof body['access_token'] !== 'string') throw new Error(JSON.stringify(body))
  return body['access_token']
}

/** Signs a person in as a browser does, and gives both tokens that the app gets. */
async function signIn(issuer: string, resource: string) {
  const cookies = new Map<string, string>()
  const query = new URLSearchParams({
    client_id: APP.client_id,
    response_type: 'code',
    redirect_uri: CALLBACK,
    scope: 'openid read call',
    resource,
    nonce: 'n-0',
  })
  let url = `${issuer}/auth?${query.toString()}`
  let body: URLSearchParams | undefined
  while (!url.startsWith(CALLBACK)) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, { redirect: 'manual', headers: { cookie }, ...(body && { method: 'POST', body }) })
    for (const set of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      cookies.set(name, value)
    }
    const location = response.headers.get('location')
    const page = await response.text()
    // A page asks for a name, and then for consent.
    const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1]
    if (location === null && prompt === undefined) throw new Error(`${url} answered ${response.status}: ${page}`)
    body = location === null && prompt !== undefined ? new URLSearchParams({ prompt, login: 'alice', password: 'any' }) : undefined
    if (location !== null) url = new URL(location, url).href
  }
  const code = new URL(url).searchParams.get('code') ?? ''
  const form = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, resource }
  const answer = await postForm(`${issuer}/token`, form, { authorization: basic(APP.client_id, APP.client_secret) })
  return { accessToken: accessToken(answer), idToken: String(answer.body['id_token']) }
}
