import type { Host, HttpRoute, KnownCall, Streamed } from '../../../core/ports/transport.ts'
import { UampError } from '../../../protocol/errors.ts'
import { omniaError, refusal } from '../errors.ts'
import type { OmniaLimits } from '../options.ts'
import { parse, UploadBody } from '../schema.ts'
import type { Found, Media } from './index.ts'
import { rangeOf } from './range.ts'

export interface MediaRoutesOptions {
  readonly host: Host
  readonly media: Media | undefined
  readonly limits: OmniaLimits
}

/** What a browser may show by itself. Anything else is saved: a page of somebody's must not run under our name. */
const SHOWN = /^(?:image\/(?:png|jpeg|gif|webp)|audio\/|video\/)/

/** Omnia WebSocket protocol, Media Upload. */
export function mediaRoutes({ host, media, limits }: MediaRoutesOptions): HttpRoute[] {
  const enabled = (): Media => {
    if (media) return media
    throw omniaError('MEDIA_NOT_ENABLED', 'not_supported', 'media storage is not enabled')
  }
  /** The upload of a request, with its bytes if they are there; or why not. */
  const find = async (call: KnownCall, id = ''): Promise<{ upload: Found; size: number | undefined } | Response> => {
    const upload = await enabled().find(id, call.principal)
    const session = call.params['session']
    if (!upload || (session !== undefined && session !== upload.session)) throw absent()
    return upload.expired ? gone('It has expired') : { upload, size: await enabled().blobs.size(upload.key) }
  }

  const requestUpload = async (request: Request, { principal }: KnownCall): Promise<Response> => {
    const body = parse(UploadBody, await request.text())
    const session = await host.gateway.attach(body.session_id, principal)
    if (!session) throw omniaError('SESSION_NOT_FOUND', 'not_found', 'There is no such session')
    return Response.json(await enabled().request({ ...body, session: session.id, principal, url: host.publicUrl(request) }))
  }

  const upload = async (request: Request, call: KnownCall): Promise<Response> => {
    const found = await find(call, call.params['id'])
    if (found instanceof Response) return found
    if (found.size !== undefined) throw new UampError('conflict', 'It was uploaded already')
    if (!enabled().isOpen(found.upload)) return gone('The time to upload it is over')
    try {
      await enabled().receive(found.upload, call.principal, request.body ?? nothing())
    } catch (thrown) {
      if (thrown instanceof UampError || !request.signal.aborted) throw thrown
      throw omniaError('UPLOAD_FAILED', 'invalid_request', 'The upload broke off')
    }
    return new Response(null, { status: 204 })
  }

  /** For clients that ask whether what they sent has come. */
  const confirm = async (_: Request, call: KnownCall): Promise<Response> => {
    const found = await find(call, call.params['id'])
    if (found instanceof Response) return found
    if (found.size === undefined) throw omniaError('UPLOAD_FAILED', 'not_found', 'Nothing was uploaded')
    return Response.json(enabled().info(found.upload, found.size))
  }

  const info = async (_: Request, call: KnownCall): Promise<Response> => {
    const found = await find(call, call.params['media'])
    if (found instanceof Response) return found
    if (found.size === undefined) throw absent()
    return Response.json(enabled().info(found.upload, found.size))
  }

  const download = async (request: Request, call: KnownCall): Promise<Response | Streamed> => {
    const found = await find(call, call.params['media'])
    if (found instanceof Response) return found
    const { upload, size } = found
    if (size === undefined) throw absent()
    const range = rangeOf(request.headers.get('range'), size)
    if (range === 'unsatisfiable') {
      const error = omniaError('INVALID_MESSAGE', 'invalid_request', `There are ${size} bytes`)
      return refusal(error, { status: 416, headers: { 'content-range': `bytes */${size}` } })
    }
    const { start, end } = range ?? { start: 0, end: size }
    const headers = {
      'content-type': upload.mime,
      'content-length': String(end - start),
      'content-disposition': disposition(upload),
      'accept-ranges': 'bytes',
      'cache-control': 'private, no-store',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
      ...(range && { 'content-range': `bytes ${start}-${end - 1}/${size}` }),
    }
    return { status: range ? 206 : 200, headers, frames: enabled().blobs.read(upload.key, { start, end }) }
  }

  const route = (method: HttpRoute['method'], path: string, handle: (request: Request, call: KnownCall) => Promise<Response | Streamed>) =>
    ({ method, path: `/media/${path}`, access: 'request', handle }) as const
  return [
    route('POST', 'request-upload', requestUpload),
    { ...route('PUT', 'upload/:id', upload), bodyBytes: limits.uploadBytes },
    route('POST', 'confirm-upload/:id', confirm),
    route('GET', 'info/:session/:media', info),
    route('GET', 'download/:session/:media', download),
  ]
}

/** The same for what was never there and for what is somebody else's. */
function absent(): UampError {
  return new UampError('not_found', 'There is no such upload')
}

function gone(message: string): Response {
  return refusal(omniaError('UPLOAD_FAILED', 'not_found', message), { status: 410 })
}

async function* nothing(): AsyncGenerator<Uint8Array, void> {}

/** RFC 6266 §4.3: a plain name for whoever knows no other, and the real one. */
function disposition({ filename, mime }: Found): string {
  const plain = filename.replace(/[^\x20-\x7e]|["%\\]/g, '_')
  const exact = encodeURIComponent(filename.toWellFormed()).replace(/['()*]/g, (char) => `%${char.charCodeAt(0).toString(16)}`)
  return `${SHOWN.test(mime) ? 'inline' : 'attachment'}; filename="${plain}"; filename*=UTF-8''${exact}`
}
