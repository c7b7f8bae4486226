import { stopReason } from '../../core/reading/ends.ts'
import type { EventOf } from '../../protocol/events.ts'
import { fieldsOf, type Slot } from '../../protocol/json.ts'

/** ACP, Stop Reasons: what is not here is the end of a turn. */
const STOP_REASONS = new Map<unknown, string>([
  ['length', 'max_tokens'],
  ['content_filter', 'refusal'],
  ['rejected', 'refusal'],
  ['refusal', 'refusal'],
])

/** How a prompt is answered whose response has ended. */
export function ending(event: EventOf<'response.done' | 'response.cancelled'>): Slot {
  if (event.type === 'response.cancelled') return { stopReason: 'cancelled' }
  const { response_id: responseId, signature } = event
  const { usage, extensions } = event.response
  const uamp = { responseId, ...(usage && { usage }), ...(signature !== undefined && { signature }) }
  // An ACP agent elsewhere may have a reason that only ACP has.
  const own = fieldsOf(extensions?.['acp'])['stopReason'] === 'max_turn_requests' ? 'max_turn_requests' : undefined
  return { stopReason: own ?? STOP_REASONS.get(stopReason(event)) ?? 'end_turn', _meta: { uamp } }
}
