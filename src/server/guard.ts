import { UampError } from '../protocol/errors.ts'
import { COUNTED_BYTES, tooLarge, type Bodies } from './bodies.ts'
import type { HostPolicy } from './host-names.ts'
import type { Limits } from './limits.ts'
import { corsHeaders, preflightHeaders } from './origin.ts'
import { pathOf } from './path.ts'
import type { Refusal } from './routes.ts'

export interface GuardOptions {
  readonly limits: Limits
  readonly checkHost: HostPolicy
  /** Whether the page that sent it may, if a page did. */
  readonly allowsPage: (headers: Headers) => boolean
  /** Bytes of a body there, where a route names a number of its own. */
  readonly bodyBytesAt: (method: string, path: string) => number | undefined
  readonly bodies: Bodies
  /** How the protocol at this path says no. */
  readonly refusalAt: (path: string) => Refusal
}

type Next = (request: Request) => Response | Promise<Response>

/** What every request passes before it is routed, also to routes that a user added: host, page and size. */
export type Guard = (request: Request, next: Next) => Response | Promise<Response>

export function guard({ limits, checkHost, allowsPage, bodyBytesAt, bodies, refusalAt }: GuardOptions): Guard {
  const refuse = ({ url }: Request, error: UampError, status?: number): Response =>
    refusalAt(pathOf(url))(error, status === undefined ? {} : { status })

  return (request, next) => {
    const { headers, method, url } = request
    const misdirected = checkHost(url, headers.get('host'))
    if (misdirected) return refuse(request, misdirected.error, misdirected.status)
    if (!allowsPage(headers)) return refuse(request, foreignPage())
    const origin = headers.get('origin')
    if (origin === null) return sized(request, next)
    if (method === 'OPTIONS' && headers.has('access-control-request-method')) {
      return new Response(null, { status: 204, headers: preflightHeaders(origin, headers.get('access-control-request-headers')) })
    }
    return shared(sized(request, next), origin)
  }

  function sized(request: Request, next: Next): Response | Promise<Response> {
    const { method, url, headers } = request
    if (url.length > limits.urlBytes) return refuse(request, new UampError('too_large', 'The URL is too long'), 414)
    if (method === 'GET' || method === 'HEAD') return next(request)
    const length = headers.get('content-length')
    if (length !== null && Number(length) <= Math.min(COUNTED_BYTES, limits.bodyBytes)) return next(request)
    const most = bodyBytesAt(method, pathOf(url)) ?? limits.bodyBytes
    if (Number(length) > most) return refuse(request, tooLarge(most))
    return next(bodies.counted(request, most))
  }
}

async function shared(answer: Response | Promise<Response>, origin: string): Promise<Response> {
  const response = await answer
  const vary = response.headers.get('vary')
  // What a route's answer varies with stays: a cache must not mix what the route keeps apart.
  const both = vary === null || /\borigin\b/i.test(vary) ? (vary ?? 'Origin') : `${vary}, Origin`
  const added = Object.entries({ ...corsHeaders(origin), vary: both })
  try {
    for (const [name, value] of added) response.headers.set(name, value)
    return response
  } catch {
    // What a route got by `fetch` from elsewhere cannot be changed.
    const kept = [...response.headers].filter(([name]) => name !== 'vary')
    return new Response(response.body, { status: response.status, headers: [...kept, ...added] })
  }
}

export function foreignPage(): UampError {
  return new UampError('forbidden', 'Pages of this origin may not call this server: whoever runs it can add the origin to origins')
}
