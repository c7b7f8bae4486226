import type { Host, Route, Transport } from '../../core/ports/transport.ts'
import { openAiRefusal } from '../../wire/openai/errors.ts'
import { create } from './create.ts'
import { ResponsesSocket } from './socket.ts'
import { StoredResponses } from './stored.ts'

/** OpenAI Responses, over HTTP and WebSocket, for unchanged clients of OpenAI's. */
export function responses(): Transport {
  return {
    name: 'responses',
    routes: (host) => ['/responses', '/v1/responses'].flatMap((path) => routesAt(host, path)),
    refusal: openAiRefusal,
  }
}

function routesAt(host: Host, path: string): Route[] {
  const stored = new StoredResponses(host)
  const one = `${path}/:id`
  return [
    { method: 'POST', path, access: 'request', handle: (request, call) => create(host, request, call) },
    { method: 'WS', path, access: 'request', subprotocols: [], handle: (socket, call) => new ResponsesSocket(host, socket, call).run() },
    { method: 'GET', path: one, access: 'request', handle: (_, call) => stored.get(call) },
    { method: 'DELETE', path: one, access: 'request', handle: (_, call) => stored.delete(call) },
    { method: 'POST', path: `${one}/cancel`, access: 'request', handle: (_, call) => stored.cancel(call) },
    { method: 'GET', path: `${one}/input_items`, access: 'request', handle: (_, call) => stored.inputItems(call) },
  ]
}
