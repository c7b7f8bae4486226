import { UampError } from '../../protocol/errors.ts'
import type { Answer } from './questions.ts'

/** Why a session does not take an event now. */

export function sessionEnded(): UampError {
  return new UampError('not_found', 'This session has ended')
}

export function responseInProgress(response_id: string): UampError {
  return new UampError('response_in_progress', 'A response is in progress: wait for its end, or cancel it', { details: { response_id } })
}

export function notInProgress(id: string | undefined): UampError {
  return new UampError('not_found', id === undefined ? 'No response is in progress' : `Response "${id}" is not in progress`)
}

/** No question waits for this answer, or another reader has answered it. */
export function notAwaited(event: Answer): UampError {
  if (event.type === 'payment.submit') return new UampError('not_found', 'Nothing waits for a payment')
  const id = event.type === 'tool.result' ? event.call_id : event.approval_id
  return new UampError('not_found', `Nothing waits for an answer to "${id}"`, { details: { id } })
}
