import type { HttpClient } from '../../core/ports/http.ts'
import type { Refusal } from '../../core/ports/payments.ts'
import type { Logger } from '../../core/ports/transport.ts'
import { isRecord, jsonIn, type Slot } from '../../protocol/json.ts'
import { networkName } from '../../wire/x402.ts'
import type { Proof } from './proof.ts'
import type { PaymentRecord } from './records.ts'
import type { X402Config } from './settings.ts'

/** An answer has some short fields. */
const MAX_BYTES = 64 * 1024
const PLAIN = /^[\w:.-]{1,256}$/

/** `unknown`: the money may or may not have moved. `isSilent`: the facilitator did not say anything of the payment. */
export type Settling =
  | { readonly kind: 'settled'; readonly transaction: string }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'unknown'; readonly problem: string; readonly isSilent?: true }

interface FacilitatorOptions {
  readonly http: Pick<HttpClient, 'request'>
  readonly config: X402Config
  readonly log: Logger
}

/** The service that knows the chain. It is asked over HTTP, and not believed where its answer does not fit. */
export class Facilitator {
  readonly #options: FacilitatorOptions

  constructor(options: FacilitatorOptions) {
    this.#options = options
  }

  /** Undefined: the payment can be settled. */
  async verify(asked: Slot, { from }: Proof, signal: AbortSignal): Promise<Refusal | undefined> {
    const answer = await this.#post('verify', asked, signal)
    if ('problem' in answer) {
      const { config, log } = this.#options
      if (!signal.aborted) log('warn', 'A payment could not be verified', { facilitator: config.facilitator, problem: answer.problem })
      return { refused: 'payment_failed', message: 'The payment cannot be verified now: try again later' }
    }
    const { isValid, invalidReason, payer } = answer.body
    if (isValid !== true) return refusalFor(invalidReason)
    if (payer === undefined || isSame(payer, from)) return undefined
    return { refused: 'token_invalid', message: 'The payment is of another payer' }
  }

  async settle(
    asked: Slot,
    { payer: from, atomic, network: chain }: Pick<PaymentRecord, 'payer' | 'atomic' | 'network'>,
    signal: AbortSignal,
  ): Promise<Settling> {
    const answer = await this.#post('settle', asked, signal)
    if ('problem' in answer) return { kind: 'unknown', problem: answer.problem, isSilent: true }
    const { success, errorReason, payer, transaction, network, amount } = answer.body
    const moved = typeof transaction === 'string' && transaction !== ''
    // With a transaction, it may still come to pass.
    if (success === false && !moved) return { kind: 'failed', reason: plain(errorReason) ?? 'payment_failed' }
    if (success !== true) return { kind: 'unknown', problem: 'The facilitator told neither success nor failure' }
    if (!moved || plain(transaction) === undefined)
      return { kind: 'unknown', problem: 'The facilitator told of success without a transaction' }
    if (network !== chain && network !== networkName(chain)) {
      return { kind: 'unknown', problem: 'The facilitator told of a payment on another network' }
    }
    if (payer !== undefined && !isSame(payer, from))
      return { kind: 'unknown', problem: 'The facilitator told of a payment of somebody else' }
    if (amount !== undefined && amount !== atomic && amount !== Number(atomic)) {
      return { kind: 'unknown', problem: 'The facilitator told of another amount' }
    }
    return { kind: 'settled', transaction }
  }

  async #post(path: string, asked: Slot, signal: AbortSignal): Promise<{ readonly body: Slot } | { readonly problem: string }> {
    const { http, config } = this.#options
    const { facilitator, headers, timeoutMs } = config
    try {
      const answer = await http.request({
        url: `${facilitator}/${path}`,
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json', ...headers },
        body: JSON.stringify(asked),
        once: true,
        signal,
        maxBytes: MAX_BYTES,
        timeouts: { firstByteMs: timeoutMs, idleMs: timeoutMs, totalMs: timeoutMs },
      })
      const body = jsonIn(await textOf(answer.body))
      // A refusal of a payment may come as 400 or 402; anything else says nothing about the payment.
      if (!isRecord(body) || ![200, 400, 402].includes(answer.status)) return { problem: `The facilitator answered ${answer.status}` }
      return { body }
    } catch (thrown) {
      return { problem: thrown instanceof Error ? thrown.message : 'The facilitator did not answer' }
    }
  }
}

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of body) text += decoder.decode(chunk, { stream: true })
  return text + decoder.decode()
}

/** The reasons of facilitators as the codes of UAMP events §7.2. */
function refusalFor(given: unknown): Refusal {
  const reason = plain(given) ?? 'invalid'
  const message = `The payment is not valid: ${reason}`
  if (reason.includes('insufficient')) return { refused: 'insufficient_balance', message }
  if (reason.includes('valid_before') || reason.includes('expired')) return { refused: 'token_expired', message }
  if (reason.startsWith('unexpected')) return { refused: 'payment_failed', message }
  return { refused: 'token_invalid', message }
}

/** A word of the facilitator that may be told on. */
function plain(value: unknown): string | undefined {
  return typeof value === 'string' && PLAIN.test(value) ? value : undefined
}

function isSame(payer: unknown, from: string): boolean {
  return typeof payer === 'string' && payer.toLowerCase() === from
}
