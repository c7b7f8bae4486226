import { onTestFinished } from 'vitest'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import type { Host, Transport } from '../../src/core/ports/transport.ts'
import type { ServeOptions } from '../../src/serve/index.ts'
import { startServer } from '../support/server.ts'
import { company, message, pinned, post, signed, streamOf, type Members } from './company.ts'

/** A server that knows one company, what the company says to it, and what the server has inside. */
export async function world(agents: AgentPort | readonly AgentPort[], options: Partial<ServeOptions> = {}) {
  const client = await company()
  let host: Host | undefined
  const watch: Transport = { name: 'inside', serves: 'all', routes: (given) => ((host = given), []) }
  const server = await startServer(agents, {
    ...options,
    insecureDev: true,
    envelope: { keys: pinned(client), ...options.envelope },
    transports: [watch],
  })
  const { id: did } = (await (await fetch(`${server.url}/.well-known/did.json`)).json()) as { id: string }
  const tell = async (members: Members): Promise<Response> => post(server.url, await signed(client, message(client, did, members)))
  const ask = async (content: string, more: Members = {}): Promise<{ stream: string; id: string }> => {
    const asked = message(client, did, { body: { type: 'text/plain', content }, ...more })
    const accepted = await post(server.url, await signed(client, asked))
    if (accepted.status !== 202) throw new Error(`${accepted.status} ${await accepted.text()}`)
    return { stream: streamOf(accepted), id: String(asked['id']) }
  }
  const outcome = async (id: string): Promise<Members> => (await (await fetch(`${server.url}/v1/messages/${id}`)).json()) as Members
  return { ...server, client, did, host: host as Host, tell, ask, outcome }
}

/** Agents that wait in the middle until the test lets them go on. */
export function gate() {
  const waiting: (() => void)[] = []
  const open = (): void => waiting.splice(0).forEach((go) => go())
  onTestFinished(open)
  return { pass: () => new Promise<void>((resolve) => waiting.push(resolve)), open, waiting: () => waiting.length }
}

/** Those who act in a server without tokens. */
export const ANYBODY = { tenant: 'default', id: 'anonymous', scopes: ['*'] }
