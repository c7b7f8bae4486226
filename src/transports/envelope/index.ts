import { principalKey } from '../../core/basics/principal.ts'
import type { KnownCall, Socket, Streamed, Transport } from '../../core/ports/transport.ts'
import { envelopeError } from '../../envelope/codes.ts'
import { readEnvelope } from '../../envelope/message.ts'
import { parseObject } from '../../wire/parse.ts'
import { refusal } from './errors.ts'
import { partsOf, type Parts } from './parts.ts'
import type { EnvelopeParts, EnvelopeSettings } from './settings.ts'
import { EnvelopeSocket } from './socket.ts'
import { serveStream } from './sse.ts'

export type { EnvelopeOptions } from './settings.ts'

/** A message is its body in base64, compressed or not, and what is around it. */
const AROUND_BYTES = 64 * 1024
const MEDIA_TYPE = /^application\/uamp\+json(?:\s*;\s*(.*))?$/i

/** Signed messages between organisations (UAMP envelope 1.0), over HTTP. */
export function envelope(options: EnvelopeParts = {}): Transport {
  const { skewSeconds = 300, maxBodyKb = 1024, insecureDev = false, brotli } = options
  const settings: EnvelopeSettings = { skewSeconds, maxBodyKb, insecureDev, brotli }
  const bodyBytes = maxBodyKb * 1024 * 2 + AROUND_BYTES
  return {
    name: 'envelope',
    refusal,
    routes: (host) => {
      const parts = partsOf(host, options, settings)
      const { discovery } = parts
      const endpoint = new Endpoint(parts)
      const stream = '/v1/stream/:id'
      return [
        { method: 'POST', path: '/v1/messages', access: 'request', bodyBytes, handle: (request, call) => endpoint.post(request, call) },
        {
          method: 'GET',
          path: '/v1/messages/:id',
          access: 'request',
          action: 'read',
          handle: (request, call) => endpoint.outcome(request, call),
        },
        { method: 'GET', path: stream, access: 'request', action: 'read', handle: (request, call) => endpoint.stream(request, call) },
        {
          method: 'POST',
          path: `${stream}/ack`,
          access: 'request',
          action: 'read',
          body: 'text',
          handle: (request, call) => endpoint.ack(request, call),
        },
        {
          method: 'WS',
          path: '/uamp/1/ws',
          access: 'request',
          subprotocols: ['uamp.1'],
          messageBytes: bodyBytes,
          handle: (socket, call) => endpoint.connect(socket, call),
        },
        { method: 'GET', path: '/.well-known/did.json', access: 'public', handle: (_, call) => discovery.did(call) },
        { method: 'GET', path: '/did.json', access: 'public', handle: (_, call) => discovery.did(call) },
        {
          method: 'GET',
          path: '/.well-known/agent-manifest.json',
          access: 'public',
          handle: (request, call) => discovery.manifest(request, call),
        },
        { method: 'GET', path: '/.well-known/agent-hub.json', access: 'public', handle: (request) => discovery.hub(request) },
      ]
    },
  }
}

class Endpoint {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** `POST /v1/messages`. */
  async post(request: Request, call: KnownCall): Promise<Response> {
    this.#checkSecure(request)
    checkType(request.headers.get('content-type') ?? '')
    const admitted = await this.#parts.admission.admit(readEnvelope(new Uint8Array(await request.arrayBuffer())), call)
    const { stream } = await this.#parts.inbox.take(admitted, call)
    // Without its host: a client may know this server by another name.
    const { pathname } = new URL(this.#parts.host.publicUrl(request))
    const at = `${pathname === '/' ? '' : pathname}${call.root ? '' : `/agents/${call.agent}`}/v1/stream/`
    return new Response(null, { status: 202, headers: stream === undefined ? {} : { location: at + encodeURIComponent(stream) } })
  }

  /** `GET /v1/messages/{id}`: the signed message that closes the exchange. */
  async outcome(request: Request, call: KnownCall): Promise<Response> {
    this.#checkSecure(request)
    const outcome = await this.#parts.closings.of(call.params['id'] ?? '', call)
    if ('envelope' in outcome) {
      return new Response(JSON.stringify(outcome.envelope), { headers: { 'content-type': 'application/uamp+json' } })
    }
    return Response.json(outcome, { status: 202, headers: { 'retry-after': '1' } })
  }

  /** `GET /v1/stream/{id}`. */
  async stream(request: Request, call: KnownCall): Promise<Streamed> {
    this.#checkSecure(request)
    return serveStream(this.#parts.streams, request, call)
  }

  /** `/uamp/1/ws`. */
  async connect(socket: Socket, call: KnownCall): Promise<void> {
    const connection = new EnvelopeSocket(this.#parts, socket, call)
    try {
      this.#checkSecure(call.request)
    } catch (thrown) {
      return connection.refuse(thrown)
    }
    await connection.run()
  }

  /** `POST /v1/stream/{id}/ack`, for readers that have no key to sign with. */
  async ack(request: Request, call: KnownCall): Promise<Response> {
    this.#checkSecure(request)
    const said = parseObject(await call.text(), 'The body', (message) => envelopeError('4.00', message, 'ack'))
    const { note } = await this.#parts.streams.find(call.params['id'] ?? '', call)
    this.#parts.inbox.acknowledgeStream(principalKey(call.principal), note.stream, said['ack'])
    return new Response(null, { status: 204 })
  }

  /** UAMP envelope §6.1. Between a proxy on this machine and its clients it is the proxy that has TLS, and says so. */
  #checkSecure(request: Request): void {
    if (this.#parts.settings.insecureDev || new URL(this.#parts.host.publicUrl(request)).protocol === 'https:') return
    throw envelopeError(
      '4.03',
      'Messages are taken over TLS alone: call https, or start the server with insecureDev on this machine',
      'tls',
    )
  }
}

function checkType(type: string): void {
  const [, parameters = ''] = MEDIA_TYPE.exec(type.trim()) ?? []
  const isRight = MEDIA_TYPE.test(type.trim()) && parameters.split(';').every((each) => /^\s*(?:v=1|charset="?utf-8"?)?\s*$/i.test(each))
  if (!isRight) throw envelopeError('4.15', 'Send the message as application/uamp+json', 'content_type')
}
