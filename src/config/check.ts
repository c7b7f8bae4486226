import * as z from 'zod/mini'
import type { AgentPort } from '../core/ports/agent.ts'
import { UampError } from '../protocol/errors.ts'
import { explain } from '../protocol/explain.ts'
import { isRecord } from '../protocol/json.ts'
import { AddressRules, trustedProxies } from '../server/node/networks.ts'
import { hostPolicy, originPolicy } from '../server/web-pages.ts'
import { normalized } from '../server/public-url.ts'
import { isAgent } from './agents.ts'
import { Config, ModelEntry, RemoteEntry, type RawConfig } from './schema.ts'
import { configError, type Path, type Problem, type Source } from './source.ts'

/** One of the agents in a config, and its path there. */
export type Entry = { readonly path: Path } & (
  | { readonly kind: 'module'; readonly file: string }
  | { readonly kind: 'agent'; readonly agent: AgentPort }
  | { readonly kind: 'model'; readonly entry: ModelEntry }
  | { readonly kind: 'remote'; readonly entry: RemoteEntry }
)

export interface CheckedConfig extends Omit<RawConfig, 'agents'> {
  readonly entries: readonly Entry[]
}

/** Throws with all mistakes: where each is, and what is expected. */
export function checkConfig(source: Source): CheckedConfig {
  const problems: Problem[] = []
  const config = parsed(Config, source.value, { path: [], problems })
  const given = config?.agents ?? (isRecord(source.value) && Array.isArray(source.value['agents']) ? source.value['agents'] : [])
  const entries = given.flatMap((value, index) => entryOf(value, { path: ['agents', index], problems }) ?? [])
  problems.push(...sameNames(entries), ...handoffProblems(entries), ...(config ? addressProblems(config) : []))
  if (!config || problems.length > 0) throw configError(source, problems)
  const { agents: _, ...rest } = config
  return { ...rest, entries }
}

/** Mistakes that the server would find when it starts. */
function addressProblems({ origins, allowedHosts, trustProxy, outbound, publicUrl }: RawConfig): Problem[] {
  const problems: Problem[] = []
  const check = (path: Path, use: () => unknown): void => {
    try {
      use()
    } catch (thrown) {
      problems.push({ path, message: `cannot be used: ${UampError.from(thrown).message}` })
    }
  }
  for (const [index, each] of origins?.entries() ?? []) check(['origins', index], () => originPolicy({ origins: [each], loopback: false }))
  for (const [index, each] of allowedHosts?.entries() ?? []) check(['allowedHosts', index], () => hostPolicy({ allowedHosts: [each] }))
  for (const [index, each] of trustProxy?.entries() ?? []) check(['trustProxy', index], () => trustedProxies([each]))
  for (const [index, each] of outbound?.allow?.entries() ?? []) check(['outbound', 'allow', index], () => new AddressRules([each]))
  if (publicUrl !== undefined) check(['publicUrl'], () => normalized(publicUrl))
  return problems
}

interface Into {
  readonly path: Path
  readonly problems: Problem[]
}

function parsed<T extends z.ZodMiniType>(schema: T, value: unknown, { path, problems }: Into): z.output<T> | undefined {
  const result = z.safeParse(schema, value, { error: explain })
  if (result.success) return result.data
  for (const issue of result.error.issues) {
    const at: Path = [...path, ...(issue.path as Path)]
    if (issue.code !== 'unrecognized_keys') problems.push({ path: at, message: issue.message })
    else for (const key of issue.keys) problems.push({ path: [...at, key], message: unknownKey(key, knownKeys(schema, issue.path)) })
  }
  return undefined
}

const WHAT = 'must be the path of an agent module, such as "./agent.ts", or an object with a name and a "model" or a "remote"'

function entryOf(value: unknown, into: Into): Entry | undefined {
  const { path, problems } = into
  if (typeof value === 'string') return { path, kind: 'module', file: value }
  if (isAgent(value)) return { path, kind: 'agent', agent: value }
  if (!isRecord(value)) {
    problems.push({ path, message: WHAT })
    return undefined
  }
  if ('remote' in value) {
    const entry = parsed(RemoteEntry, { ...value, remote: remoteOf(value['remote']) }, into)
    if (entry) problems.push(...remoteProblems(entry, path))
    return entry && { path, kind: 'remote', entry }
  }
  const entry = parsed(ModelEntry, value, into)
  if (entry) problems.push(...mcpProblems(entry, path))
  return entry && { path, kind: 'model', entry }
}

/** A plain address is enough. `a2a+https://…` and `ag-ui+https://…` also name the protocol. */
function remoteOf(given: unknown): unknown {
  const remote = typeof given === 'string' ? { url: given } : given
  const url = isRecord(remote) ? remote['url'] : undefined
  const [, protocol, address] = /^(a2a|ag-ui)\+(.*)$/s.exec(typeof url === 'string' ? url : '') ?? []
  return isRecord(remote) && protocol !== undefined ? { protocol, ...remote, url: address } : remote
}

function remoteProblems({ remote: { protocol, model, agent, url, acp } }: RemoteEntry, path: Path): Problem[] {
  const at = [...path, 'remote']
  if ((acp === undefined) === (url === '')) return [{ path: at, message: 'must have either a "url", or an "acp" program to start' }]
  if (acp) return []
  const problems: Problem[] = []
  const scheme = protocol === 'events' ? /^(http|ws)s?:\/\/|^\$\{/ : /^https?:\/\/|^\$\{/
  if (!scheme.test(url))
    problems.push({
      path: [...at, 'url'],
      message: 'must begin with http://, https://, a2a+http:// or a2a+https://, ag-ui+http:// or ag-ui+https://',
    })
  if (protocol === 'completions' && model === undefined) {
    problems.push({ path: at, message: 'must have a "model": what the endpoint calls it, such as "gpt-5-mini"' })
  }
  if (protocol !== 'completions' && model !== undefined) {
    problems.push({ path: [...at, 'model'], message: 'is for "protocol": "completions"; a uamp server has an "agent"' })
  }
  if ((protocol === 'a2a' || protocol === 'ag-ui') && agent !== undefined) {
    problems.push({
      path: [...at, 'agent'],
      message: `is for a uamp server: an ${protocol === 'a2a' ? 'A2A' : 'AG-UI'} agent has an address of its own`,
    })
  }
  return problems
}

function mcpProblems({ mcp = [] }: ModelEntry, path: Path): Problem[] {
  return mcp.flatMap(({ command, url }, index) =>
    (command === undefined) === (url === undefined)
      ? [{ path: [...path, 'mcp', index], message: 'must have either a "command" to start, or a "url"' }]
      : [],
  )
}

function nameOf(entry: Entry): string | undefined {
  if (entry.kind === 'module') return undefined
  return entry.kind === 'agent' ? entry.agent.name : entry.entry.name
}

function sameNames(entries: readonly Entry[]): Problem[] {
  const seen = new Set<string>()
  return entries.flatMap((entry) => {
    const name = nameOf(entry)
    if (name === undefined || !seen.has(name)) {
      if (name !== undefined) seen.add(name)
      return []
    }
    return [{ path: [...entry.path, 'name'], message: `is "${name}", like that of an agent before it: give each a name of its own` }]
  })
}

/** Handoffs must go to agents of the config, and never in a cycle. A module's agents are not known yet. */
function handoffProblems(entries: readonly Entry[]): Problem[] {
  const known = new Set(entries.map(nameOf))
  const open = entries.some(({ kind }) => kind === 'module')
  const edges = new Map(entries.flatMap((entry) => (entry.kind === 'model' ? [[entry.entry.name, entry] as const] : [])))
  const problems: Problem[] = []
  for (const { entry, path } of edges.values()) {
    for (const [index, to] of (entry.handoffs ?? []).entries()) {
      const at = [...path, 'handoffs', index]
      if (!known.has(to) && !open) problems.push({ path: at, message: `is "${to}", but the agents are: ${[...known].join(', ')}` })
      const cycle = wayBack(edges, to, entry.name)
      if (cycle) problems.push({ path: at, message: `makes a cycle (${[entry.name, ...cycle].join(' → ')}): remove one of its handoffs` })
    }
  }
  return problems
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

function unknownKey(key: string, known: readonly string[]): string {
  const near = known.find((name) => name.toLowerCase() === key.toLowerCase() || isNear(name, key))
  return near === undefined ? `is unknown here: there are ${known.join(', ')}` : `is unknown here: did you mean "${near}"?`
}

/** True if the names differ by one letter, or by two that changed places. */
function isNear(a: string, b: string): boolean {
  let from = 0
  while (from < Math.min(a.length, b.length) && a[from] === b[from]) from++
  const [x, y] = [a.slice(from), b.slice(from)]
  return (
    [
      [1, 1],
      [0, 1],
      [1, 0],
    ].some(([i, j]) => x.slice(i) === y.slice(j)) ||
    (x[0] === y[1] && x[1] === y[0] && x.slice(2) === y.slice(2) && x.length > 1)
  )
}

/** The keys that the object at a path may have. */
function knownKeys(schema: z.ZodMiniType, path: readonly PropertyKey[]): string[] {
  let at = schema as unknown as Inner
  for (const key of path) {
    while (at.def.innerType) at = at.def.innerType
    at = (at.def.shape?.[String(key)] ?? at.def.valueType ?? at.def.element) as Inner
  }
  while (at.def.innerType) at = at.def.innerType
  return Object.keys(at.def.shape ?? {})
}

interface Inner {
  readonly def: {
    readonly innerType?: Inner
    readonly shape?: Readonly<Record<string, Inner>>
    readonly valueType?: Inner
    readonly element?: Inner
  }
}
