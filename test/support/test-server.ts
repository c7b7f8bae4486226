import { onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { staticTokens } from '../../src/auth/static-tokens.ts'
import { AgentRegistry } from '../../src/core/engine/agent-registry.ts'
import { createGateway } from '../../src/core/engine/gateway.ts'
import type { Access } from '../../src/core/ports/access.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import type { Logger, Route, Transport } from '../../src/core/ports/transport.ts'
import { createNodeApp, type NodeAppOptions } from '../../src/server/node/app.ts'
import { listen } from '../../src/server/node/listen.ts'
import { readTls, type TlsFiles } from '../../src/server/node/tls.ts'
import { memoryStore } from '../../src/stores/memory.ts'

export interface TestServerOptions extends Partial<
  Pick<
    NodeAppOptions,
    | 'limits'
    | 'origins'
    | 'loopback'
    | 'defaultAgent'
    | 'started'
    | 'now'
    | 'monotonic'
    | 'allowedHosts'
    | 'publicUrl'
    | 'trusts'
    | 'closeTimeoutMs'
    | 'live'
  >
> {
  readonly routes?: readonly Route[]
  readonly transports?: readonly Transport[]
  readonly agents?: readonly AgentPort[]
  readonly tokens?: Readonly<Record<string, string>>
  readonly anonymous?: boolean
  /** Default: made of `tokens` and `anonymous`. */
  readonly access?: Access
  readonly tls?: TlsFiles & { readonly lookMs?: number }
  readonly h2c?: boolean
}

/** A server on a free port with the given routes, gone when the test is. */
export async function testServer(options: TestServerOptions = {}) {
  const { routes = [], transports = [], tokens = {}, anonymous = true, loopback = true, tls: files, h2c, ...rest } = options
  const logged: { level: string; message: string; fields: Readonly<Record<string, unknown>> | undefined }[] = []
  const log: Logger = (level, message, fields) => logged.push({ level, message, fields })
  const agents = new AgentRegistry()
  for (const agent of options.agents ?? []) agents.add(agent)
  const store = memoryStore()
  const access = options.access ?? staticTokens({ tokens, anonymous })
  const gateway = createGateway({ agents, store, access, log })
  const app = createNodeApp({
    ...rest,
    gateway,
    store,
    agents,
    transports: [transport('test', routes), ...transports],
    access,
    log,
    loopback,
  })
  const tls = files && { files, pair: await readTls(files), lookMs: files.lookMs }
  const listening = await listen(app, { port: 0, host: '127.0.0.1', tls, h2c })
  onTestFinished(async () => {
    listening.stop()
    await app.closeConnections(50)
    await listening.close(50)
    await gateway.close()
  })
  const { port, url } = listening
  const connect = (path: string, { protocols = [] as string[], headers = {} as Record<string, string> } = {}) =>
    new WebSocket(`ws://127.0.0.1:${port}${path}`, protocols, { headers, perMessageDeflate: false })
  return { ...app, agents, gateway, listening, port, url, logged, connect }
}

export function transport(name: string, routes: readonly Route[]): Transport {
  return { name, routes: () => routes }
}

/** How an upgrade was refused. */
export function refusedUpgrade(client: WebSocket): Promise<{ status: number; headers: Record<string, unknown>; body: unknown }> {
  return new Promise((resolve, reject) => {
    client.once('open', () => reject(new Error('it was accepted')))
    client.once('unexpected-response', (_, response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: JSON.parse(text) }))
    })
    client.on('error', reject)
  })
}
