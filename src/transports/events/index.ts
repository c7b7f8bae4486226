import type { Host, Transport } from '../../core/ports/transport.ts'
import { eventSchemas } from '../../protocol/schemas.ts'
import { jsonDocument } from '../../wire/json-document.ts'
import { Connection } from './connection.ts'
import { postEvents, streamEvents } from './http.ts'

/** UAMP events, native: WebSocket at `/uamp` and `/ws`, HTTP + SSE at `/events` (UAMP events §13.1, §13.2). */
export function events(): Transport {
  return {
    name: 'events',
    routes: (host) => {
      const schemas = jsonDocument(eventSchemas)
      return [
        socket(host, '/uamp'),
        socket(host, '/ws'),
        {
          method: 'POST',
          path: '/events',
          access: 'request',
          action: 'read',
          body: 'text',
          handle: (request, call) => postEvents(host, request, call),
        },
        {
          method: 'GET',
          path: '/events/stream',
          access: 'request',
          action: 'read',
          handle: (request, call) => streamEvents(host, request, call),
        },
        { method: 'GET', path: '/schemas/events.json', access: 'public', handle: async (request) => schemas(request) },
      ]
    },
  }
}

function socket(host: Host, path: string) {
  return {
    method: 'WS',
    path,
    access: 'first-message',
    action: 'read',
    several: true,
    subprotocols: ['uamp'],
    handle: (socket, call) => new Connection(host, socket, call).run(),
  } satisfies ReturnType<Transport['routes']>[number]
}
