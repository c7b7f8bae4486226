import { createHash, X509Certificate } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { Principal } from '../../core/ports/access.ts'
import { plainAddress } from '../address.ts'
import type { Caller } from '../admission.ts'
import { forwarded, FORWARDED_HEADERS, type Trusts } from '../forwarded.ts'
import { isGone, type Answer } from './answers.ts'
import { urisOf } from './certificate-uris.ts'
import type { Strangers } from './connections.ts'
import { Http2Request } from './http2/request.ts'

export interface CallerOptions {
  readonly trusts: Trusts | undefined
  readonly strangers: Strangers
  /** Trusted proxies tell the client's certificate in `Client-Cert` (RFC 9440), and remove the header of others. */
  readonly clientCertHeader?: boolean | undefined
}

interface Sent {
  readonly socket: Duplex
  readonly headers: () => Headers
  /** Missing for upgrades. */
  readonly answer?: Answer | undefined
}

/** The sender of a request. */
export class NodeCaller implements Caller {
  readonly #sent: Sent
  readonly #options: CallerOptions

  constructor(sent: Sent, options: CallerOptions) {
    this.#sent = sent
    this.#options = options
  }

  get address(): string {
    const { trusts } = this.#options
    const peer = peerOf(this.#sent.socket)
    return (trusts?.(peer) ? forwarded(this.#sent.headers(), trusts).address : undefined) ?? peer
  }

  get whenGone(): Caller['whenGone'] {
    const { answer } = this.#sent
    return answer && ((leave) => (isGone(answer) ? leave() : void answer.once('close', leave)))
  }

  /** Of the connection itself, or of the one to the proxy if the operator says that it tells the truth about it. */
  get certificate(): string | undefined {
    const { socket } = this.#sent
    const told = this.#told
    if (told !== undefined) return told === '' ? undefined : thumbprint(Buffer.from(told, 'base64'))
    const raw = (socket as Partial<TLSSocket>).getPeerCertificate?.()?.raw
    return raw && thumbprint(raw)
  }

  /** Only of a certificate that was verified, here or by the proxy. */
  get certificateUris(): readonly string[] {
    const told = this.#told
    if (told !== undefined) return told === '' ? [] : urisIn(Buffer.from(told, 'base64'))
    const { authorized, getPeerX509Certificate: get } = this.#sent.socket as Partial<TLSSocket>
    const certificate = authorized === true ? get?.call(this.#sent.socket) : undefined
    return certificate ? urisOf(certificate) : []
  }

  /** What a proxy says of the certificate, in base64; empty if it says that there is none, undefined if it says nothing that counts. */
  get #told(): string | undefined {
    const { trusts, clientCertHeader } = this.#options
    const { socket, headers } = this.#sent
    if (!clientCertHeader || !trusts?.(peerOf(socket))) return undefined
    return /^:([A-Za-z0-9+/]+={0,2}):$/.exec(headers().get('client-cert') ?? '')?.[1] ?? ''
  }

  vouch(principal: Principal): void {
    this.#options.strangers.know(this.#sent.socket, principal)
  }
}

function urisIn(certificate: Buffer): readonly string[] {
  try {
    return urisOf(new X509Certificate(certificate))
  } catch {
    return []
  }
}

/** RFC 8705 §3.1. */
function thumbprint(certificate: Buffer): string {
  return createHash('sha256').update(certificate).digest('base64url')
}

/** Asked for every request of a connection. */
const peers = new WeakMap<Duplex, string>()

/** The address of a connection's other end; empty for a Unix socket. */
export function peerOf(socket: Duplex): string {
  let peer = peers.get(socket)
  if (peer === undefined) {
    const { remoteAddress } = socket as { remoteAddress?: string }
    peer = plainAddress(remoteAddress ?? '') ?? ''
    peers.set(socket, peer)
  }
  return peer
}

/** The request that `@hono/node-server` passes to the app. */
export function incomingOf(env: unknown): Incoming | undefined {
  return ((env ?? {}) as { incoming?: Incoming }).incoming
}

export type Incoming = IncomingMessage | Http2ServerRequest

/** The connection that a request came on. */
export function socketOf(incoming: Incoming): Duplex {
  return incoming instanceof Http2Request ? incoming.carrier.socket : incoming.socket
}

/** Removes the headers of proxies from a request that no trusted proxy has sent. */
export function withoutForwarded(headers: Headers): Headers {
  for (const name of FORWARDED_HEADERS) if (headers.has(name)) headers.delete(name)
  return headers
}
