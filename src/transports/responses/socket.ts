import { reportError } from '../../core/edge/report-error.ts'
import { requestHash, signatureAsked, signSlot } from '../../core/edge/signature-header.ts'
import type { Host, KnownCall, Socket, Texts } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { fieldsOf } from '../../protocol/json.ts'
import { openAiErrorBody, openAiRetryHeaders, openAiStatus } from '../../wire/openai/errors.ts'
import { invalid, parseBody, parseValue } from '../../wire/parse.ts'
import { Answer, framesOf } from './answer.ts'
import { RecentResponses } from './recent.ts'
import { toAsked, type Asked } from './request.ts'
import { CreateEvent, CreateRequest } from './schema.ts'
import { preflight, start, type Begun, type Caller } from './start.ts'
import { messages, Wire } from './wire.ts'

/** Answers that one connection may carry at once. `stream_id` tells them apart. */
const LANES = 16

/** One WebSocket: each `response.create` is answered with the events of its stream, one after the other or in lanes. */
export class ResponsesSocket {
  readonly #host: Host
  readonly #socket: Socket
  readonly #caller: Caller
  readonly #lanes = new Set<string>()
  readonly #recent: RecentResponses

  constructor(host: Host, socket: Socket, call: KnownCall) {
    this.#host = host
    this.#socket = socket
    this.#caller = call
    this.#recent = new RecentResponses(host.gateway, call.principal)
  }

  async run(): Promise<void> {
    try {
      for await (const frame of this.#socket) {
        // The client has left, so nobody would get the answer.
        if (this.#caller.signal.aborted) return
        await this.#receive(frame)
      }
    } finally {
      this.#recent.close()
    }
  }

  async #receive(frame: string | Uint8Array): Promise<void> {
    let lane: string | undefined
    try {
      if (typeof frame !== 'string') throw invalid('Events are JSON in text frames, not binary frames')
      const event = parseBody(CreateEvent, frame)
      lane = event.stream_id ?? undefined
      if (event.type !== 'response.create') throw invalid(`There is no event "${event.type}": send "response.create"`, 'type')
      // There is no warming up here: an answer that the client does not want would cost as much as any other.
      if (event.generate === false) throw invalid('"generate" must be true', 'generate', 'unsupported_parameter')
      const { type: _, stream_id: __, generate: ___, stream: ____, ...body } = event
      this.#host.gateway.checkSlots(body, frame.length)
      const signature = signatureAsked(this.#caller.request.headers)
      const hashing = requestHash(this.#host.gateway, signature, { text: frame, member: 'input' })
      const asked = { ...toAsked(parseValue(CreateRequest, body), signSlot(signature)), stream: true, signing: hashing && (await hashing) }
      if (lane === undefined) return await this.#answer(asked, undefined)
      this.#enter(lane)
      void this.#answer(asked, lane).finally(() => this.#lanes.delete(lane ?? ''))
    } catch (thrown) {
      await this.#refuse(thrown, lane)
    }
  }

  #enter(lane: string): void {
    if (this.#lanes.has(lane)) {
      throw new UampError('response_in_progress', `The stream "${lane}" has an answer under way`, { details: { param: 'stream_id' } })
    }
    if (this.#lanes.size >= LANES) {
      throw new UampError('rate_limited', `One connection carries at most ${LANES} answers at once`, { details: { retry_after: 1 } })
    }
    this.#lanes.add(lane)
  }

  /** Never rejects: a refusal is told as an event, and the socket stays open. */
  async #answer(given: Asked, lane: string | undefined): Promise<void> {
    const { previous } = given
    try {
      const asked = this.#recent.continued(given)
      const begun = await start(this.#host, this.#caller, asked)
      // A response in the background goes on after its client left, but is not read here any more.
      if (asked.background) begun.run.stopWith(this.#caller)
      else {
        await preflight(begun).catch((thrown: unknown) => {
          begun.run.close()
          throw thrown
        })
      }
      const answer = await this.#tell(begun, lane)
      if (answer.failure) this.#recent.forget(previous)
      if (!asked.store && !answer.failure && !this.#caller.signal.aborted) {
        this.#recent.add(begun.about.id, asked, fieldsOf(answer.response()))
      }
    } catch (thrown) {
      this.#recent.forget(previous)
      await this.#refuse(thrown, lane)
    }
  }

  async #tell({ run, about }: Begun, lane: string | undefined): Promise<Answer> {
    const wire = new Wire(messages(lane))
    const answer = new Answer(about, wire)
    const frames = framesOf(run, answer, wire)
    for (;;) {
      const { value, done } = await frames.next()
      if (value !== undefined) await this.#socket.send(value as Texts)
      if (done) return answer
    }
  }

  async #refuse(thrown: unknown, lane: string | undefined): Promise<void> {
    const error = reportError(this.#host, thrown, { transport: 'responses', message: 'A response failed', ...this.#caller.trace.fields })
    const headers = openAiRetryHeaders(error)
    const event = {
      type: 'error',
      status: openAiStatus(error),
      error: openAiErrorBody(error),
      ...(Object.keys(headers).length > 0 && { headers }),
      ...(lane !== undefined && { stream_id: lane }),
    }
    await this.#socket.send([JSON.stringify(event)])
  }
}
