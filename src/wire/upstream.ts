/** Errors, streams and bodies of model and agent APIs. Most of these follow OpenAI's form. */
import { UampError, type ErrorCode } from '../protocol/errors.ts'
import { isRecord, jsonIn, parseJson } from '../protocol/json.ts'

/** Bytes of an answer in one piece. A longer one is given up. */
const WHOLE_BYTES = 64 * 1024 * 1024
const SHOWN = 300

/** The reason in the body of a refusal. Imitations of OpenAI put the error, or only its text, in other places. */
export function explainError(body: unknown): string | undefined {
  const first: unknown = Array.isArray(body) ? body[0] : body
  if (!isRecord(first)) return undefined
  const error = first['error'] ?? first
  if (typeof error === 'string') return error.slice(0, SHOWN)
  if (!isRecord(error)) return undefined
  const words = error['message'] ?? error['detail']
  return typeof words === 'string' && words !== '' ? words.slice(0, SHOWN) : undefined
}

/** An error inside an answer with status 200, in the stream or in the body. */
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

/** Our code for it. `secret`: the error is about the operator's key, so its words are not passed on. */
function kindOf(marks: readonly string[]): readonly [kind: ErrorCode, secret?: boolean] {
  const says = (pattern: RegExp): boolean => marks.some((mark) => pattern.test(mark))
  if (says(/^40[13]$|api_key|authentication|permission/)) return ['provider_error', true]
  if (says(/^429$|rate_limit/)) return ['rate_limited']
  if (says(/^(503|529)$|overloaded|insufficient_system_resource/)) return ['overloaded']
  if (says(/^(408|504)$|timeout/)) return ['timeout']
  if (says(/^(400|422)$|^invalid_(request|prompt|image|base64)|context_length/)) return ['invalid_request']
  return ['provider_error']
}

/** The JSON of a body. A body of more than `limit` bytes is given up. */
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

/** A streaming decoder costs several times as much, so a single chunk is decoded without one. */
function decoded(chunks: readonly Uint8Array[]): string {
  const decoder = new TextDecoder()
  return chunks.length === 1 ? decoder.decode(chunks[0]) : chunks.map((chunk) => decoder.decode(chunk, { stream: true })).join('')
}

/** An answer in one piece. Some servers send one in place of the stream that was asked for, and many do when they fail. */
export async function wholeAnswer(name: string, body: AsyncIterable<Uint8Array>): Promise<Record<string, unknown>> {
  const value = await readJson(name, body)
  if (!isRecord(value)) throw new UampError('provider_error', `${name} answered with something that is no API: is the address right?`)
  if (value['error'] != null) throw failureOf(name, value['error'])
  return value
}

/**
 * Whether the answer is a stream. `whole`: none was asked for. Some servers give their stream a wrong type, so whatever may be the
 * stream that was asked for counts as it; if it is none, it ends too early, which is an error.
 */
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

/** The stream ended before the answer did. */
export function cutOff(name: string): UampError {
  return new UampError('provider_error', `The answer of ${name} was cut off`)
}

/** The key of a session for a provider's cache. Hashed, because the id itself must not leave the server. */
export async function hashed(sessionId: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(sessionId))
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
