import type { ServerEvent } from '../protocol/events.ts'
import { UampClientError, type ErrorBody } from './errors.ts'
import type { LinkOptions } from './reconnect.ts'

/** For answers of a proxy in front of the server. */
const BY_STATUS: Record<number, string> = {
  401: 'unauthorized',
  402: 'payment_required',
  403: 'forbidden',
  404: 'not_found',
  413: 'too_large',
  429: 'rate_limited',
  500: 'internal',
  502: 'overloaded',
  503: 'overloaded',
  504: 'overloaded',
}

interface Asked extends RequestInit {
  readonly path: string
}

interface Answered {
  readonly response: Response
  /** The token that the server took. */
  readonly token: string | undefined
}

/** Sends a request to the server, and again with a new token if the first one is refused. Rejects with its refusal, or with `unreachable`. */
export async function request(options: LinkOptions, asked: Asked): Promise<Answered> {
  const { tokens } = options
  const token = await tokens.get()
  try {
    return { token, response: await requestWith(token, options, asked) }
  } catch (thrown) {
    if ((thrown as UampClientError).code !== 'unauthorized' || !tokens.renews) throw thrown
    tokens.spent(token)
    const other = await tokens.get()
    return { token: other, response: await requestWith(other, options, asked) }
  }
}

/** Sends a request with this token, once. */
export async function requestWith(token: string | undefined, { base, fetch }: LinkOptions, { path, ...init }: Asked): Promise<Response> {
  const headers = new Headers(init.headers)
  if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
  let response: Response
  try {
    response = await fetch(base + path, { ...init, headers })
  } catch (cause) {
    throw new UampClientError({ code: 'unreachable', message: `No answer from ${base}` }, cause)
  }
  if (!response.ok) throw await refusal(response)
  return response
}

async function refusal(response: Response): Promise<UampClientError> {
  const body: unknown = await response.json().catch(() => undefined)
  const error = isRecord(body) && isRecord(body['error']) ? (body['error'] as Partial<ErrorBody>) : {}
  const seconds = response.headers.get('retry-after')
  return new UampClientError({
    code: typeof error.code === 'string' ? error.code : (BY_STATUS[response.status] ?? 'invalid_request'),
    message: typeof error.message === 'string' ? error.message : `The server answered ${response.status}`,
    details: { ...(seconds && { retry_after: Number(seconds) }), ...error.details },
  })
}

/** Parses an event. Trusts the server that it has the form of its type; undefined if the text is not an event. */
export function parseEvent(text: string): ServerEvent | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) && typeof value['type'] === 'string' ? (value as unknown as ServerEvent) : undefined
  } catch {
    return undefined
  }
}

/** A copy of the protocol's own, which would bring zod into the client. */
function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
