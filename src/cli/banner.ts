import { shown } from '../config/shown.ts'
import { priceWords } from '../core/basics/shown-price.ts'
import { credential, curlLine, way, type Served, type Way } from '../serve/try-it.ts'
import type { Paint } from './print.ts'

export interface Shown extends Served {
  readonly version: string
  /** The address that the server listens on. */
  readonly host: string
  /** A folder, or `memory`. */
  readonly data: string
  /** True if `access` of the config admits callers. */
  readonly believes: boolean
  /** Why models are served that no file names. */
  readonly notes: readonly string[]
  /** A file in this folder that the user may have meant, and how to serve it. */
  readonly unused?: string
}

const DEFAULT_URL = 'http://localhost:8787'

/** Shows the addresses of the protocols that an agent is offered through, and what to type next. */
export function banner(served: Shown, paint: Paint): string {
  const { version, url, agents, data, notes, unused } = served
  const socket = url.replace('http', 'ws')
  const events = way(served, 'events')
  const rows = [
    ...(agents.length > 1 ? [['Agents', listed(served)]] : []),
    ...prices(served),
    ...notes.map((note) => ['Model', note]),
    ...(unused === undefined ? [] : [['Not used', unused]]),
    row('Events', events, ({ path }) => `${socket}${path}/uamp, or POST ${path}/events and GET ${path}/events/stream`),
    row('OpenAI', way(served, 'completions', 'responses', 'realtime'), () => `${url}/v1 is the base URL, the agent's name the model`),
    row('A2A', way(served, 'a2a'), ({ path }) => `${url}${path}/.well-known/agent-card.json is the card`),
    row('AG-UI', way(served, 'ag-ui'), ({ path }) => `${url}${path}/ag-ui`),
    row('ACP', way(served, 'acp'), ({ path }) => `npx uamp acp in an IDE, or ${socket}${path}/acp`),
    row('Omnia', way(served, 'omnia'), ({ agent }) => `${socket}/omnia?agent=${agent}`),
    ['Operation', '/health  /metrics  /schemas/events.json'],
    ['Sessions', data === 'memory' ? 'in memory, until the server stops' : `in ${shown(data)}`],
    ['Callers', callers(served)],
  ]
  const tries = events ? ['', paint('dim', 'Try it:'), `  ${curlLine(served, events)}`, `  ${chat(served, events)}`] : []
  return [
    `${paint('bold', `uamp ${version}`)} serves ${agents.length > 1 ? `${agents.length} agents` : paint('bold', agents[0]?.name ?? '')} at ${paint('cyan', url)}`,
    '',
    ...rows.flatMap(([name, value]) => (name === undefined ? [] : [`  ${paint('dim', name.padEnd(11))} ${value}`])),
    ...tries,
    '',
  ].join('\n')
}

function row(name: string, at: Way | undefined, shown: (at: Way) => string): readonly string[] {
  return at ? [name, shown(at)] : []
}

/** What agents cost that are not free. */
function prices({ agents }: Served): (readonly string[])[] {
  const named = agents.map((agent) => [agent.name, priceWords(agent)] as const)
  return named.flatMap(([name, words]) => (words === '' ? [] : [['Price', agents.length > 1 ? `${name}: ${words}` : words]]))
}

function listed({ agents, root }: Served): string {
  return `${agents.map(({ name }) => (name === root ? `${name} (also at /)` : name)).join(', ')}: each at /agents/{name}`
}

function callers({ host, tokens, anonymous, believes }: Shown): string {
  const named = tokens.length === 0 ? [] : [`${tokens.join(', ')}, each by token`]
  const others = anonymous ? [`anyone ${/^(127\.|localhost$|::1$)/.test(host) ? 'on this machine' : `who can reach ${host}`}`] : []
  const issued = believes ? ['those whom `access` of the config believes'] : []
  return [...named, ...issued, ...others].join('; ')
}

function chat({ url, root, tokens, anonymous }: Served, { agent: name }: Way): string {
  const where = url === DEFAULT_URL ? '' : ` ${url}`
  const agent = root === name ? '' : ` --agent ${name}`
  // Not --token, because every user of the machine can read a command line.
  return `${anonymous ? '' : `UAMP_TOKEN='${credential(tokens)}' `}npx uamp chat${where}${agent}`
}
