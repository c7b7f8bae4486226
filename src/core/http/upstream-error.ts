import { UampError, type ErrorCode } from '../../protocol/errors.ts'
import { jsonIn } from '../../protocol/json.ts'
import type { HttpAnswer, HttpHeaders } from '../ports/http.ts'

/** Bytes of a refusal that are read: the reason stands at its beginning. */
const REFUSAL_BYTES = 64 * 1024
const SHOWN = 300

/** The vendor's words in the parsed body of a refusal. */
export type Explain = (body: unknown) => string | undefined

interface Refused {
  readonly name: string
  readonly answer: HttpAnswer
  readonly explain: Explain
}

/** A refusal as an error, and whether the same request may pass a little later. */
export async function refusedBy({
  name,
  answer,
  explain,
}: Refused): Promise<{ error: UampError; mayPass: boolean; retryAfterMs: number | undefined }> {
  const { status, headers, body } = answer
  const text = await beginning(body)
  const retryAfterMs = retryAfter(headers)
  // Who says that a second try would cost again is believed.
  const mayPass = (status === 408 || status === 409 || status === 429 || status >= 500) && headers.get('x-should-retry') !== 'false'
  const code = codeOf(status)
  // Whose key was refused is the operator's affair, and the words may hold a part of it.
  const words = status === 401 || status === 403 ? undefined : (explain(jsonIn(text)) ?? shown(text))
  const error = new UampError(code, `${name} answered ${status}${words === undefined ? '' : `: ${words}`}`, {
    cause: new Error(text.slice(0, SHOWN)),
    details: { status, ...(retryAfterMs !== undefined && { retry_after: retryAfterMs / 1000 }) },
  })
  return { error, mayPass, retryAfterMs }
}

function codeOf(status: number): ErrorCode {
  if (status === 400 || status === 422) return 'invalid_request'
  if (status === 413) return 'too_large'
  if (status === 404) return 'not_found'
  if (status === 408 || status === 504) return 'timeout'
  if (status === 429) return 'rate_limited'
  if (status === 503 || status === 529) return 'overloaded'
  return 'provider_error'
}

/** Seconds, a date, or OpenAI's milliseconds. */
export function retryAfter(headers: HttpHeaders): number | undefined {
  const ms = Number(headers.get('retry-after-ms') ?? NaN)
  if (ms >= 0) return ms
  const given = headers.get('retry-after')
  if (given === null) return undefined
  const seconds = Number(given)
  // A date is meant by the clock that wrote it, which is not ours.
  const wait = Number.isNaN(seconds) ? Date.parse(given) - (Date.parse(headers.get('date') ?? '') || Date.now()) : seconds * 1000
  return wait >= 0 ? wait : undefined
}

async function beginning(body: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let size = 0
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true })
    if ((size += chunk.length) > REFUSAL_BYTES) break
  }
  return text
}

/** An error page is nothing to show. */
function shown(text: string): string | undefined {
  const plain = text.trim()
  return plain === '' || plain.startsWith('<') ? undefined : plain.slice(0, SHOWN)
}
