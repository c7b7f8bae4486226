import { UampError, type ErrorCode } from '../../protocol/errors.ts'
import { jsonIn } from '../../protocol/json.ts'
import type { HttpAnswer, HttpHeaders } from '../ports/http.ts'

/** How much of a refusal to read: the reason is at its beginning. */
const REFUSAL_BYTES = 64 * 1024
const SHOWN = 300

/** Finds the vendor's message in the parsed body of a refusal. */
export type Explain = (body: unknown) => string | undefined

interface Refused {
  readonly name: string
  readonly answer: HttpAnswer
  readonly explain: Explain
}

/** Turns a refusal into an error. `mayPass`: the same request may succeed a little later. */
export async function refusedBy({
  name,
  answer,
  explain,
}: Refused): Promise<{ error: UampError; mayPass: boolean; retryAfterMs: number | undefined }> {
  const { status, headers, body } = answer
  const text = await beginning(body)
  const retryAfterMs = retryAfter(headers)
  // `x-should-retry: false` means that a retry would cost again.
  const mayPass = (status === 408 || status === 409 || status === 429 || status >= 500) && headers.get('x-should-retry') !== 'false'
  const code = codeOf(status)
  // A refused key concerns only the operator, and the vendor's message may quote a part of it.
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

/** Reads seconds, a date, or OpenAI's milliseconds. */
export function retryAfter(headers: HttpHeaders): number | undefined {
  const ms = Number(headers.get('retry-after-ms') ?? NaN)
  if (ms >= 0) return ms
  const given = headers.get('retry-after')
  if (given === null) return undefined
  const seconds = Number(given)
  // A date counts by the clock of the server that wrote it.
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

/** The text to show; an HTML error page is none. */
function shown(text: string): string | undefined {
  const plain = text.trim()
  return plain === '' || plain.startsWith('<') ? undefined : plain.slice(0, SHOWN)
}
