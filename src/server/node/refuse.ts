import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { NOSNIFF } from './nosniff.ts'
import { isInAnswer } from './pipelined.ts'

/** Answers on a bare connection, where there is no `ServerResponse`: before an upgrade, or when the request could not be parsed. */
export async function refuse(socket: Duplex, response: Response): Promise<void> {
  socket.on('error', () => socket.destroy())
  const body = await response.text()
  if (!socket.writable) return
  // It began meanwhile.
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
