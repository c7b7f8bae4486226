import { chooseAgent } from '../../core/edge/asked.ts'
import { jsonAnswer } from '../../core/edge/json-answer.ts'
import { countError, ofResponse } from '../../core/edge/report-error.ts'
import { requestHash, signatureAsked, signSlot, type Signing } from '../../core/edge/signature-header.ts'
import type { Batch } from '../../core/ports/session.ts'
import type { Frame, Host, KnownCall, Streamed, Texts } from '../../core/ports/transport.ts'
import type { Refused } from '../../core/reading/response-batches.ts'
import { ResponseRun } from '../../core/reading/response-run.ts'
import { UampError } from '../../protocol/errors.ts'
import type { EventOf } from '../../protocol/events.ts'
import { openAiEventError, openAiFailure, toldError } from '../../wire/openai/errors.ts'
import { checkHostedTools } from '../../core/agent-kit/hosted-tools.ts'
import { openAiHeaders } from '../../wire/openai/headers.ts'
import { invalid, parseBody } from '../../wire/parse.ts'
import { BY_HEADER, paymentRefusal } from '../../protocol/payment-refusal.ts'
import { paidHeaders, paidIn, paymentFrom } from '../../wire/payment.ts'
import { SSE_HEADERS, SSE_HEARTBEAT } from '../../wire/sse.ts'
import { ChunkEncoder, DONE, errorChunk, lastChunk, type ChunkHead } from './chunks.ts'
import { toCompletion } from './completion.ts'
import { toUsage } from './finish.ts'
import { completionKeeper, type Keeping } from './kept.ts'
import { toAsked, type Asked } from './request.ts'
import { CompletionRequest } from './schema.ts'

/** `POST /chat/completions`. */
export async function complete(host: Host, request: Request, call: KnownCall): Promise<Response | Streamed> {
  const text = await call.text()
  const body = parseBody(CompletionRequest, text)
  host.gateway.checkSlots(body, text.length)
  const signature = signatureAsked(request.headers)
  const asked = toAsked(body, signSlot(signature))
  const agent = chooseAgent(host, call, body.model ?? undefined)
  checkHostedTools(body.tools, { name: agent, capabilities: host.agents.get(agent)?.capabilities })
  if (asked.stream && asked.shape.audio === 'wav') {
    throw invalid('A stream cannot be a WAV file: ask for "pcm16"', 'audio.format', 'unsupported_value')
  }
  const id = host.newId()
  const head: ChunkHead = { id: `chatcmpl-${id}`, created: Math.floor(host.now() / 1000), model: agent }
  const headers = openAiHeaders(call.quota)
  const hashing = requestHash(host.gateway, signature, { text, member: 'messages' })
  const signing = hashing && (await hashing)
  const runs = await startAll(asked.choices, (index) => start(host, call, { agent, asked, keep: { ...asked.keep, head, index }, signing }))
  let begun: readonly ResponseRun[]
  try {
    if (!asked.stream) {
      const ends = await endsOf(runs)
      return jsonAnswer(toCompletion(head, asked.shape, { ends, metadata: asked.metadata }), {
        headers: { ...headers, ...paidHeaders(ends.findLast(({ response }) => paidIn(response.extensions))?.response.extensions) },
        gateway: host.gateway,
        principal: call.principal,
      })
    }
    begun = await begunOf(runs)
  } catch (thrown) {
    for (const run of runs) run.close()
    const error = host.secrets.told(thrown)
    countError(host.meter, 'completions', { thrown, code: error.code })
    return openAiFailure(error, headers)
  }
  const stream = new Stream(begun, { head, asked, signatureLast: signature === 'event' })
  return {
    status: 200,
    headers: { ...SSE_HEADERS, ...headers },
    frames: stream.frames(),
    heartbeat: SSE_HEARTBEAT,
    failure: (error) => errorChunk(openAiEventError(error)) + DONE,
  }
}

interface Starting {
  readonly agent: string
  readonly asked: Asked
  readonly keep: Keeping
  /** The hash of the request, if the answer is signed. */
  readonly signing: Signing | undefined
}

/** Starts one choice: a session with a single response. */
async function start(host: Host, call: KnownCall, { agent, asked, keep, signing }: Starting): Promise<ResponseRun> {
  const { messages, config, store, stream } = asked
  const payment = paymentFrom(call.request.headers)
  const session = await host.gateway.open({
    transport: 'completions',
    agent,
    principal: call.principal,
    trace: call.trace,
    config,
    duplex: false,
    persist: store,
    onDetach: 'cancel',
    input: messages,
    silent: !stream,
    paysAnew: true,
    ...(payment && { payment }),
  })
  const reader = session.read()
  const create = { type: 'response.create' as const, event_id: host.newId() }
  const sent = store ? session.say([], create, { keeper: completionKeeper(keep), ...signing }) : session.send(create, signing)
  const run = new ResponseRun(host, { session, reader, response: session.lastResponse ?? '' })
  try {
    await sent
    run.stopWith(call)
    return run
  } catch (error) {
    run.close()
    throw error
  }
}

/** Starts all choices or none. */
async function startAll(count: number, begin: (index: number) => Promise<ResponseRun>): Promise<ResponseRun[]> {
  if (count === 1) return [await begin(0)]
  const started = await Promise.allSettled(Array.from({ length: count }, (_, index) => begin(index)))
  const runs = started.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  const refused = started.find((result) => result.status === 'rejected')
  if (!refused) return runs
  for (const run of runs) run.close()
  throw refused.reason
}

/**
 * Waits for the first words. Throws if a response is refused before them. Choices that nobody paid for are left out if another has begun:
 * what that one costs is due.
 */
async function begunOf(runs: readonly ResponseRun[]): Promise<readonly ResponseRun[]> {
  const started = await Promise.all(
    runs.map(async (run) => {
      const refused = await run.preflight()
      if (refused && !isUnpaid(refused)) throw refusal(refused)
      return { run, refused }
    }),
  )
  const unpaid = started.find(({ refused }) => refused)?.refused
  const begun = started.flatMap(({ run, refused }) => (refused ? [] : [run]))
  if (unpaid && begun.length === 0) throw refusal(unpaid)
  for (const { run, refused } of started) if (refused) run.close()
  return begun
}

function isUnpaid({ type, ...refused }: Refused): boolean {
  return type === 'payment.required' || ('error' in refused && refused.error.code === 'payment_required')
}

/** The ends of all choices. If one of them was paid, those that failed are left out: its money has moved, so it is told. */
async function endsOf(runs: readonly ResponseRun[]): Promise<EventOf<'response.done'>[]> {
  const [only] = runs
  if (only && runs.length === 1) return [await endOf(only)]
  const ended = await Promise.allSettled(runs.map(endOf))
  const ends = ended.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  const failed = ended.find((result) => result.status === 'rejected')
  if (failed && !ends.some(({ response }) => paidIn(response.extensions))) throw failed.reason
  return ends
}

/** Waits for the end. Throws unless the response is done. */
async function endOf(run: ResponseRun): Promise<EventOf<'response.done'>> {
  const end = await run.end()
  if (end?.type === 'response.done') return end
  throw refusal(end)
}

function refusal(event: EventOf<'payment.required' | 'response.error' | 'response.cancelled'> | undefined): UampError {
  if (event?.type === 'payment.required') return paymentRefusal(event, BY_HEADER)
  if (event?.type === 'response.error') return ofResponse(toldError(event.error))
  return new UampError('cancelled', 'The answer was stopped')
}

interface StreamOptions {
  readonly head: ChunkHead
  readonly asked: Asked
  /** The client asked for the signature after `[DONE]`. */
  readonly signatureLast: boolean
}

/** Streams the chunks of all choices as they come. */
class Stream {
  readonly #runs: readonly ResponseRun[]
  readonly #options: StreamOptions
  readonly #encoders: readonly ChunkEncoder[]
  #open: number
  #failed = false

  constructor(runs: readonly ResponseRun[], options: StreamOptions) {
    const { head, asked } = options
    this.#runs = runs
    this.#options = options
    this.#open = runs.length
    this.#encoders = runs.map(({ response }, index) => new ChunkEncoder(response, { head, shape: asked.shape, index }))
  }

  async *frames(): AsyncGenerator<Frame, Frame | undefined> {
    const runs = this.#runs
    try {
      const waiting = new Map(runs.map((run, index) => [index, step(run, index)]))
      while (waiting.size > 0) {
        const { index, batch } = await (runs.length === 1 ? (waiting.get(0) as Promise<Step>) : Promise.race(waiting.values()))
        waiting.delete(index)
        if (!batch) return undefined
        const texts = this.#texts(batch, index)
        const run = runs[index] as ResponseRun
        if (run.over) run.close()
        if (run.over && waiting.size === 0) return texts
        yield texts
        if (this.#failed) return undefined
        if (!run.over) waiting.set(index, step(run, index))
      }
      return undefined
    } finally {
      for (const run of runs) run.close()
    }
  }

  /** Makes texts while they are written, so that none is kept. */
  #texts(batch: Batch, index: number): Texts {
    const encoder = this.#encoders[index] as ChunkEncoder
    return {
      eachText: (visit) => {
        if (this.#failed) return
        encoder.read(batch, visit)
        if (!encoder.ended) return
        this.#failed = encoder.failed
        if (this.#failed) visit(DONE)
        else if (--this.#open === 0) visit(this.#end())
      },
    }
  }

  /** What follows the last choice, written in one piece with the end of the body, because clients stop reading at `[DONE]`. */
  #end(): string {
    const { head, asked, signatureLast } = this.#options
    const usage = asked.shape.usage ? lastChunk(head, { usage: toUsage(this.#encoders.map((encoder) => encoder.usage)) }) : ''
    // A signature covers one text, so several choices have none.
    const paid = this.#encoders.flatMap(({ paid: each }) => (each ? [lastChunk(head, { uamp: each })] : [])).join('')
    const signature = this.#encoders.length === 1 ? this.#encoders[0]?.signature : undefined
    if (signature === undefined) return usage + paid + DONE
    if (!signatureLast) return usage + paid + lastChunk(head, { signature }) + DONE
    return `${usage}${paid}${DONE}event: response_signature\ndata: ${JSON.stringify({ signature })}\n\n`
  }
}

interface Step {
  readonly index: number
  readonly batch: Batch | undefined
}

async function step(run: ResponseRun, index: number): Promise<Step> {
  return { index, batch: await run.take() }
}
