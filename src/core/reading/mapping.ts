import type { EventOf, ServerEvent } from '../../protocol/events.ts'

type Type = ServerEvent['type']

/** What a protocol does with an event: in words for docs/mapping.md, and in code. Without code, clients are not told of it. */
type Fate<E, T extends Type> = readonly [words: string, tell?: (encoder: E, event: EventOf<T>) => void]

/** A row for every event, so that a new event does not compile until each protocol says what it does with it. */
export type Mapping<E> = { readonly [T in Type]: Fate<E, T> }

/** Runs the code in the event's row. */
export function tellBy<E>(mapping: Mapping<E>, encoder: E, event: ServerEvent): void {
  const row = mapping[event.type] as Fate<E, Type>
  row[1]?.(encoder, event as EventOf<Type>)
}

/** One row for several events. */
export function alike<T extends Type, F>(types: readonly T[], fate: F): Record<T, F> {
  return Object.fromEntries(types.map((type) => [type, fate])) as Record<T, F>
}

/** Events about a session and its connection: only UAMP events has them. */
export const ABOUT_SESSIONS = ['session.created', 'session.updated', 'capabilities', 'rate_limit', 'pong', 'x.ack'] as const

/** Events about other members: a session of one agent and one client has none. */
export const ABOUT_OTHERS = [
  'presence.typing',
  'presence.online',
  'presence.offline',
  'message.created',
  'message.read',
  'voice.invite',
  'voice.accept',
  'voice.decline',
  'voice.end',
] as const

export const ABOUT_PAYMENTS = ['payment.accepted', 'payment.balance', 'payment.error'] as const

/** Events for front ends that show more than the answer. */
export const BESIDE_ANSWERS = [
  'x.state.snapshot',
  'x.state.delta',
  'x.messages.snapshot',
  'x.activity.snapshot',
  'x.activity.delta',
  'x.step.started',
  'x.step.finished',
  'x.subagent.started',
  'x.subagent.finished',
  'x.reasoning.encrypted',
  'x.custom',
  'x.raw',
] as const
