import { UampError } from '../../protocol/errors.ts'
import type { Access, Action, Denial, Principal } from '../ports/access.ts'
import { storeKey } from './store-key.ts'

/**
 * The id of a principal that an issuer vouches for. Two issuers cannot give the same one, whatever names they choose. `path`: where an
 * issuer keeps its agents (AOAuth), so that an agent and a caller of one name are two.
 */
export function principalId(issuer: string, subject: string, path = ''): string {
  return path === '' ? storeKey(issuer, subject) : storeKey(issuer, path, subject)
}

/**
 * The caller as others know it: the name of a token of this server, else the address that its issuer and its subject make (AOAuth). A
 * slash in a subject is escaped, or two callers could have one name. Undefined: nobody knows who it is.
 */
export function callerName({ id, issuer, subject }: Principal): string | undefined {
  if (issuer !== undefined && subject !== undefined) {
    return `${issuer.replace(/\/+$/, '')}/${subject.replaceAll('%', '%25').replaceAll('/', '%2F')}`
  }
  return id === 'anonymous' ? undefined : id
}

/** Tells principals apart, in memory and in the store. */
export function principalKey({ tenant, id }: Pick<Principal, 'tenant' | 'id'>): string {
  return storeKey(tenant, id)
}

export function isSamePrincipal(one: Principal, other: Principal): boolean {
  return one.tenant === other.tenant && one.id === other.id
}

/** Not a name, so that no claim of a token can be mistaken for it. */
const SERVER: unique symbol = Symbol('the server itself')

/** The owner of something stored, for work that the server does by itself: nobody is asked whether it may. */
export function onBehalfOf(tenant: string, id: string): Principal {
  return { tenant, id, scopes: [], [SERVER]: true } as Principal
}

export function isServer(principal: Principal): boolean {
  return SERVER in principal
}

/** Whoever may call an agent may also read and cancel what they asked it, and send it files. */
const WITHIN_CALL: ReadonlySet<Action> = new Set(['read', 'cancel', 'content'])

type Authorize = Pick<Access, 'authorize'>

export function mayDo(access: Authorize, principal: Principal, { action, agent }: Asked): boolean {
  if (isServer(principal)) return true
  return (WITHIN_CALL.has(action) && access.authorize(principal, 'call', agent)) || access.authorize(principal, action, agent)
}

interface Asked {
  readonly action: Action
  readonly agent: string | undefined
}

const VERBS = {
  call: 'call',
  tool: 'run tools of',
  read: 'read from',
  cancel: 'cancel anything of',
  content: 'exchange files with',
  room: 'enter rooms of',
  host: 'host',
  pay: 'pay',
  bank: 'manage the money of',
  operate: 'operate',
} satisfies Record<Action, string>

/** Throws `forbidden` if the principal may not do it. */
export function checkMay(access: Authorize, principal: Principal, asked: Asked): void {
  if (mayDo(access, principal, asked)) return
  const { action, agent = 'this server' } = asked
  // Nobody has shown a token, or one that the server does not know, where it lets everybody in.
  const who = principal.id === 'anonymous' ? 'Nobody without a token of this server may' : 'This token may not'
  throw new UampError('forbidden', `${who} ${VERBS[action]} ${agent}`, { details: { action, reason: 'insufficient_scope' } })
}

export function isDenial(answer: Principal | Denial | undefined): answer is Denial {
  return answer !== undefined && 'denied' in answer
}

/** The principal, if there is one. */
export function admitted(answer: Principal | Denial | undefined): Principal | undefined {
  return isDenial(answer) ? undefined : answer
}

/** Who a caller without any credentials is. Undefined: such callers are not admitted. */
export async function anybody(access: Pick<Access, 'authenticate'>): Promise<Principal | undefined> {
  return admitted(await access.authenticate({ headers: new Headers() }))
}

/** Whether a caller without any credentials would be the same principal. */
export async function isAnybody(access: Pick<Access, 'authenticate'>, principal: Principal): Promise<boolean> {
  const found = await anybody(access)
  return found !== undefined && isSamePrincipal(found, principal)
}

const REASONS = {
  missing: undefined,
  invalid: 'invalid_token',
  expired: 'token_expired',
  revoked: 'token_revoked',
  untrusted: 'untrusted_issuer',
  proof: 'invalid_proof',
} satisfies Record<Denial['denied'], string | undefined>

/** The refusal of somebody who is not admitted. */
export function unauthorized(answer: Denial | undefined, message = 'This needs a valid token'): UampError {
  const { denied = 'invalid', challenge, nonce } = answer ?? {}
  const reason = answer && REASONS[denied]
  const details = {
    ...(reason !== undefined && { reason }),
    ...(challenge !== undefined && { challenge }),
    ...(nonce !== undefined && { dpop_nonce: nonce }),
  }
  return new UampError('unauthorized', answer?.message ?? message, Object.keys(details).length > 0 ? { details } : {})
}

/** Why something that went on by somebody's credentials ends. */
export const TOKEN_EXPIRED = 'token_expired'
export const TOKEN_REVOKED = 'token_revoked'

const ENDED: Readonly<Record<string, string>> = {
  [TOKEN_EXPIRED]: 'The token has expired: come back with a new one',
  [TOKEN_REVOKED]: 'The token was revoked',
}

/** What somebody is told whose credentials end while they are used. `details`: what else they should know. */
export function credentialsEnded(reason: string, details: Readonly<Record<string, unknown>> = {}): UampError {
  return new UampError('unauthorized', ENDED[reason] ?? 'The credentials are no longer valid', { details: { reason, ...details } })
}
