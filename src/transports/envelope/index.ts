import { principalKey } from '../../core/basics/principal.ts'
import type { Host, KnownCall, Streamed, Transport } from '../../core/ports/transport.ts'
import { envelopeError } from '../../envelope/codes.ts'
import { parseObject } from '../../wire/parse.ts'
import { Admission } from './admission.ts'
import { Capabilities } from './capabilities.ts'
import { Closings } from './closing.ts'
import { Discovery } from './discovery.ts'
import { refusal } from './errors.ts'
import { Inbox } from './inbox.ts'
import { OwnDid } from './own-did.ts'
import { Proposals } from './proposals.ts'
import { MessageRecords } from './records.ts'
import { SenderKeys } from './sender-keys.ts'
import type { EnvelopeOptions, EnvelopeSettings } from './settings.ts'
import { Streams } from './streams.ts'
import { Windows } from './windows.ts'

export type { EnvelopeOptions } from './settings.ts'

/** A message is its body in base64, compressed or not, and what is around it. */
const AROUND_BYTES = 64 * 1024
const MEDIA_TYPE = /^application\/uamp\+json(?:\s*;\s*(.*))?$/i

/** Signed messages between organisations (UAMP envelope 1.0), over HTTP. */
export function envelope(options: EnvelopeOptions = {}): Transport {
  const { skewSeconds = 300, maxBodyKb = 1024, insecureDev = false, brotli } = options
  const settings: EnvelopeSettings = { skewSeconds, maxBodyKb, insecureDev, brotli }
  const bodyBytes = maxBodyKb * 1024 * 2 + AROUND_BYTES
  return {
    name: 'envelope',
    refusal,
    routes: (host) => {
      const endpoint = new Endpoint(host, { ...options, settings })
      const stream = '/v1/stream/:id'
      return [
        { method: 'POST', path: '/v1/messages', access: 'request', bodyBytes, handle: (request, call) => endpoint.post(request, call) },
        { method: 'GET', path: '/v1/messages/:id', access: 'request', action: 'read', handle: (_, call) => endpoint.outcome(call) },
        { method: 'GET', path: stream, access: 'request', action: 'read', handle: (request, call) => endpoint.stream(request, call) },
        { method: 'POST', path: `${stream}/ack`, access: 'request', action: 'read', body: 'text', handle: (_, call) => endpoint.ack(call) },
        { method: 'GET', path: '/.well-known/did.json', access: 'public', handle: (_, call) => endpoint.discovery.did(call) },
        { method: 'GET', path: '/did.json', access: 'public', handle: (_, call) => endpoint.discovery.did(call) },
        {
          method: 'GET',
          path: '/.well-known/agent-manifest.json',
          access: 'public',
          handle: (request, call) => endpoint.discovery.manifest(request, call),
        },
        { method: 'GET', path: '/.well-known/agent-hub.json', access: 'public', handle: (request) => endpoint.discovery.hub(request) },
      ]
    },
  }
}

class Endpoint {
  readonly discovery: Discovery
  readonly #host: Host
  readonly #settings: EnvelopeSettings
  readonly #admission: Admission
  readonly #inbox: Inbox
  readonly #streams: Streams
  readonly #closings: Closings

  constructor(host: Host, { senders = {}, keys: pinned = {}, anchors = [], settings }: EnvelopeOptions & { settings: EnvelopeSettings }) {
    this.#host = host
    this.#settings = settings
    const own = new OwnDid(host)
    const keys = new SenderKeys({ host, own, pinned, insecureDev: settings.insecureDev })
    const capabilities = new Capabilities({ own, keys, anchors, now: host.now })
    const records = new MessageRecords(host.store)
    const shared = { host, records, windows: new Windows(), proposals: new Proposals() }
    this.discovery = new Discovery({ host, own, anchors, settings })
    this.#admission = new Admission({ host, own, keys, capabilities, senders, settings })
    this.#inbox = new Inbox({ ...shared, settings })
    this.#streams = new Streams(shared)
    this.#closings = new Closings({ host, own, records, streams: this.#streams })
  }

  /** `POST /v1/messages`. */
  async post(request: Request, call: KnownCall): Promise<Response> {
    this.#checkSecure(request)
    checkType(request.headers.get('content-type') ?? '')
    const admitted = await this.#admission.admit(new Uint8Array(await request.arrayBuffer()), call)
    this.#host.gateway.checkSlots(admitted.envelope.ext)
    const { stream } = await this.#inbox.take(admitted, call)
    const at = `${this.#host.publicUrl(request)}${call.root ? '' : `/agents/${call.agent}`}/v1/stream/`
    return new Response(null, { status: 202, headers: stream === undefined ? {} : { location: at + encodeURIComponent(stream) } })
  }

  /** `GET /v1/messages/{id}`: the signed message that closes the exchange. */
  async outcome(call: KnownCall): Promise<Response> {
    const outcome = await this.#closings.of(call.params['id'] ?? '', call)
    if ('envelope' in outcome) {
      return new Response(JSON.stringify(outcome.envelope), { headers: { 'content-type': 'application/uamp+json' } })
    }
    return Response.json(outcome, { status: 202, headers: { 'retry-after': '1' } })
  }

  /** `GET /v1/stream/{id}`. */
  async stream(request: Request, call: KnownCall): Promise<Streamed> {
    this.#checkSecure(request)
    return this.#streams.serve(call.params['id'] ?? '', knownIn(request), call)
  }

  /** `POST /v1/stream/{id}/ack`, for readers that have no key to sign with. */
  async ack(call: KnownCall): Promise<Response> {
    const said = parseObject(await call.text(), 'The body', (message) => envelopeError('4.00', message, 'ack'))
    const { note, session } = await this.#streams.open(call.params['id'] ?? '', call)
    try {
      this.#inbox.acknowledgeStream(principalKey(call.principal), note.stream, said['ack'])
    } finally {
      session.leave()
    }
    return new Response(null, { status: 204 })
  }

  /** UAMP envelope §6.1. Between a proxy on this machine and its clients it is the proxy that has TLS, and says so. */
  #checkSecure(request: Request): void {
    if (this.#settings.insecureDev || new URL(this.#host.publicUrl(request)).protocol === 'https:') return
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

/** The frame that a reader has; -1 for none. */
function knownIn(request: Request): number {
  const given = request.headers.get('last-event-id') ?? new URL(request.url).searchParams.get('after')
  if (given === null || given === '') return -1
  const known = Number(given)
  if (/^\d{1,15}$/.test(given)) return known
  throw envelopeError('4.00', 'Last-Event-ID must be the number of a frame', 'after')
}
