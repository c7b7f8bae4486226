import type { Access, Principal } from '../core/ports/access.ts'
import type { Redaction } from '../core/ports/redaction.ts'
import type { Call, KnownCall, Log, Quota, Socket, SocketRoute } from '../core/ports/transport.ts'
import { UampError } from '../protocol/errors.ts'
import type { Admission } from './admission.ts'
import type { Limits } from './limits.ts'
import type { Metrics } from './metrics.ts'
import { pathOf } from './path.ts'
import type { Found, Mounted, Routes } from './routes.ts'
import { Shares } from './shares.ts'

export interface UpgradeOptions {
  readonly routes: Routes
  readonly admission: Admission
  readonly metrics: Metrics
  readonly limits: Limits
  readonly log: Log
  readonly secrets: Redaction
  readonly allowsOrigin: (origin: string) => boolean
}

/** What an upgrade asks for. */
export interface UpgradeRequest {
  readonly url: string
  readonly headers: Headers
}

/** A socket and the signal that tells of its end. */
export interface Connection extends Socket {
  readonly signal: AbortSignal
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

/**
 * Decides about upgrades, and keeps two promises for every transport: a socket whose credentials may come with its first
 * message is closed with 4401 unless `call.access` has accepted some in time, and no principal holds more than its share.
 */
export class Upgrades {
  readonly #options: UpgradeOptions
  readonly #shares: Shares

  constructor(options: UpgradeOptions) {
    this.#options = options
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
    const { routes, admission, limits, metrics, allowsOrigin } = this.#options
    const { url, headers } = request
    if (metrics.openSockets >= limits.connections) throw full('overloaded')
    const origin = headers.get('origin')
    if (origin !== null && !allowsOrigin(origin)) throw new UampError('forbidden', 'Pages of this origin may not connect here')
    const found = routes.find('WS', pathOf(url))
    if (!('mounted' in found)) return found

    const subprotocols =
      headers
        .get('sec-websocket-protocol')
        ?.split(',')
        .map((name) => name.trim()) ?? []
    const { access } = found.mounted.route
    const credentials = { headers, subprotocols }
    const principal = access === 'public' ? undefined : await admission.admit(credentials, found.agent, access === 'first-message')
    if (principal && this.#shares.isFull(principal)) throw full('rate_limited')
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
    const leave = call.principal === undefined && route.access === 'first-message' ? this.#awaitFirst(call) : undefined
    const share = call.principal && this.#shares.hold(call.principal)
    metrics.openSockets++
    try {
      if (route.access !== 'request') await route.handle(connection, call)
      else if (isKnown(call)) await route.handle(connection, call)
      connection.close(1000)
    } catch (thrown) {
      const error = secrets.told(thrown)
      metrics.countError(transport, error.code)
      if (error.code === 'internal') log('error', 'A socket failed', { transport, route: route.path, error: error.cause ?? error })
      if (error.code === 'unauthorized') connection.close(4401, error.message)
      else connection.close(1011, 'Internal error')
    } finally {
      metrics.openSockets--
      if (share) this.#shares.release(share)
      leave?.()
    }
  }

  /** Starts the time that a socket without a principal has; the first that `call.access` accepts ends it. */
  #awaitFirst(call: SocketCall): () => void {
    const { access } = call
    let share: ReturnType<Shares['hold']> | undefined
    const deadline = setTimeout(() => call.connection.close(4401, 'No credentials in time'), this.#options.limits.authenticateMs)
    call.access = {
      authenticate: async (credentials) => {
        const principal = await access.authenticate(credentials)
        if (principal === undefined || share) return principal
        if (this.#shares.isFull(principal)) throw full('rate_limited')
        clearTimeout(deadline)
        share = this.#shares.hold(principal)
        return principal
      },
      authorize: (principal, action, resource) => access.authorize(principal, action, resource),
    }
    return () => {
      clearTimeout(deadline)
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

/** `request` and `signal` are made when they are first read: ten thousand idle sockets need neither. */
class SocketCall implements Call {
  readonly agent: string | undefined
  readonly root: boolean
  readonly params: Readonly<Record<string, string>>
  readonly principal: Principal | undefined
  readonly connection: Connection
  access: Access
  readonly #upgrade: UpgradeRequest
  readonly #admission: Admission
  #request: Request | undefined

  constructor({ found, request, connection, principal, admission }: SocketCallInit) {
    this.agent = found.agent
    this.root = found.root
    this.params = found.params
    this.principal = principal
    this.connection = connection
    this.access = admission.access
    this.#admission = admission
    this.#upgrade = request
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
