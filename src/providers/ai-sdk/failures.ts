import { refusedBy } from '../../core/http/upstream-error.ts'
import { UampError } from '../../protocol/errors.ts'
import { fieldsOf, isRecord, jsonIn } from '../../protocol/json.ts'
import { explainError, failureOf } from '../../wire/upstream.ts'

export interface Failed {
  readonly error: UampError
  /** The same request may succeed a little later. */
  readonly mayPass: boolean
  readonly retryAfterMs?: number | undefined
}

/** The model takes no file, picture or format of this kind. */
export function isUnsupported(thrown: unknown): boolean {
  return nameOf(thrown) === 'AI_UnsupportedFunctionalityError'
}

/** What the SDK threw, as an error of ours. The SDK's errors are known by their names: there may be two copies of it. */
export async function failedCall(name: string, thrown: unknown): Promise<Failed> {
  const { statusCode, responseHeaders, responseBody } = fieldsOf(thrown)
  if (typeof statusCode === 'number' && (statusCode < 200 || statusCode > 299)) {
    const headers = new Headers(isRecord(responseHeaders) ? (responseHeaders as Record<string, string>) : {})
    const body = bytesOf(typeof responseBody === 'string' ? responseBody : '')
    // Google answers a wrong key with 400, as if the client had made a mistake.
    const isKey = /API_KEY_INVALID|API key not valid/.test(String(responseBody))
    return refusedBy({ name, answer: { status: isKey ? 401 : statusCode, headers, body }, explain: explainError })
  }
  return { error: failedAnswer(name, thrown), mayPass: nameOf(thrown) === 'AI_APICallError' && statusCode === undefined }
}

/** The same for a failure without a status, such as one in the middle of an answer. */
export function failedAnswer(name: string, thrown: unknown): UampError {
  if (thrown instanceof UampError) return thrown
  const { statusCode, responseBody, message } = fieldsOf(thrown)
  switch (nameOf(thrown)) {
    case 'AI_UnsupportedFunctionalityError':
    case 'AI_InvalidPromptError':
    case 'AI_InvalidArgumentError':
      return new UampError('invalid_request', `${name} does not take this: ${String(message).slice(0, 300)}`, { cause: thrown })
    case 'AI_LoadAPIKeyError':
    case 'AI_LoadSettingError':
      // It names the operator's variables, which are no business of clients.
      return new UampError('provider_error', `${name} is not set up`, { cause: thrown })
    case 'AI_APICallError': {
      const { error } = fieldsOf(typeof responseBody === 'string' ? jsonIn(responseBody) : undefined)
      if (error != null) return failureOf(name, error)
      const words = statusCode === undefined ? 'cannot be reached' : 'answered with something that is no API: is the address right?'
      return new UampError('provider_error', `${name} ${words}`, { cause: thrown })
    }
    default:
      if (thrown instanceof Error) return new UampError('provider_error', `The answer of ${name} was cut off`, { cause: thrown })
      return failureOf(name, inner(thrown))
  }
}

/** A vendor's event may hold the error itself. */
function inner(error: unknown): unknown {
  const { error: inside } = fieldsOf(error)
  return inside ?? error
}

function nameOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.name : ''
}

async function* bytesOf(text: string): AsyncGenerator<Uint8Array, void> {
  yield new TextEncoder().encode(text)
}
