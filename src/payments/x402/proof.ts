import type { Asked, Refusal } from '../../core/ports/payments.ts'
import { bytesIn } from '../../protocol/base64.ts'
import { fieldsOf, isRecord, jsonIn, type Slot } from '../../protocol/json.ts'
import type { Payment } from '../../protocol/payment.ts'
import { exactV1, networkName, type Exact } from '../../wire/x402.ts'

/** The longest proof that is read. */
const LENGTH = 16_384
/** A payment must be valid for so many seconds more, or it could end before it is settled. */
const LEFT_S = 6
/** A payment that is valid for longer would have to be remembered for longer. */
const LONGEST_S = 86_400

const ADDRESS = /^0x[0-9a-fA-F]{40}$/
const NONCE = /^0x[0-9a-fA-F]{64}$/
const SIGNATURE = /^0x(?:[0-9a-fA-F]{2}){1,4096}$/
const WHOLE = /^\d{1,78}$/

/** A signed permission to move money once (EIP-3009), and the version of x402 that it came in. */
export interface Proof {
  readonly version: 1 | 2
  /** As it came, for the facilitator. */
  readonly payload: Slot
  readonly from: string
  readonly nonce: string
  readonly value: bigint
  /** Milliseconds since 1970. */
  readonly validBefore: number
  /** Everything that was signed, and the signature: it tells one proof from another, in whatever form it comes. */
  readonly text: string
}

/** True if a payment may be one of x402. */
export function isX402({ scheme, token, proof }: Payment): boolean {
  if (token !== undefined) return token.startsWith('ey') && objectIn(token) !== undefined
  return ['x402', 'exact', 'crypto'].includes(scheme) || 'x402Version' in fieldsOf(proof)
}

/** The object that a payment proves itself by. */
function objectOf({ token, proof }: Payment): Slot | undefined {
  const given = token ?? proof
  return isRecord(given) ? given : typeof given === 'string' ? objectIn(given) : undefined
}

function objectIn(text: string): Slot | undefined {
  if (text.length > LENGTH) return undefined
  const bytes = bytesIn(text.replaceAll('-', '+').replaceAll('_', '/'))
  const object = jsonIn(bytes ? new TextDecoder().decode(bytes) : text)
  return isRecord(object) && 'x402Version' in object ? object : undefined
}

/**
 * The proof in a payment, if it pays exactly what is asked, or more than a part of it. Times are not looked at: a proof may have been used
 * in time.
 */
export function readProof(payment: Payment, part: Exact, { isPart = false }: Pick<Asked, 'isPart'> = {}): Proof | Refusal {
  const payload = objectOf(payment)
  if (!payload) return invalid('The payment has no proof that can be read')
  const { x402Version: version } = payload
  if (version !== 1 && version !== 2) return invalid('The payment is of another version of x402 than 1 and 2')
  const accepted = version === 2 ? payload['accepted'] : payload
  if (!isRecord(accepted)) return invalid('The payment does not say what it accepts')
  const exact = isPart ? { ...part, amount: larger(fieldsOf(fieldsOf(payload['payload'])['authorization'])['value'], part.amount) } : part
  const { scheme, network } = accepted
  if (scheme !== 'exact') return invalid('The payment is not of the scheme "exact"')
  if (network !== exact.network && (version === 2 || network !== networkName(exact.network))) {
    return invalid(`The payment is not on the network ${exact.network}`)
  }
  const mismatch = version === 2 ? mismatchOf(accepted, exact) : undefined
  return mismatch ?? readAuthorization(payload, { version, exact })
}

function larger(given: unknown, asked: string): string {
  return matches(given, WHOLE) && BigInt(given) > BigInt(asked) ? given : asked
}

/** A payer of version 2 repeats what was asked. */
function mismatchOf({ amount, asset, payTo }: Slot, exact: Exact): Refusal | undefined {
  if (!isSame(asset, exact.asset)) return invalid('The payment is in another asset')
  if (!isSame(payTo, exact.payTo)) return invalid('The payment is to another address')
  return amountMismatch(amount, exact.amount)
}

function amountMismatch(given: unknown, asked: string): Refusal | undefined {
  if (typeof given !== 'string' || !WHOLE.test(given)) return invalid('The amount of the payment is not a whole number as text')
  const [paid, wanted] = [BigInt(given), BigInt(asked)]
  if (paid === wanted) return undefined
  const message = `The payment is of ${paid} of the smallest units, and ${wanted} are asked`
  return paid < wanted ? { refused: 'insufficient_balance', message } : invalid(message)
}

function readAuthorization(payload: Slot, { version, exact }: { readonly version: 1 | 2; readonly exact: Exact }): Proof | Refusal {
  const { signature, authorization } = fieldsOf(payload['payload'])
  if (!isRecord(authorization)) return invalid('The payment has no authorization by EIP-3009')
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  if (!matches(from, ADDRESS) || !matches(nonce, NONCE)) return invalid('The payment names no payer and nonce')
  if (!matches(signature, SIGNATURE)) return invalid('The payment is not signed')
  if (!matches(validAfter, WHOLE) || !matches(validBefore, WHOLE)) return invalid('The payment does not say when it is valid')
  if (!isSame(to, exact.payTo)) return invalid('The payment is to another address')
  const mismatch = amountMismatch(value, exact.amount)
  if (mismatch) return mismatch
  const signed = [exact.network, exact.asset, from, to, value, validAfter, validBefore, nonce, signature]
  const seconds = BigInt(validBefore)
  return {
    version,
    payload,
    from: from.toLowerCase(),
    nonce: nonce.toLowerCase(),
    value: BigInt(value as string),
    validBefore: seconds > MOST_S ? Infinity : Number(seconds) * 1000,
    text: signed.join(' ').toLowerCase(),
  }
}

/** No date is later. */
const MOST_S = 8_640_000_000_000n

/** Why a proof cannot be used now. */
export function outOfTime({ payload, validBefore }: Proof, now: number): Refusal | undefined {
  const { validAfter } = fieldsOf(fieldsOf(payload['payload'])['authorization'])
  if (BigInt(validAfter as string) > BigInt(Math.floor(now / 1000))) return invalid('The payment is not valid yet')
  if (validBefore - now < LEFT_S * 1000) return { refused: 'token_expired', message: `The payment is not valid for ${LEFT_S} seconds more` }
  if (validBefore - now > LONGEST_S * 1000) return invalid(`The payment is valid for more than ${LONGEST_S} seconds`)
  return undefined
}

/** What a facilitator is asked to verify and to settle. */
export function facilitated({ version, payload }: Pick<Proof, 'version' | 'payload'>, exact: Exact, agent: string): Slot {
  const about = { resource: `uamp://agents/${encodeURIComponent(agent)}`, description: `An answer of ${agent}` }
  const { network } = payload
  const named = version === 1 && typeof network === 'string' ? { network } : {}
  return {
    x402Version: version,
    paymentPayload: payload,
    paymentRequirements: version === 1 ? { ...exactV1(exact, about), ...named } : exact,
  }
}

function matches(value: unknown, form: RegExp): value is string {
  return typeof value === 'string' && form.test(value)
}

function isSame(address: unknown, other: string): boolean {
  return typeof address === 'string' && address.toLowerCase() === other.toLowerCase()
}

function invalid(message: string): Refusal {
  return { refused: 'token_invalid', message }
}
