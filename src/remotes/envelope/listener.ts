import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import { done } from '../../core/agent-kit/done.ts'
import { text } from '../../core/agent-kit/drafts.ts'
import type { Turn } from '../../core/ports/agent.ts'
import { fieldsOf, isRecord, type Slot } from '../../protocol/json.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import { ClientAnswers, offeredBy } from '../../upstream/client-answers.ts'
import type { Payer } from '../../upstream/payer.ts'
import { demandIn } from '../../wire/demand.ts'
import type { Asked, Exchange } from './exchange.ts'

/** How long the other side is told that nobody waits for its answer any more. */
const GOODBYE_MS = 5_000

interface ListenerOptions {
  readonly name: string
  readonly exchange: Exchange
  readonly payer: Payer
}

/** Hears the frames of one answer: what is said, what is asked, and what they hash to. */
export class Listener {
  readonly #turn: Turn
  readonly #options: ListenerOptions
  readonly #client: ClientAnswers
  readonly #hash = sha256.create()
  /** All that was said. */
  text = ''
  /** What the other side says of the end. Undefined: it has not come. */
  ending: Draft | undefined

  constructor(turn: Turn, options: ListenerOptions) {
    this.#turn = turn
    this.#options = options
    this.#client = new ClientAnswers(turn, { offered: offeredBy(turn), payer: options.payer })
  }

  /** The hash of all frames but the last, in hexadecimal digits. */
  get hash(): string {
    return bytesToHex(this.#hash.clone().digest())
  }

  async *listen(asked: Asked): AsyncGenerator<Draft, void> {
    const { exchange, name } = this.#options
    const { signal } = this.#turn
    let isOver = false
    try {
      for await (const frames of exchange.frames(asked, signal)) {
        for (const { frame, text: written } of frames) {
          const { type, payload = {} } = frame
          isOver = type === 'done' || type === 'cancel' || type === 'error'
          if (!isOver) this.#hash.update(utf8ToBytes(`${written}\n`))
          if (type === 'error') throw failure(name, payload)
          if (type === 'cancel') throw new UampError('cancelled', `"${name}" has cancelled its answer`)
          if (type === 'done') this.#end(payload)
          else if (type === 'chunk' && typeof payload['text'] === 'string') yield this.#said(payload['text'])
          else if (isRecord(payload['proposal'])) await this.#answer(payload['proposal'])
          else if (typeof payload['thinking'] === 'string') yield { type: 'thinking', content: payload['thinking'], is_delta: true }
        }
      }
    } finally {
      if (!isOver) this.#leave(asked)
    }
  }

  #said(said: string): Draft {
    this.text += said
    return text(said)
  }

  /** The end is told by whoever has verified the message that closes the exchange: nothing runs after it. */
  #end({ stream_sha256: hash, usage, uamp }: Slot): void {
    if (hash !== this.hash) throw new UampError('provider_error', `The answer of "${this.#options.name}" is not what its end says`)
    this.ending = done({ ...(isRecord(usage) && { usage }), extensions: { uamp: fieldsOf(uamp) } })
  }

  /** Puts a proposal to our client, and sends what it says. */
  async #answer(proposal: Slot): Promise<void> {
    const { id, kind } = proposal
    if (typeof id !== 'string') return
    if (kind === 'tool') {
      const { result, is_error } = await this.#client.result({
        id,
        name: String(proposal['name']),
        arguments: String(proposal['arguments']),
      })
      return this.#reply(id, !is_error, { content: result, type: 'application/json' })
    }
    if (kind === 'payment') {
      const demand = demandIn(proposal)
      if (!demand) return this.#reply(id, false, { content: 'The demand cannot be read' })
      const payment = await this.#options.payer.pay(demand)
      return this.#reply(id, payment.scheme !== 'declined', { content: JSON.stringify(payment), type: 'application/json' })
    }
    const message = typeof proposal['message'] === 'string' ? proposal['message'] : 'May I go on?'
    const decision = await this.#client.decision({ message, approval_id: id }).catch((thrown: unknown) => {
      this.#turn.signal.throwIfAborted()
      return { approved: false, reason: UampError.from(thrown).code }
    })
    await this.#reply(id, decision.approved, { content: decision.reason ?? '' })
  }

  async #reply(replyTo: string, confirmed: boolean, body: { readonly content: string; readonly type?: string }): Promise<void> {
    await this.#options.exchange.send({ intent: confirmed ? 'confirm' : 'deny', replyTo, ...body, signal: this.#turn.signal })
  }

  /** Nobody waits for the rest of the answer. */
  #leave({ id }: Asked): void {
    const { exchange } = this.#options
    exchange.send({ intent: 'cancel', replyTo: id, content: '', signal: AbortSignal.timeout(GOODBYE_MS) }).catch(() => undefined)
  }
}

function failure(name: string, { code, detail }: Slot): UampError {
  const words = typeof detail === 'string' ? detail.slice(0, 300) : 'no reason given'
  return new UampError('provider_error', `"${name}" failed: ${words}`, { ...(typeof code === 'string' && { details: { code } }) })
}
