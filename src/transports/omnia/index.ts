import * as z from 'zod/mini'
import type { Host, KnownCall, Socket, SocketRoute, Transport } from '../../core/ports/transport.ts'
import { reportError } from '../../core/edge/report-error.ts'
import { UampError } from '../../protocol/errors.ts'
import { Tools } from '../../protocol/tools.ts'
import { OmniaConnection } from './connection.ts'
import { errorInfo, refusal } from './errors.ts'
import { Media } from './media/index.ts'
import { Replays } from './media/replays.ts'
import { mediaRoutes } from './media/routes.ts'
import { Limit, OMNIA_LIMITS, type OmniaOptions } from './options.ts'
import { Positions } from './positions.ts'
import { check } from './schema.ts'
import type { Shared } from './shared.ts'

export type { OmniaLimits, OmniaOptions } from './options.ts'

/** Where clients connect: our own path, the bare address of the specification, and the path of Omnia's dashboard. `/ws` is UAMP's. */
const PATHS = ['/omnia', '/', '/api/agents/:namespace/:name/ws']

/** Omnia: a WebSocket at `/omnia?agent=…&namespace=…`, uploads under `/media`. */
export function omnia(options: OmniaOptions = {}): Transport {
  const limits = { ...OMNIA_LIMITS, ...options.limits }
  check(z.record(z.string(), Limit), limits, 'omnia.limits')
  // Checked at the start: otherwise every session would be refused, and the operator would not see why.
  if (options.clientTools) check(Tools, options.clientTools, 'omnia.clientTools')
  return {
    name: 'omnia',
    refusal,
    routes: (host) => {
      const media = options.blobs && new Media(host, limits, options.blobs)
      const replays = options.blobs && new Replays(host, limits, options.blobs)
      const shared: Shared = { host, options, limits, media, replays, positions: new Positions(host), places: new Map() }
      const sockets = PATHS.map((path): SocketRoute => ({
        method: 'WS',
        path,
        access: 'request',
        messageBytes: limits.messageBytes,
        watch: limits,
        handle: (socket, call) => handle(shared, socket, call),
      }))
      return [...sockets, ...mediaRoutes(shared)]
    },
  }
}

async function handle(shared: Shared, socket: Socket, call: KnownCall): Promise<void> {
  const { host } = shared
  const { request, principal } = call
  const { searchParams: query } = new URL(request.url)
  try {
    const agent = agentOf(host, call, query)
    const link = {
      ...shared,
      socket,
      principal,
      agent,
      trace: call.trace,
      url: host.publicUrl(request),
      binary: query.get('binary') === 'true',
    }
    await new OmniaConnection(link).run(query.get('resume') ?? undefined)
  } catch (thrown) {
    // Browsers cannot read why an upgrade was refused. 1011 is what Omnia's clients show as an error.
    const error = reportError(host, thrown, { transport: 'omnia', message: 'A connection failed', ...call.trace.fields })
    await socket.send([JSON.stringify({ type: 'error', error: errorInfo(error), timestamp: new Date(host.now()).toISOString() })])
    socket.close(1011, error.message)
  }
}

/** The agent that the path or the query names, or else that of the root. A namespace other than `default` is put before the name. */
function agentOf({ agents, gateway }: Host, { agent: owner, root, params, principal }: KnownCall, query: URLSearchParams): string {
  const given = params['name'] ?? query.get('agent') ?? ''
  const namespace = params['namespace'] ?? query.get('namespace') ?? ''
  const named = given === '' || !root ? owner : namespace === '' || namespace === 'default' ? given : `${namespace}.${given}`
  if (named === undefined || !agents.get(named)) {
    const message = named === undefined ? 'Say which agent: ?agent=…' : `There is no agent "${named}" here`
    throw new UampError('agent_offline', message, { details: { agents: agents.names() } })
  }
  gateway.authorize(principal, 'call', named)
  return named
}
