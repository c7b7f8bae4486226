import type { Access, Principal } from '../../core/ports/access.ts'
import { chooseAgent } from '../../core/choose-agent.ts'
import type { Session, SessionInit } from '../../core/ports/session.ts'
import type { Host } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { isRecord, type Slot } from '../../protocol/json.ts'
import { Asking, errorText, resultText, RPC, RpcError, type RpcId, type RpcMessage } from '../../wire/json-rpc.ts'
import { told } from './errors.ts'
import { replay } from './history.ts'
import * as schema from './schema.ts'
import { isSeedInitialize, SEED_METHODS } from './seed.ts'
import { AcpSession } from './session.ts'
import { SessionTools, type ConnectTools, type McpTools } from './tools.ts'

/** What carries a connection: a pipe, a socket, or requests and streams. */
export interface Link {
  /** Writes in order; those about one session may have a way of their own. Resolves when more may be written. */
  send(frames: readonly string[], session?: string): Promise<void>
  /** Whether what is about this session is read now. */
  listens(session: string): boolean
}

export interface ConnectionOptions {
  readonly host: Host
  readonly link: Link
  readonly caller: { readonly agent: string | undefined; readonly root: boolean; readonly principal: Principal; readonly access: Access }
  /** The user of this machine started us: see `McpContext`. */
  readonly local: boolean
  readonly connectTools: ConnectTools | undefined
  readonly version: string
}

/** Sessions of one connection, and requests of it that are being answered; beyond them one is refused. */
const SESSIONS = 256
const UNDER_WAY = 256
const PAGE = 50
const PROTOCOL_VERSION = 1
const AUTH_METHOD = { id: 'uamp', name: 'Already signed in', description: 'Whoever started the agent, or showed his token, is known' }
const NOTIFICATIONS = new Set(['session/cancel', '$/cancel_request'])

/** One client of ACP, or of the older methods: which of the two its first message tells. Knows no carrier. */
export class AcpConnection {
  readonly #options: ConnectionOptions
  readonly #sessions = new Map<string, AcpSession>()
  readonly #asking = new Asking()
  readonly #closed = new AbortController()
  /** Set by `initialize`. Without it only the older methods are served. */
  #client: { readonly capabilities: schema.ClientCapabilities | undefined } | undefined
  #underWay = 0

  constructor(options: ConnectionOptions) {
    this.#options = options
  }

  receive(message: RpcMessage): void {
    switch (message.kind) {
      case 'request':
        return void this.#handle(message)
      case 'notification':
        return this.#notified(message.method, message.params)
      case 'response':
        return void this.#asking.settle(message)
      case 'invalid':
        return void this.#send([errorText(message.id, message.error)])
      case 'nothing':
    }
  }

  /** What runs goes on for a while, as somebody may come back for it. */
  async close(): Promise<void> {
    this.#closed.abort()
    this.#asking.close(new UampError('cancelled', 'The client has gone'))
    await Promise.allSettled([...this.#sessions.values()].map((session) => session.close()))
    this.#sessions.clear()
  }

  async #handle({ id, method, params }: RpcMessage & { kind: 'request' }): Promise<void> {
    const named = isRecord(params) && typeof params['sessionId'] === 'string' ? params['sessionId'] : undefined
    // Where nobody may be listening to a session yet, the connection is told (ACP, Streamable HTTP).
    const way = named !== undefined && method !== 'session/new' && this.#options.link.listens(named) ? named : undefined
    if (this.#underWay >= UNDER_WAY) {
      const error = new UampError('rate_limited', `${UNDER_WAY} requests are being answered already`, { details: { retry_after: 1 } })
      return this.#send([errorText(id, told(error))], way)
    }
    this.#underWay++
    try {
      const result = await this.#call(method, params, id)
      if (result) await this.#send([resultText(id, result)], way)
    } catch (thrown) {
      this.#count(method, thrown)
      await this.#send([errorText(id, told(thrown))], way)
    } finally {
      this.#underWay--
    }
  }

  /** Undefined: it answers by itself, in its place among other messages. */
  async #call(method: string, params: unknown, id: RpcId): Promise<Slot | undefined> {
    const seed =
      Object.hasOwn(SEED_METHODS, method) && (method !== 'initialize' || isSeedInitialize(params)) ? SEED_METHODS[method] : undefined
    if (seed) return this.#seed(seed, params, id)
    if (method === 'initialize') return this.#initialize(params)
    const own = Object.hasOwn(this.#methods, method) ? this.#methods[method] : undefined
    if (NOTIFICATIONS.has(method)) throw new RpcError(RPC.invalidRequest, `${method} is a notification: send it without an id`)
    if (!own) throw new RpcError(RPC.methodNotFound, `There is no method "${method.slice(0, 100)}"`)
    if (!this.#client) throw new RpcError(RPC.invalidRequest, 'Send initialize first')
    return own(params, id)
  }

  readonly #methods: Readonly<Record<string, (params: unknown, id: RpcId) => Promise<Slot | undefined>>> = {
    authenticate: async (params) => {
      const { methodId } = schema.parse(schema.Authenticate, params)
      if (methodId !== AUTH_METHOD.id) throw new RpcError(RPC.invalidParams, `There is no way to sign in called "${methodId}"`)
      return {}
    },
    'session/new': (params, id) => this.#new(params, id),
    'session/load': (params, id) => this.#load(params, id),
    'session/resume': async (params) => {
      const session = await this.#attach(schema.parse(schema.LoadSession, params))
      session.follow()
      return session.settings()
    },
    'session/list': (params) => this.#list(params),
    'session/close': async (params) => {
      const session = this.#find(params)
      session.cancel()
      this.#sessions.delete(session.session.id)
      await session.close()
      return {}
    },
    'session/delete': async (params) => {
      const { sessionId } = schema.parse(schema.OfSession, params)
      const { host, caller } = this.#options
      if (!(await host.gateway.remove(sessionId, caller.principal))) throw noSession(sessionId)
      await this.#sessions.get(sessionId)?.close()
      this.#sessions.delete(sessionId)
      return {}
    },
    'session/set_mode': async (params) => {
      const { modeId } = schema.parse(schema.SetMode, params)
      await this.#find(params).choose('mode', modeId)
      return {}
    },
    'session/set_config_option': async (params) => {
      const { configId, value } = schema.parse(schema.SetOption, params)
      const { configOptions } = await this.#find(params).choose(configId, value)
      return { configOptions }
    },
    'session/prompt': async (params, id) => {
      const session = this.#find(params)
      const { prompt, payment_token, _meta } = schema.parse(schema.Prompt, params)
      const payment = payment_token ?? _meta?.['uamp/payment_token'] ?? _meta?.['payment_token']
      await session.prompt(id, { blocks: prompt, payment: typeof payment === 'string' ? payment : undefined })
      return undefined
    },
  }

  #notified(method: string, params: unknown): void {
    try {
      if (method === 'session/cancel') return this.#find(params).cancel()
      if (method !== '$/cancel_request') return
      const { requestId } = schema.parse(schema.CancelRequest, params)
      for (const session of this.#sessions.values()) if (session.answers(requestId)) session.cancel()
    } catch (thrown) {
      // JSON-RPC 2.0 §4.1: a notification gets no answer, not even an error.
      this.#count(method, thrown)
    }
  }

  async #seed(method: (typeof SEED_METHODS)[string], params: unknown, id: RpcId): Promise<Slot> {
    const { host, caller } = this.#options
    const answering = method(
      { host, agent: chooseAgent(host, caller), principal: caller.principal, signal: this.#closed.signal },
      params,
      id,
    )
    for (;;) {
      const step = await answering.next()
      if (step.done) return step.value
      // Clients of ACP itself do not know these notifications.
      if (!this.#client) await this.#send(step.value)
    }
  }

  #initialize(params: unknown): Slot {
    if (this.#client) throw new RpcError(RPC.invalidRequest, 'This connection is initialized already')
    const { clientCapabilities } = schema.parse(schema.Initialize, params)
    const { host, caller, version } = this.#options
    const agent = chooseAgent(host, caller)
    const modalities = host.agents.get(agent)?.capabilities.modalities ?? []
    this.#client = { capabilities: clientCapabilities ?? undefined }
    return {
      // Also to who asked for another: he then leaves, or speaks this one (ACP, Version Negotiation).
      protocolVersion: PROTOCOL_VERSION,
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: modalities.includes('image'), audio: modalities.includes('audio'), embeddedContext: true },
        mcpCapabilities: { http: this.#options.connectTools !== undefined, sse: false },
        sessionCapabilities: { list: {}, delete: {}, resume: {}, close: {}, additionalDirectories: {} },
        _meta: { uamp: { methods: Object.keys(SEED_METHODS), events: '_uamp/event', payment: -32402 } },
      },
      agentInfo: { name: agent, title: agent, version },
      authMethods: [AUTH_METHOD],
    }
  }

  async #new(params: unknown, id: RpcId): Promise<undefined> {
    const { host, caller } = this.#options
    const { cwd, additionalDirectories, mcpServers, _meta } = schema.parse(schema.NewSession, params)
    const uamp = _meta?.['uamp']
    const named = isRecord(uamp) && typeof uamp['agent'] === 'string' ? uamp['agent'] : undefined
    const agent = chooseAgent(host, caller, named)
    this.#checkRoom()
    const servers = await this.#connect(mcpServers)
    const acp = { cwd, ...(additionalDirectories && { additionalDirectories }) }
    const init: SessionInit = {
      transport: 'acp',
      agent,
      principal: caller.principal,
      config: { modalities: ['text'], extensions: { acp } },
      duplex: true,
      persist: true,
      onDetach: 'continue',
    }
    const opened = await host.gateway.open(init).catch(async (thrown: unknown) => {
      await Promise.allSettled(servers.map((server) => server.close()))
      throw thrown
    })
    const session = this.#keep(opened, { cwd, servers })
    // IDEs do not know the session before they have this answer, and hang on what comes earlier.
    await this.#send([resultText(id, { sessionId: opened.id, ...session.settings() })])
    session.follow()
    session.commands()
    await session.flush()
  }

  async #load(params: unknown, id: RpcId): Promise<undefined> {
    const { host, caller, link } = this.#options
    const session = await this.#attach(schema.parse(schema.LoadSession, params))
    const after = await replay(host.gateway, session, caller.principal)
    const answer = resultText(id, session.settings())
    // Behind what it answers, on the same way if there is one.
    if (link.listens(session.session.id)) await session.flush([answer])
    else await this.#send([answer])
    session.follow(after)
    session.commands()
    await session.flush()
  }

  async #attach({
    sessionId,
    cwd,
    mcpServers,
  }: {
    sessionId: string
    cwd: string
    mcpServers?: schema.McpServer[] | null | undefined
  }): Promise<AcpSession> {
    const { host, caller } = this.#options
    const found = await host.gateway.attach(sessionId, caller.principal)
    if (!found || (caller.agent !== undefined && !caller.root && found.agent !== caller.agent)) throw noSession(sessionId)
    if (!this.#sessions.has(sessionId)) this.#checkRoom()
    const servers = await this.#connect(mcpServers ?? [])
    const before = this.#sessions.get(sessionId)
    const session = this.#keep(found, { cwd, servers })
    await before?.close()
    return session
  }

  async #list(params: unknown): Promise<Slot> {
    const { host, caller } = this.#options
    const { cwd, cursor } = schema.parse(schema.ListSessions, params)
    const page = await host.gateway.list(caller.principal, {
      agent: chooseAgent(host, caller),
      limit: PAGE,
      ...(cursor && { after: cursor }),
    })
    const sessions = page.items.flatMap(({ id: sessionId, updatedAt, config }) => {
      const acp = config.extensions?.['acp']
      // One that was begun over another protocol is in no folder.
      const { cwd: folder = '/', title, additionalDirectories } = isRecord(acp) ? acp : {}
      if (cwd && folder !== cwd) return []
      return [
        {
          sessionId,
          cwd: folder,
          ...(title !== undefined && { title }),
          ...(additionalDirectories !== undefined && { additionalDirectories }),
          updatedAt: new Date(updatedAt).toISOString(),
        },
      ]
    })
    return { sessions, ...(page.next !== undefined && { nextCursor: page.next }) }
  }

  #keep(session: Session, { cwd, servers }: { readonly cwd: string; readonly servers: readonly McpTools[] }): AcpSession {
    const { host, link } = this.#options
    const capabilities = this.#client?.capabilities
    const uamp = capabilities?._meta?.['uamp']
    const kept = new AcpSession({
      host,
      session,
      notices: isRecord(capabilities?.session?.notices),
      extras: isRecord(uamp) && uamp['events'] === true,
      send: (frames) => link.send(frames, session.id),
      ask: (method, params, { out, signal }) => this.#ask(method, params, { out, ...(signal && { signal }) }),
      tools: (of) =>
        new SessionTools({
          capabilities,
          sessionId: session.id,
          cwd,
          servers,
          ask: (method, params, signal) =>
            this.#ask(method, params, { out: (text) => void link.send([text], session.id), ...(signal && { signal }) }),
          onTerminal: (callId, terminalId) => of.terminal(callId, terminalId),
        }),
    })
    this.#sessions.set(session.id, kept)
    return kept
  }

  #ask(method: string, params: Slot, { out, signal }: { out: (text: string) => void; signal?: AbortSignal }): Promise<unknown> {
    const { text, answer } = this.#asking.ask(method, params, signal ? { signal } : {})
    out(text)
    return answer
  }

  /** One that cannot be reached is left out: it is no reason not to talk. One that is not to be reached is refused. */
  async #connect(given: readonly schema.McpServer[]): Promise<McpTools[]> {
    const { host, local, connectTools } = this.#options
    const context = { log: host.log, local, outbound: host.outbound }
    const each = given.map(async (server) => {
      if (!connectTools || ('type' in server && server.type === 'sse')) {
        throw new UampError('not_supported', `The MCP server "${server.name}" speaks in a way that is not known here`)
      }
      if ('command' in server && !local)
        throw new RpcError(RPC.invalidParams, `"${server.name}": programs are not started for clients over the network`)
      return connectTools(server, context)
    })
    const made = await Promise.allSettled(each)
    const servers = made.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
    for (const [index, result] of made.entries()) {
      if (result.status === 'fulfilled') continue
      if (!(result.reason instanceof RpcError)) {
        host.log('warn', 'An MCP server of a client is left out', { server: given[index]?.name, error: result.reason as unknown })
        continue
      }
      await Promise.allSettled(servers.map((server) => server.close()))
      throw result.reason
    }
    return servers
  }

  #find(params: unknown): AcpSession {
    const { sessionId } = schema.parse(schema.OfSession, params)
    const session = this.#sessions.get(sessionId)
    if (!session) throw noSession(sessionId)
    return session
  }

  #checkRoom(): void {
    if (this.#sessions.size < SESSIONS) return
    throw new UampError('rate_limited', `One connection carries at most ${SESSIONS} sessions: close some`, { details: { limit: SESSIONS } })
  }

  #send(frames: readonly string[], session?: string): Promise<void> {
    return this.#options.link.send(frames, session)
  }

  #count(method: string, thrown: unknown): void {
    const { meter, log } = this.#options.host
    const error = thrown instanceof RpcError ? new UampError('invalid_request', thrown.message) : UampError.from(thrown)
    meter.countError('acp', error.code)
    if (error.code === 'internal') log('error', 'A method failed', { method, error: error.cause ?? error })
  }
}

function noSession(id: string): UampError {
  return new UampError('not_found', `There is no session "${id}" on this connection: load or resume it first`, {
    details: { sessionId: id },
  })
}
