import type { Inbound } from './inbound/inbound.ts'
import type { Remote } from './remotes.ts'

const CHECKS = ['text', 'tool', 'cancel', 'error'] as const
export type Check = (typeof CHECKS)[number]

/** Why a tool of the client's does not get to an agent elsewhere; undefined: it does. */
export function lost({ tools }: Remote): string | undefined {
  if (tools) return undefined
  return 'No tool of the client: ACP has none but files, terminals and MCP servers. The agent gets files and terminals, of the folder that the operator named.'
}

/** What was found. Whatever is not in it was not. */
export class Findings {
  readonly #found = new Set<string>()

  add(inbound: Inbound, remote: Remote, check: Check): void {
    this.#found.add(`${inbound.name} ${remote.name} ${check}`)
  }

  has(inbound: Inbound, remote: Remote, check: Check): boolean {
    return this.#found.has(`${inbound.name} ${remote.name} ${check}`)
  }
}

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [row(head), `|${'---|'.repeat(head.length)}`, ...rows.map(row)].join('\n')
}

export interface Shown {
  readonly inbounds: readonly Inbound[]
  readonly remotes: readonly Remote[]
  readonly findings: Findings
}

/** A row for each protocol that is spoken here, a column for each kind of agent elsewhere. */
export function matrixTable({ inbounds, remotes, findings }: Shown): { text: string; notes: readonly string[] } {
  const notes: string[] = []
  const cell = (inbound: Inbound, remote: Remote): string => {
    const reason = lost(remote)
    if (reason !== undefined && !notes.includes(reason)) notes.push(reason)
    const mark = reason === undefined ? '' : ` (${notes.indexOf(reason) + 1})`
    const shown = CHECKS.filter((check) => findings.has(inbound, remote, check) && (check !== 'tool' || reason === undefined))
    return shown.join(', ') + mark
  }
  const rows = inbounds.map((inbound) => [inbound.name, ...remotes.map((remote) => cell(inbound, remote))])
  return { text: table(['clients of', ...remotes.map(({ name }) => name)], rows), notes }
}

/** docs/matrix.md. */
export function page(shown: Shown): string {
  const { text, notes } = matrixTable(shown)
  const words = shown.inbounds.map(({ name, words: { tool, cancel, error } }) => [name, tool, cancel, error])
  return `# Matrix

An agent elsewhere, of any protocol in the columns, is an [agent here](config.md), and is then spoken to by clients of every protocol in the rows. A cell says what was seen to get through, there and back, between real servers over real connections: \`test/matrix\` finds it out, and fails when this page says anything else.

${text}

- **text**: what the agent says arrives, whole and once.
- **tool**: the agent calls a tool that the client runs, and goes on with the result.
- **cancel**: the client breaks an answer off, and the agent elsewhere stops.
- **error**: the agent fails in the middle of an answer, and the client is told why.

${notes.map((note, index) => `(${index + 1}) ${note}`).join('\n\n')}

## What it is in each protocol

${table(['clients of', 'a tool call', 'a cancel', 'an error'], words)}

Everything else that an answer can hold, and what becomes of it: [mapping](mapping.md).
`
}
