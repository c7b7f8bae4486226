import type { Agents, Transport } from '../core/ports/transport.ts'
import { UAMP_VERSION } from '../protocol/version.ts'
import { UampError } from '../protocol/errors.ts'
import { errorResponse, type Mounted } from './routes.ts'

export interface OperationOptions {
  readonly agents: Agents
  /** Answers `/metrics`, if the runtime can. */
  readonly showMetrics: (() => Promise<Response>) | undefined
  /** False while the server starts, drains, or has a store that refuses writes, so that balancers use other servers. */
  readonly isReady: () => Promise<boolean>
  readonly shared: () => readonly Mounted[]
}

/** Routes for operators and newcomers. Alive is not ready: a server that drains must not be killed for it. */
export function operation({ agents, showMetrics, isReady, shared }: OperationOptions): Transport {
  const get = (path: string, access: 'public' | 'request', handle: () => Response | Promise<Response>) =>
    ({ method: 'GET', path, access, action: 'operate', handle: async () => handle() }) as const
  const listed = () =>
    agents.names().map((name) => {
      const { description, protocols, hosted } = agents.get(name) ?? {}
      const described = { ...(description !== undefined && { description }), ...(protocols && { protocols }) }
      return { name, path: `/agents/${name}`, ...described, ...(hosted && { online: hosted.online }) }
    })
  const others = [
    get('/agents', 'public', () => Response.json({ agents: listed() })),
    get('/health', 'public', () => Response.json({ status: 'ok' })),
    get('/ready', 'public', async () =>
      (await isReady())
        ? Response.json({ status: 'ready' })
        : errorResponse(new UampError('overloaded', 'Not ready', { details: { retry_after: 1 } })),
    ),
    ...(showMetrics ? [get('/metrics', 'request', showMetrics)] : []),
  ]
  const start = get('/', 'public', () => {
    const routes = shared().map(({ transport, route }) => `${route.method} ${route.path} (${transport})`)
    const page = { uamp: UAMP_VERSION, agents: listed(), routes: [...routes, ...others.map(({ method, path }) => `${method} ${path}`)] }
    return new Response(`${JSON.stringify(page, null, 2)}\n`, { headers: { 'content-type': 'application/json' } })
  })
  return { name: 'server', routes: () => [...others, start] }
}
