import type { AgentPort } from '../core/ports/agent.ts'
import { isOffered } from '../server/offered.ts'

export interface Served {
  /** The address for clients on this machine. */
  readonly url: string
  readonly agents: readonly Pick<AgentPort, 'name' | 'protocols' | 'price' | 'tools'>[]
  /** The agent at `/`, if there is one. */
  readonly root: string | undefined
  /** The names of the tokens. */
  readonly tokens: readonly string[]
  readonly anonymous: boolean
}

/** Where a protocol is spoken: by the agent at `/`, or else by the first agent that is offered through it. */
export interface Way {
  readonly agent: string
  /** Empty for `/`. */
  readonly path: string
}

/** `undefined`: no agent is offered through any of these protocols. */
export function way({ agents, root }: Pick<Served, 'agents' | 'root'>, ...protocols: readonly string[]): Way | undefined {
  const offered = agents.filter((agent) => isOffered(agent, protocols)).map(({ name }) => name)
  const [first] = offered
  if (first === undefined) return undefined
  // Without an agent at `/`, requests there name one.
  if (root === undefined || offered.includes(root)) return { agent: root ?? first, path: '' }
  return { agent: first, path: `/agents/${first}` }
}

/** A line for a shell that talks to an agent over UAMP events. */
export function curlLine({ url, root, tokens, anonymous }: Served, { agent }: Way): string {
  const text = agent === 'demo' ? '/count 10 100' : 'Hello'
  const path = root === agent ? '/events' : `/agents/${agent}/events`
  const token = anonymous ? '' : ` -H 'authorization: Bearer ${credential(tokens)}'`
  const events = [{ type: 'session.create' }, { type: 'input.text', text }, { type: 'response.create' }]
  return `curl -N ${url.replace('http://', '')}${path}${token} -H 'accept: text/event-stream' -d '${JSON.stringify(events)}'`
}

/** What stands for the credentials of a caller. Without a secret in `tokens` it is a token that this server or another one issues. */
export function credential([first]: readonly string[]): string {
  return first === undefined ? '<access token>' : `<secret of ${first}>`
}

/** What `serve` prints, so that whoever runs a program for the first time knows where to go. */
export function greeting(served: Served): string {
  const { agents, url } = served
  if (agents.length === 0) return `Serving at ${url}\n`
  const events = way(served, 'events')
  const line = events ? `Try it: ${curlLine(served, events)}\n` : ''
  return `Serving ${agents.map(({ name }) => name).join(', ')} at ${url}\n${line}`
}
