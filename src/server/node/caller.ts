import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { Principal } from '../../core/ports/access.ts'
import { plainAddress } from '../address.ts'
import type { Caller } from '../admission.ts'
import { forwarded, FORWARDED_HEADERS, type Trusts } from '../forwarded.ts'
import type { Strangers } from './connections.ts'

export interface CallerOptions {
  readonly trusts: Trusts | undefined
  readonly strangers: Strangers
  /** Trusted proxies tell the client's certificate in `Client-Cert` (RFC 9440), and remove the header of others. */
  readonly clientCertHeader?: boolean | undefined
}

interface Sent {
  readonly socket: Duplex
  readonly headers: () => Headers
  /** Missing for HTTP/2 and upgrades. */
  readonly answer?: ServerResponse | undefined
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
    return answer && ((leave) => (answer.destroyed ? leave() : void answer.once('close', leave)))
  }

  /** Of the connection itself, or of the one to the proxy if the operator says that it tells the truth about it. */
  get certificate(): string | undefined {
    const { trusts, clientCertHeader } = this.#options
    const { socket, headers } = this.#sent
    if (clientCertHeader && trusts?.(peerOf(socket))) {
      const told = /^:([A-Za-z0-9+/]+={0,2}):$/.exec(headers().get('client-cert') ?? '')?.[1]
      return told === undefined ? undefined : thumbprint(Buffer.from(told, 'base64'))
    }
    const raw = (socket as Partial<TLSSocket>).getPeerCertificate?.()?.raw
    return raw && thumbprint(raw)
  }

  vouch(principal: Principal): void {
    this.#options.strangers.know(this.#sent.socket, principal)
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
export function incomingOf(env: unknown): IncomingMessage | undefined {
  return ((env ?? {}) as { incoming?: IncomingMessage }).incoming
}

/** Removes the headers of proxies from a request that no trusted proxy has sent. */
export function withoutForwarded(headers: Headers): Headers {
  for (const name of FORWARDED_HEADERS) if (headers.has(name)) headers.delete(name)
  return headers
}
