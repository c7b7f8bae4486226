import type { ConnectEntry } from '../config/schema.ts'
import { present } from '../wire/fields.ts'
import { secretOf } from './tokens.ts'

/** A host, and the agents that are offered through it. */
export interface Connection {
  readonly url: string
  readonly agents: readonly string[]
  /** The token of an agent. It is read whenever it is needed, so that a new one in its file counts. Empty: there is none. */
  readonly token: (agent: string) => string
}

/** The hosts that a config names, for these of its agents. Entries of one host share its socket. */
export function connectionsOf(
  entries: readonly ConnectEntry[],
  { env, agents }: { readonly env: NodeJS.ProcessEnv; readonly agents: readonly string[] },
): readonly Connection[] {
  const hosts = new Map<string, Map<string, () => string>>()
  for (const { url, agents: chosen = agents, token, tokenFile } of entries) {
    const tokens = hosts.get(url) ?? new Map<string, () => string>()
    const secret = (): string => secretOf(present({ token, tokenFile }), env) ?? ''
    for (const name of chosen) if (agents.includes(name)) tokens.set(name, secret)
    if (tokens.size > 0) hosts.set(url, tokens)
  }
  return [...hosts].map(([url, tokens]) => ({ url, agents: [...tokens.keys()], token: (agent) => tokens.get(agent)?.() ?? '' }))
}
