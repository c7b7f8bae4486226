import type { HttpRoute, KnownCall, Streamed } from '../../../core/ports/transport.ts'
import { UampError } from '../../../protocol/errors.ts'
import { disposition } from '../../../wire/content-disposition.ts'
import { rangeOf } from '../../../wire/http-range.ts'
import { omniaError } from '../errors.ts'
import { parse, UploadBody } from '../schema.ts'
import { findSession, type Shared } from '../shared.ts'
import { enabled, type Found, type Media } from './index.ts'
import { absent, infoOf } from './record.ts'

/** Types that a browser may show. Others are saved: an uploaded page must not run under our origin. */
const SHOWN = /^(?:image\/(?:png|jpeg|gif|webp)|audio\/|video\/)/

/** Omnia WebSocket protocol, Media Upload. */
export function mediaRoutes({ host, media, limits }: Shared): HttpRoute[] {
  type Handle = (media: Media, call: KnownCall) => Promise<Response | Streamed>
  const route = (method: HttpRoute['method'], path: string, handle: Handle) =>
    ({
      method,
      path: `/media/${path}`,
      access: 'request',
      action: actionOf({ method }),
      handle: async (_: Request, call: KnownCall) => handle(enabled(media), call),
    }) as const

  return [
    route('POST', 'request-upload', async (on, { request, principal }) => {
      const { session_id: id, ...wanted } = parse(UploadBody, await request.text())
      const session = await findSession(host, id, { principal, action: 'content' })
      if (!session) throw omniaError('SESSION_NOT_FOUND', 'not_found', 'There is no such session')
      return Response.json(
        await on.request({ ...wanted, session: session.id, agent: session.agent, principal, url: host.publicUrl(request) }),
      )
    }),
    {
      ...route('PUT', 'upload/:id', upload),
      access: 'url',
      owner: async ({ params, request }) => enabled(media).ownerOf(params['id'] ?? '', new URL(request.url).searchParams),
      bodyBytes: limits.uploadBytes,
    },
    // For clients that ask whether their upload is complete.
    route('POST', 'confirm-upload/:id', async (on, call) => {
      const found = await find(on, call)
      if (!found.isThere) throw omniaError('UPLOAD_FAILED', 'not_found', 'Nothing was uploaded')
      return Response.json(infoOf(found))
    }),
    route('GET', 'info/:session/:id', async (on, call) => Response.json(infoOf(await findStored(on, call)))),
    route('GET', 'download/:session/:id', download),
  ]
}

async function upload(media: Media, call: KnownCall): Promise<Response> {
  const { request, principal } = call
  const found = await find(media, call)
  if (found.isThere) throw new UampError('conflict', 'It was uploaded already')
  if (!found.isOpen) throw gone('The time to upload it is over')
  try {
    await media.receive(found, principal, request.body ?? nothing())
  } catch (thrown) {
    if (thrown instanceof UampError || !request.signal.aborted) throw thrown
    throw omniaError('UPLOAD_FAILED', 'invalid_request', 'The upload broke off')
  }
  return new Response(null, { status: 204 })
}

async function download(media: Media, call: KnownCall): Promise<Streamed> {
  const { id, key, size_bytes: size, mime_type: mime, filename } = await findStored(media, call)
  const { headers: asked } = call.request
  // An upload never changes, so its id is its version (RFC 9110 §13.1.5: a part of another version must not be sent).
  const etag = `"${id}"`
  const range = (asked.get('if-range') ?? etag) === etag ? rangeOf(asked.get('range'), size) : undefined
  if (range === 'unsatisfiable') {
    const told = { code: 'INVALID_MESSAGE', status: 416, headers: { 'content-range': `bytes */${size}` } } as const
    throw omniaError(told, 'invalid_request', `There are ${size} bytes`)
  }
  const { start, end } = range ?? { start: 0, end: size }
  const headers = {
    'content-type': mime,
    'content-length': String(end - start),
    'content-disposition': disposition(SHOWN.test(mime) ? 'inline' : 'attachment', filename),
    'accept-ranges': 'bytes',
    etag,
    'cache-control': 'private, no-store',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
    ...(range && { 'content-range': `bytes ${start}-${end - 1}/${size}` }),
  }
  return { status: range ? 206 : 200, headers, frames: media.blobs.read(key, { start, end }) }
}

function actionOf({ method }: Pick<Request, 'method'>): 'read' | 'content' {
  return method === 'GET' || method === 'HEAD' ? 'read' : 'content'
}

/** The upload that a path names. An upload of somebody else's is refused like one that never existed. */
async function find(media: Media, { params, principal, request }: KnownCall): Promise<Found> {
  const found = await media.findFor(actionOf(request), params['id'] ?? '', principal)
  if (!found || (params['session'] ?? found.session) !== found.session) throw absent()
  if (found.expired) throw gone('It has expired')
  return found
}

async function findStored(media: Media, call: KnownCall): Promise<Found> {
  const found = await find(media, call)
  if (!found.isThere) throw absent()
  return found
}

function gone(message: string): UampError {
  return omniaError({ code: 'UPLOAD_FAILED', status: 410 }, 'not_found', message)
}

async function* nothing(): AsyncGenerator<Uint8Array, void> {}
