import type { Host, KnownCall, Socket, SocketRoute, Transport } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { OmniaConnection, type Shared } from './connection.ts'
import { errorInfo, refusal } from './errors.ts'
import { Media } from './media/index.ts'
import { mediaRoutes } from './media/routes.ts'
import { OMNIA_LIMITS, type OmniaOptions } from './options.ts'
import { Positions } from './positions.ts'

export type { OmniaLimits, OmniaOptions } from './options.ts'

/** Where clients connect: the specification's bare address, our own, and what Omnia's dashboard calls. `/ws` is UAMP's. */
const PATHS = ['/omnia', '/', '/api/agents/:namespace/:name/ws']

const SWEEP_MS = 10 * 60_000

/** Omnia: a WebSocket at `/omnia?agent=…&namespace=…`, uploads under `/media`. */
export function omnia(options: OmniaOptions = {}): Transport {
  const limits = { ...OMNIA_LIMITS, ...options.limits }
  return {
    name: 'omnia',
    refusal,
    routes: (host) => {
      const media = options.blobs && new Media(host, limits, options.blobs)
      if (media) sweepNowAndThen(host, media)
      const shared: Shared = { host, options, limits, media, positions: new Positions() }
      const sockets = PATHS.map((path): SocketRoute => ({
        method: 'WS',
        path,
        access: 'request',
        messageBytes: limits.messageBytes,
        handle: (socket, call) => handle(shared, socket, call),
      }))
      return [...sockets, ...mediaRoutes({ host, media, limits })]
    },
  }
}

async function handle(shared: Shared, socket: Socket, call: KnownCall): Promise<void> {
  const { host } = shared
  const { searchParams: query } = new URL(call.request.url)
  let connection: OmniaConnection
  try {
    const agent = agentOf(host, call, query)
    const [binary, resume] = [query.get('binary') === 'true', query.get('resume') ?? undefined]
    connection = new OmniaConnection(shared, {
      socket,
      principal: call.principal,
      agent,
      url: host.publicUrl(call.request),
      binary,
      resume,
    })
    await connection.begin()
  } catch (thrown) {
    return refuse(host, socket, UampError.from(thrown))
  }
  await connection.run()
}

/** The agent that the path or the query names, else the one of the root. A namespace stands before the name, unless it is the usual one. */
function agentOf({ agents }: Host, { agent: owner, root, params, principal, access }: KnownCall, query: URLSearchParams): string {
  const given = params['name'] ?? query.get('agent') ?? ''
  const namespace = params['namespace'] ?? query.get('namespace') ?? ''
  const named = given === '' || !root ? owner : namespace === '' || namespace === 'default' ? given : `${namespace}.${given}`
  if (named === undefined || !agents.get(named)) {
    const message = named === undefined ? 'Say which agent: ?agent=…' : `There is no agent "${named}" here`
    throw new UampError('agent_offline', message, { details: { agents: agents.names() } })
  }
  if (!access.authorize(principal, 'call', named)) throw new UampError('forbidden', `This token may not call ${named}`)
  return named
}

/** Browsers cannot read why an upgrade was refused. 1011 is what Omnia's clients show as an error. */
async function refuse(host: Host, socket: Socket, error: UampError): Promise<void> {
  host.meter.countError('omnia', error.code)
  if (error.code === 'internal') host.log('error', 'A connection failed', { error: error.cause ?? error })
  await socket.send([JSON.stringify({ type: 'error', error: errorInfo(error.toBody()), timestamp: new Date(host.now()).toISOString() })])
  socket.close(1011, error.message)
}

function sweepNowAndThen({ closing, log }: Host, media: Media): void {
  const sweep = (): void => void media.sweep().catch((error: unknown) => log('error', 'Old uploads could not be deleted', { error }))
  const timer = setInterval(sweep, SWEEP_MS)
  // Node only: uploads alone do not keep the process up.
  ;(timer as { unref?: () => void }).unref?.()
  closing.addEventListener('abort', () => clearInterval(timer), { once: true })
}
