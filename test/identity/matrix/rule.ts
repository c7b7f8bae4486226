/** Who may do what, in one place and in words of its own: the server is compared with this, and not with itself. */
import type { Action } from '../../../src/core/ports/access.ts'

export type Decision = 'admitted' | 'unauthorized' | 'forbidden' | 'not found'

/**
 * What something asks of its callers. `public`: nothing. `client`: the secret of an OAuth client, and no token helps. `url`: whoever has
 * the URL may.
 */
export type Asks = Action | 'public' | 'client' | 'url'

/** The agent that is called. */
export const AGENT = 'demo'
/** Another one of the same server. */
export const OTHER_AGENT = 'secret'

/** One that some may offer through the server. */
export const GUEST = 'guest'

/** A kind of caller. Without a `name` nobody believes them. */
export interface Kind {
  readonly name?: 'alice' | 'bob' | 'carol'
  readonly scope?: readonly string[]
  /** The only agent that the token is for. */
  readonly agent?: string
}

const EVERYTHING = ['write', 'operate'] as const

/** Things belong to alice. */
export const CALLERS = {
  none: {},
  wrong: {},
  forged: {},
  expired: {},
  revoked: {},
  'of another': { name: 'bob', scope: EVERYTHING },
  'of another, from the list': { name: 'carol', scope: EVERYTHING },
  'for another agent': { name: 'alice', scope: EVERYTHING, agent: OTHER_AGENT },
  'without rights': { name: 'alice', scope: ['platform'] },
  'read only': { name: 'alice', scope: ['read'] },
  'cancel only': { name: 'alice', scope: ['cancel'] },
  'content only': { name: 'alice', scope: ['content'] },
  'tool only': { name: 'alice', scope: ['tool'] },
  'operate only': { name: 'alice', scope: ['operate'] },
  'read and cancel': { name: 'alice', scope: ['read', 'cancel'] },
  'read and tool': { name: 'alice', scope: ['read', 'tool'] },
  'read and host': { name: 'alice', scope: ['read', `host:${GUEST}`] },
  'call only': { name: 'alice', scope: ['call'] },
  'for this agent': { name: 'alice', scope: EVERYTHING, agent: AGENT },
  right: { name: 'alice', scope: EVERYTHING },
} as const satisfies Record<string, Kind>

export type Caller = keyof typeof CALLERS
export const callers: readonly Caller[] = Object.keys(CALLERS) as Caller[]
/** Those who tell most. */
export const FEW: readonly Caller[] = ['none', 'expired', 'of another', 'for another agent', 'read only', 'for this agent', 'right']

/** Whoever may call an agent may also read and cancel what they asked it, and send it files. */
const WORDS: Readonly<Record<string, readonly string[]>> = {
  write: ['call', 'read', 'cancel', 'content', 'tool', 'room', 'pay'],
  call: ['call', 'read', 'cancel', 'content'],
}

/** To cancel something, or to run a tool, one has to see it. */
const NEEDS: Partial<Record<Action, readonly Action[]>> = { cancel: ['read', 'cancel'], tool: ['read', 'tool'] }

export interface Asked {
  readonly asks: Asks
  /** It is about something of alice's. */
  readonly owned?: boolean | undefined
  /** Default: `AGENT`. */
  readonly agent?: string
}

/** The decision, which depends on nothing but this: not on the route, and not on the protocol. */
export function decisionFor({ asks, owned = false, agent = AGENT }: Asked, caller: Caller): Decision {
  if (asks === 'public' || asks === 'url') return 'admitted'
  const { name, scope = [], agent: only }: Kind = CALLERS[caller]
  if (asks === 'client' || name === undefined) return 'unauthorized'
  const allowed = scope.flatMap((word) => WORDS[word] ?? [word === `host:${agent}` ? 'host' : word])
  const isAllowed = (NEEDS[asks] ?? [asks]).every((action) => allowed.includes(action))
  // To operate is about the whole server.
  const isFor = only === undefined || (asks !== 'operate' && only === agent)
  if (!isAllowed || !isFor) return 'forbidden'
  return owned && name !== 'alice' ? 'not found' : 'admitted'
}

export type Row = Readonly<Record<Caller, string>>

/** `whom`: which of them. */
export function rowFor(asked: Asked, whom = callers): Row {
  return Object.fromEntries(whom.map((caller) => [caller, decisionFor(asked, caller)])) as Row
}

/** The same at the root, where a request or an id may mean another agent than the one there: a token has to be for both. */
export function rowAtRoot(asked: Asked): Row {
  const meant = rowFor({ ...asked, agent: OTHER_AGENT })
  const door = Object.entries(rowFor({ ...asked, owned: false }))
  return Object.fromEntries(door.map(([caller, decision]) => [caller, decision === 'admitted' ? meant[caller as Caller] : decision])) as Row
}

/** The decisions about all kinds of callers, who come at once. */
export async function rowOf(decide: (caller: Caller) => Promise<string>, whom = callers): Promise<Row> {
  return Object.fromEntries(await Promise.all(whom.map(async (caller) => [caller, await decide(caller)]))) as Row
}
