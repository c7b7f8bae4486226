import { jsonAnswer } from '../../core/edge/json-answer.ts'
import type { Host, KnownCall, Streamed } from '../../core/ports/transport.ts'
import { ResponseRun } from '../../core/reading/response-run.ts'
import { UampError } from '../../protocol/errors.ts'
import { openAiFailure, toldError } from '../../wire/openai/errors.ts'
import { openAiHeaders } from '../../wire/openai/headers.ts'
import { parseBody } from '../../wire/parse.ts'
import { paymentRefusal } from '../../wire/payment.ts'
import { SSE_HEADERS, SSE_HEARTBEAT } from '../../wire/sse.ts'
import { Answer, framesOf } from './answer.ts'
import { toAsked, type Asked } from './request.ts'
import { CreateRequest } from './schema.ts'
import { start, type Caller, type Started } from './start.ts'
import { SSE, Wire } from './wire.ts'

/** `POST /responses`. */
export async function create(host: Host, request: Request, call: KnownCall): Promise<Response | Streamed> {
  const text = await request.text()
  const body = parseBody(CreateRequest, text)
  host.gateway.checkSlots(body, text.length)
  const asked = toAsked(body)
  const headers = openAiHeaders(call.quota, host.newId())
  const begun = await begin(host, call, asked)
  try {
    if (!asked.stream) {
      const answer = await (asked.background ? first(host, begun) : whole(host, begun))
      return jsonAnswer(answer.response(), { headers, gateway: host.gateway, principal: call.principal })
    }
    if (!asked.background) await preflight(begun)
  } catch (thrown) {
    begun.run.close()
    const error = host.secrets.told(thrown)
    host.meter.countError('responses', error.code)
    if (error.code === 'internal' && error.cause !== undefined) host.log('error', 'A response failed', { error: error.cause })
    return openAiFailure(error, headers)
  }
  const wire = new Wire(SSE)
  return {
    status: 200,
    headers: { ...SSE_HEADERS, ...headers },
    frames: framesOf(begun.run, answerOf(host, begun, wire), wire),
    heartbeat: SSE_HEARTBEAT,
    failure: (error) => wire.failure(error),
  }
}

/** A response on its way to who asked for it. */
export interface Begun {
  readonly started: Started
  readonly run: ResponseRun
}

/** What runs in the background goes on without its client, and its session with it. */
export async function begin(host: Host, caller: Caller, asked: Asked): Promise<Begun> {
  const started = await start(host, caller, asked)
  const { session, reader, response, background, fresh } = started
  const run = new ResponseRun(host, {
    session,
    reader,
    response,
    cancels: !background,
    fresh,
  })
  return { started, run }
}

export function answerOf(host: Host, { started, run }: Begun, wire?: Wire): Answer {
  const { agent, config } = started
  return new Answer({ id: run.response, agent, config, endedAt: host.now }, wire)
}

/** Waits for the first word. Throws what is refused before it. */
export async function preflight({ run }: Begun): Promise<void> {
  const refused = await run.preflight()
  if (!refused) return
  await run.refuse(refused)
  throw refused.type === 'payment.required' ? paymentRefusal(refused) : toldError(refused.error)
}

/** The answer as it is after the first step of the agent. What comes later is not waited for. */
async function first(host: Host, begun: Begun): Promise<Answer> {
  const answer = answerOf(host, begun)
  ;(await begun.run.take())?.visit(answer)
  begun.run.close()
  return answer
}

/** The whole answer. Throws if it is none. */
async function whole(host: Host, begun: Begun): Promise<Answer> {
  const { run } = begun
  const answer = answerOf(host, begun)
  for (let batch = await run.take(); batch; batch = await run.take()) answer.take(batch)
  const failure = answer.ended ? answer.failure : new UampError('cancelled', 'The answer was stopped')
  if (!failure) {
    run.close()
    return answer
  }
  await run.refuse({ type: failure.code === 'payment_required' ? 'payment.required' : 'response.error' })
  throw failure
}
