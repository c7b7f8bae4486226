import type { Context, MiddlewareHandler, Next } from 'hono'
import { UampError } from '../protocol/errors.ts'
import type { Limits } from './limits.ts'
import { corsHeaders, preflightHeaders } from './origin.ts'
import { pathOf } from './path.ts'
import type { Refusal } from './routes.ts'

export interface GuardOptions {
  readonly limits: Limits
  readonly allowsOrigin: (origin: string) => boolean
  /** How the protocol at this path says no. */
  readonly refusalAt: (path: string) => Refusal
}

/** What every request passes before it is routed, also to routes that a user added: origin and size. */
export function guard({ limits, allowsOrigin, refusalAt }: GuardOptions): MiddlewareHandler {
  const refusal = (c: Context, error: UampError, status?: number) =>
    refusalAt(pathOf(c.req.url))(error, status === undefined ? {} : { status })

  return (c, next) => {
    const { headers } = c.req.raw
    const origin = headers.get('origin')
    if (origin === null) return sized(c, next)
    if (!allowsOrigin(origin)) {
      return Promise.resolve(refusal(c, new UampError('forbidden', 'Pages of this origin may not call this server')))
    }
    if (c.req.method === 'OPTIONS' && headers.has('access-control-request-method')) {
      return Promise.resolve(new Response(null, { status: 204, headers: preflightHeaders(origin) }))
    }
    return sized(c, next).then(() => {
      for (const [name, value] of Object.entries(corsHeaders(origin))) c.header(name, value)
    })
  }

  function sized(c: Context, next: Next): Promise<void> {
    const { method, url, headers } = c.req.raw
    if (url.length > limits.urlBytes) return refuse(c, refusal(c, new UampError('too_large', 'The URL is too long'), 414))
    if (method === 'GET' || method === 'HEAD') return next()
    const length = headers.get('content-length')
    if (Number(length) > limits.bodyBytes) return refuse(c, refusal(c, tooLarge(limits)))
    if (length === null) c.req.raw = counted(c.req.raw, limits)
    return next()
  }
}

function refuse(c: Context, response: Response): Promise<void> {
  c.res = response
  return Promise.resolve()
}

/** A body that did not say how long it is fails once it is too long. */
function counted(request: Request, limits: Limits): Request {
  if (request.body === null) return request
  let bytes = 0
  const counter = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.byteLength
      if (bytes > limits.bodyBytes) controller.error(tooLarge(limits))
      else controller.enqueue(chunk)
    },
  })
  // `duplex` is required with a stream, and missing in the DOM's types.
  const init: RequestInit & { duplex: 'half' } = { body: request.body.pipeThrough(counter), duplex: 'half' }
  return new Request(request, init)
}

function tooLarge({ bodyBytes }: Limits): UampError {
  return new UampError('too_large', `A body may have ${bodyBytes} bytes`, { details: { limit: bodyBytes } })
}
