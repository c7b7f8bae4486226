import type { Action, Principal } from '../core/ports/access.ts'

const ACTIONS = ['call', 'tool', 'read', 'cancel', 'content', 'room', 'host', 'pay', 'bank', 'operate'] as const satisfies readonly Action[]

/** What each word of a scope allows for every agent that the token is for. */
const WORDS: ReadonlyMap<string, ReadonlySet<Action>> = new Map<string, ReadonlySet<Action>>([
  ...ACTIONS.map((action) => [action, new Set([action])] as const),
  ['read', new Set<Action>(['read'])],
  ['write', new Set<Action>(['call', 'tool', 'read', 'cancel', 'content', 'room', 'pay'])],
  ['admin', new Set<Action>(ACTIONS)],
  ['tools:*', new Set<Action>(['tool'])],
  // A static token: everything but to offer an agent to others, and to make money.
  ['*', new Set<Action>(ACTIONS.filter((action) => action !== 'host' && action !== 'bank'))],
])

const NONE: ReadonlySet<Action> = new Set()
const HOST = 'host:'

/** True if these scopes allow an action for an agent. Words that are not known allow nothing. */
export function allows(scopes: readonly string[], action: Action, agent: string | undefined): boolean {
  for (const word of scopes) {
    if ((WORDS.get(word) ?? NONE).has(action)) return true
    if (action === 'host' && agent !== undefined && word.startsWith(HOST) && isNamed(word.slice(HOST.length), agent)) return true
  }
  return false
}

/** `alice` names one agent; `team.*` names every agent below `team`. */
function isNamed(pattern: string, agent: string): boolean {
  return pattern.endsWith('.*') && pattern.length > 2 ? agent.startsWith(pattern.slice(0, -1)) : pattern === agent
}

/** What `Access.authorize` says of a principal: its scopes, and only for the agents that its token is for. */
export function may({ scopes, agents }: Principal, action: Action, agent: string | undefined): boolean {
  // What is about no single agent is about all of them.
  if (agents !== undefined && (agent === undefined || !agents.includes(agent))) return false
  return allows(scopes, action, agent)
}

/** The actions that a principal may do for an agent. */
export function actionsOf(principal: Principal, agent: string | undefined): readonly Action[] {
  return ACTIONS.filter((action) => may(principal, action, agent))
}

/** True for words that only this server itself gives: they reach beyond the caller's own sessions. */
export function isReserved(word: string): boolean {
  return /^(?:admin|operate|bank|platform|\*|host|service|host:.*|service:.*)$/s.test(word)
}

/** What others say that a caller may do, without what is not theirs to give. */
export function foreignScopes(words: readonly string[]): string[] {
  return words.filter((word) => !isReserved(word))
}

/**
 * The scopes of a token within a list: at most what the list allows, and all of it for a token that says nothing in our words, such as
 * one with `openid profile`. Without a list, what the token says.
 */
export function within(words: readonly string[], list: readonly string[] | undefined): readonly string[] {
  if (list === undefined) return words
  const known = words.filter(isKnown)
  if (known.length === 0) return list
  // A word that reaches beyond the list stands for what the list has of it: `write` within `read` is `read`.
  const left = known.flatMap((word) => (isCovered(word, list) ? [word] : list.filter((each) => isCovered(each, [word]))))
  return [...new Set(left)]
}

/** True if the word means something here. */
function isKnown(word: string): boolean {
  return WORDS.has(word) || word === 'platform' || (word.startsWith(HOST) && word.length > HOST.length)
}

/** True if the list has the word, `prefix:*` for it, or words that together allow as much. */
function isCovered(word: string, list: readonly string[]): boolean {
  if (list.some((each) => each === word || (each.endsWith(':*') && word.startsWith(each.slice(0, -1))))) return true
  const actions = WORDS.get(word)
  return actions !== undefined && [...actions].every((action) => allows(list, action, undefined))
}
