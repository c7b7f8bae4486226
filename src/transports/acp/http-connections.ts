import type { KnownCall } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import type { HttpConnection } from './http-connection.ts'

/** Connections of one server and of one principal. Beyond them one that nobody reads makes room, or none is opened. */
const CONNECTIONS = 5_000
const PER_PRINCIPAL = 500

/**
 * The connections of ACP over HTTP. One lasts for minutes after its last request, and all callers without a token are one principal:
 * whoever begins connections and leaves them must not keep the others out.
 */
export class HttpConnections {
  /** The one that was used longest ago is first. */
  readonly #connections = new Map<string, HttpConnection>()

  /** Makes room for another connection of this caller. */
  reserve({ principal }: KnownCall): void {
    const all = [...this.#connections.values()]
    const mine = all.filter((connection) => connection.isOf(principal))
    if (mine.length >= PER_PRINCIPAL) evict(mine)
    else if (all.length >= CONNECTIONS) evict(all)
  }

  add(id: string, connection: HttpConnection): void {
    this.#connections.set(id, connection)
  }

  delete(id: string): void {
    this.#connections.delete(id)
  }

  /** Another's connection is not there. */
  find(id: string, { principal, agent }: KnownCall): HttpConnection {
    const connection = this.#connections.get(id)
    if (!connection?.isOf(principal) || connection.agent !== agent) {
      throw new UampError('not_found', 'There is no such connection, or no more, as nobody read from it: initialize a new one')
    }
    this.#connections.delete(id)
    this.#connections.set(id, connection)
    return connection
  }

  closeAll(): void {
    for (const connection of this.#connections.values()) connection.close()
  }
}

/**
 * Closes one that nobody reads: rather one on which nothing was said since `initialize`, and of these one of the address that has
 * most of them. So a flood replaces its own, and not the connection that somebody else is about to use.
 */
function evict(connections: readonly HttpConnection[]): void {
  const unread = connections.filter(({ isRead }) => !isRead)
  const unused = unread.filter(({ isUsed }) => !isUsed)
  const counts = new Map<string, number>()
  for (const { address } of unused) counts.set(address, (counts.get(address) ?? 0) + 1)
  const most = Math.max(...counts.values())
  const chosen = unused.find(({ address }) => counts.get(address) === most) ?? unread[0]
  if (!chosen) throw new UampError('rate_limited', 'Too many connections: close some', { details: { retry_after: 30 } })
  chosen.close()
}
