/** How connections get to the code that speaks their protocol. */
import type { Server as PlainServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Server as TlsServer, ServerOptions } from 'node:https'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { PlainResponse } from './answers.ts'
import type { TlsPair } from './tls.ts'

type Speak = (socket: Socket) => void

/**
 * Takes its connections away from a server of HTTP/1.1, and gives back what it would have done with them: then they can go to HTTP/2
 * instead. `createSecureServer` of Node does the same inside, but its HTTP/1.1 lacks the bounds on headers and time.
 */
export function takeConnections(server: PlainServer | TlsServer, event: 'connection' | 'secureConnection'): Speak {
  const listeners = server.listeners(event) as Speak[]
  server.removeAllListeners(event)
  return (socket) => {
    for (const listener of listeners) listener.call(server, socket)
  }
}

export interface SecureOptions {
  readonly pair: TlsPair
  readonly handshakeTimeout: number
  readonly http: ServerOptions<never, typeof PlainResponse>
}

export function secureServer({ pair, handshakeTimeout, http }: SecureOptions): TlsServer {
  return createTlsServer({
    ...(http as ServerOptions),
    ...pair,
    handshakeTimeout,
    ALPNProtocols: ['h2', 'http/1.1'],
    // Clients may come without a certificate: `ClientCertificates` looks at those that are shown.
    requestCert: pair.ca !== undefined,
    rejectUnauthorized: false,
  })
}

/** Connections whose handshake is not over, by the port of the client. TLS makes another object of each of them. */
export class Handshakes {
  readonly #raw = new Map<string, Socket>()

  add(raw: Socket): void {
    const key = keyOf(raw)
    this.#raw.set(key, raw)
    raw.once('close', () => this.#raw.delete(key))
  }

  /** The connection as it was accepted; undefined if it is gone. */
  over(socket: TLSSocket): Socket | undefined {
    const key = keyOf(socket)
    const raw = this.#raw.get(key)
    this.#raw.delete(key)
    return raw
  }
}

function keyOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
