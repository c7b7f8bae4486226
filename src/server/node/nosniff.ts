import { randomUUID } from 'node:crypto'
import { ServerResponse, STATUS_CODES } from 'node:http'
import type { IncomingMessage, OutgoingHttpHeader, OutgoingHttpHeaders } from 'node:http'
import type { Duplex } from 'node:stream'
import { isInAnswer } from './pipelined.ts'

/** Makes browsers believe the type of an answer, whatever its beginning looks like. */
const NOSNIFF = ['x-content-type-options', 'nosniff'] as const

/** Tells answers apart. A transport may have set its own. */
const REQUEST_ID = 'x-request-id'

function newRequestId(): string {
  return `req_${randomUUID()}`
}

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[]

/**
 * Adds both headers to every answer of our own server. It adds them with the other headers, because `setHeader` would cost six microseconds:
 * Node then takes the headers of an answer one by one.
 */
export class PlainResponse<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {
  override writeHead(status: number, reason?: string | Headers, headers?: Headers): this {
    const given = typeof reason === 'string' ? headers : reason
    const all = Array.isArray(given)
      ? [...given, ...NOSNIFF, ...(given.includes(REQUEST_ID) ? [] : [REQUEST_ID, newRequestId()])]
      : { [NOSNIFF[0]]: NOSNIFF[1], [REQUEST_ID]: given?.[REQUEST_ID] ?? newRequestId(), ...given }
    return typeof reason === 'string' ? super.writeHead(status, reason, all) : super.writeHead(status, all)
  }
}

/** The same for a response of a user's own server. */
export function withoutSniffing(response: ServerResponse): void {
  response.setHeader(...NOSNIFF)
  response.setHeader(REQUEST_ID, newRequestId())
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
  if (!response.headers.has(REQUEST_ID)) lines.push(`${REQUEST_ID}: ${newRequestId()}`)
  lines.push(`content-length: ${Buffer.byteLength(body)}`, 'connection: close', '', body)
  socket.once('finish', () => socket.destroy())
  socket.end(lines.join('\r\n'))
}
