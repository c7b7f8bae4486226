import { stopReason, type EndEvent } from '../../core/reading/ends.ts'
import { openAiErrorBody, toldError } from '../../wire/openai/errors.ts'
import type { Ending } from './response.ts'

/** Why an agent stopped before it was through, in OpenAI's words. */
const INCOMPLETE: Readonly<Record<string, string>> = { length: 'max_output_tokens', content_filter: 'content_filter' }

export function endingOf(event: EndEvent): Ending {
  switch (event.type) {
    case 'response.done': {
      const { status, usage } = event.response
      const reason = INCOMPLETE[stopReason(event) ?? '']
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
