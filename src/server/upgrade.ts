import type { Payment } from '../protocol/payment.ts'
import { paymentFrom } from '../wire/payment.ts'
import { isSamePrincipal } from '../core/basics/principal.ts'
import type { Access, Principal } from '../core/ports/access.ts'
import type { LiveUse, LiveUses } from '../core/ports/live.ts'
import type { Redaction } from '../core/ports/redaction.ts'
import type { Gateway, Hold } from '../core/ports/session.ts'
import type { Trace } from '../core/ports/trace.ts'
import type { Call, KnownCall, Logger, Quota, Socket, SocketRoute } from '../core/ports/transport.ts'
import { UampError } from '../protocol/errors.ts'
import { addressKey, type Admission, type Caller, type Sender } from './admission.ts'
import { Shares } from './shares.ts'
import { NOBODY } from './bodies.ts'
import { foreignPage, whenAborted } from './http.ts'
import type { Limits } from './limits.ts'
import type { Metrics } from './metrics.ts'
import { withId, type Requests, type Served } from './requests.ts'
import type { Found, Mounted, Routes } from './routes.ts'
import type { HostPolicy } from './web-pages.ts'

export interface UpgradeOptions {
  readonly gateway: Pick<Gateway, 'hold'>
  readonly routes: Routes
  readonly admission: Admission
  readonly live: LiveUses
  readonly metrics: Metrics
  readonly requests: Requests
  readonly limits: Limits
  readonly log: Logger
  readonly secrets: Redaction
  readonly checkHost: HostPolicy
  /** False if a web page sent the request that may not. */
  readonly allowsPage: (headers: Headers) => boolean
}

/** A request for an upgrade, and its caller. */
export interface UpgradeRequest extends Caller {
  readonly url: string
  readonly headers: Headers
}

/** Bounds of a peer that has not shown a token. */
export interface Bounds {
  readonly messageBytes: number
  readonly messages: number
}

/** A socket, and what the server needs of it beside what transports do. */
export interface Connection extends Socket {
  readonly signal: AbortSignal
  /** Bounds all that is read, until the returned function is called. Beyond the bounds the socket is cut with 4401. */
  restrict(bounds: Bounds): () => void
  /** Counts unfinished and untaken messages from now on. If there is no room for them, the socket is cut with 1013. */
  count(open: () => Hold): void
  /** Closes the socket, waits only shortly for the peer, and discards what the peer still sends. */
  cut(code: number, reason: string): void
}

export interface Accepted {
  /** The id of the connection, which the client is told in the answer. */
  readonly requestId: string
  /** The subprotocol to answer with, never the one that carries a token. */
  readonly protocol: string | undefined
  /** The bound of a message, if the route has its own. */
  readonly messageBytes: number | undefined
  /** How a silent peer is watched, if the route says so. */
  readonly watch: SocketRoute['watch']
  /** Runs the transport on the socket. Never rejects; the socket is closed when it resolves. */
  run(connection: Connection): Promise<void>
  /** Call it instead of `run` if there is no socket after all. */
  failed(status: number): void
}

/** For routes that name none: browsers offer it beside their token. */
const DEFAULT_SUBPROTOCOLS = ['uamp']

/** The status of an accepted upgrade. */
const SWITCHED = 101
/** How many wrong tokens close a socket. */
const WRONG_TOKENS = 3
const UNAUTHORIZED = 4401

/**
 * Decides about upgrades, and keeps three promises for every transport: a socket whose token may come in a message costs little until
 * then, and is closed if none comes in time; nobody can guess tokens on a socket; and no principal holds more than its share of sockets.
 */
export class Upgrades {
  readonly #options: UpgradeOptions
  readonly #shares: Shares
  readonly #waiting: Waiting

  constructor(options: UpgradeOptions) {
    this.#options = options
    this.#waiting = new Waiting(options.limits)
    this.#shares = new Shares(options.limits)
  }

  async decide(request: UpgradeRequest): Promise<Accepted | Response> {
    const { requests, routes, secrets } = this.#options
    const { url, headers } = request
    const served = requests.beginWeb({ method: 'WS', url, headers })
    let decided: Accepted | Response
    try {
      decided = await this.#accept(request, headers, served)
    } catch (thrown) {
      decided = routes.refusalAt(routes.pathOf(url), 'WS')(secrets.told(thrown))
    }
    if ('run' in decided) return decided
    requests.over(served, decided.status)
    return withId(decided, served)
  }

  async #accept(request: UpgradeRequest, headers: Headers, served: Served): Promise<Accepted | Response> {
    const { routes, admission, limits, metrics, requests, checkHost, allowsPage } = this.#options
    const { url } = request
    const misdirected = checkHost(url, headers.get('host'))
    if (misdirected) return routes.refusalAt(routes.pathOf(url), 'WS')(misdirected.error, { status: misdirected.status })
    if (!allowsPage(headers)) throw foreignPage()
    const found = routes.find('WS', routes.pathOf(url))
    if (!('mounted' in found)) return found
    requests.found(served, found.mounted, found.agent)

    const subprotocols =
      headers
        .get('sec-websocket-protocol')
        ?.split(',')
        .map((name) => name.trim()) ?? []
    const { access } = found.mounted.route
    const credentials = admission.credentialsOf({ method: 'GET', url, headers, subprotocols }, request)
    const entry = { caller: request, trace: served.trace, agent: found.agent, action: found.mounted.route.action }
    const principal = access === 'public' ? undefined : await admission.admit(credentials, entry, access === 'first-message')
    if (principal && this.#shares.isFull(principal, request.address)) throw full('rate_limited')
    if (metrics.openSockets >= limits.connections && !this.#waiting.evict('Too many connections')) throw full('overloaded')
    const { subprotocols: supported = DEFAULT_SUBPROTOCOLS, messageBytes, watch } = found.mounted.route
    if (principal) served.admitted(principal)
    return {
      requestId: served.trace.requestId,
      messageBytes,
      watch,
      protocol: subprotocols.find((name) => supported.includes(name)),
      run: (connection) => this.#run(found.mounted, new SocketCall({ found, request, connection, principal, admission, served })),
      failed: (status) => requests.over(served, status),
    }
  }

  async #run({ route, transport }: Mounted<SocketRoute>, call: SocketCall): Promise<void> {
    const { metrics, requests, log, secrets } = this.#options
    const { connection, served } = call
    const leave = call.principal === undefined && route.access === 'first-message' ? this.#awaitToken(call) : undefined
    const { principal, address } = call
    if (principal) this.#shares.count(principal, address, 1)
    if (!leave) this.#count(connection, principal)
    const unwatch = route.several ? undefined : this.#watch(call)
    metrics.openSockets++
    try {
      if (route.access !== 'request') await route.handle(connection, call)
      else if (isKnown(call)) await route.handle(connection, call)
      connection.close(1000)
    } catch (thrown) {
      const error = secrets.told(thrown)
      metrics.countError(transport, error.code)
      if (error.code === 'internal')
        log('error', 'A socket failed', { transport, route: route.path, error: error.cause ?? error, ...call.trace.fields })
      if (error.code === 'unauthorized') connection.close(UNAUTHORIZED, error.message)
      else connection.close(1011, 'Internal error')
    } finally {
      metrics.openSockets--
      requests.over(served, SWITCHED)
      if (principal) this.#shares.count(principal, address, -1)
      unwatch?.()
      leave?.()
    }
  }

  /** Ends the socket with the credentials of its principal, who may show newer ones. */
  #watch(call: SocketCall): () => void {
    const { live } = this.#options
    let { principal } = call
    const use: LiveUse = { principal: () => principal, cut: (reason) => call.connection.cut(UNAUTHORIZED, reason) }
    let unwatch = live.add(use)
    call.onShown = (shown) => {
      if (principal && !isSamePrincipal(principal, shown)) return
      principal = shown
      unwatch = live.add(use)
    }
    return () => unwatch()
  }

  #count(connection: Connection, principal = NOBODY): void {
    connection.count(() => this.#options.gateway.hold(principal, 0))
  }

  /** Bounds a socket until `call.access` accepts a token. */
  #awaitToken(call: SocketCall): () => void {
    const { limits } = this.#options
    const { connection } = call
    let known: Principal | undefined
    const release = connection.restrict({ messageBytes: limits.strangerMessageBytes, messages: limits.strangerMessages })
    const deadline = setTimeout(() => connection.cut(UNAUTHORIZED, 'No valid token in time'), limits.authenticateMs)
    this.#waiting.add(connection, addressKey(call.address))
    call.onAccepted = (principal) => {
      if (known) return
      if (this.#shares.isFull(principal, call.address)) throw full('rate_limited')
      clearTimeout(deadline)
      known = principal
      this.#shares.count(principal, call.address, 1)
      this.#waiting.delete(connection)
      release()
      this.#count(connection, principal)
      call.served.admitted(principal)
      call.vouch(principal)
    }
    return () => {
      clearTimeout(deadline)
      this.#waiting.delete(connection)
      if (known) this.#shares.count(known, call.address, -1)
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
  readonly served: Served
}

/** Always true if the upgrade had to bring credentials. */
function isKnown(call: SocketCall): call is SocketCall & KnownCall {
  return call.principal !== undefined
}

/** Makes `request`, `access` and `signal` when they are first read, because ten thousand idle sockets need none of them. */
class SocketCall implements Call {
  readonly agent: string | undefined
  readonly root: boolean
  readonly params: Readonly<Record<string, string>>
  readonly principal: Principal | undefined
  readonly connection: Connection
  readonly served: Served
  /** Called with the owner of a token that came in a message. */
  onAccepted: ((principal: Principal) => void) | undefined
  /** The same, after `onAccepted` has taken it. */
  onShown: ((principal: Principal) => void) | undefined
  readonly #upgrade: UpgradeRequest
  readonly #admission: Admission
  #request: Request | undefined
  #access: Access | undefined
  #wrong = 0

  constructor({ found, request, connection, principal, admission, served }: SocketCallInit) {
    this.served = served
    this.agent = found.agent
    this.root = found.root
    this.params = found.params
    this.principal = principal
    this.connection = connection
    this.#admission = admission
    this.#upgrade = request
  }

  get trace(): Trace {
    return this.served.trace
  }

  get address(): string {
    return this.#upgrade.address
  }

  get #sender(): Sender {
    return { caller: this.#upgrade, trace: this.trace }
  }

  vouch(principal: Principal): void {
    this.#upgrade.vouch(principal)
  }

  get access(): Access {
    return (this.#access ??= this.#admission.accessOf(this.#sender, {
      proven: () => this.principal?.confirmation,
      onAccepted: (principal) => {
        this.onAccepted?.(principal)
        this.onShown?.(principal)
      },
      onWrong: () => {
        if (++this.#wrong >= WRONG_TOKENS) this.connection.cut(UNAUTHORIZED, 'Three wrong tokens')
      },
    }))
  }

  countWrong(): void {
    this.#admission.countWrong(this.#sender)
  }

  get request(): Request {
    return (this.#request ??= new Request(this.#upgrade.url, { headers: this.#upgrade.headers }))
  }

  get signal(): AbortSignal {
    return this.connection.signal
  }

  text(): Promise<string> {
    return Promise.resolve('')
  }

  whenGone(leave: () => void): void {
    whenAborted(this.signal, leave)
  }

  get payment(): Payment | undefined {
    return paymentFrom(this.request.headers)
  }

  get quota(): Quota {
    return this.#admission.quota(this.principal, this.address)
  }
}

/** The close code for "try again later". */
const TRY_LATER = 1013

/**
 * Sockets that have not shown a token yet, the oldest first. When there are too many, the oldest goes: a caller with a token shows it
 * at once, and the oldest has only been taking up room.
 */
class Waiting {
  readonly #limits: Limits
  readonly #addresses = new Map<Connection, string>()
  readonly #byAddress = new Map<string, Set<Connection>>()

  constructor(limits: Limits) {
    this.#limits = limits
  }

  add(socket: Connection, address: string): void {
    const same = this.#byAddress.get(address) ?? new Set<Connection>()
    const [oldest] = same
    if (oldest && same.size >= this.#limits.strangersPerAddress) {
      this.#cut(oldest, 'Too many connections of this address wait for a token')
    } else if (this.#addresses.size >= this.#limits.strangers) {
      this.evict('Too many connections wait for a token')
    }
    this.#byAddress.set(address, same.add(socket))
    this.#addresses.set(socket, address)
  }

  delete(socket: Connection): void {
    const address = this.#addresses.get(socket)
    if (address === undefined) return
    this.#addresses.delete(socket)
    const same = this.#byAddress.get(address)
    same?.delete(socket)
    if (same?.size === 0) this.#byAddress.delete(address)
  }

  /** Cuts the oldest; false if there is none. */
  evict(reason: string): boolean {
    const [oldest] = this.#addresses.keys()
    if (!oldest) return false
    this.#cut(oldest, reason)
    return true
  }

  #cut(socket: Connection, reason: string): void {
    this.delete(socket)
    socket.cut(TRY_LATER, reason)
  }
}
