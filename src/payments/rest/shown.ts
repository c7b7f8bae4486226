import { formatAmount } from '../../protocol/money.ts'
import type { KnownCall } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { base64Url, bytesIn } from '../../protocol/base64.ts'
import { invalid, parseValue } from '../../wire/parse.ts'
import { wholeNumber } from '../../wire/openai/paging.ts'
import { changeOf, type Account, type Movement } from '../accounts.ts'
import type { PayLock } from '../locks.ts'
import type { PayToken } from '../tokens.ts'
import type { PaymentFacts } from '../underway.ts'
import { BODY_BYTES, Key } from './schema.ts'

const PAGE = { usual: 20, min: 1, max: 100 }
const CURSOR_CHARS = 2048

/** Nobody keeps what is said of money. */
export function answer(body: object, status = 200): Response {
  return new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json', 'cache-control': 'no-store' } })
}

/** The body of a request. Its size is not the route's bound, because strangers are asked for a token before they are told that. */
export async function bodyOf(call: KnownCall): Promise<string> {
  const tooLarge = (): UampError =>
    new UampError('too_large', `A body may have at most ${BODY_BYTES} bytes`, { details: { limit: BODY_BYTES } })
  if (Number(call.request.headers.get('content-length')) > BODY_BYTES) throw tooLarge()
  const text = await call.text()
  if (text.length > BODY_BYTES) throw tooLarge()
  return text
}

export function isoTime(time: number): string {
  return new Date(time).toISOString()
}

/** `limit` and `cursor` of a list. */
export function pageIn(query: URLSearchParams): { readonly limit: number; readonly after?: string } {
  const limit = wholeNumber(query, 'limit', PAGE)
  const cursor = query.get('cursor')
  if (cursor === null) return { limit }
  const bytes = cursor.length > CURSOR_CHARS ? undefined : bytesIn(cursor)
  if (!bytes) throw invalid('The cursor is not one of this list', 'cursor', 'invalid_value')
  return { limit, after: new TextDecoder().decode(bytes) }
}

export function cursorOf(next: string | undefined): { readonly nextCursor: string | null } {
  return { nextCursor: next === undefined ? null : base64Url(new TextEncoder().encode(next)) }
}

/** The key by which a request can be sent twice and counts once: of the header, or of the body. */
export function keyOf({ request }: KnownCall, inBody: string | undefined): string | undefined {
  const given = request.headers.get('idempotency-key')
  if (given === null) return inBody
  const key = parseValue(Key, { 'Idempotency-Key': given })['Idempotency-Key']
  if (inBody !== undefined && inBody !== key) throw invalid('The idempotency keys of the header and the body differ', 'idempotencyKey')
  return key
}

/** A token for its owner. Its text is not known here. */
export function shownToken(token: PayToken, account: Account, now: number): object {
  const { id, owner, agents, currency, createdAt, expiresAt, endedAt, depth, maxDepth, parent } = token
  const status = endedAt === undefined ? (expiresAt > now ? 'active' : 'expired') : 'ended'
  return {
    id,
    owner,
    agents,
    balance: formatAmount(account.available),
    locked: formatAmount(account.locked),
    currency,
    status,
    depth,
    maxDepth,
    ...(parent !== undefined && { parent }),
    createdAt: isoTime(createdAt),
    expiresAt: isoTime(expiresAt),
  }
}

export function shownLock({ id, agent, currency, state, expiresAt }: PayLock, balance: bigint): object {
  const lockedAmount = formatAmount(balance)
  return { lockId: id, lockedAmount, lockedAmountDollars: lockedAmount, currency, agent, state, expiresAt: isoTime(expiresAt) }
}

/** A payment: what it is for, and how it stands. */
export function shownPayment({ id, state, amount, currency, at, ...about }: PaymentFacts, refunded: bigint): object {
  const { agent, principal, session, response, question } = about
  return {
    paymentId: id,
    state,
    amount: formatAmount(amount),
    currency,
    ...(refunded > 0n && { refunded: formatAmount(refunded) }),
    ...(at !== undefined && { at: isoTime(at) }),
    ...(agent !== undefined && { agent }),
    ...(principal !== undefined && { principal }),
    ...(session !== undefined && { sessionId: session }),
    ...(response !== undefined && { responseId: response }),
    ...(question !== undefined && { question }),
  }
}

/**
 * A movement as the owner of one of its accounts sees it. The other account is not named if it is somebody else's, and never a lock: its id
 * is for whoever opened it.
 */
export function shownMove(move: Movement, account: string): object {
  const { id, kind, amount, currency, at, agent, response, question, description, of, principal } = move
  const isOut = changeOf(move, account) < 0n
  const [otherKind = '', ...rest] = (isOut ? move.to : move.from).split(':')
  const shows = otherKind === 'token' || otherKind === 'agent'
  return {
    id,
    type: kind,
    direction: isOut ? 'out' : 'in',
    amount: formatAmount(BigInt(amount)),
    currency,
    at: isoTime(at),
    counterparty: shows ? { type: otherKind, id: rest.slice(otherKind === 'agent' ? 1 : 0).join(':') } : { type: otherKind },
    ...(agent !== undefined && { agent }),
    ...(principal !== undefined && { principal }),
    ...(response !== undefined && { responseId: response }),
    ...(question !== undefined && { question }),
    ...(description !== undefined && { description }),
    ...(of !== undefined && { refundOf: of }),
  }
}
