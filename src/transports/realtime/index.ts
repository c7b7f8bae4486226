import { chooseAgent } from '../../core/edge/asked.ts'
import { reportError } from '../../core/edge/report-error.ts'
import type { Session } from '../../core/ports/session.ts'
import type { Host, KnownCall, Socket, SocketRoute, Transport } from '../../core/ports/transport.ts'
import type { UampError } from '../../protocol/errors.ts'
import { fieldsOf, recordsIn, type Slot } from '../../protocol/json.ts'
import { openAiEventError, openAiRefusal } from '../../wire/openai/errors.ts'
import { paymentFrom } from '../../wire/payment.ts'
import { beta } from './beta.ts'
import { named, RealtimeConnection, type ConnectionOptions } from './connection.ts'
import { ga } from './ga.ts'
import type { Dialect } from './model.ts'
import { configOf, DEFAULTS } from './settings.ts'

type Spoken = Pick<ConnectionOptions, 'dialect' | 'settle'>

/** OpenAI Realtime: a WebSocket at `/v1/realtime` and at `/realtime`. */
export function realtime(): Transport {
  return {
    name: 'realtime',
    refusal: openAiRefusal,
    routes: (host) => [
      route(host, '/v1/realtime', { dialect: ga }),
      // The path of UAMP transports, whose examples are the beta's.
      route(host, '/realtime', { dialect: beta, settle: settleDialect }),
    ],
  }
}

function route(host: Host, path: string, usual: Spoken): SocketRoute {
  return {
    method: 'WS',
    path,
    access: 'request',
    subprotocols: ['realtime'],
    handle: (socket, call) => handle(host, socket, { call, spoken: asksForBeta(call.request.headers) ? { dialect: beta } : usual }),
  }
}

async function handle(host: Host, socket: Socket, { call, spoken }: { readonly call: KnownCall; readonly spoken: Spoken }): Promise<void> {
  const model = new URL(call.request.url).searchParams.get('model') ?? undefined
  let agent: string
  let session: Session
  try {
    const payment = paymentFrom(call.request.headers)
    agent = chooseAgent(host, call, model)
    session = await host.gateway.open({
      transport: 'realtime',
      agent,
      principal: call.principal,
      trace: call.trace,
      config: configOf(DEFAULTS, named(model)),
      duplex: true,
      persist: false,
      // A client cannot come back, so nobody would hear the rest of an answer.
      onDetach: 'cancel',
      ...(payment && { payment }),
    })
  } catch (thrown) {
    return refuse(socket, reportError(host, thrown, { transport: 'realtime', message: 'A connection failed', ...call.trace.fields }))
  }
  const capabilities = host.agents.get(agent)?.capabilities
  await new RealtimeConnection({ ...spoken, host, socket, session, trace: call.trace, capabilities, model, quota: () => call.quota }).run()
}

/** Browsers cannot read why an upgrade was refused, so the refusal comes after it, as an event. */
async function refuse(socket: Socket, error: UampError): Promise<void> {
  const told = { type: 'error', event_id: `event_${crypto.randomUUID()}`, error: { ...openAiEventError(error), event_id: null } }
  await socket.send([JSON.stringify(told)])
  socket.close(1008, error.message)
}

/** Whether the upgrade asks for the beta, by a header or, in browsers, by a subprotocol. */
function asksForBeta(headers: Headers): boolean {
  const offered = headers.get('sec-websocket-protocol')?.split(',') ?? []
  return (headers.get('openai-beta')?.includes('realtime=v1') ?? false) || offered.some((name) => name.trim() === 'openai-beta.realtime-v1')
}

/**
 * At `/realtime` the first event of the client decides for good: GA if it has something that only GA has, otherwise the beta. Until
 * then the client was only sent `session.created`, in the words of the beta.
 */
function settleDialect(event: Slot): Dialect {
  return speaksGa(event) ? ga : beta
}

function speaksGa({ type, session, response, item }: Slot): boolean {
  if (type === 'session.update') return fieldsOf(session)['type'] === 'realtime' || hasGaFields(session)
  if (type === 'response.create') return hasGaFields(response)
  if (type !== 'conversation.item.create') return false
  return recordsIn(fieldsOf(item)['content']).some((part) => part['type'] === 'output_text' || part['type'] === 'output_audio')
}

function hasGaFields(given: unknown): boolean {
  const fields = fieldsOf(given)
  return 'output_modalities' in fields || 'audio' in fields
}
