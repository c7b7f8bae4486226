import type { ContentItem } from '../../protocol/content.ts'
import type { Draft, EventOf } from '../../protocol/events.ts'
import type { EndDraft } from '../ports/keeper.ts'
import type { Question } from './questions.ts'
import type { SessionHost } from './session-parts.ts'
import type { SessionSecrets } from '../secrets/session-secrets.ts'
import type { Usage } from '../../protocol/usage.ts'

/** How a response ends. `waiting`: the questions that it ends with, which the next request answers. */
export type End =
  | {
      readonly kind: 'done'
      readonly output: readonly ContentItem[]
      readonly waiting?: readonly Question[]
      /** The agent's own `extensions` of the end, such as its stop reason. */
      readonly extensions?: Readonly<Record<string, unknown>>
      readonly signature?: string
    }
  | { readonly kind: 'cancelled'; readonly output: readonly ContentItem[] }
  | {
      readonly kind: 'failed'
      readonly output: readonly ContentItem[]
      readonly error: EventOf<'response.error'>['error']
      readonly cause?: unknown
    }

/** The event that begins a response. `request`: the event that asked for it, which tells the clients of a shared session whose it is. */
export function responseCreated(request: string | undefined): Draft {
  return { type: 'response.created', ...(request !== undefined && { extensions: { uamp: { request } } }) }
}

/** The event that ends a response. */
export function terminalEvent(responseId: string, end: End, usage: Usage | undefined): EndDraft {
  switch (end.kind) {
    case 'done':
      return {
        type: 'response.done',
        response: {
          id: responseId,
          status: 'completed',
          output: [...end.output],
          ...(usage && { usage }),
          ...(end.waiting && { extensions: { uamp: { waiting: end.waiting.map(({ id }) => id) } } }),
          ...(end.extensions && { extensions: end.extensions }),
        },
        ...(end.signature !== undefined && { signature: end.signature }),
      }
    case 'cancelled':
      return { type: 'response.cancelled', partial_output: [...end.output] }
    case 'failed':
      return { type: 'response.error', error: end.error }
  }
}

interface Ended {
  readonly host: Pick<SessionHost, 'log' | 'meter'>
  readonly secrets: Pick<SessionSecrets, 'value' | 'error'>
  readonly turn: { readonly firstDeltaMs: number | undefined }
  readonly end: End
  readonly events: number
}

/** The end without secrets. Also counts the response, and logs a failure. */
export function reported(session: Reporting, { host, secrets, turn, end, events }: Ended): End {
  const { transport, agent, id } = session
  host.meter?.countEvents(transport, events)
  if (turn.firstDeltaMs !== undefined) host.meter?.observeFirstDelta(transport, turn.firstDeltaMs)
  if (end.kind !== 'failed') return end
  if (end.cause !== undefined) host.log('error', 'The agent failed', { agent, session: id, error: secrets.error(end.cause) })
  host.meter?.countError(transport, end.error.code)
  return { ...end, error: secrets.value(end.error) }
}

interface Reporting {
  readonly transport: string
  readonly agent: string
  readonly id: string
}
