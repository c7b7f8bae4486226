import { UampError } from '../protocol/errors.ts'
import { base64, bytesIn } from '../protocol/base64.ts'
import { fieldsOf, isRecord, jsonIn, recordsIn, type Slot } from '../protocol/json.ts'
import { parseAmount } from '../protocol/money.ts'
import type { Payment, PaymentRequirements } from '../protocol/payment.ts'
import { present, text } from './fields.ts'
import { x402Amount } from './x402-assets.ts'

/** What another server wants to be paid, as `payment.required` says it. */
export interface Demand {
  readonly requirements: PaymentRequirements
  readonly extra?: Slot | undefined
}

/** The demand in a refusal: `accepts`, where servers put it, and the header of x402. Undefined: it says nothing that can be paid. */
export function demandIn(body: unknown, headers?: Pick<Headers, 'get'>): Demand | undefined {
  const { error, context, data, details, ...top } = fieldsOf(body)
  const { data: more, details: about } = fieldsOf(error)
  const places = [error, context, data, details, more, about, top].map(fieldsOf)
  const accepts = places.map((place) => recordsIn(place['accepts'])).find((found) => found.some(isPriced)) ?? []
  const signed = x402In(top, headers)
  const [first] = accepts.filter(isPriced)
  if (!first) return signed && x402Demand(signed)
  const reason = text(first['reason']) ?? text(fieldsOf(error)['message']) ?? text(error) ?? text(top['message'])
  const extras = Object.assign({}, ...accepts.map(({ extra }) => fieldsOf(extra))) as Slot
  const extra = { ...extras, ...(signed && { x402: signed }) }
  const { amount, currency, expires_at, ap2 } = first
  return {
    requirements: {
      amount: amount as string,
      currency: currency as string,
      schemes: accepts.flatMap((accept) => schemeOf(accept)),
      ...present({ reason }),
      ...(typeof expires_at === 'number' && { expires_at }),
      ...(isRecord(ap2) && { ap2 }),
    },
    ...(Object.keys(extra).length > 0 && { extra }),
  }
}

/** A demand of x402. Known contracts count as dollars; of others, the amount is in the contract's own units. */
export function x402Demand(required: Slot): Demand | undefined {
  const accepts = recordsIn(required['accepts'])
  const known = accepts.find((accept) => x402Amount(accept) !== undefined)
  const first = known ?? accepts[0]
  if (!first) return undefined
  const { maxAmountRequired, amount, asset, description } = first
  const reason = text(description) ?? text(fieldsOf(required['resource'])['description'])
  return {
    requirements: {
      amount: (known && x402Amount(known)) ?? text(maxAmountRequired) ?? text(amount) ?? '0',
      currency: known ? 'USD' : (text(asset) ?? 'USD'),
      schemes: accepts.flatMap((accept) => schemeOf(accept)),
      ...present({ reason }),
    },
    extra: { x402: required },
  }
}

/** A payment as one text: a token, or a proof as the base64 of its JSON. */
export function paymentText({ token, proof }: Payment): string | undefined {
  if (proof === undefined) return token
  return typeof proof === 'string' ? proof : base64(new TextEncoder().encode(JSON.stringify(proof)))
}

/** What a header may have. Clients that refuse a header for another character repeat it in their error, which ends in a log. */
const HEADER = /^[\x20-\x7e]*$/

/** A payment as the headers of a request that is sent again. */
export function paymentHeaders(payment: Payment): Record<string, string> {
  const text = paymentText(payment)
  if (text === undefined) return {}
  if (!HEADER.test(text)) throw new UampError('invalid_request', 'The payment has characters that no header can have')
  const isNew = payment.proof !== undefined && fieldsOf(payment.proof)['x402Version'] !== 1
  return { [isNew ? 'payment-signature' : 'x-payment']: text }
}

function schemeOf(accept: Slot): NonNullable<PaymentRequirements['schemes']> {
  const { scheme, network, payTo, address = payTo, maxAmountRequired, max_amount = maxAmountRequired, min_amount } = accept
  const about = present({ network: text(network), address: text(address), min_amount: text(min_amount), max_amount: text(max_amount) })
  return [{ scheme: text(scheme) ?? 'exact', ...about }]
}

function isPriced({ amount, currency }: Slot): boolean {
  return parseAmount(amount) !== undefined && typeof currency === 'string'
}

/** Version 2 stands in a header, version 1 in the body. */
function x402In(body: Slot, headers: Pick<Headers, 'get'> | undefined): Slot | undefined {
  const header = headers?.get('payment-required')
  const bytes = header == null ? undefined : bytesIn(header)
  const told = bytes && jsonIn(new TextDecoder().decode(bytes))
  if (isRecord(told) && recordsIn(told['accepts']).length > 0) return told
  return body['x402Version'] !== undefined && recordsIn(body['accepts']).length > 0 ? body : undefined
}
