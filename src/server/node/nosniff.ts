import { ServerResponse, STATUS_CODES } from 'node:http'
import type { IncomingMessage, OutgoingHttpHeader, OutgoingHttpHeaders } from 'node:http'
import type { Duplex } from 'node:stream'
import { isInAnswer } from './pipelined.ts'

/** Makes browsers believe the type of an answer, whatever its beginning looks like. */
const NOSNIFF = ['x-content-type-options', 'nosniff'] as const

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[]

/**
 * Adds the header to every answer of our own server. It adds it with the other headers, because `setHeader` would cost six microseconds:
 * Node then takes the headers of an answer one by one.
 */
export class PlainResponse<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {
  override writeHead(status: number, reason?: string | Headers, headers?: Headers): this {
    const given = typeof reason === 'string' ? headers : reason
    const all = Array.isArray(given) ? [...given, ...NOSNIFF] : { [NOSNIFF[0]]: NOSNIFF[1], ...given }
    return typeof reason === 'string' ? super.writeHead(status, reason, all) : super.writeHead(status, all)
  }
}

/** The same for a response of a user's own server. */
export function withoutSniffing(response: ServerResponse): void {
  response.setHeader(...NOSNIFF)
}

/** Answers on a bare connection, which has no `ServerResponse`: before an upgrade, or if the request could not be parsed. */
export async function refuse(socket: Duplex, response: Response): Promise<void> {
  socket.on('error', () => socket.destroy())
  const body = await response.text()
  if (!socket.writable) return
  // Another answer began meanwhile.
  if (isInAnswer(socket)) {
    socket.destroy()
    return
  }
  const lines = [`HTTP/1.1 ${response.status} ${STATUS_CODES[response.status] ?? ''}`]
  for (const [name, value] of response.headers) if (name !== 'connection') lines.push(`${name}: ${value}`)
  lines.push(NOSNIFF.join(': '))
  lines.push(`content-length: ${Buffer.byteLength(body)}`, 'connection: close', '', body)
  socket.once('finish', () => socket.destroy())
  socket.end(lines.join('\r\n'))
}
