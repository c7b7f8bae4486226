/** What APIs of models and agents say beside their answers. Most do it as OpenAI's do. */
import { UampError, type ErrorCode } from '../protocol/errors.ts'
import { isRecord, jsonIn, parseJson } from '../protocol/json.ts'

/** Bytes of an answer in one piece. One that is longer is given up. */
const WHOLE_BYTES = 64 * 1024 * 1024
const SHOWN = 300

/** Where in the body of a refusal it says why. Imitations put the error, or only its text, in other places. */
export function explainError(body: unknown): string | undefined {
  const first: unknown = Array.isArray(body) ? body[0] : body
  if (!isRecord(first)) return undefined
  const error = first['error'] ?? first
  if (typeof error === 'string') return error.slice(0, SHOWN)
  if (!isRecord(error)) return undefined
  const words = error['message'] ?? error['detail']
  return typeof words === 'string' && words !== '' ? words.slice(0, SHOWN) : undefined
}

/** An error inside an answer that began well: in the stream, or in a body under 200. */
export function failureOf(name: string, error: unknown): UampError {
  const { type, code, status } = isRecord(error) ? error : {}
  const marks = [type, code, status].flatMap((mark) => (typeof mark === 'string' || typeof mark === 'number' ? [String(mark)] : []))
  const [kind, secret] = kindOf(marks)
  const words = secret ? undefined : explainError({ error })
  return new UampError(kind, `${name} failed${words === undefined ? '' : `: ${words}`}`, {
    cause: new Error(JSON.stringify(error)?.slice(0, SHOWN)),
    ...(typeof code === 'string' && !secret && { details: { code } }),
  })
}

/** Which of our errors it is. Whose key was refused is the operator's affair, so those words are not repeated. */
function kindOf(marks: readonly string[]): readonly [kind: ErrorCode, secret?: boolean] {
  const says = (pattern: RegExp): boolean => marks.some((mark) => pattern.test(mark))
  if (says(/^40[13]$|api_key|authentication|permission/)) return ['provider_error', true]
  if (says(/^429$|rate_limit/)) return ['rate_limited']
  if (says(/^(503|529)$|overloaded|insufficient_system_resource/)) return ['overloaded']
  if (says(/^(408|504)$|timeout/)) return ['timeout']
  if (says(/^(400|422)$|^invalid_(request|prompt|image|base64)|context_length/)) return ['invalid_request']
  return ['provider_error']
}

/** The JSON of a body. One of more than `limit` bytes is given up. */
export async function readJson(name: string, body: AsyncIterable<Uint8Array>, limit: number = WHOLE_BYTES): Promise<unknown> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    if ((size += chunk.length) > limit) throw new UampError('provider_error', `${name} sent more than ${limit} bytes`)
    chunks.push(chunk)
  }
  try {
    return parseJson(decoded(chunks))
  } catch (cause) {
    throw new UampError('provider_error', `${name} answered with something that is not JSON: is the address right?`, { cause })
  }
}

/** A decoder that keeps a character that was cut in two costs several times as much as one that need not. */
function decoded(chunks: readonly Uint8Array[]): string {
  const decoder = new TextDecoder()
  return chunks.length === 1 ? decoder.decode(chunks[0]) : chunks.map((chunk) => decoder.decode(chunk, { stream: true })).join('')
}

/** An answer in one piece: asked for, or what some servers send where a stream was asked for, and many when they fail. */
export async function wholeAnswer(name: string, body: AsyncIterable<Uint8Array>): Promise<Record<string, unknown>> {
  const value = await readJson(name, body)
  if (!isRecord(value)) throw new UampError('provider_error', `${name} answered with something that is no API: is the address right?`)
  if (value['error'] != null) throw failureOf(name, value['error'])
  return value
}

/** Whether the answer is a stream. Some servers give a wrong type to the one that was asked for; one that is no stream ends without its end. */
export function isStream(headers: Pick<Headers, 'get'>, whole = false): boolean {
  const type = headers.get('content-type') ?? ''
  return whole ? type.includes('event-stream') : !/\b(json|html)\b/.test(type)
}

/** The data of an event. */
export function eventData(name: string, data: string): Record<string, unknown> {
  const value = jsonIn(data)
  if (isRecord(value)) return value
  throw new UampError('provider_error', `${name} sent an event that is not JSON`, { cause: new Error(data.slice(0, SHOWN)) })
}

/** The stream ended, but not the answer. */
export function cutOff(name: string): UampError {
  return new UampError('provider_error', `The answer of ${name} was cut off`)
}

/** So that a session's requests meet the same cache; the id itself is nobody else's business. */
export async function hashed(sessionId: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(sessionId))
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
