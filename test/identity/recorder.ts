import { createServer, request as send, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { WebSocket, WebSocketServer, type RawData } from 'ws'

/** Something that left for the other server. */
interface Sent {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** The body, or the messages of a socket. */
  body: string
}

/** Stands before a server, and writes down everything that it is sent. */
export async function recorder(target: () => string) {
  const sent: Sent[] = []
  const server = createServer((incoming, outgoing) => {
    const { method = '', url: path = '', headers } = incoming
    const record: Sent = { method, path, headers, body: '' }
    sent.push(record)
    const passed = send(target() + path, { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(outgoing)
    })
    passed.on('error', () => outgoing.destroy())
    outgoing.on('close', () => passed.destroy())
    incoming.on('data', (chunk: Buffer) => (record.body += chunk.toString()))
    incoming.pipe(passed)
  })
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (near, { url: path = '', headers }) => {
    const record: Sent = { method: 'WS', path, headers, body: '' }
    sent.push(record)
    const far = new WebSocket(target().replace('http', 'ws') + path)
    const opened = new Promise<void>((resolve) => far.once('open', () => resolve()))
    near.on('message', (data: RawData) => {
      record.body += String(data)
      void opened.then(() => far.send(String(data)))
    })
    far.on('message', (data: RawData) => near.send(String(data)))
    near.on('close', () => far.terminate())
    far.on('close', () => near.terminate())
    for (const socket of [near, far]) socket.on('error', () => undefined)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets.clients) socket.terminate()
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sent }
}
