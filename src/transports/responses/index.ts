import { jsonAnswer } from '../../core/edge/json-answer.ts'
import { reportError } from '../../core/edge/report-error.ts'
import { requestHash, signatureAsked, signSlot } from '../../core/edge/signature-header.ts'
import type { Host, KnownCall, Route, Streamed, Transport } from '../../core/ports/transport.ts'
import { openAiFailure, openAiRefusal } from '../../wire/openai/errors.ts'
import { openAiHeaders } from '../../wire/openai/headers.ts'
import { parseBody } from '../../wire/parse.ts'
import { SSE_HEADERS, SSE_HEARTBEAT } from '../../wire/sse.ts'
import { Answer, framesOf } from './answer.ts'
import { compact } from './compact.ts'
import { toAsked } from './request.ts'
import { CreateRequest } from './schema.ts'
import { ResponsesSocket } from './socket.ts'
import { preflight, start, type Begun } from './start.ts'
import { StoredResponses } from './stored.ts'
import { inputTokens } from './tokens.ts'
import { whole } from './whole.ts'
import { SSE, Wire } from './wire.ts'

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
    { method: 'POST', path, access: 'request', body: 'text', handle: (_, call) => create(host, call) },
    { method: 'WS', path, access: 'request', subprotocols: [], handle: (socket, call) => new ResponsesSocket(host, socket, call).run() },
    { method: 'POST', path: `${path}/input_tokens`, access: 'request', body: 'text', handle: (_, call) => inputTokens(host, call) },
    { method: 'POST', path: `${path}/compact`, access: 'request', body: 'text', handle: (_, call) => compact(host, call) },
    { method: 'GET', path: one, access: 'request', action: 'read', handle: (_, call) => stored.get(call) },
    { method: 'DELETE', path: one, access: 'request', action: 'cancel', handle: (_, call) => stored.delete(call) },
    { method: 'POST', path: `${one}/cancel`, access: 'request', action: 'cancel', handle: (_, call) => stored.cancel(call) },
    { method: 'GET', path: `${one}/input_items`, access: 'request', action: 'read', handle: (_, call) => stored.inputItems(call) },
  ]
}

/** `POST /responses`. */
async function create(host: Host, call: KnownCall): Promise<Response | Streamed> {
  const text = await call.text()
  const body = parseBody(CreateRequest, text)
  host.gateway.checkSlots(body, text.length)
  const signature = signatureAsked(call.request.headers)
  const hashing = requestHash(host.gateway, signature, { text, member: 'input' })
  const asked = { ...toAsked(body, signSlot(signature)), signing: hashing && (await hashing) }
  const headers = openAiHeaders(call.quota)
  const begun = await start(host, call, asked)
  try {
    if (!asked.stream) {
      const answer = await (asked.background ? first(begun) : whole(begun))
      return jsonAnswer(answer.response(), { headers: { ...headers, ...answer.headers }, gateway: host.gateway, principal: call.principal })
    }
    if (!asked.background) await preflight(begun)
  } catch (thrown) {
    begun.run.close()
    return openAiFailure(reportError(host, thrown, { transport: 'responses', message: 'A response failed', ...call.trace.fields }), headers)
  }
  const wire = new Wire(SSE)
  return {
    status: 200,
    headers: { ...SSE_HEADERS, ...headers },
    frames: framesOf(begun.run, new Answer(begun.about, wire), wire),
    heartbeat: SSE_HEARTBEAT,
    failure: (error) => wire.failure(error),
  }
}

/** The answer after the first step of the agent. The rest is not awaited. */
async function first({ run, about }: Begun): Promise<Answer> {
  const answer = new Answer(about)
  ;(await run.take())?.visit(answer)
  run.close()
  return answer
}
