import type { GuardedHttp } from '../../../core/ports/http.ts'
import { retryAfter } from '../../../core/http/upstream-error.ts'
import { UampError } from '../../../protocol/errors.ts'
import type { PushConfig } from '../model.ts'

export interface Sending {
  readonly outbound: GuardedHttp
  readonly config: PushConfig
  readonly body: string
  readonly contentType: string
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/** `why` is for the log: it never has the URL's path, the token or the credentials in it. */
export type Sent =
  | { readonly delivered: true }
  | { readonly delivered: false; readonly why: string; readonly mayPass: boolean; readonly retryAfterMs?: number | undefined }

/** Bytes of an answer that are read, so that the connection can be used again. */
const ANSWER_BYTES = 64 * 1024

/** One request. A redirect counts as a refusal: nobody has checked where it leads, and the credentials are not meant for that place. */
export async function send({ outbound, config, body, contentType, timeoutMs, signal }: Sending): Promise<Sent> {
  const { url, token, authentication } = config
  const headers = {
    'content-type': contentType,
    ...(authentication?.credentials !== undefined && { authorization: `${authentication.scheme} ${authentication.credentials}` }),
    ...(token !== undefined && { 'x-a2a-notification-token': token }),
  }
  const timeouts = { firstByteMs: timeoutMs, idleMs: timeoutMs, totalMs: timeoutMs }
  try {
    const answer = await outbound.request({ url, method: 'POST', headers, body, signal, maxBytes: ANSWER_BYTES, timeouts })
    await drain(answer.body)
    const { status } = answer
    if (status >= 200 && status < 300) return { delivered: true }
    const mayPass = status === 408 || status === 425 || status === 429 || status >= 500
    return { delivered: false, why: `it answered ${status}`, mayPass, retryAfterMs: retryAfter(answer.headers) }
  } catch (thrown) {
    if (thrown instanceof UampError && thrown.code === 'forbidden') return { delivered: false, why: thrown.message, mayPass: false }
    const { code, name } = thrown as { code?: unknown; name?: unknown }
    const why =
      name === 'TimeoutError'
        ? `it did not answer within ${timeoutMs} ms`
        : `it cannot be reached${typeof code === 'string' ? ` (${code})` : ''}`
    return { delivered: false, why, mayPass: true }
  }
}

/** Reads a body to its end. Its content and its errors do not matter, as the status has said it all. */
async function drain(body: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    for await (const _ of body);
  } catch {}
}
