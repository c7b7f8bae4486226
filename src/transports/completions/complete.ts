import { chooseAgent } from '../../core/choose-agent.ts'
import { jsonAnswer } from '../../core/json-answer.ts'
import type { Batch } from '../../core/ports/session.ts'
import type { Frame, Host, KnownCall, Streamed, Texts } from '../../core/ports/transport.ts'
import type { Usage } from '../../protocol/usage.ts'
import { openAiErrorBody, openAiFailure } from '../../wire/openai/errors.ts'
import { openAiHeaders } from '../../wire/openai/headers.ts'
import { invalid, parseBody } from '../../wire/parse.ts'
import { SSE_HEADERS, SSE_HEARTBEAT } from '../../wire/sse.ts'
import { ChunkEncoder, DONE, errorChunk, lastChunk, type ChunkHead } from './chunks.ts'
import { toCompletion } from './completion.ts'
import { toUsage } from './finish.ts'
import { toAsked, type Asked } from './request.ts'
import { Run } from './run.ts'
import { CompletionRequest } from './schema.ts'

/** A client that sends `event` here gets the signature as an event of its own after `[DONE]`, where clients of OpenAI's would not find it. */
const SIGNATURE_HEADER = 'x-uamp-signature'

/** `POST /chat/completions`. */
export async function complete(host: Host, request: Request, call: KnownCall): Promise<Response | Streamed> {
  const text = await request.text()
  const body = parseBody(CompletionRequest, text)
  host.gateway.checkSlots(body, text.length)
  const asked = toAsked(body)
  const agent = chooseAgent(host, call, body.model ?? undefined)
  if (asked.stream && asked.shape.audio === 'wav') {
    throw invalid('A stream cannot be a WAV file: ask for "pcm16"', 'audio.format', 'unsupported_value')
  }
  const id = host.newId()
  const head: ChunkHead = { id: `chatcmpl-${id}`, created: Math.floor(host.now() / 1000), model: agent }
  const headers = openAiHeaders(call.quota, id)
  const runs = await startAll(asked.choices, () => Run.start(host, call, { agent, asked }))
  try {
    if (!asked.stream) {
      const ends = await Promise.all(runs.map((run) => run.end()))
      return jsonAnswer(toCompletion(head, asked.shape, ends), { headers, gateway: host.gateway, principal: call.principal })
    }
    await Promise.all(runs.map((run) => run.begin()))
  } catch (thrown) {
    for (const run of runs) run.close()
    const error = host.secrets.told(thrown)
    host.meter.countError('completions', error.code)
    return openAiFailure(error, headers)
  }
  const stream = new Stream(head, asked, request.headers.get(SIGNATURE_HEADER) === 'event')
  return {
    status: 200,
    headers: { ...SSE_HEADERS, ...headers },
    frames: stream.frames(runs),
    heartbeat: SSE_HEARTBEAT,
    failure: (error) => errorChunk(openAiErrorBody(error)) + DONE,
  }
}

/** All or none. */
async function startAll(count: number, start: () => Promise<Run>): Promise<Run[]> {
  if (count === 1) return [await start()]
  const started = await Promise.allSettled(Array.from({ length: count }, start))
  const runs = started.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  const refused = started.find((result) => result.status === 'rejected')
  if (!refused) return runs
  for (const run of runs) run.close()
  throw refused.reason
}

/** The chunks of one answer, its choices as they come. */
class Stream {
  readonly #head: ChunkHead
  readonly #asked: Asked
  /** The seed's place for a signature, for those who ask for it. */
  readonly #signatureLast: boolean
  readonly #encoders: readonly ChunkEncoder[]
  readonly #usages: (Usage | undefined)[] = []
  #signature: string | undefined
  #open: number
  #failed = false

  constructor(head: ChunkHead, asked: Asked, signatureLast: boolean) {
    this.#head = head
    this.#asked = asked
    this.#signatureLast = signatureLast
    this.#open = asked.choices
    this.#encoders = Array.from({ length: asked.choices }, (_, index) => new ChunkEncoder(head, asked.shape, index))
  }

  async *frames(runs: readonly Run[]): AsyncGenerator<Frame, Frame | undefined> {
    try {
      const waiting = new Map(runs.map((run, index) => [index, step(run, index)]))
      while (waiting.size > 0) {
        const { index, taken } = await (runs.length === 1 ? (waiting.get(0) as Promise<Step>) : Promise.race(waiting.values()))
        waiting.delete(index)
        if (!taken) return undefined
        const texts = this.#texts(taken.batch, index)
        if (taken.last && waiting.size === 0) return texts
        yield texts
        if (this.#failed) return undefined
        if (!taken.last) waiting.set(index, step(runs[index] as Run, index))
      }
      return undefined
    } finally {
      for (const run of runs) run.close()
    }
  }

  /** Made when they are written, so that no text is kept. */
  #texts(batch: Batch, index: number): Texts {
    const encoder = this.#encoders[index] as ChunkEncoder
    return {
      eachText: (visit) =>
        batch.visit({
          text: (text) => visit(encoder.text(text)),
          event: (event) => {
            if (this.#failed) return
            const text = encoder.event(event)
            if (text !== '') visit(text)
            if (event.type === 'response.done') {
              this.#usages.push(event.response.usage)
              this.#signature = event.signature
              if (--this.#open === 0) visit(this.#end())
            } else if (event.type === 'response.error' || event.type === 'response.cancelled' || event.type === 'payment.required') {
              this.#failed = true
              visit(DONE)
            }
          },
        }),
    }
  }

  /** What follows the last choice, in one piece with the end of the answer: clients stop reading at `[DONE]`. */
  #end(): string {
    const usage = this.#asked.shape.usage ? lastChunk(this.#head, { usage: toUsage(this.#usages) }) : ''
    // With several choices there is no one text that it would sign.
    const signature = this.#asked.choices === 1 ? this.#signature : undefined
    if (signature === undefined) return usage + DONE
    if (!this.#signatureLast) return usage + lastChunk(this.#head, { signature }) + DONE
    return `${usage}${DONE}event: response_signature\ndata: ${JSON.stringify({ signature })}\n\n`
  }
}

interface Step {
  readonly index: number
  readonly taken: { readonly batch: Batch; readonly last: boolean } | undefined
}

async function step(run: Run, index: number): Promise<Step> {
  return { index, taken: await run.next() }
}
