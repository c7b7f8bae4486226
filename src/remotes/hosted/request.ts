import { nextHops } from '../../core/basics/hops.ts'
import type { Turn } from '../../core/ports/agent.ts'
import { uampIn } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import { plainText, slotsOf } from '../../protocol/message.ts'

/**
 * What asks a hosted agent for one turn: `input.text` with the whole conversation (UAMP events §10.2). What this event has no field for
 * goes beside it, for ends that know it.
 */
export function requestOf(turn: Turn, { id, agent }: { readonly id: string; readonly agent: string }): object {
  const { messages, said = [], config, client, asked, chat, principal } = turn
  const all = [...messages, ...said]
  const last = all.at(-1)
  const { context = {}, extensions, metadata } = last ? slotsOf(last) : {}
  const { issuer, subject, labels } = principal
  const connect = {
    agent,
    config,
    hops: nextHops(turn.trace),
    // More than an event may have.
    ...(all.length > limits.messages && { before: all.slice(0, -limits.messages) }),
    ...(client && { client }),
    ...(asked && { asked }),
    ...(chat !== undefined && { chat }),
    caller: { tenant: principal.tenant, id: principal.id, ...(issuer !== undefined && { issuer }), subject, labels },
  }
  return {
    type: 'input.text',
    event_id: crypto.randomUUID(),
    session_id: id,
    agent,
    // §5.6: `text` is the newest text, which `messages` has, too.
    text: last?.role === 'user' ? plainText(last) : '',
    messages: all.slice(-limits.messages),
    context,
    ...(metadata && { metadata }),
    extensions: { ...extensions, uamp: { ...uampIn(extensions), connect } },
  }
}
