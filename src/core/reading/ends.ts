import type { EventOf } from '../../protocol/events.ts'
import { uampIn } from '../../protocol/extensions.ts'

/** The events that end a response. */
export const RESPONSE_ENDS: ReadonlySet<string> = new Set(['response.done', 'response.error', 'response.cancelled'])

export type EndEvent = EventOf<'response.done' | 'response.error' | 'response.cancelled'>

export function isEnd(event: { readonly type: string }): event is EndEvent {
  return RESPONSE_ENDS.has(event.type)
}

/** Stop reason; absent when the answer is complete. */
export function stopReason({ response }: Pick<EventOf<'response.done'>, 'response'>): string | undefined {
  const reason = uampIn(response.extensions)['stop_reason']
  return typeof reason === 'string' ? reason : undefined
}

/** True if a response ended with questions, which the next request answers. */
export function isWaiting({ response }: Pick<EventOf<'response.done'>, 'response'>): boolean {
  return Array.isArray(uampIn(response.extensions)['waiting'])
}

export type Question = EventOf<'tool.call' | 'x.approval.request' | 'payment.required'>

export function isQuestion<E extends { readonly type: string }>(event: E): event is Extract<E, Pick<Question, 'type'>> {
  return event.type === 'tool.call' || event.type === 'x.approval.request' || event.type === 'payment.required'
}
