import type { AgentPort } from '../../core/ports/agent.ts'
import type { Logger } from '../../core/ports/transport.ts'
import { clocksOf, timeOrderedIds } from '../../core/basics/time.ts'
import { pinoLog } from '../../server/node/log.ts'
import type { BackoffOptions } from '../../wire/backoff.ts'
import { checkData } from '../data.ts'
import { openGateway, type OpenGateway } from '../gateway.ts'
import { addressOf } from './address.ts'
import { Connector } from './connector.ts'
import type { ConnectToken } from './offer.ts'

/** UAMP events §13.1: many proxies close a connection after a minute of silence. */
const PING_MS = 55_000
const GRACE_MS = 30_000

export interface ConnectAgentsOptions {
  /** The agents' token at the host, or a function that makes one for each agent whenever it is needed. */
  readonly token?: ConnectToken
  /** The folder that keeps unfinished answers, or `memory`. Default: `memory`. */
  readonly data?: string
  readonly log?: Logger
  /** How long to wait before the next attempt to reach the host. It never gives up. Default: from half a second to 30 s. */
  readonly reconnect?: BackoffOptions
  /** How often the host is pinged. Default: 55,000. */
  readonly pingMs?: number
  /** Told whenever all agents are hosted, and when the host is lost. */
  readonly onStatus?: (status: 'online' | 'offline', why?: string) => void
}

export interface ConnectedAgents {
  /** Resolves when the connection is over: after `close`, or when other processes have taken over all agents. */
  readonly closed: Promise<void>
  /** Takes no new requests, lets running answers finish, and leaves. */
  close(options?: { readonly graceMs?: number }): Promise<void>
}

/**
 * Offers agents through another server, over a socket to it: they need no address of their own. Resolves when the host offers all of
 * them; rejects if it refuses one. `url`: `wss://host/ws`.
 */
export async function connectAgents(
  url: string | URL,
  agents: AgentPort | readonly AgentPort[],
  options: ConnectAgentsOptions = {},
): Promise<ConnectedAgents> {
  const { data = 'memory', log = pinoLog() } = options
  const address = addressOf(url)
  await checkData(data)
  const open = openGateway({ agents: 'run' in agents ? [agents] : agents, data, log, secrets: secretsIn(options.token, address) })
  try {
    await open.started
    return await connectOpen(address, { ...options, open, names: open.agents.names() }, (graceMs) => open.close(graceMs))
  } catch (thrown) {
    await open.close(0)
    throw thrown
  }
}

/** The same for agents that a server or a command has opened already. */
export async function connectOpen(
  url: string,
  { open, names, ...options }: ConnectAgentsOptions & { readonly open: OpenGateway; readonly names: readonly string[] },
  closeOpen: (graceMs: number) => Promise<void> = () => Promise.resolve(),
): Promise<ConnectedAgents> {
  const { token, pingMs = PING_MS, reconnect = {}, onStatus } = options
  open.secrets.add(secretsIn(token, url))
  const agents = names.flatMap((name) => open.agents.get(name) ?? [])
  const { gateway, log } = open
  const connector = new Connector({
    url,
    agents,
    token,
    gateway,
    log,
    newId: timeOrderedIds(clocksOf({}).now),
    pingMs,
    reconnect,
    onStatus,
  })
  try {
    await connector.ready()
  } catch (thrown) {
    await connector.close(0)
    throw thrown
  }
  let closing: Promise<void> | undefined
  const close = async (graceMs: number): Promise<void> => {
    await connector.close(graceMs)
    await closeOpen(0)
  }
  void connector.closed.then(() => (closing ??= closeOpen(0)))
  return { closed: connector.closed, close: ({ graceMs = GRACE_MS } = {}) => (closing ??= close(graceMs)) }
}

/** What must not be logged. Some hosts take a token in the address. */
function secretsIn(token: ConnectToken | undefined, url: string): string[] {
  const { searchParams, password } = new URL(url)
  return [...(typeof token === 'string' ? [token] : []), ...searchParams.values(), decodeURIComponent(password)].filter(
    (text) => text !== '',
  )
}
