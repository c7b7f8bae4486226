import type { Inbound } from './inbound/inbound.ts'
import type { Remote } from './remotes.ts'

const CHECKS = ['text', 'tool', 'cancel', 'error'] as const
export type Check = (typeof CHECKS)[number]

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
export function matrixTable({ inbounds, remotes, findings }: Shown): string {
  const cell = (inbound: Inbound, remote: Remote): string => CHECKS.filter((check) => findings.has(inbound, remote, check)).join(', ')
  const rows = inbounds.map((inbound) => [inbound.name, ...remotes.map((remote) => cell(inbound, remote))])
  return table(['clients of', ...remotes.map(({ name }) => name)], rows)
}

/** docs/matrix.md. */
export function page(shown: Shown): string {
  const words = shown.inbounds.map(({ name, words: { tool, cancel, error } }) => [name, tool, cancel, error])
  return `# Matrix

An agent elsewhere, of any protocol in the columns, is an [agent here](config.md), and is then spoken to by clients of every protocol in the rows. A cell says what was seen to get through, there and back, between real servers over real connections: \`test/matrix\` finds it out, and fails when this page says anything else.

${matrixTable(shown)}

- **text**: what the agent says arrives, whole and once.
- **tool**: the agent calls a tool that the client runs, and goes on with the result.
- **cancel**: the client breaks an answer off, and the agent elsewhere stops.
- **error**: the agent fails in the middle of an answer, and the client is told why.

## What it is in each protocol

${table(['clients of', 'a tool call', 'a cancel', 'an error'], words)}

Everything else that an answer can hold, and what becomes of it: [mapping](mapping.md).
`
}
