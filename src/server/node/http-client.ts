import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { HttpAnswer, HttpClient, HttpRequest } from '../../core/ports/http.ts'

/** How long an idle connection is kept for the next request. */
const IDLE_MS = 30_000
/** Idle connections to one host. Those in use are not bounded here: whoever calls bounds his turns. */
const IDLE_SOCKETS = 256

/** Outbound HTTP with connections that are kept. A call costs a third of what `fetch` costs, and so does each chunk. */
export function nodeHttp(): HttpClient & { close(): void } {
  const options = { keepAlive: true, maxFreeSockets: IDLE_SOCKETS, timeout: IDLE_MS, scheduling: 'lifo' as const }
  const agents = { 'http:': new HttpAgent(options), 'https:': new HttpsAgent(options) }
  return {
    request: (request) => send(request, agents),
    close() {
      agents['http:'].destroy()
      agents['https:'].destroy()
    },
  }
}

type Agents = { readonly 'http:': HttpAgent; readonly 'https:': HttpsAgent }

function send(given: HttpRequest, agents: Agents): Promise<HttpAnswer> {
  const { url, method, headers, body, signal } = given
  const target = new URL(url)
  const secure = target.protocol === 'https:'
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error)
    const request = (secure ? httpsRequest : httpRequest)(target, {
      method,
      headers: { ...headers, ...length },
      agent: secure ? agents['https:'] : agents['http:'],
    })
    const abort = (): void => void request.destroy(signal.reason as Error)
    signal.addEventListener('abort', abort, { once: true })
    request.once('close', () => signal.removeEventListener('abort', abort))
    request.once('error', (error: NodeJS.ErrnoException) => {
      // The other side let go of an idle connection at this very moment: nobody has seen the request.
      if (request.reusedSocket && error.code === 'ECONNRESET' && !signal.aborted) resolve(send(given, agents))
      else reject(error)
    })
    request.once('response', (response) => resolve(answer(response, signal)))
    request.end(body)
  })
}

function answer(response: IncomingMessage, signal: AbortSignal): HttpAnswer {
  const headers = new Headers()
  for (let at = 0; at + 1 < response.rawHeaders.length; at += 2)
    headers.append(response.rawHeaders[at] ?? '', response.rawHeaders[at + 1] ?? '')
  return { status: response.statusCode ?? 0, headers, body: chunks(response, signal) }
}

/** Leaving the loop destroys the response and so closes the connection, unless everything was read. */
async function* chunks(response: IncomingMessage, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
  try {
    for await (const chunk of response) yield chunk as Buffer
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  }
}
