import { AGENT_NAME, type ModelEntry } from './schema.ts'
import type { CheckedConfig, Entry } from './check.ts'
import { didYouMean } from '../core/basics/nearest.ts'
import type { Problems } from './problems.ts'
import type { Path } from './source.ts'

/** An agent's name, and the entry that brings it. */
export interface Named {
  readonly name: string
  readonly path: Path
  /** Set if it has no entry of its own. */
  readonly from?: 'module'
}

export interface Names {
  readonly agents: readonly Named[]
  /** True if an entry is so broken that its agents are not known. */
  readonly open: boolean
}

/** Reports names that two agents share, and names that no agent has. */
export function checkNames({ entries, defaultAgent, connect = [] }: CheckedConfig, { agents, open }: Names, problems: Problems): void {
  const known = new Set<string>()
  for (const agent of agents) {
    const { name, path, from } = agent
    if (known.has(name)) problems.add(...sameName(agent))
    if (from !== undefined && !AGENT_NAME.test(name))
      problems.add(path, `exports an agent called "${name}": use letters, digits, dots, dashes and underscores`)
    known.add(name)
  }
  const others = (name: string): string => `is "${name}", but the agents are: ${[...known].join(', ')}${didYouMean(name, known)}`
  for (const { entry, path } of models(entries))
    for (const [index, to] of (entry.handoffs ?? []).entries())
      if (!known.has(to) && !open) problems.add([...path, 'handoffs', index], others(to))
  if (defaultAgent !== undefined && !known.has(defaultAgent) && !open) problems.add(['defaultAgent'], others(defaultAgent))
  for (const [at, host] of connect.entries())
    for (const [index, name] of (host.agents ?? []).entries())
      if (!known.has(name) && !open) problems.add(['connect', at, 'agents', index], others(name))
  checkCycles(entries, problems)
}

function sameName({ name, path, from }: Named): [Path, string] {
  return from === undefined
    ? [[...path, 'name'], `is "${name}", like that of an agent before it: give each a name of its own`]
    : [path, `exports an agent called "${name}", like one before it: give each a name of its own`]
}

function models(entries: readonly Entry[]) {
  return entries.filter((entry) => entry.kind === 'model')
}

function checkCycles(entries: readonly Entry[], problems: Problems): void {
  const edges = new Map(models(entries).map((entry) => [entry.entry.name, entry] as const))
  for (const { entry, path } of edges.values()) {
    for (const [index, to] of (entry.handoffs ?? []).entries()) {
      const cycle = wayBack(edges, to, entry.name)
      if (!cycle) continue
      problems.add([...path, 'handoffs', index], `makes a cycle (${[entry.name, ...cycle].join(' → ')}): remove one of its handoffs`)
    }
  }
}

/** The agents on the way from one agent to another along handoffs. */
function wayBack(edges: ReadonlyMap<string, { readonly entry: ModelEntry }>, from: string, to: string): string[] | undefined {
  const seen = new Set<string>()
  const search = (name: string): string[] | undefined => {
    if (name === to) return [name]
    if (seen.has(name)) return undefined
    seen.add(name)
    for (const next of edges.get(name)?.entry.handoffs ?? []) {
      const rest = search(next)
      if (rest) return [name, ...rest]
    }
    return undefined
  }
  return search(from)
}
