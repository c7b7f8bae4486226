import { relative } from 'node:path'
import { curlLine, type Served } from '../serve/try-it.ts'
import type { Paint } from './print.ts'

export interface Shown extends Served {
  readonly version: string
  /** The address that the server listens on. */
  readonly host: string
  /** A folder, or `memory`. */
  readonly data: string
  /** Why models are served that no file names. */
  readonly notes: readonly string[]
}

const DEFAULT_URL = 'http://localhost:8787'

/** Shows the addresses of all protocols, and what to type next. */
export function banner(served: Shown, paint: Paint): string {
  const { version, url, agents, data, notes } = served
  const rows = [
    ...(agents.length > 1 ? [['Agents', listed(served)]] : []),
    ...notes.map((note) => ['Model', note]),
    ['Events', `${url.replace('http', 'ws')}/uamp, or POST /events and GET /events/stream`],
    ['OpenAI', `${url}/v1 is the base URL, the agent's name the model`],
    ['A2A', `${url}/.well-known/agent-card.json is the card`],
    ['AG-UI', `${url}/ag-ui`],
    ['ACP', `npx uamp acp in an IDE, or ${url.replace('http', 'ws')}/acp`],
    ['Omnia', `${url.replace('http', 'ws')}/omnia?agent=${served.root ?? agents[0] ?? ''}`],
    ['Operation', '/health  /metrics  /schemas/events.json'],
    ['Sessions', data === 'memory' ? 'in memory, until the server stops' : `in ${relative('', data) || '.'}`],
    ['Callers', callers(served)],
  ]
  return [
    `${paint('bold', `uamp ${version}`)} serves ${agents.length > 1 ? `${agents.length} agents` : paint('bold', agents[0] ?? '')} at ${paint('cyan', url)}`,
    '',
    ...rows.map(([name = '', value]) => `  ${paint('dim', name.padEnd(11))} ${value}`),
    '',
    paint('dim', 'Try it:'),
    `  ${curlLine(served)}`,
    `  ${chat(served)}`,
    '',
  ].join('\n')
}

function listed({ agents, root }: Served): string {
  return `${agents.map((name) => (name === root ? `${name} (also at /)` : name)).join(', ')}: each at /agents/{name}`
}

function callers({ host, tokens, anonymous }: Shown): string {
  const named = tokens.length === 0 ? [] : [`${tokens.join(', ')}, each by token`]
  const others = anonymous ? [`anyone ${/^(127\.|localhost$|::1$)/.test(host) ? 'on this machine' : `who can reach ${host}`}`] : []
  return [...named, ...others].join('; ')
}

function chat({ url, agents, root, tokens, anonymous }: Served): string {
  const where = url === DEFAULT_URL ? '' : ` ${url}`
  const agent = root === undefined ? ` --agent ${agents[0]}` : ''
  // Not --token, because every user of the machine can read a command line.
  return `${anonymous ? '' : `UAMP_TOKEN='<secret of ${tokens[0]}>' `}npx uamp chat${where}${agent}`
}
