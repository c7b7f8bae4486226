/** A2A agents on small servers of their own, each in the words of one generation and binding, as its specification has them. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { remoteA2a, type RemoteA2aOptions } from '../../../src/remotes/a2a/index.ts'
import { startServer } from '../../support/server.ts'
import { overWebSocket } from '../../support/wire.ts'
import { v01JsonRpc } from './v01.ts'
import { v03Rest } from './v03-rest.ts'
import { v02JsonRpc, v03JsonRpc } from './v03.ts'
import { v1JsonRpc, v1Rest } from './v1.ts'
import type { Call, Event, Fields, Op, Reply, Wire } from './wire.ts'

export const wires: readonly Wire[] = [v1JsonRpc, v1Rest, v03JsonRpc, v03Rest, v02JsonRpc, v01JsonRpc]

const textsIn = (parts: readonly Fields[] = []): string[] => parts.flatMap(({ text }) => (typeof text === 'string' ? [text] : []))

export interface PeerOptions {
  readonly streaming?: boolean
  /** Changes the card. */
  readonly card?: (card: Fields, url: string) => Fields
  /** For what is no call. True: it was answered. */
  readonly other?: (request: IncomingMessage, response: ServerResponse) => boolean
}

/** An agent that answers calls as `answer` says, gone when the test is. */
export async function peer(wire: Wire, answer: (call: Call, reply: Reply) => void, { streaming = true, card, other }: PeerOptions = {}) {
  const calls: Call[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    request.on('end', () => {
      if (other?.(request, response)) return
      if (request.url === wire.cardPath) return json(response, 200, card ? card(wire.card(url, streaming), url) : wire.card(url, streaming))
      const body = (text === '' ? {} : JSON.parse(text)) as Fields
      const read = wire.read(request, body)
      if (!read && request.url === '/agent') return refuse(response, wire.failure(-32601, 'Method not found', body))
      if (!read) return json(response, 404, { error: 'Nothing here' })
      const parts = (read.message['parts'] ?? read.message['content']) as Fields[] | undefined
      const call: Call = { ...read, request, body, texts: textsIn(parts) }
      calls.push(call)
      answer(call, replyTo(wire, call, response))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, calls, of: (op: Op) => calls.filter((call) => call.op === op) }
}

function replyTo(wire: Wire, { op, body }: Call, response: ServerResponse): Reply {
  const send = (event: Event, id?: string): void => {
    if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(`${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(wire.wrap(wire.encode(event), body))}\n\n`)
  }
  return {
    response,
    whole: (event) => json(response, 200, wire.wrap(wire.encode(event), { ...body, whole: op === 'get' || op === 'cancel' })),
    tell: (...events) => events.forEach((event) => send(event)),
    tellAs: (id, event) => send(event, id),
    end: () => void response.end(),
    cut: () => void response.write('', () => response.destroy()),
    refuse: (code, message) => refuse(response, wire.failure(code, message, body)),
  }
}

function json(response: ServerResponse, status: number, body: Fields): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function refuse(response: ServerResponse, { status, body }: { status: number; body: Fields }): void {
  json(response, status, body)
}

/** Our server with the peer as its agent, and a client of it. */
export async function behind(
  wire: Wire,
  answer: (call: Call, reply: Reply) => void,
  { remote, ...options }: PeerOptions & { readonly remote?: Partial<RemoteA2aOptions> } = {},
) {
  const there = await peer(wire, answer, options)
  const here = await startServer(remoteA2a({ name: 'far', url: there.url, ...remote }))
  const client = await overWebSocket(here.url)
  await client.open()
  return { there, here, client }
}

/** An agent that says just this, and goes. */
export function streams(...events: Event[]): (call: Call, reply: Reply) => void {
  return (_, reply) => {
    reply.tell(...events)
    reply.end()
  }
}

/** A piece of the one text that most answers are. */
export function chunk(text: string, append = true): Event {
  return { artifact: { id: 'a1', parts: [{ text }] }, append }
}

/** The whole of it. */
export function made(text: string): {
  readonly made: readonly [{ readonly id: 'a1'; readonly parts: readonly [{ readonly text: string }] }]
} {
  return { made: [{ id: 'a1', parts: [{ text }] }] }
}
