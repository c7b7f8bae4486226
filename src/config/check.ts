import * as z from 'zod/mini'
import type { AgentPort } from '../core/ports/agent.ts'
import { UampError } from '../protocol/errors.ts'
import { isRecord } from '../protocol/json.ts'
import { AddressRules, trustedProxies } from '../server/node/networks.ts'
import { hostPolicy, originPolicy } from '../server/web-pages.ts'
import { normalized } from '../server/public-url.ts'
import { isAgent } from './agents.ts'
import type { Named, Names } from './names.ts'
import { parsed, validParts, type Into } from './parsed.ts'
import type { Problems } from './problems.ts'
import { Config, ModelEntry, ProviderEntry, RemoteEntry, type RawConfig } from './schema.ts'
import type { Path, Source } from './source.ts'

/** One of the agents in a config, and its path there. */
export type Entry = { readonly path: Path } & (
  | { readonly kind: 'module'; readonly file: string }
  | { readonly kind: 'agent'; readonly agent: AgentPort }
  | { readonly kind: 'model'; readonly entry: ModelEntry }
  | { readonly kind: 'remote'; readonly entry: RemoteEntry }
)

type Settings = Omit<RawConfig, 'agents'>

/** What is sound of a config. Where there are problems, parts are missing. */
export interface CheckedConfig extends Settings {
  readonly entries: readonly Entry[]
  /** The agents by their names, those with mistakes among them. A module's are not known yet. */
  readonly names: Names
  /** Providers with mistakes, of which models know no more than that they are there. */
  readonly brokenProviders: ReadonlySet<string>
}

/** Adds all mistakes in the form of a config: where each is, and what is expected. */
export function checkConfig(source: Source, problems: Problems): CheckedConfig {
  const given = isRecord(source.value) ? source.value : {}
  const whole = parsed(Config, source.value, { path: [], problems })
  const { agents: _, ...settings }: Partial<RawConfig> = whole ?? (validParts(Config.shape, given) as Partial<RawConfig>)
  const providers = settings.providers ?? soundProviders(given['providers'])
  const brokenProviders = new Set(
    Object.keys(isRecord(given['providers']) ? given['providers'] : {}).filter((name) => !(name in providers)),
  )
  const values: unknown[] = Array.isArray(given['agents']) ? given['agents'] : []
  const entries = values.flatMap((value, index) => entryOf(value, { path: ['agents', index], problems }) ?? [])
  checkAddresses(settings, problems)
  return { ...settings, providers, entries, names: namesIn(values), brokenProviders }
}

function soundProviders(given: unknown): Record<string, ProviderEntry> {
  const names = Object.keys(isRecord(given) ? given : {})
  return validParts(Object.fromEntries(names.map((name) => [name, ProviderEntry])), given) as Record<string, ProviderEntry>
}

function namesIn(values: readonly unknown[]): Names {
  const agents = values.flatMap((value, index): Named[] => {
    const name = isRecord(value) ? value['name'] : undefined
    return typeof name === 'string' ? [{ name, path: ['agents', index] }] : []
  })
  return { agents, open: values.some((value) => typeof value !== 'string' && !(isRecord(value) && typeof value['name'] === 'string')) }
}

/** Mistakes that the server would find when it starts. */
function checkAddresses({ origins, allowedHosts, trustProxy, outbound, publicUrl }: Settings, problems: Problems): void {
  const check = (path: Path, use: () => unknown): void => {
    try {
      use()
    } catch (thrown) {
      problems.add(path, `cannot be used: ${UampError.from(thrown).message}`)
    }
  }
  for (const [index, each] of origins?.entries() ?? []) check(['origins', index], () => originPolicy({ origins: [each], loopback: false }))
  for (const [index, each] of allowedHosts?.entries() ?? []) check(['allowedHosts', index], () => hostPolicy({ allowedHosts: [each] }))
  for (const [index, each] of trustProxy?.entries() ?? []) check(['trustProxy', index], () => trustedProxies([each]))
  for (const [index, each] of outbound?.allow?.entries() ?? []) check(['outbound', 'allow', index], () => new AddressRules([each]))
  if (publicUrl !== undefined) check(['publicUrl'], () => normalized(publicUrl))
}

const WHAT = 'must be the path of an agent module, such as "./agent.ts", or an object with a name and a "model" or a "remote"'

function entryOf(value: unknown, into: Into): Entry | undefined {
  const { path, problems } = into
  if (typeof value === 'string') return { path, kind: 'module', file: value }
  if (isAgent(value)) return { path, kind: 'agent', agent: value }
  if (!isRecord(value)) {
    problems.add(path, WHAT)
    return undefined
  }
  if ('remote' in value) {
    const entry = parsed(RemoteEntry, { ...value, remote: remoteOf(value['remote']) }, into)
    if (entry) checkRemote(entry, into)
    return entry && { path, kind: 'remote', entry }
  }
  // An agent with a mistake is still looked at for others: the config is refused in any case.
  const entry = parsed(ModelEntry, value, into) ?? withoutMistakes(value)
  if (entry) checkMcp(entry, into)
  return entry && { path, kind: 'model', entry }
}

/** What is sound of an agent, if that is enough for one. */
function withoutMistakes(value: unknown): ModelEntry | undefined {
  const { success, data } = z.safeParse(ModelEntry, validParts(ModelEntry.shape, value))
  return success ? data : undefined
}

/** A plain address is enough. `a2a+https://…`, `ag-ui+https://…` and `envelope+did:web:…` also name the protocol. */
function remoteOf(given: unknown): unknown {
  const remote = typeof given === 'string' ? { url: given } : given
  const url = isRecord(remote) ? remote['url'] : undefined
  const [, protocol, address] = /^(a2a|ag-ui|envelope)\+(.*)$/s.exec(typeof url === 'string' ? url : '') ?? []
  return isRecord(remote) && protocol !== undefined ? { protocol, ...remote, url: address } : remote
}

function checkRemote({ remote: { protocol, model, agent, url, acp, auth, token, tokenEnv } }: RemoteEntry, { path, problems }: Into): void {
  const at = [...path, 'remote']
  if ((acp === undefined) === (url === '')) return problems.add(at, 'must have either a "url", or an "acp" program to start')
  if (acp) return
  // UAMP events have a WebSocket, too. Without a protocol they may be what is found.
  const isSocket = protocol === undefined || protocol === 'events'
  const scheme = isSocket ? /^(http|ws)s?:\/\/|^\$\{/ : protocol === 'envelope' ? /^https?:\/\/|^did:web:|^\$\{/ : /^https?:\/\/|^\$\{/
  if (!scheme.test(url))
    problems.add(
      [...at, 'url'],
      'must begin with http://, https://, a2a+http:// or a2a+https://, ag-ui+http:// or ag-ui+https://, envelope+did:web:, or for UAMP events ws:// or wss://',
    )
  if (protocol === 'completions' && model === undefined)
    problems.add(at, 'must have a "model": what the endpoint calls it, such as "gpt-5-mini"')
  if (protocol !== undefined && protocol !== 'completions' && model !== undefined)
    problems.add([...at, 'model'], 'is for "protocol": "completions"; a uamp server has an "agent"')
  if (auth && (token !== undefined || tokenEnv !== undefined))
    problems.add([...at, 'auth'], 'makes the tokens, so leave out "token" and "tokenEnv"')
  if (auth?.type === 'client' && [auth.clientSecret, auth.clientSecretEnv, auth.privateKey].filter((one) => one !== undefined).length !== 1)
    problems.add([...at, 'auth'], 'must have one of "clientSecret", "clientSecretEnv" and "privateKey"')
  const kind = protocol === 'a2a' ? 'an A2A agent' : protocol === 'ag-ui' ? 'an AG-UI agent' : protocol && 'an agent that is sent envelopes'
  if (agent !== undefined && kind !== undefined && protocol !== 'events' && protocol !== 'completions')
    problems.add([...at, 'agent'], `is for a uamp server: ${kind} has an address of its own`)
}

function checkMcp({ mcp = [] }: ModelEntry, { path, problems }: Into): void {
  for (const [index, { command, url }] of mcp.entries())
    if ((command === undefined) === (url === undefined))
      problems.add([...path, 'mcp', index], 'must have either a "command" to start, or a "url"')
}
