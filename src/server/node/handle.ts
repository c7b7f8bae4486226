import type { IncomingMessage, ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { UampError } from '../../protocol/errors.ts'
import { requestIdFrom } from '../trace.ts'
import { refuseRequest, tellId, withoutSniffing } from './answers.ts'
import type { NodeApp } from './app.ts'

/** What frameworks add to a request. */
interface Framed extends IncomingMessage {
  /** The whole URL, where `url` lacks the path that a router was mounted under. */
  readonly originalUrl?: unknown
  /** What a body parser made of the body. */
  readonly body?: unknown
  /** The bytes of the body. `@hono/node-server` and `bodyText` read these in place of the stream. */
  rawBody?: unknown
}

/** Answers requests of a `node:http` server that somebody else made, also from inside of Express, Fastify and the like. */
export function requestHandler(app: NodeApp): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const listener = getRequestListener(app.fetch)
  return async (request, response) => {
    if (!app.pipelines.admit(request, response)) return
    withoutSniffing(response)
    const framed: Framed = request
    if (app.prefix !== '' && typeof framed.originalUrl === 'string') request.url = framed.originalUrl
    if (isRead(framed) && !restore(framed)) {
      const message =
        'Something on this server read the body of this request first: mount the agents before it, such as before a body parser'
      const id = requestIdFrom(request.headers['x-request-id'] as string | undefined)
      tellId(response, id)
      app.log('error', message, { url: request.url, request_id: id })
      await refuseRequest(response, app.refusalAt(request.url ?? '/')(new UampError('internal', message)))
      return
    }
    await listener(request, response)
  }
}

/** An empty body counts as unread: there is nothing in it to miss. */
function isRead({ readableDidRead, rawBody }: Framed): boolean {
  return readableDidRead && !Buffer.isBuffer(rawBody)
}

/** Makes the body again from what a parser left of it; false if it cannot. */
function restore(request: Framed): boolean {
  const { body, headers } = request
  if (typeof body === 'string') request.rawBody = Buffer.from(body)
  else if (body instanceof Uint8Array) request.rawBody = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  else if (body !== undefined && /[/+]json\b/i.test(headers['content-type'] ?? '')) request.rawBody = Buffer.from(JSON.stringify(body))
  else return false
  return true
}
