import { jsonAnswer } from '../../core/json-answer.ts'
import type { Host, KnownCall, Streamed } from '../../core/ports/transport.ts'
import { openAiFailure } from '../../wire/openai/errors.ts'
import { openAiHeaders } from '../../wire/openai/headers.ts'
import { parseBody } from '../../wire/parse.ts'
import { SSE_HEADERS, SSE_HEARTBEAT } from '../../wire/sse.ts'
import { toAsked } from './request.ts'
import { Run } from './run.ts'
import { CreateRequest } from './schema.ts'
import { start } from './start.ts'
import { SSE, Wire } from './wire.ts'

/** `POST /responses`. */
export async function create(host: Host, request: Request, call: KnownCall): Promise<Response | Streamed> {
  const text = await request.text()
  const body = parseBody(CreateRequest, text)
  host.gateway.checkSlots(body, text.length)
  const asked = toAsked(body)
  const headers = openAiHeaders(call.quota, host.newId())
  const run = new Run(host, await start(host, call, asked))
  try {
    if (!asked.stream) {
      const answer = await (asked.background ? run.first() : run.whole())
      return jsonAnswer(answer.response(), { headers, gateway: host.gateway, principal: call.principal })
    }
    if (!asked.background) await run.begin()
  } catch (thrown) {
    run.close()
    const error = host.secrets.told(thrown)
    host.meter.countError('responses', error.code)
    if (error.code === 'internal' && error.cause !== undefined) host.log('error', 'A response failed', { error: error.cause })
    return openAiFailure(error, headers)
  }
  const wire = new Wire(SSE)
  return {
    status: 200,
    headers: { ...SSE_HEADERS, ...headers },
    frames: run.frames(wire),
    heartbeat: SSE_HEARTBEAT,
    failure: (error) => wire.failure(error),
  }
}
