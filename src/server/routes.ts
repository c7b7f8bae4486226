import type { ParamIndexMap, Params } from 'hono/router'
import { RegExpRouter } from 'hono/router/reg-exp-router'
import { SmartRouter } from 'hono/router/smart-router'
import { TrieRouter } from 'hono/router/trie-router'
import { agentOffline } from '../core/basics/agent-offline.ts'
import { agentAtRoot } from '../core/edge/asked.ts'
import type { AgentPort } from '../core/ports/agent.ts'
import type { Agents, Host, HttpRoute, RefusalOptions, Route, SocketRoute, Transport } from '../core/ports/transport.ts'
import { UampError } from '../protocol/errors.ts'
import { unpaidAnswer } from '../wire/payment.ts'
import { refusalResponse } from '../wire/refusal.ts'
import { below } from './prefix.ts'
import { hostFor, isOffered, servesOf, type Serves } from './offered.ts'

export type Refusal = (error: UampError, options?: RefusalOptions) => Response

/** The server's own form of an error: `{ "error": { "code", "message", "details"? } }`. */
export function errorResponse(error: UampError, options?: RefusalOptions): Response {
  return refusalResponse(error, JSON.stringify({ error: error.toBody(), ...unpaidAnswer(error).body }), options)
}

/** The path of an absolute URL, as it was sent. `new URL` costs more than the rest of the routing. */
export function pathOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('://') + 3)
  if (start < 0) return '/'
  for (let i = start; i < url.length; i++) {
    const char = url.charCodeAt(i)
    if (char === 63 /* ? */ || char === 35 /* # */) return url.slice(start, i)
  }
  return url.slice(start)
}

/** A route and its transport. It stays one object, because metrics are counted by it. */
export interface Mounted<R extends Route = Route> {
  readonly transport: string
  readonly route: R
  /** Words a refusal in the protocol of the route. */
  readonly refuse: Refusal
  readonly serves: Serves
}

export interface Found<R extends Route> {
  readonly mounted: Mounted<R>
  readonly agent: string | undefined
  /** True if the path names no agent. */
  readonly root: boolean
  readonly params: Readonly<Record<string, string>>
}

type RouteOf<M extends Route['method']> = M extends 'WS' ? SocketRoute : HttpRoute

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'WS'] as const satisfies Route['method'][]

/** Says whether a route is there for the agent of a path. */
type IsThere = (mounted: Mounted) => boolean

const ALWAYS: IsThere = () => true

class Table {
  readonly mounted: readonly Mounted[]
  readonly #router = new SmartRouter<Mounted>({ routers: [new RegExpRouter(), new TrieRouter()] })
  /** The routes of paths without parameters, by method and path: the router costs more than this look-up. */
  readonly #plain = new Map<string, readonly Mounted[]>()

  /** `own`: the routes of one agent, or of the server itself, which `protocols` of an agent does not take away. */
  constructor(transports: readonly Transport[], host: Host, own = false) {
    this.mounted = transports.flatMap((transport) => {
      const usual: Refusal = (error, options) => transport.refusal?.(error, options) ?? errorResponse(error, options)
      const serves = own ? 'all' : servesOf(transport)
      const routes = transport.routes(hostFor(host, serves))
      return routes.map((route) => ({ transport: transport.name, route, refuse: refusalOf(route) ?? usual, serves }))
    })
    for (const mounted of this.mounted) this.#router.add(mounted.route.method, mounted.route.path, mounted)
  }

  /** Of the routes that are there, the one that was mounted first wins. */
  match(method: string, path: string, isThere = ALWAYS): { mounted: Mounted; params: Readonly<Record<string, string>> } | undefined {
    const key = `${method} ${path}`
    const plain = this.#plain.get(key)?.find(isThere)
    if (plain) return { mounted: plain, params: NO_PARAMS }
    const [handlers, values] = this.#router.match(method, path)
    // Only routes that are written like the path itself, so that callers cannot fill the table.
    if (handlers.length > 0 && handlers.every(([{ route }]) => route.path === path))
      this.#plain.set(
        key,
        handlers.map(([mounted]) => mounted),
      )
    const first = handlers.find(([mounted]) => isThere(mounted))
    return first && { mounted: first[0], params: decoded(first[1], values) }
  }
}

function refusalOf(route: Route): Refusal | undefined {
  return route.method === 'WS' ? undefined : route.refusal
}

const NO_PARAMS = {}

/** One of Hono's routers gives the parameters, the other their positions in a list. */
function decoded(found: Params | ParamIndexMap, values: readonly string[] | undefined): Readonly<Record<string, string>> {
  let params: Record<string, string> | undefined
  for (const name in found) {
    const place = found[name]
    const value = (typeof place === 'number' ? values?.[place] : place) ?? ''
    params ??= {}
    try {
      params[name] = decodeURIComponent(value)
    } catch {
      params[name] = value
    }
  }
  return params ?? NO_PARAMS
}

export interface RoutesOptions {
  readonly agents: Agents
  readonly host: Host
  /** Mounted for every agent, at the root and under `/agents/{name}`. */
  readonly transports: readonly Transport[]
  /** Mounted at the root only: health, metrics and the like. */
  readonly root: readonly Transport[]
  /** The agent at the root. Default: the only agent, else `demo`. */
  readonly defaultAgent?: string | undefined
  /** All of it is mounted under this path. Default: none. */
  readonly prefix?: string
}

const AGENTS = '/agents/'

/** Where a path leads. */
interface Place {
  readonly agent: string | undefined
  readonly port: AgentPort | undefined
  readonly root: boolean
  readonly path: string
  readonly isThere: IsThere
  readonly tables: readonly Table[]
}

function methodsAt({ tables, path, isThere }: Place): Route['method'][] {
  return METHODS.filter((method) => tables.some((table) => table.match(method, path, isThere) !== undefined))
}

/** Finds the route for a path. An agent's own routes come before the built-in ones. */
export class Routes {
  readonly #options: RoutesOptions
  readonly #shared: Table
  readonly #root: Table
  /** A table for each transport of an agent, because an agent may get more. */
  readonly #own = new WeakMap<Transport, Table>()

  constructor(options: RoutesOptions) {
    this.#options = options
    this.#shared = new Table(options.transports, options.host)
    this.#root = new Table(options.root, options.host, true)
    // An agent learns the paths of its own routes when they are mounted, and tells them in its capabilities.
    for (const name of options.agents.names()) this.#ownTables(options.agents.get(name))
  }

  /** The path of a URL, from where the server is mounted. */
  pathOf(url: string): string {
    return below(this.#options.prefix ?? '', pathOf(url))
  }

  /** The routes that at least one agent has. */
  get shared(): readonly Mounted[] {
    return this.#shared.mounted.filter(({ serves }) => this.#isServed(serves))
  }

  /** The route, or the refusal if there is none: 404, 405 or 426. */
  find<M extends Route['method']>(method: M, path: string): Found<RouteOf<M>> | Response {
    const place = this.#locate(path)
    if (place === undefined) return this.refusalAt(path)(agentOffline('There is no agent of that name here'))
    for (const table of place.tables) {
      const match = table.match(method, place.path, place.isThere)
      if (!match) continue
      // At the root, a protocol that the agent there lacks is for requests that name another agent.
      const agent = place.port && !isOffered(place.port, match.mounted.serves) ? undefined : place.agent
      // The router returns routes that were added under `method`, so the type holds.
      return { mounted: match.mounted as Mounted<RouteOf<M>>, agent, root: place.root, params: match.params }
    }
    const others = methodsAt(place)
    return unmatched(method, others, this.refusalAt(path))
  }

  /**
   * Words a refusal at this path in the protocol that has a route there, whatever its method, and whether or not the agent has it.
   * `first`: the method that counts if two protocols share the path.
   */
  refusalAt(path: string, first?: Route['method']): Refusal {
    const place = this.#locate(path) ?? { path: split(path).rest, tables: [this.#shared] }
    for (const method of first === undefined ? METHODS : [first, ...METHODS]) {
      for (const table of place.tables) {
        const match = table.match(method, place.path)
        if (match) return match.mounted.refuse
      }
    }
    const { refusal } = this.#options.transports.find(({ under }) => under !== undefined && `${place.path}/`.startsWith(under)) ?? {}
    return refusal ?? errorResponse
  }

  /** What the route at a path says of its body. */
  bodyAt(method: string, path: string): Pick<HttpRoute, 'bodyBytes' | 'body'> | undefined {
    const place = this.#locate(path)
    for (const table of place?.tables ?? []) {
      const match = table.match(method, place?.path ?? '', place?.isThere)
      if (match) return match.mounted.route.method === 'WS' ? undefined : match.mounted.route
    }
    return undefined
  }

  /** The methods that a path answers to, for OPTIONS. */
  allowed(path: string): string | undefined {
    const place = this.#locate(path)
    const methods = place ? methodsAt(place) : []
    return methods.length === 0 ? undefined : allow(methods)
  }

  #locate(path: string): Place | undefined {
    const { agents } = this.#options
    if (!path.startsWith(AGENTS)) {
      const name = this.#rootAgent()
      const port = name === undefined ? undefined : agents.get(name)
      const isThere: IsThere = ({ serves }) => (port && isOffered(port, serves)) || this.#isServed(serves)
      return { agent: name, port, root: true, path, isThere, tables: [...this.#ownTables(port), this.#shared, this.#root] }
    }
    const { name, rest } = split(path)
    const port = agents.get(name)
    if (port === undefined) return undefined
    const isThere: IsThere = ({ serves }) => isOffered(port, serves)
    return { agent: name, port, root: false, path: rest, isThere, tables: [...this.#ownTables(port), this.#shared] }
  }

  /** True if some agent is offered through one of these protocols. A server without agents has all routes: agents may come. */
  #isServed(serves: Serves): boolean {
    const { agents } = this.#options
    const names = agents.names()
    return names.length === 0 || names.some((name) => isOffered(agents.get(name) as AgentPort, serves))
  }

  #rootAgent(): string | undefined {
    const { agents, defaultAgent } = this.#options
    if (defaultAgent !== undefined) return defaultAgent
    const names = agents.names()
    const own = names.filter((name) => agents.get(name)?.hosted === undefined)
    // An agent that comes and goes does not change who answers at the root.
    return agentAtRoot(own.length > 0 ? own : names)
  }

  #ownTables(agent: AgentPort | undefined): readonly Table[] {
    return agent?.transports?.map((transport) => this.#ownTable(transport)) ?? []
  }

  #ownTable(transport: Transport): Table {
    let table = this.#own.get(transport)
    if (table === undefined) {
      table = new Table([transport], this.#options.host, true)
      this.#own.set(transport, table)
    }
    return table
  }
}

/** `/agents/{name}/rest`. */
function split(path: string): { name: string; rest: string } {
  const end = path.indexOf('/', AGENTS.length)
  return end < 0 ? { name: path.slice(AGENTS.length), rest: '/' } : { name: path.slice(AGENTS.length, end), rest: path.slice(end) }
}

function unmatched(method: string, others: readonly Route['method'][], refuse: Refusal): Response {
  if (others.length === 0) return refuse(new UampError('not_found', 'There is nothing at this path'))
  if (others.every((other) => other === 'WS')) {
    const error = new UampError('invalid_request', 'This path speaks WebSocket: ask for an upgrade')
    return refuse(error, { status: 426, headers: { upgrade: 'websocket', connection: 'upgrade' } })
  }
  const error = new UampError(
    'invalid_request',
    method === 'WS' ? 'This path does not speak WebSocket' : `This path does not take ${method}`,
  )
  return refuse(error, { status: 405, headers: { allow: allow(others) } })
}

function allow(methods: readonly Route['method'][]): string {
  return methods
    .flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : method === 'WS' ? [] : [method]))
    .concat('OPTIONS')
    .join(', ')
}
