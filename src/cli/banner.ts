import { relative } from 'node:path'
import type { AgentPort } from '../core/ports/agent.ts'
import { isOffered } from '../server/offered.ts'
import type { Paint } from './print.ts'

export interface Served {
  readonly version: string
  /** The address for clients on this machine. */
  readonly url: string
  /** The address that the server listens on. */
  readonly host: string
  readonly agents: readonly Pick<AgentPort, 'name' | 'protocols'>[]
  /** The agent at `/`, if there is one. */
  readonly root: string | undefined
  /** A folder, or `memory`. */
  readonly data: string
  readonly tokens: readonly string[]
  readonly anonymous: boolean
  /** Why models are served that no file names. */
  readonly notes: readonly string[]
}

const DEFAULT_URL = 'http://localhost:8787'

/** Shows the addresses of the protocols that an agent is offered through, and what to type next. */
export function banner(served: Served, paint: Paint): string {
  const { version, url, agents, data, notes } = served
  const socket = url.replace('http', 'ws')
  const events = way(served, 'events')
  const rows = [
    ...(agents.length > 1 ? [['Agents', listed(served)]] : []),
    ...notes.map((note) => ['Model', note]),
    row('Events', events, ({ path }) => `${socket}${path}/uamp, or POST ${path}/events and GET ${path}/events/stream`),
    row('OpenAI', way(served, 'completions', 'responses', 'realtime'), () => `${url}/v1 is the base URL, the agent's name the model`),
    row('A2A', way(served, 'a2a'), ({ path }) => `${url}${path}/.well-known/agent-card.json is the card`),
    row('AG-UI', way(served, 'ag-ui'), ({ path }) => `${url}${path}/ag-ui`),
    row('ACP', way(served, 'acp'), ({ path }) => `npx uamp acp in an IDE, or ${socket}${path}/acp`),
    row('Omnia', way(served, 'omnia'), ({ agent }) => `${socket}/omnia?agent=${agent}`),
    ['Operation', '/health  /metrics  /schemas/events.json'],
    ['Sessions', data === 'memory' ? 'in memory, until the server stops' : `in ${relative('', data) || '.'}`],
    ['Callers', callers(served)],
  ]
  const tries = events ? ['', paint('dim', 'Try it:'), `  ${curl(served, events)}`, `  ${chat(served, events)}`] : []
  return [
    `${paint('bold', `uamp ${version}`)} serves ${agents.length > 1 ? `${agents.length} agents` : paint('bold', agents[0]?.name ?? '')} at ${paint('cyan', url)}`,
    '',
    ...rows.flatMap(([name, value]) => (name === undefined ? [] : [`  ${paint('dim', name.padEnd(11))} ${value}`])),
    ...tries,
    '',
  ].join('\n')
}

/** Where a protocol is spoken: by the agent at `/`, or else by the first agent that is offered through it. */
interface Way {
  readonly agent: string
  /** Empty for `/`. */
  readonly path: string
}

/** `undefined`: no agent is offered through any of these protocols. */
function way({ agents, root }: Served, ...protocols: readonly string[]): Way | undefined {
  const offered = agents.filter((agent) => isOffered(agent, protocols)).map(({ name }) => name)
  const [first] = offered
  if (first === undefined) return undefined
  // Without an agent at `/`, requests there name one.
  if (root === undefined || offered.includes(root)) return { agent: root ?? first, path: '' }
  return { agent: first, path: `/agents/${first}` }
}

function row(name: string, at: Way | undefined, shown: (at: Way) => string): readonly string[] {
  return at ? [name, shown(at)] : []
}

function listed({ agents, root }: Served): string {
  return `${agents.map(({ name }) => (name === root ? `${name} (also at /)` : name)).join(', ')}: each at /agents/{name}`
}

function callers({ host, tokens, anonymous }: Served): string {
  const named = tokens.length === 0 ? [] : [`${tokens.join(', ')}, each by token`]
  const others = anonymous ? [`anyone ${/^(127\.|localhost$|::1$)/.test(host) ? 'on this machine' : `who can reach ${host}`}`] : []
  return [...named, ...others].join('; ')
}

function curl({ url, root, tokens, anonymous }: Served, { agent }: Way): string {
  const text = agent === 'demo' ? '/count 10 100' : 'Hello'
  const path = root === agent ? '/events' : `/agents/${agent}/events`
  const token = anonymous ? '' : ` -H 'authorization: Bearer <secret of ${tokens[0]}>'`
  const events = [{ type: 'session.create' }, { type: 'input.text', text }, { type: 'response.create' }]
  return `curl -N ${url.replace('http://', '')}${path}${token} -H 'accept: text/event-stream' -d '${JSON.stringify(events)}'`
}

function chat({ url, root, tokens, anonymous }: Served, { agent: name }: Way): string {
  const where = url === DEFAULT_URL ? '' : ` ${url}`
  const agent = root === name ? '' : ` --agent ${name}`
  // Not --token, because every user of the machine can read a command line.
  return `${anonymous ? '' : `UAMP_TOKEN='<secret of ${tokens[0]}>' `}npx uamp chat${where}${agent}`
}
