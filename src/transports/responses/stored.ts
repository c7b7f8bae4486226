import { jsonAnswer } from '../../core/edge/json-answer.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { Session, StoredResponse } from '../../core/ports/session.ts'
import type { Action } from '../../core/ports/access.ts'
import type { Host, KnownCall, Streamed } from '../../core/ports/transport.ts'
import { ResponseRun } from '../../core/reading/response-run.ts'
import { weigh } from '../../core/basics/weight.ts'
import { UampError } from '../../protocol/errors.ts'
import { openAiHeaders } from '../../wire/openai/headers.ts'
import { listBody, notInList, pagingIn, wholeNumber } from '../../wire/openai/paging.ts'
import { invalid } from '../../wire/parse.ts'
import { SSE_HEADERS, SSE_HEARTBEAT } from '../../wire/sse.ts'
import { Answer, framesOf } from './answer.ts'
import { settingsOf } from './response.ts'
import { contextOf, type ShownItem } from './stored-items.ts'
import { SSE, Wire } from './wire.ts'

/** Stored responses, for their owners. What clients see is made again from the log of the session. */
export class StoredResponses {
  readonly #host: Host

  constructor(host: Host) {
    this.#host = host
  }

  /** `GET /responses/{id}`, also as a stream that continues where the client lost it. */
  async get(call: KnownCall): Promise<Response | Streamed> {
    const found = await this.#find(call, 'read')
    const query = new URL(call.request.url).searchParams
    if (query.get('stream') !== 'true') return this.#json((await this.#gather(found, false)).response(), call)
    const known = wholeNumber(query, 'starting_after', { usual: -1, min: 0, max: Number.MAX_SAFE_INTEGER })
    const run = this.#run(found, call.signal)
    if (known >= 0) {
      // After `#run`, whose reader keeps the session in memory meanwhile.
      await this.#checkTold(found, known).catch((thrown: unknown) => {
        run.close()
        throw thrown
      })
    }
    const headers = { ...SSE_HEADERS, ...this.#headers(call) }
    const wire = new Wire(SSE, known)
    const frames = framesOf(run, this.#answer(found.turn, wire), wire)
    return { status: 200, headers, frames, heartbeat: SSE_HEARTBEAT, failure: (error) => wire.failure(error) }
  }

  /** `POST /responses/{id}/cancel`: for responses in the background. Repeating it has the same result. */
  async cancel(call: KnownCall): Promise<Response | Streamed> {
    const found = await this.#find(call, 'cancel')
    const { turn, session } = found
    if (settingsOf(turn.config)['background'] !== true) {
      throw invalid('Cannot cancel a synchronous response.', 'response_id', 'invalid_value')
    }
    if (turn.status === 'open') {
      // It may have ended meanwhile.
      await session.send({ type: 'response.cancel', event_id: this.#host.newId(), response_id: turn.id }).catch(() => undefined)
    }
    return this.#json((await this.#gather(found, true)).response(), call)
  }

  /** `DELETE /responses/{id}`. */
  async delete(call: KnownCall): Promise<Response | Streamed> {
    const { id } = await this.#turn(call)
    if (!(await this.#host.gateway.forget(id, call.principal))) throw notFound(id)
    return this.#json({ id, object: 'response', deleted: true }, call)
  }

  /** `GET /responses/{id}/input_items`. */
  async inputItems(call: KnownCall): Promise<Response | Streamed> {
    const turn = await this.#turn(call)
    const query = new URL(call.request.url).searchParams
    const { after, limit, order } = pagingIn(query, 'desc')
    const { principal } = call
    const { data, hasMore } = await this.#page(contextOf(this.#host.gateway, turn, { principal, order }), { after, limit, principal })
    return this.#json(listBody(data, hasMore), call)
  }

  /** Counts the memory while it gathers items, as they may be large. */
  async #page(items: AsyncIterable<ShownItem>, { after, limit, principal }: Paging): Promise<{ data: ShownItem[]; hasMore: boolean }> {
    const data: ShownItem[] = []
    const hold = this.#host.gateway.hold(principal, 0)
    let bytes = 0
    let isAfter = after === null
    try {
      for await (const item of items) {
        if (data.length === limit) return { data, hasMore: true }
        if (isAfter) {
          hold.grow((bytes += weigh(item)))
          data.push(item)
        } else isAfter = item.id === after
      }
    } finally {
      hold.close()
    }
    if (!isAfter) throw notInList(after ?? '')
    return { data, hasMore: false }
  }

  async #find(call: KnownCall, action: Action): Promise<Found> {
    const turn = await this.#turn(call)
    const session = await this.#host.gateway.attach(turn.session, call.principal, action)
    if (!session) throw notFound(turn.id)
    return { turn, session }
  }

  async #turn({ params, principal }: KnownCall): Promise<StoredResponse> {
    const id = params['id'] ?? ''
    const turn = await this.#host.gateway.response(id, principal)
    if (!turn) throw notFound(id)
    return turn
  }

  /** Refuses the number of an event that does not exist yet: a stream from there would never end. */
  async #checkTold(found: Found, number: number): Promise<void> {
    // Counted, because the numbers leap where a process died.
    const wire = new Wire(SSE, Infinity)
    await this.#gather(found, false, wire)
    if (number > wire.last)
      throw invalid('"starting_after" must be the number of an event of this response', 'starting_after', 'invalid_value')
  }

  /** The response as it is now or, with `toEnd`, when it has ended. */
  async #gather(found: Found, toEnd: boolean, wire?: Wire): Promise<Answer> {
    const { turn, session } = found
    const answer = this.#answer(turn, wire)
    const until = turn.status === 'open' && !toEnd ? session.lastSeq : Infinity
    const run = this.#run(found)
    try {
      while (answer.seq < until) {
        const batch = await run.take()
        if (!batch) break
        answer.take(batch)
      }
    } finally {
      run.close()
    }
    return answer
  }

  #run({ turn, session }: Found, signal?: AbortSignal): ResponseRun {
    const reader = session.read({ after: turn.after, extensions: 'all', ...(signal && { signal }) })
    return new ResponseRun(this.#host, { session, reader, response: turn.id })
  }

  #answer({ id, agent, config, endedAt, after }: StoredResponse, wire?: Wire): Answer {
    const answer = new Answer({ id, agent, config, endedAt: () => endedAt ?? this.#host.now() }, wire)
    answer.seq = after
    return answer
  }

  #json(body: object, call: KnownCall): Response | Streamed {
    return jsonAnswer(body, { headers: this.#headers(call), gateway: this.#host.gateway, principal: call.principal })
  }

  #headers({ quota }: KnownCall): Record<string, string> {
    return openAiHeaders(quota)
  }
}

interface Paging {
  readonly after: string | null
  readonly limit: number
  readonly principal: Principal
}

interface Found {
  readonly turn: StoredResponse
  readonly session: Session
}

function notFound(id: string): UampError {
  return new UampError('not_found', `Response with id '${id}' not found.`, { details: { param: 'response_id' } })
}
