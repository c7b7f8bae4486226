import { bytesIn } from '../protocol/base64.ts'
import { UampError } from '../protocol/errors.ts'
import { fieldsOf, isRecord, jsonIn, recordsIn, type Slot } from '../protocol/json.ts'
import type { Payment } from '../protocol/payment.ts'
import { header, isReceipt, receiptHeaders, requiredIn, requiredV1, requiredV2 } from './x402.ts'

/** The newest name first; the older ones are still sent. */
const HEADERS = ['payment-signature', 'x-payment', 'x-payment-token']
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/
/** The longest payment that is looked into. */
const LENGTH = 16_384

/** The payment of a request. Two headers that differ are refused: we must not guess which money to take. */
export function paymentFrom(headers: Headers): Payment | undefined {
  let value: string | undefined
  for (const name of HEADERS) {
    const given = headers.get(name)
    if (given === null) continue
    if (value !== undefined && value !== given) throw new UampError('invalid_request', 'Two payment headers differ: send one')
    value = given
  }
  return value === undefined ? undefined : paymentOf(value)
}

/**
 * A payment as headers and metadata write it: a JWT, the base64 of one, or an object as JSON or as its base64. Any other text is a token
 * whose form only the ledger knows. Throws if it is an object that pays in no way.
 */
export function paymentOf(value: unknown): Payment {
  if (isRecord(value)) return ofObject(value)
  const text = String(value)
  if (JWT.test(text) || text.length > LENGTH) return { scheme: 'token', token: text }
  const decoded = decodedText(text)
  if (decoded === undefined) return { scheme: 'token', token: text }
  if (JWT.test(decoded)) return { scheme: 'token', token: decoded }
  const object = decoded.startsWith('{') ? jsonIn(decoded) : undefined
  if (isRecord(object)) return ofObject(object)
  if (decoded.startsWith('{')) throw malformed('it is not JSON')
  return { scheme: 'token', token: text }
}

/** The text in base64 or base64url. Undefined: it is neither, or no text. */
function decodedText(text: string): string | undefined {
  const bytes = bytesIn(text.replaceAll('-', '+').replaceAll('_', '/'))
  try {
    return bytes && new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function ofObject(object: Slot): Payment {
  const { x402Version, payload, accepted } = object
  // Version 2 has scheme and network in `accepted`.
  const { scheme, network } = isRecord(accepted) ? accepted : object
  const where = typeof network === 'string' ? { network } : {}
  const { token, amount } = fieldsOf(payload)
  if (typeof token === 'string') return { scheme: 'token', ...where, token, ...(typeof amount === 'string' && { amount }) }
  if (x402Version === undefined) throw malformed('it has neither a token nor a version of x402')
  if (x402Version !== 1 && x402Version !== 2) throw malformed('x402 has the versions 1 and 2')
  if (!isRecord(payload)) throw malformed('it has no "payload"')
  return { scheme: typeof scheme === 'string' ? scheme : 'exact', ...where, proof: object }
}

function malformed(why: string): UampError {
  return new UampError('invalid_request', `The payment cannot be read: ${why}`, { details: { code: 'token_invalid' } })
}

/** What a refusal for want of payment has beside the error of its protocol. */
export interface Unpaid {
  /** Top-level members of the body, which clients of x402 version 1 read. */
  readonly body: Slot
  readonly headers: Readonly<Record<string, string>>
}

/** For every answer 402. */
export function unpaidAnswer({ code, message, details = {} }: UampError): Unpaid {
  if (code !== 'payment_required') return NOTHING
  // A proxy must not give one caller's demand for money, or the receipt in it, to others.
  const cache = { 'cache-control': 'private, no-store' }
  const { receipt, x402 } = details
  const told = isReceipt(receipt) ? receiptHeaders(receipt) : {}
  const [reason] = recordsIn(details['accepts']).map((accept) => accept['reason'])
  const description = typeof reason === 'string' ? reason : message
  const required = requiredIn(x402, { error: errorIn(details), description })
  if (!required) return { body: {}, headers: { ...cache, ...told } }
  const { x402Version, accepts } = requiredV1(required)
  return { body: { x402Version, accepts }, headers: { ...cache, ...told, 'payment-required': header(requiredV2(required)) } }
}

const NOTHING: Unpaid = { body: {}, headers: {} }

/** Why the last payment was not taken. */
function errorIn(details: Slot): string {
  const [told] = recordsIn(details['accepts']).map(({ extra }) => fieldsOf(fieldsOf(extra)['error'])['code'])
  return typeof told === 'string' ? told : 'Payment required'
}

/** What the end of a response says about its payments. */
export function paidIn(extensions: Readonly<Slot> | null | undefined): Slot | undefined {
  const { payments, receipts } = fieldsOf(extensions?.['uamp'])
  if (payments === undefined) return undefined
  return { payments, ...(receipts !== undefined && { receipts }) }
}

/** The same of several responses that are one answer. */
export function paidInAll(ends: readonly (Readonly<Slot> | null | undefined)[]): Slot | undefined {
  const paid = ends.map(paidIn).filter((each) => each !== undefined)
  if (paid.length <= 1) return paid[0]
  const receipts = paid.flatMap((each) => recordsIn(each['receipts']))
  return { payments: paid.flatMap((each) => recordsIn(each['payments'])), ...(receipts.length > 0 && { receipts }) }
}

/** The headers of a paid answer: the last receipt, for clients of both versions of x402. */
export function paidHeaders(extensions: Readonly<Slot> | null | undefined): Record<string, string> {
  const receipt = recordsIn(paidIn(extensions)?.['receipts']).findLast(isReceipt)
  return receipt ? { ...receiptHeaders(receipt), 'cache-control': 'private, no-store' } : {}
}
