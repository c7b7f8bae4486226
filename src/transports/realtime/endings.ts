import type { EventOf } from '../../protocol/events.ts'
import { uampIn } from '../../protocol/extensions.ts'
import { openAiErrorBody, toldError } from '../../wire/openai/errors.ts'
import type { Ending } from './response.ts'

/** Why an agent stopped before it was through, in OpenAI's words. */
const INCOMPLETE: Readonly<Record<string, string>> = { length: 'max_output_tokens', content_filter: 'content_filter' }

export function endingOf(event: EventOf<'response.done' | 'response.cancelled' | 'response.error'>): Ending {
  switch (event.type) {
    case 'response.done': {
      const { status, usage, extensions } = event.response
      const { stop_reason } = uampIn(extensions)
      const reason = typeof stop_reason === 'string' ? INCOMPLETE[stop_reason] : undefined
      const { signature } = event
      if (reason !== undefined) return { status: 'incomplete', details: { reason }, usage, signature }
      return { status, usage, signature }
    }
    case 'response.cancelled':
      return { status: 'cancelled', details: { reason: 'client_cancelled' } }
    case 'response.error': {
      const { type, code, message } = openAiErrorBody(toldError(event.error))
      return { status: 'failed', details: { error: { type, code, message } } }
    }
  }
}
