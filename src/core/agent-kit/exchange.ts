import { UampError } from '../../protocol/errors.ts'
import type { ServerEvent } from '../../protocol/events.ts'
import { BY_HEADER, paymentRefusal } from '../../protocol/payment-refusal.ts'
import type { Payment } from '../../protocol/payment.ts'
import type { Message } from '../../protocol/message.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import type { Principal } from '../ports/access.ts'
import type { Gateway } from '../ports/session.ts'
import type { KnownCall } from '../ports/transport.ts'
import { isEnd } from '../reading/response-fold.ts'

export type Exchange = Question & (Asker | { readonly call: Caller })

interface Question {
  /** The transport that asks: the meter counts by it. */
  readonly transport?: string
  /** The whole conversation, newest message last. */
  readonly messages: readonly Message[]
  readonly config?: SessionConfig
  /** The handler of the agent, or the agent it hands over to, that shall answer. Default: the agent decides. */
  readonly handoff?: string
}

interface Asker {
  readonly agent: string
  readonly principal: Principal
  readonly signal?: AbortSignal
  /** What the client sent to pay with. */
  readonly payment?: Payment | undefined
}

/** A request to a route: it is for the agent of its path, and stops when the client leaves. */
type Caller = Pick<KnownCall, 'agent' | 'principal' | 'signal'> & Partial<Pick<KnownCall, 'trace' | 'payment'>>

/**
 * Asks an agent once, in a session that is not stored, and yields the events of its response. Throws `payment_required` if it has to be
 * paid first: over HTTP that is a 402, and the client sends its request again with a payment.
 */
export async function* exchange(gateway: Gateway, exchanged: Exchange): AsyncGenerator<ServerEvent, void> {
  const { transport = 'custom', messages, config, handoff } = exchanged
  const { agent, principal, signal } = 'call' in exchanged ? exchanged.call : exchanged
  const payment = 'call' in exchanged ? exchanged.call.payment : exchanged.payment
  if (agent === undefined) throw new UampError('agent_offline', 'Say which agent: call it below /agents/{name}')
  const session = await gateway.open({
    transport,
    agent,
    principal,
    trace: 'call' in exchanged ? exchanged.call.trace : undefined,
    config: config ?? { modalities: ['text'] },
    history: messages,
    ...(handoff !== undefined && { handoff }),
    duplex: false,
    persist: false,
    onDetach: 'cancel',
    paysAnew: true,
    ...(payment && { payment }),
  })
  try {
    const reader = session.read({ extensions: 'all', ...(signal && { signal }) })
    await session.send({ type: 'response.create', event_id: crypto.randomUUID() })
    for await (const batch of reader) {
      for (const { event } of batch) {
        if (event.type === 'payment.required') throw paymentRefusal(event, BY_HEADER)
        yield event
        if (isEnd(event)) return
      }
    }
  } finally {
    await session.end()
  }
}
