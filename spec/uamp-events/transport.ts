/** Transports and routing: UAMP events §11 to §13. */
import { uampEvents } from '../requirement.ts'

export const transport = uampEvents('transport', {
  'uamp:transport:websocket': ['13.1', 'Events are spoken over a WebSocket at /ws.'],
  'uamp:transport:one-event-a-message': ['13.1', 'A WebSocket message is one event as JSON, in both directions.'],
  'uamp:transport:ping': ['5.17, 6.19, 13.1', 'ping is answered by pong.'],
  'uamp:transport:ping-back': ['5.17, 13.1', 'A client answers the ping of a server by pong.'],
  'uamp:transport:websocket-multiplex': ['13.1', 'Several sessions can share a WebSocket.'],
  'uamp:transport:http-post': ['13.2', 'A client sends events by POST /events with a JSON body.'],
  'uamp:transport:http-stream': ['13.2', 'A client reads events from GET /events/stream as text/event-stream.'],
  'uamp:transport:http-session-header': ['13.2', 'X-Session-ID names the session of a request.'],
  'uamp:transport:same-events': ['1.2, 2', 'A session has the same events over WebSocket and over HTTP with SSE.'],
})

export const routing = uampEvents('routing', {
  'uamp:routing:subscribes': ['12', 'A handler gets the event types it subscribes to, and no others.'],
  'uamp:routing:pattern': ['12', 'A handler may subscribe by pattern.'],
  'uamp:routing:produces': ['12', 'A handler says what it emits: that is routed in turn, and nothing else is.'],
  'uamp:routing:whole-event': ['12, 5.6', 'A handler gets the event with its role, slots, media and conversation.'],
  'uamp:routing:priority': ['12', 'Of several handlers for an event the one with the higher priority is taken.'],
  'uamp:routing:priority-default': ['12', 'A handler that names no priority has 0.'],
  'uamp:routing:observers': ['12', 'Observers see events without consuming them.'],
  'uamp:routing:default-sink': ['12', 'The sink `*` gets what nobody else handles.'],
  'uamp:routing:custom-types': ['12', 'Event types of an application are routed like any other.'],
  'uamp:routing:unroutable': ['11', 'An event that nobody takes gives system.unroutable.'],
  'uamp:routing:system-error': ['11', 'What goes wrong in processing gives system.error.'],
  'uamp:routing:system-stop': ['11', 'system.stop ends the processing in progress, system.cancel also cleans up.'],
  'uamp:routing:system-ping': ['11', 'system.ping is answered by system.pong, inside.'],
})
