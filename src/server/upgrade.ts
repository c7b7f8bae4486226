import type { Access, Action, Credentials, Principal } from '../core/ports/access.ts'
import type { Redaction } from '../core/ports/redaction.ts'
import type { Gateway, Hold } from '../core/ports/session.ts'
import type { Call, KnownCall, Logger, Quota, Socket, SocketRoute } from '../core/ports/transport.ts'
import { UampError } from '../protocol/errors.ts'
import type { Admission } from './admission.ts'
import { addressKey } from './address.ts'
import { NOBODY } from './bodies.ts'
import type { Caller } from './caller.ts'
import { foreignPage } from './guard.ts'
import type { HostPolicy } from './host-names.ts'
import type { Limits } from './limits.ts'
import type { Metrics } from './metrics.ts'
import { pathOf } from './path.ts'
import type { Found, Mounted, Routes } from './routes.ts'
import { Shares } from './shares.ts'
import { Waiting } from './waiting.ts'

export interface UpgradeOptions {
  readonly gateway: Pick<Gateway, 'hold'>
  readonly routes: Routes
  readonly admission: Admission
  readonly metrics: Metrics
  readonly limits: Limits
  readonly log: Logger
  readonly secrets: Redaction
  readonly checkHost: HostPolicy
  /** Whether the page that sent it may, if a page did. */
  readonly allowsPage: (headers: Headers) => boolean
}

/** What an upgrade asks for, and who asks. */
export interface UpgradeRequest extends Caller {
  readonly url: string
  readonly headers: Headers
}

/** What a peer may send before it has shown who it is. */
export interface Bounds {
  readonly messageBytes: number
  readonly messages: number
}

/** A socket and the signal that tells of its end. */
export interface Connection extends Socket {
  readonly signal: AbortSignal
  /** Bounds what is read, finished or not, until the returned function is called. Beyond them it is cut with 4401. */
  restrict(bounds: Bounds): () => void
  /** From now on what it has not brought to an end, or nobody has taken, is counted. Where there is no room it is cut with 1013. */
  count(open: () => Hold): void
  /** Closes it, and does not wait long for the peer to do the same. What the peer still sends is thrown away. */
  cut(code: number, reason: string): void
}

export interface Accepted {
  /** The subprotocol to answer with. Never the one that carries a token. */
  readonly protocol: string | undefined
  /** Bytes of a message, where the route names a number. */
  readonly messageBytes: number | undefined
  /** Hands the socket to its transport. Never rejects; the socket is closed when it resolves. */
  run(connection: Connection): Promise<void>
}

/** The subprotocol of routes that name none: what browsers offer beside their token. */
const DEFAULT_SUBPROTOCOLS = ['uamp']

/** Tokens that `call.access` finds wrong before the socket is closed. */
const WRONG_TOKENS = 3
const UNAUTHORIZED = 4401

/**
 * Decides about upgrades, and keeps three promises for every transport: a socket whose credentials may come with a message is
 * closed unless `call.access` has accepted some in time, and until then costs little; nobody guesses tokens on a socket; and no
 * principal holds more than its share.
 */
export class Upgrades {
  readonly #options: UpgradeOptions
  readonly #shares: Shares
  readonly #waiting: Waiting<Connection>

  constructor(options: UpgradeOptions) {
    this.#options = options
    this.#waiting = new Waiting(options.limits)
    this.#shares = new Shares(options.limits.socketsPerPrincipal)
  }

  async decide(request: UpgradeRequest): Promise<Accepted | Response> {
    try {
      return await this.#accept(request)
    } catch (thrown) {
      return this.#options.routes.refusalAt(pathOf(request.url))(this.#options.secrets.told(thrown))
    }
  }

  async #accept(request: UpgradeRequest): Promise<Accepted | Response> {
    const { routes, admission, limits, metrics, checkHost, allowsPage } = this.#options
    const { url, headers } = request
    const misdirected = checkHost(url, headers.get('host'))
    if (misdirected) return routes.refusalAt(pathOf(url))(misdirected.error, { status: misdirected.status })
    if (!allowsPage(headers)) throw foreignPage()
    const found = routes.find('WS', pathOf(url))
    if (!('mounted' in found)) return found

    const subprotocols =
      headers
        .get('sec-websocket-protocol')
        ?.split(',')
        .map((name) => name.trim()) ?? []
    const { access } = found.mounted.route
    const credentials = { headers, subprotocols }
    const entry = { caller: request, agent: found.agent }
    const principal = access === 'public' ? undefined : await admission.admit(credentials, entry, access === 'first-message')
    if (principal && this.#shares.isFull(principal)) throw full('rate_limited')
    if (metrics.openSockets >= limits.connections && !this.#waiting.evict('Too many connections')) throw full('overloaded')
    const { subprotocols: supported = DEFAULT_SUBPROTOCOLS, messageBytes } = found.mounted.route
    return {
      messageBytes,
      protocol: subprotocols.find((name) => supported.includes(name)),
      run: (connection) => this.#run(found.mounted, new SocketCall({ found, request, connection, principal, admission })),
    }
  }

  async #run({ route, transport }: Mounted<SocketRoute>, call: SocketCall): Promise<void> {
    const { metrics, log, secrets } = this.#options
    const { connection } = call
    const leave = call.principal === undefined && route.access === 'first-message' ? this.#awaitToken(call) : undefined
    const share = call.principal && this.#shares.hold(call.principal)
    if (!leave) this.#count(connection, call.principal)
    metrics.openSockets++
    try {
      if (route.access !== 'request') await route.handle(connection, call)
      else if (isKnown(call)) await route.handle(connection, call)
      connection.close(1000)
    } catch (thrown) {
      const error = secrets.told(thrown)
      metrics.countError(transport, error.code)
      if (error.code === 'internal') log('error', 'A socket failed', { transport, route: route.path, error: error.cause ?? error })
      if (error.code === 'unauthorized') connection.close(UNAUTHORIZED, error.message)
      else connection.close(1011, 'Internal error')
    } finally {
      metrics.openSockets--
      if (share) this.#shares.release(share)
      leave?.()
    }
  }

  #count(connection: Connection, principal = NOBODY): void {
    connection.count(() => this.#options.gateway.hold(principal, 0))
  }

  /** Bounds a socket without a principal until `call.access` accepts a token. */
  #awaitToken(call: SocketCall): () => void {
    const { limits } = this.#options
    const { connection } = call
    let share: ReturnType<Shares['hold']> | undefined
    const release = connection.restrict({ messageBytes: limits.strangerMessageBytes, messages: limits.strangerMessages })
    const deadline = setTimeout(() => connection.cut(UNAUTHORIZED, 'No valid token in time'), limits.authenticateMs)
    this.#waiting.add(connection, addressKey(call.address))
    call.onAccepted = (principal) => {
      if (share) return
      if (this.#shares.isFull(principal)) throw full('rate_limited')
      clearTimeout(deadline)
      share = this.#shares.hold(principal)
      this.#waiting.delete(connection)
      release()
      this.#count(connection, principal)
      call.vouch(principal)
    }
    return () => {
      clearTimeout(deadline)
      this.#waiting.delete(connection)
      if (share) this.#shares.release(share)
    }
  }
}

function full(code: 'overloaded' | 'rate_limited'): UampError {
  return new UampError(code, 'Too many connections', { details: { retry_after: 1 } })
}

interface SocketCallInit {
  readonly found: Found<SocketRoute>
  readonly request: UpgradeRequest
  readonly connection: Connection
  readonly principal: Principal | undefined
  readonly admission: Admission
}

/** Always so where the upgrade had to bring credentials. */
function isKnown(call: SocketCall): call is SocketCall & KnownCall {
  return call.principal !== undefined
}

/** `request`, `access` and `signal` are made when they are first read: ten thousand idle sockets need none of them. */
class SocketCall implements Call {
  readonly agent: string | undefined
  readonly root: boolean
  readonly params: Readonly<Record<string, string>>
  readonly principal: Principal | undefined
  readonly connection: Connection
  /** Told of whom a token that came in a message belongs to. */
  onAccepted: ((principal: Principal) => void) | undefined
  readonly #upgrade: UpgradeRequest
  readonly #admission: Admission
  #request: Request | undefined
  #access: Access | undefined

  constructor({ found, request, connection, principal, admission }: SocketCallInit) {
    this.agent = found.agent
    this.root = found.root
    this.params = found.params
    this.principal = principal
    this.connection = connection
    this.#admission = admission
    this.#upgrade = request
  }

  get address(): string {
    return this.#upgrade.address
  }

  vouch(principal: Principal): void {
    this.#upgrade.vouch(principal)
  }

  get access(): Access {
    return (this.#access ??= new SocketAccess(this, this.#admission, this.#upgrade))
  }

  get request(): Request {
    return (this.#request ??= new Request(this.#upgrade.url, { headers: this.#upgrade.headers }))
  }

  get signal(): AbortSignal {
    return this.connection.signal
  }

  get quota(): Quota {
    return this.#admission.quota(this.principal)
  }
}

/** For tokens that come in messages. Closes the socket after the third wrong one. */
class SocketAccess implements Access {
  readonly #call: SocketCall
  readonly #admission: Admission
  readonly #caller: Caller
  #wrong = 0

  constructor(call: SocketCall, admission: Admission, caller: Caller) {
    this.#call = call
    this.#admission = admission
    this.#caller = caller
  }

  get schemes(): Access['schemes'] {
    return this.#admission.schemes
  }

  authorize(principal: Principal, action: Action, agent: string): boolean {
    return this.#admission.authorize(principal, action, agent)
  }

  async authenticate(credentials: Credentials): Promise<Principal | undefined> {
    try {
      const principal = await this.#admission.authenticate(credentials, this.#caller)
      if (principal) this.#call.onAccepted?.(principal)
      else if (credentials.token !== undefined) this.#failed()
      return principal
    } catch (thrown) {
      this.#failed()
      throw thrown
    }
  }

  #failed(): void {
    if (++this.#wrong >= WRONG_TOKENS) this.#call.connection.cut(UNAUTHORIZED, 'Three wrong tokens')
  }
}
