// @ts-check
import { createServer } from 'node:http'
import { WebSocketServer } from 'ws'
import { answer } from '../lib/process.js'
import { speakAcp } from './bare-acp.js'
import { runAgUi } from './bare-ag-ui.js'
import { complete, respond } from './bare-completions.js'
import { speakOmnia } from './bare-omnia.js'
import { speakResumable } from './bare-resumable.js'
import { BareSession } from './bare-session.js'
import { best, naive, template } from './bare-writers.js'

/**
 * A server of the same events without us: `naive` writes each event as it comes, `best` joins what one tick makes, `template` makes
 * no object of a delta either and builds frames by hand. Sockets and streams, nothing else: no limits, no store, and no resume unless
 * that is asked for (`resumable`).
 */
const kind = /** @type {'naive' | 'best' | 'template'} */ (process.argv[2])
const writers = { naive, best, template }[kind]
const resumable = process.argv[3] === 'resumable'
/** What a request for a list is answered with. */
let page = {}
/** @type {Map<string, BareSession>} */
const sessions = new Map()

const server = createServer((request, response) => {
  const session = sessions.get(String(request.headers['x-session-id']))
  if (request.method === 'GET' && session) {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' }).flushHeaders()
    session.emit = writers.sse(response)
    session.templated = kind === 'template'
    return
  }
  let body = ''
  request.setEncoding('utf8')
  request.on('data', (chunk) => (body += chunk))
  request.on('end', () => {
    const events = JSON.parse(body)
    if (request.url === '/v1/chat/completions') return void complete(events, response, kind)
    if (request.url === '/v1/responses') return void respond(events, response)
    if (request.url === '/a2a') return void response.end(JSON.stringify(page))
    if (request.url === '/ag-ui') return void runAgUi(events, response, kind !== 'naive')
    const target = session ?? new BareSession(() => {})
    if (!session) sessions.set(target.id, target)
    for (const event of Array.isArray(events) ? events : [events]) target.receive(event)
    const reply = JSON.stringify({ session_id: target.id })
    response.writeHead(session ? 202 : 200, {
      'content-type': 'application/json',
      'x-session-id': target.id,
      'content-length': reply.length,
    })
    response.end(reply)
  })
})
/** @param {(event: any) => void} emit */
const speakEvents = (emit) => {
  const session = new BareSession(emit)
  session.templated = kind === 'template'
  return (/** @type {any} */ event) => session.receive(event)
}
/** @type {Record<string, (emit: (message: any) => void) => (message: any) => void>} */
const spoken = { '/uamp': resumable ? speakResumable : speakEvents, '/acp': speakAcp, '/omnia': speakOmnia }
const sockets = new WebSocketServer({ noServer: true })
server.on('upgrade', (request, socket, head) => {
  sockets.handleUpgrade(request, socket, head, (ws) => {
    const receive = spoken[String(request.url)]?.(writers.ws(ws, request.socket))
    ws.on('message', (data) => receive?.(JSON.parse(data.toString())))
  })
})
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  answer({ page: ({ value }) => void (page = value) }, { ready: { port } })
})
