import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import type { ClientEvent, EventOf } from '../../protocol/events.ts'
import { isRecord, jsonIn } from '../../protocol/json.ts'
import { DECLINED, type Payment } from '../../protocol/payment.ts'
import { envelopeError } from '../../envelope/codes.ts'
import { messageKey } from '../../envelope/schema.ts'

/** Proposals that wait for an answer. Beyond it the oldest are forgotten: nobody can answer them any more. */
const MOST = 10_000

/** A question of an agent's, as it was told on a stream. Without its content, which may be large. */
export interface Proposal {
  readonly id: string
  readonly response: string
  readonly question: AskedQuestion
}

/** What an answer has to name. */
type AskedQuestion =
  | Pick<EventOf<'tool.call'>, 'type' | 'call_id'>
  | Pick<EventOf<'x.approval.request'>, 'type' | 'approval_id'>
  | Pick<EventOf<'payment.required'>, 'type'>

/** An answer to it, by `confirm` or `deny`. */
export interface Answer {
  readonly confirmed: boolean
  readonly text: string
  readonly eventId: string
}

/** The id of the nth question of a response: the same whenever the stream is read again. */
export function proposalId(response: string, number: number): string {
  const hex = bytesToHex(sha256(utf8ToBytes(`${response} ${number}`)))
  const variant = '89ab'[Number.parseInt(hex[16] ?? '0', 16) % 4]
  return `urn:uuid:${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** The proposals that were told. They end with their process, as the responses that wait for them do. */
export class Proposals {
  /** By owner and id. */
  readonly #open = new Map<string, Proposal>()

  add(owner: string, proposal: Proposal): void {
    this.#open.set(`${owner} ${messageKey(proposal.id)}`, proposal)
    if (this.#open.size <= MOST) return
    const [oldest] = this.#open.keys()
    if (oldest !== undefined) this.#open.delete(oldest)
  }

  find(owner: string, id: string): Proposal | undefined {
    return this.#open.get(`${owner} ${messageKey(id)}`)
  }
}

/** The answer as the event that the agent waits for. */
export function answerTo({ question }: Proposal, { confirmed, text, eventId: event_id }: Answer): ClientEvent {
  switch (question.type) {
    case 'tool.call': {
      const result = jsonIn(text) === undefined ? JSON.stringify(text) : text
      return { type: 'tool.result', event_id, call_id: question.call_id, result, ...(!confirmed && { is_error: true }) }
    }
    case 'x.approval.request': {
      const { approval_id } = question
      return { type: 'x.approval.response', event_id, approval_id, approved: confirmed, ...(text !== '' && { reason: text }) }
    }
    case 'payment.required':
      return { type: 'payment.submit', event_id, payment: confirmed ? paymentIn(text) : DECLINED }
  }
}

function paymentIn(text: string): Payment {
  const given = jsonIn(text)
  const payment = isRecord(given) && isRecord(given['payment']) ? given['payment'] : given
  if (isRecord(payment) && typeof payment['scheme'] === 'string') return payment as Payment
  throw envelopeError('4.00', 'The body of a confirmed payment must be JSON such as {"scheme":"token","token":"…"}', 'payment')
}
