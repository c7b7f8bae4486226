/** A server on a socket, a token for each kind of caller, and things of alice's. */
import { decodeJwt } from 'jose'
import type { Access } from '../../../src/core/ports/access.ts'
import { http, websocket } from '../../../src/core/agent-kit/own-routes.ts'
import { defineAgent } from '../../../src/core/agent-kit/define-agent.ts'
import { identityServer, keyPair, claimsFor } from '../support.ts'
import type { Answered } from './forms.ts'
import type { Heard } from './line.ts'
import { AGENT, callers, CALLERS, type Caller, type Kind } from './rule.ts'

/** In everything of alice's: nobody else is told it. */
export const MARK = 'only-alice-knows-7c1f'
/** Where webhooks would be, if something were posted to them. */
export const WEBHOOK = 'http://127.0.0.1:9/hook'

const SECRET = 'carol-has-a-long-secret-0c41'
/** Callers that are refused all the time must not be throttled, or they would be told something else. */
const MANY = 1_000_000
const limits = {
  wrongTokensPerSecond: MANY,
  wrongTokenBurst: MANY,
  strangerRequestsPerSecond: MANY,
  strangerRequestBurst: MANY,
  strangerMessages: MANY,
  strangersPerAddress: 1_000,
}

const options = {
  tokens: { carol: SECRET },
  limits,
  a2a: { extendedCard: { description: 'For those who are known' } },
  outbound: { allow: ['127.0.0.1:9'] },
}

export interface Request {
  readonly method: string
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

type Started = Awaited<ReturnType<typeof identityServer.kept>>

/** An agent with a route and a socket of its own. */
export const OWN_AGENT = 'own'
const own = {
  ...defineAgent(OWN_AGENT, async function* () {}),
  transports: [
    {
      name: 'own',
      routes: () => [http('/own', {}, async () => ({ ok: true })), websocket('/own/socket', (socket) => socket.send('hello'))],
    },
  ],
}

export class World {
  readonly url: string
  readonly #tokens: ReadonlyMap<Caller, string>

  private constructor({ url }: Started, tokens: ReadonlyMap<Caller, string>) {
    this.url = url
    this.#tokens = tokens
  }

  /** `ends`: what to do when all tests of a file are over. */
  /** `rootless`: no agent is at the root, so that requests have to name one. */
  static async open(ends: (() => Promise<void> | void)[], { rootless = false } = {}): Promise<World> {
    const server = await identityServer.kept({ ...options, ...(rootless && ({ defaultAgent: undefined } as object)) }, ends)
    server.agents.add(own)
    if (rootless) server.agents.remove(AGENT)
    const tokens = new Map<Caller, string>()
    for (const caller of callers) {
      const token = await tokenOf(server, caller)
      if (token !== undefined) tokens.set(caller, token)
    }
    const { jti: id = '', iss: issuer, exp = 0 } = decodeJwt(tokens.get('revoked') ?? '')
    await server.host.revocations?.revoke({ kind: 'token', id, issuer, expiresAt: exp * 1000 })
    return new World(server, tokens)
  }

  /** The same with an access that knows some callers by their names. */
  static async openWith(ends: (() => Promise<void> | void)[], access: Access): Promise<World> {
    return new World(await identityServer.kept({ access, limits }, ends), new Map(callers.map((caller) => [caller, caller])))
  }

  headersOf(caller: Caller): Record<string, string> {
    const token = this.#tokens.get(caller)
    return token === undefined ? {} : { authorization: `Bearer ${token}` }
  }

  /** The answer. Of a stream only the beginning is read, as some never end. */
  async ask(caller: Caller, request: Request): Promise<Answered> {
    const response = await this.send(caller, request)
    const { status, headers } = response
    const isStream = headers.get('content-type')?.startsWith('text/event-stream') ?? false
    const text = isStream ? await beginningOf(response) : await response.text()
    const { name }: Kind = CALLERS[caller]
    if (name !== 'alice' && text.includes(MARK)) throw new Error(`${request.method} ${request.path} tells "${caller}": ${text}`)
    return { status, challenge: headers.get('www-authenticate'), text }
  }

  send(caller: Caller, { method, path, body, headers = {} }: Request): Promise<Response> {
    const isPlain = body === undefined || typeof body === 'string'
    const type = body === undefined || 'content-type' in headers ? {} : { 'content-type': isPlain ? 'text/plain' : 'application/json' }
    return fetch(this.url + path, {
      method,
      headers: { ...type, ...headers, ...this.headersOf(caller) },
      ...(body !== undefined && { body: isPlain ? (body as string) : JSON.stringify(body) }),
    })
  }

  /** What alice is answered. */
  async get(request: Request): Promise<{ readonly json: Heard; readonly headers: Headers }> {
    const response = await this.send('right', request)
    const text = await response.text()
    if (!response.ok) throw new Error(`${request.method} ${request.path}: ${response.status} ${text}`)
    return { json: text.startsWith('{') ? (JSON.parse(text) as Heard) : {}, headers: response.headers }
  }
}

async function tokenOf({ mint, url }: Started, caller: Caller): Promise<string | undefined> {
  const { name, scope = ['write', 'operate'], agent }: Kind = CALLERS[caller]
  switch (caller) {
    case 'none':
      return undefined
    case 'wrong':
      return 'not-a-token-of-anybody'
    case 'forged':
      return (await keyPair('forged')).sign(claimsFor(url, url, { sub: 'alice', client_id: 'alice' }))
    case 'expired':
      return mint({ scope, now: Date.now() - 3_600_000 })
    case 'of another, from the list':
      return SECRET
    default:
      return mint({ scope, subject: name ?? 'alice', audience: agent === undefined ? url : `${url}/agents/${agent}` })
  }
}

async function beginningOf(response: Response): Promise<string> {
  const reader = response.body?.getReader()
  const { value } = (await reader?.read()) ?? {}
  await reader?.cancel()
  return new TextDecoder().decode(value)
}

/** The first message of a client of ACP. */
export const INITIALIZE = { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: 1 } }

type Maker = (world: World, agent: string) => Promise<string>

const post = (path: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Request => ({
  method: 'POST',
  path,
  body,
  headers,
})
const rpc = (world: World, agent: string, [method, params]: readonly [string, object]) =>
  world.get(post(`/agents/${agent}/a2a`, { jsonrpc: '2.0', id: 1, method, params }, { 'a2a-version': '1.0' }))

async function task(world: World, agent: string, text: string): Promise<string> {
  const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }] }
  const { json } = await rpc(world, agent, ['SendMessage', { message }])
  const id = json['result']?.task?.id as unknown
  if (typeof id !== 'string') throw new Error(JSON.stringify(json))
  return id
}

/** How alice comes by things. Each maker gives the id. */
const MAKERS = {
  async response(world, agent) {
    const body = { model: agent, input: MARK, background: true, stream: true }
    const response = await world.send('right', post('/v1/responses', body))
    const [, id = ''] = /"id":"(resp_[^"]+)"/.exec(await response.text()) ?? []
    return id
  },
  async completion(world, agent) {
    const body = { model: agent, messages: [{ role: 'user', content: MARK }], store: true }
    return (await world.get(post('/v1/chat/completions', body))).json['id'] as string
  },
  /** It has a webhook. */
  async task(world, agent) {
    const taskId = await task(world, agent, MARK)
    await rpc(world, agent, ['CreateTaskPushNotificationConfig', { taskId, id: 'p1', url: WEBHOOK }])
    return taskId
  },
  waiting: (world, agent) => task(world, agent, `/approve ${MARK}`),
  /** The id of a run and of its thread. */
  async run(world, agent) {
    const id = crypto.randomUUID()
    const body = { threadId: id, runId: id, messages: [{ id: 'm', role: 'user', content: MARK }], tools: [], context: [], state: {} }
    await world.get(post(`/agents/${agent}/ag-ui`, body))
    return id
  },
  async session(world, agent) {
    const events = [{ type: 'session.create', agent }, { type: 'input.text', text: MARK }, { type: 'response.create' }]
    const { headers } = await world.get(post('/events', events, { accept: 'text/event-stream' }))
    return headers.get('x-session-id') ?? ''
  },
  /** A connection of ACP over HTTP. */
  async connection(world, agent) {
    const { headers } = await world.get(post(`/agents/${agent}/acp`, INITIALIZE))
    return headers.get('acp-connection-id') ?? ''
  },
  /** Its session, a slash, and its number. */
  async upload(world, agent) {
    const { place, url } = await announced(world, agent)
    await world.get({ method: 'PUT', path: url, body: MARK })
    return place
  },
  /** The URL of an upload of which nothing was sent. */
  async uploadUrl(world, agent) {
    return (await announced(world, agent)).url
  },
} satisfies Record<string, Maker>

async function announced(world: World, agent: string): Promise<{ readonly place: string; readonly url: string }> {
  const session_id = await MAKERS.session(world, agent)
  const body = { session_id, filename: `${MARK}.txt`, mime_type: 'text/plain', size_bytes: MARK.length }
  const { json } = await world.get(post(`/agents/${agent}/media/request-upload`, body))
  const { pathname, search } = new URL(json['upload_url'] as string)
  return { place: `${session_id}/${(json['upload_id'] as string).slice('upl-'.length)}`, url: pathname + search }
}

export type ThingKind = keyof typeof MAKERS

/** Things of alice's with one agent. */
export class Things {
  readonly #world: World
  readonly #agent: string
  readonly #made = new Map<ThingKind, Promise<string>>()

  constructor(world: World, agent = AGENT) {
    this.#world = world
    this.#agent = agent
  }

  /** The same one again. */
  shared(kind: ThingKind): Promise<string> {
    let made = this.#made.get(kind)
    if (!made) this.#made.set(kind, (made = this.fresh(kind)))
    return made
  }

  fresh(kind: ThingKind): Promise<string> {
    return MAKERS[kind](this.#world, this.#agent)
  }
}
