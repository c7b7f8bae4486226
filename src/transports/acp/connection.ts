import { withHops } from '../../core/basics/hops.ts'
import { shownPrice } from '../../core/basics/shown-price.ts'
import { chooseAgent } from '../../core/edge/asked.ts'
import type { Action, Principal } from '../../core/ports/access.ts'
import type { Trace } from '../../core/ports/trace.ts'
import type { AgentPort } from '../../core/ports/agent.ts'
import type { Session } from '../../core/ports/session.ts'
import type { Host, KnownCall } from '../../core/ports/transport.ts'
import { isOfResponse, ofResponse, reportError } from '../../core/edge/report-error.ts'
import { UampError } from '../../protocol/errors.ts'
import { uampIn, isRecord, type Slot } from '../../protocol/json.ts'
import type { Payment } from '../../protocol/payment.ts'
import { Asking, errorText, parseParams, resultText, RPC, RpcError, type RpcId, type RpcMessage } from '../../wire/json-rpc.ts'
import { told } from './errors.ts'
import { openFrom, replay } from './history.ts'
import * as schema from './schema.ts'
import { isOlderInitialize, OLDER_METHODS, OlderCalls, type OlderContext } from './older-methods.ts'
import { AcpSession } from './session.ts'
import { closeAll, connectServers, TOOL_METHOD, type ConnectTools, type Folders } from './tools.ts'

export interface ConnectionOptions {
  readonly host: Omit<Host, 'store' | 'now' | 'monotonic' | 'publicUrl' | 'ownUrl' | 'started' | 'closing' | 'live'>
  readonly caller: Pick<KnownCall, 'agent' | 'root' | 'principal' | 'access'> & {
    readonly payment?: Payment | undefined
    /** Undefined where there is no request: on standard input. */
    readonly trace?: Trace | undefined
  }
  /** Writes in order. Messages of a session may have a stream of their own. Resolves when more may be written. */
  readonly send: (frames: readonly string[], session?: string) => Promise<void>
  /** The user of this machine started the server: see `McpContext`. */
  readonly local: boolean
  readonly connectTools: ConnectTools
  /** The version of the agent that clients see. */
  readonly version: string
}

/** Where the answer to a message goes. */
type Answer = (text: string) => Promise<void>

interface Asked {
  readonly id: RpcId
  readonly params: unknown
  /** For methods that send something after their answer. */
  readonly answer: (result: Slot) => Promise<void>
}

interface Given extends Folders {
  readonly mcpServers?: readonly schema.McpServer[] | null | undefined
  readonly _meta?: Slot | null | undefined
}

/** `undefined`: the method replies itself, to keep the order of messages. */
type Method = (asked: Asked) => Slot | undefined | Promise<Slot | undefined>

/** Sessions, and requests in progress, that one connection may have. More are refused. */
const SESSIONS = 256
const UNDER_WAY = 256
const PAGE = 50
const PROTOCOL_VERSION = 1
export const NOTIFICATIONS: ReadonlySet<string> = new Set(['session/cancel', '$/cancel_request'])

/** A client of ACP or of the older methods; its first message tells which. It knows nothing of HTTP or sockets. */
export class AcpConnection {
  #options: ConnectionOptions
  readonly #sessions = new Map<string, AcpSession>()
  readonly #asking = new Asking()
  readonly #closed = new AbortController()
  readonly #older = new OlderCalls()
  /** Sessions that are being opened: closing waits for them, as servers were started for them. */
  readonly #opening = new Set<Promise<AcpSession>>()
  /** What the client can do, from `initialize`. Until then only the older methods are served. */
  #client: schema.ClientCapabilities | undefined
  #underWay = 0

  constructor(options: ConnectionOptions) {
    this.#options = options
  }

  get initialized(): boolean {
    return this.#client !== undefined
  }

  /** The caller has shown other credentials. What they ask from now on is judged by these. */
  recognize(principal: Principal): void {
    this.#options = { ...this.#options, caller: { ...this.#options.caller, principal } }
  }

  /** Whether this session is open here. */
  has(sessionId: string): boolean {
    return this.#sessions.has(sessionId)
  }

  /** The methods of ACP itself, which need a connection. */
  get methods(): ReadonlyMap<string, unknown> {
    return this.#methods
  }

  /** Resolves when a request was answered, or handed to its session. */
  async receive(message: RpcMessage, answer: Answer = (text) => this.#options.send([text])): Promise<void> {
    switch (message.kind) {
      case 'request':
        return this.#handle(message, answer)
      case 'notification':
        return this.#notified(message.method, message.params)
      case 'response':
        return void this.#asking.settle(message)
      case 'invalid':
        return answer(errorText(message.id, message.error))
      case 'nothing':
    }
  }

  /** Receives a request, and gives its answer. */
  async answerTo(message: RpcMessage): Promise<string> {
    let answer = ''
    await this.receive(message, async (text) => void (answer = text))
    return answer
  }

  /** Responses go on for a while, as the client may come back. */
  async close(): Promise<void> {
    const reason = new UampError('cancelled', 'The client has gone')
    this.#closed.abort(reason)
    this.#older.close(reason)
    this.#asking.close(reason)
    await Promise.allSettled([...this.#opening, ...[...this.#sessions.values()].map((session) => session.close())])
    this.#sessions.clear()
  }

  async #handle({ id, method, params }: RpcMessage & { kind: 'request' }, answer: Answer): Promise<void> {
    const succeed = (result: Slot): Promise<void> => answer(resultText(id, result))
    if (this.#underWay >= UNDER_WAY) {
      const error = new UampError('rate_limited', `${UNDER_WAY} requests are being answered already`, { details: { retry_after: 1 } })
      return answer(errorText(id, told(error)))
    }
    this.#underWay++
    try {
      const result = await this.#call(method, { id, params, answer: succeed })
      if (result) await succeed(result)
    } catch (thrown) {
      await answer(errorText(id, told(this.#report(method, thrown))))
    } finally {
      this.#underWay--
    }
  }

  #call(method: string, asked: Asked): ReturnType<Method> {
    this.#options.host.gateway.checkSlots(asked.params)
    const older = method !== 'initialize' || isOlderInitialize(asked.params) ? OLDER_METHODS.get(method) : undefined
    if (older) return this.#older.run((signal) => older(this.#olderContext(signal), asked.params, asked.id))
    if (NOTIFICATIONS.has(method)) throw new RpcError(RPC.invalidRequest, `${method} is a notification: send it without an id`)
    const own = this.#methods.get(method)
    if (!own) throw new RpcError(RPC.methodNotFound, `There is no method "${method.slice(0, 100)}"`)
    if (!this.#client && method !== 'initialize') throw new RpcError(RPC.invalidRequest, 'Send initialize first')
    return own(asked)
  }

  readonly #methods = new Map(
    Object.entries<Method>({
      initialize: ({ params }) => this.#initialize(params),
      authenticate: ({ params }) => {
        parseParams(schema.Authenticate, params)
        return {}
      },
      'session/new': (asked) => this.#new(asked),
      'session/load': async ({ params, answer }) => {
        const session = await this.#attach(params)
        const after = await replay(this.#options.host.gateway, session, this.#options.caller.principal)
        await answer({ ...session.settings })
        await session.begin(after)
        return undefined
      },
      'session/resume': async ({ params, answer }) => {
        const session = await this.#attach(params)
        session.follow(undefined, await openFrom(this.#options.host.gateway, session.session, this.#options.caller.principal))
        await answer({ ...session.settings })
        await session.begin()
        return undefined
      },
      'session/list': ({ params }) => this.#list(params),
      'session/close': async ({ params }) => {
        const session = this.#find(params, 'cancel')
        session.cancel()
        await this.#letGo(session.session.id)
        return {}
      },
      'session/delete': async ({ params }) => {
        const { sessionId } = parseParams(schema.OfSession, params)
        const { host, caller } = this.#options
        // ACP, Session Delete: deleting an unknown session succeeds.
        if (await this.#stored(sessionId, 'cancel')) await host.gateway.remove(sessionId, caller.principal)
        await this.#letGo(sessionId)
        return {}
      },
      'session/set_mode': async ({ params }) => {
        const { modeId } = parseParams(schema.SetMode, params)
        await this.#find(params).choose('mode', modeId)
        return {}
      },
      'session/set_config_option': async ({ params }) => {
        const { configId, value } = parseParams(schema.SetOption, params)
        const session = this.#find(params)
        await session.choose(configId, value)
        return { configOptions: session.settings.configOptions }
      },
      'session/prompt': async ({ id, params }) => {
        const session = this.#find(params)
        const { prompt, payment_token, _meta } = parseParams(schema.Prompt, params)
        const payment = payment_token ?? _meta?.['uamp/payment_token'] ?? _meta?.['payment_token']
        return session.prompt(id, prompt, { payment: typeof payment === 'string' ? payment : undefined, hops: uampIn(_meta)['hops'] })
      },
    }),
  )

  #notified(method: string, params: unknown): void {
    try {
      if (method === 'session/cancel') return this.#find(params, 'cancel').cancel()
      if (method !== '$/cancel_request') return
      const { requestId } = parseParams(schema.CancelRequest, params)
      for (const session of this.#sessions.values()) if (session.answers(requestId)) this.#check('cancel', session).cancel()
    } catch (thrown) {
      // JSON-RPC 2.0 §4.1: a notification gets no answer, not even an error.
      this.#report(method, thrown)
    }
  }

  #olderContext(signal: AbortSignal): OlderContext {
    // Clients of ACP itself do not know these notifications.
    const notify = async (frames: readonly string[]): Promise<void> => (this.#client ? undefined : this.#options.send(frames))
    return { ...this.#options, agent: this.#agent, signal, notify }
  }

  #initialize(params: unknown): Slot {
    if (this.#client) throw new RpcError(RPC.invalidRequest, 'This connection is initialized already')
    const { clientCapabilities } = parseParams(schema.Initialize, params)
    const { name, capabilities } = this.#agent
    const [{ modalities }, price] = [capabilities, shownPrice(this.#agent)]
    this.#client = clientCapabilities ?? {}
    return {
      // Also for a client that asked for another version: it then leaves, or speaks this one (ACP, Version Negotiation).
      protocolVersion: PROTOCOL_VERSION,
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: modalities.includes('image'), audio: modalities.includes('audio'), embeddedContext: true },
        mcpCapabilities: { http: true, sse: false },
        sessionCapabilities: { list: {}, delete: {}, resume: {}, close: {}, additionalDirectories: {} },
        _meta: { uamp: { methods: [...OLDER_METHODS.keys()], events: '_uamp/event', tools: TOOL_METHOD, payment: -32402, price } },
      },
      agentInfo: { name, title: name, version: this.#options.version },
      authMethods: [schema.AUTH_METHOD],
    }
  }

  async #new({ params, answer }: Asked): Promise<undefined> {
    const { host, caller } = this.#options
    const { cwd, additionalDirectories, mcpServers, _meta } = parseParams(schema.NewSession, params)
    const { agent: named, hops } = uampIn(_meta)
    const agent = chooseAgent(host, caller, typeof named === 'string' ? named : undefined)
    this.#checkRoom()
    const folders = { cwd, additionalDirectories, mcpServers, _meta }
    const session = await this.#open(folders, () =>
      host.gateway.open({
        transport: 'acp',
        agent,
        principal: caller.principal,
        trace: withHops(caller.trace, hops),
        config: { modalities: ['text'], extensions: { acp: { cwd, ...(additionalDirectories?.length && { additionalDirectories }) } } },
        duplex: true,
        persist: true,
        onDetach: 'continue',
      }),
    )
    // IDEs do not know the session before they have this answer, and hang on updates that come earlier.
    await answer({ sessionId: session.session.id, ...session.settings })
    await session.begin()
  }

  async #attach(params: unknown): Promise<AcpSession> {
    const { sessionId, ...given } = parseParams(schema.LoadSession, params)
    const find = async (): Promise<Session> => {
      const found = await this.#stored(sessionId, 'call')
      if (!found) throw new UampError('not_found', `There is no session "${sessionId}"`, { details: { sessionId } })
      return found
    }
    // Refuses what is not there before it connects to servers, which may take longer than a session is kept for who found it.
    ;(await find()).leave()
    if (!this.#sessions.has(sessionId)) this.#checkRoom()
    return this.#open(given, find)
  }

  /** A session of the caller's, with an agent that they may use here. */
  async #stored(sessionId: string, action: Action): Promise<Session | undefined> {
    const { host, caller } = this.#options
    const found = await host.gateway.attach(sessionId, caller.principal, action)
    if (!found || found.agent === caller.agent || caller.agent === undefined || caller.root) return found
    found.leave()
    return undefined
  }

  #open(given: Given, find: () => Promise<Session>): Promise<AcpSession> {
    const opening = this.#equipped(given, find)
    this.#opening.add(opening)
    const over = (): void => void this.#opening.delete(opening)
    opening.then(over, over)
    return opening
  }

  async #equipped({ mcpServers, _meta, ...folders }: Given, find: () => Promise<Session>): Promise<AcpSession> {
    const { signal } = this.#closed
    const own = parseParams(schema.ClientTools, uampIn(_meta))
    const { servers, leftOut } = await connectServers(mcpServers ?? [], { ...this.#options, signal })
    try {
      const session = await find()
      signal.throwIfAborted()
      const before = this.#sessions.get(session.id)
      // A session that is open here goes on: its prompt may wait for an answer.
      const kept = before?.session === session ? before : this.#newSession(session)
      this.#sessions.set(session.id, kept)
      await Promise.all([kept.equip(folders, { own, servers, leftOut }), before !== kept && before?.close()])
      return kept
    } catch (thrown) {
      await closeAll(servers)
      throw thrown
    }
  }

  async #letGo(sessionId: string): Promise<void> {
    const session = this.#sessions.get(sessionId)
    this.#sessions.delete(sessionId)
    await session?.close()
  }

  async #list(params: unknown): Promise<Slot> {
    const { host, caller } = this.#options
    const { cwd, cursor } = parseParams(schema.ListSessions, params)
    const agent = chooseAgent(host, caller)
    const page = await host.gateway.list(caller.principal, { agent, limit: PAGE, ...(cursor && { after: cursor }) })
    const sessions = page.items.map(({ id: sessionId, updatedAt, config }) => {
      const acp = config.extensions?.['acp']
      // A session of another protocol has no folder.
      const { cwd: folder = '/', title, additionalDirectories } = isRecord(acp) ? acp : {}
      return { sessionId, cwd: folder, title, additionalDirectories, updatedAt: new Date(updatedAt).toISOString() }
    })
    return { sessions: sessions.filter((session) => !cwd || session.cwd === cwd), nextCursor: page.next }
  }

  #newSession(session: Session): AcpSession {
    const send = (frames: readonly string[]): Promise<void> => this.#options.send(frames, session.id)
    const { host, caller } = this.#options
    return new AcpSession({
      host,
      session,
      principal: () => this.#options.caller.principal,
      trace: caller.trace,
      client: this.#client ?? {},
      asking: this.#asking,
      send,
    })
  }

  /** Who may not do this is told so, even if the session is not open here. */
  #check<S extends AcpSession | undefined>(action: Action, session: S): S {
    const { host, caller } = this.#options
    const agent = session?.session.agent ?? caller.agent
    if (agent !== undefined) host.gateway.authorize(caller.principal, action, agent)
    return session
  }

  /** A session that is open here, for a caller who may do this with its agent. */
  #find(params: unknown, action: Action = 'call'): AcpSession {
    const { sessionId } = parseParams(schema.OfSession, params)
    const session = this.#check(action, this.#sessions.get(sessionId))
    if (session) return session
    const message = `The session "${sessionId}" is not open on this connection: load or resume it first`
    throw new UampError('not_found', message, { details: { sessionId } })
  }

  #checkRoom(): void {
    if (this.#sessions.size + this.#opening.size < SESSIONS) return
    throw new UampError('rate_limited', `One connection carries at most ${SESSIONS} sessions: close some`, { details: { limit: SESSIONS } })
  }

  get #agent(): AgentPort {
    const { host, caller } = this.#options
    // `chooseAgent` throws if there is none.
    return host.agents.get(chooseAgent(host, caller)) as AgentPort
  }

  /** The error as the client is told it. */
  #report(method: string, thrown: unknown): Error {
    const { host } = this.#options
    const isRpc = thrown instanceof RpcError
    const error = isRpc ? new UampError('invalid_request', thrown.message) : thrown
    if (isRpc && isOfResponse(thrown)) ofResponse(error as UampError)
    const told = reportError(host, error, { transport: 'acp', message: 'A method failed', method, ...this.#options.caller.trace?.fields })
    return isRpc ? new RpcError(thrown.code, told.message, host.secrets.value(thrown.data)) : told
  }
}
