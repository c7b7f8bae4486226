import * as z from 'zod/mini'
import { isCurrency, parseAmount } from '../../protocol/money.ts'

/** The largest body: a token, and a few short fields. */
export const BODY_BYTES = 16 * 1024
const AGENTS = 16
const USAGES = 100
const COUNT = 1_000_000_000
/** A day, and a year. */
const TTL = { usual: 86_400, most: 366 * 86_400 }
/** Locks are for work that goes on: an hour, a day at most. */
const LOCK_TTL = { usual: 300, most: 86_400 }
export const DEPTH = { usual: 5, most: 16 }

const FORM = 'as a text such as "0.05", with at most nine decimals'
const amount = z.custom<string>((value) => (parseAmount(value) ?? 0n) > 0n, `must be an amount above 0, ${FORM}`)
const charge = z.custom<string>((value) => parseAmount(value) !== undefined, `must be an amount, ${FORM}`)
const currency = z.optional(z.custom<string>(isCurrency, 'must be the name of a currency in capitals, such as "USD"'))
const token = z.string().check(z.minLength(1))
const count = z.optional(
  z.custom<number>(
    (value) => Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= COUNT,
    `must be a whole number from 0 to ${COUNT}`,
  ),
)
const seconds = (most: number) =>
  z.optional(
    z.custom<number>(
      (value) => Number.isSafeInteger(value) && (value as number) > 0 && (value as number) <= most,
      `must be a whole number of seconds from 1 to ${most}`,
    ),
  )
/** ASCII, so that a token is short enough whatever its agents are called. */
const agent = z.custom<string>(
  (value) => typeof value === 'string' && /^[!-~]{1,128}$/.test(value),
  'must be the name of an agent: at most 128 characters of ASCII, without spaces',
)
const agents = z.union(
  [agent, z.array(agent).check(z.minLength(1), z.maxLength(AGENTS))],
  `must be the name of an agent, or up to ${AGENTS}`,
)
const key = z.optional(
  z.custom<string>(
    (value) => typeof value === 'string' && /^[!-~]{1,128}$/.test(value),
    'must be 1 to 128 characters of ASCII, without spaces',
  ),
)
const name = z.custom<string>(
  (value) => typeof value === 'string' && value !== '' && value.length <= 1024 && value.isWellFormed() && !/\p{Cc}/u.test(value),
  'must be the id of a principal',
)
const id = z.string().check(z.minLength(1), z.maxLength(200))
const description = z.optional(z.string().check(z.maxLength(500)))

export const VerifyBody = z.object({ token, agent: z.optional(agent) })

export const LockBody = z.object({
  token: z.optional(token),
  amount,
  currency,
  agent: z.optional(agent),
  audience: z.optional(agents),
  expiresIn: seconds(TTL.most),
})

export const ExtendBody = z.object({ amount })

const Usage = z.object({
  type: z.optional(z.string()),
  model: z.optional(z.string()),
  amount: z.optional(charge),
  promptTokens: count,
  cachedTokens: count,
  completionTokens: count,
})

export const SettleBody = z.object({
  lockId: id,
  amount: z.optional(charge),
  usage: z.optional(z.array(Usage).check(z.minLength(1), z.maxLength(USAGES))),
  description,
  chargeType: z.optional(z.enum(['tool_fee', 'agent_fee'])),
  release: z.optional(z.boolean()),
  idempotencyKey: key,
})

export const ReleaseBody = z.object({ lockId: id })

export const DelegateBody = z.object({ parentToken: token, delegateTo: agents, amount, expiresIn: seconds(TTL.most) })

export const TokenBody = z.object({
  amount,
  currency,
  agents,
  expiresIn: seconds(TTL.most),
  maxDepth: z.optional(
    z.custom<number>(
      (value) => Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= DEPTH.most,
      `must be a whole number from 0 to ${DEPTH.most}`,
    ),
  ),
  principal: z.optional(name),
  source: z.optional(z.enum(['account', 'outside'])),
})

export const TopUpBody = z.object({ amount, source: z.optional(z.enum(['account', 'outside'])) })

export const TransferBody = z.object({
  principal: z.optional(name),
  agent: z.optional(agent),
  amount,
  currency,
  description,
  idempotencyKey: key,
})

export const RefundBody = z.object({ paymentId: id, amount: z.optional(amount), description, idempotencyKey: key })

export const Key = z.object({ 'Idempotency-Key': key })

export const USUAL_TTL_MS = TTL.usual * 1000

/** How long a lock may be open. A longer time than the most counts as that: the field means the life of a token in the payer's form. */
export function lockTtlMs(seconds: number | undefined): number {
  return Math.min(seconds ?? LOCK_TTL.usual, LOCK_TTL.most) * 1000
}
