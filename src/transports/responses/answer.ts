import type { Frame } from '../../core/ports/transport.ts'
import { stopReason } from '../../core/reading/ends.ts'
import { ResponseFold } from '../../core/reading/response-fold.ts'
import type { ResponseRun } from '../../core/reading/response-run.ts'
import type { ContentItem, MediaItem, ToolCall } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import type { EventOf, ServerEvent } from '../../protocol/events.ts'
import type { Delta } from '../../protocol/server-events.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import { openAiErrorBody, toldError } from '../../wire/openai/errors.ts'
import { paymentRefusal } from '../../wire/payment.ts'
import { Items } from './item-list.ts'
import type { OutputItem } from './items.ts'
import { functionNames, wantsExtras } from './request.ts'
import { headOf, responseObject, shownUsage, type ResponseHead, type ResponseState } from './response.ts'
import type { Wire } from './wire.ts'

export interface AnswerOptions {
  readonly id: string
  readonly agent: string
  /** What it was asked with. */
  readonly config: SessionConfig
  /** In milliseconds: when it ended. */
  readonly endedAt: () => number
}

/** Numbers of the log that are further apart belong to two processes. */
const LEAP = 10_000

/**
 * One response, from the events of a session's log. The same events give the same answer with the same numbers, whenever they are
 * read: while it runs, when a client comes back, or days later. Without a wire it is only gathered.
 */
export class Answer extends ResponseFold {
  readonly #head: ResponseHead
  /** The functions that the client runs. Calls of others are the agent's own. */
  readonly #functions: ReadonlySet<string>
  /** Events that OpenAI has none for are told too, as events named `uamp:…`: asked for, as its own clients fail on them. */
  readonly #extras: boolean
  readonly #endedAt: () => number
  readonly #wire: Wire | undefined
  readonly #items: Items
  #status: ResponseState['status'] = 'in_progress'
  #failure: UampError | undefined
  #reason: ResponseState['reason']
  #signature: string | undefined
  #completedAt: number | null = null
  /** The last event that was read; before that the last one before its first, or less than any where that is not known. */
  seq = -1

  constructor({ id, agent, config, endedAt }: AnswerOptions, wire?: Wire) {
    super(id)
    this.#head = headOf(id, agent, config)
    this.#functions = functionNames(config)
    this.#extras = wantsExtras(config)
    this.#endedAt = endedAt
    this.#wire = wire
    this.#items = new Items({ response: id, agent }, wire)
  }

  /** Why it is no answer, if it has ended and is none. */
  get failure(): UampError | undefined {
    return this.#status === 'cancelled' ? new UampError('cancelled', 'The answer was stopped') : this.#failure
  }

  /** What it is so far. */
  response(): object {
    return responseObject(this.#head, {
      status: this.#status,
      output: this.#items.rendered(),
      completedAt: this.#completedAt,
      error: this.#failure ? shownError(this.#failure) : null,
      reason: this.#reason,
      usage: this.ended ? shownUsage(this.usage) : null,
      signature: this.#signature,
    })
  }

  get output(): readonly OutputItem[] {
    return this.#items.all
  }

  text(text: string, seq: number | undefined): void {
    if (seq !== undefined) this.#reach(seq)
    if (this.running) this.#items.text(text)
  }

  override event(event: ServerEvent, seq: number | undefined): void {
    if (seq !== undefined) this.#reach(seq)
    super.event(event, seq)
  }

  /** Where numbers of the log leap, a process died: what it had told last is lost, and its numbers with it. */
  #reach(seq: number): void {
    if (this.seq >= 0 && seq - this.seq > LEAP) this.#wire?.skip(seq - this.seq)
    this.seq = seq
  }

  /** What was stored of it, item by item. */
  readOutput(output: readonly ContentItem[], asked: ReadonlySet<string>): void {
    for (const item of output) {
      if (item.type === 'text' && !item.refusal) this.#items.text(item.text)
      else if (item.type === 'tool_call' && asked.has(item.tool_call.id)) this.#items.ask(item.tool_call)
      else this.item(item)
    }
    this.#items.close('completed')
  }

  protected get silent(): boolean {
    return this.#items.all.length === 0
  }

  protected begin(): void {
    const response = this.response()
    this.#wire?.send('response.created', { response })
    this.#wire?.send('response.in_progress', { response })
  }

  protected tell(event: ServerEvent): void {
    const items = this.#items
    switch (event.type) {
      case 'response.delta':
        return this.item(event.delta)
      case 'thinking':
        items.think(event.content, event.signature)
        if (event.is_delta === false) items.settle()
        return
      case 'tool.call':
        return items.ask({ id: event.call_id, name: event.name, arguments: event.arguments })
      case 'tool.call_done':
        return items.finishCall(event.call_id)
      case 'x.approval.request':
        return items.approval(event)
      case 'audio.delta':
        return this.#wire?.send('response.audio.delta', { delta: event.audio })
      case 'audio.done':
        return this.#wire?.send('response.audio.done', {})
      case 'transcript.delta':
        return this.#wire?.send('response.audio.transcript.delta', { delta: event.transcript })
      case 'transcript.done':
        return this.#wire?.send('response.audio.transcript.done', {})
      case 'usage.delta':
      case 'payment.required':
        return
      case 'response.done':
        return this.#done(event)
      case 'response.error':
        return this.#fail(toldError(event.error))
      case 'response.cancelled':
        return this.#end('cancelled', 'response.incomplete')
      default:
        if (this.#extras) this.#extra(event)
    }
  }

  protected item(delta: Delta | ContentItem): void {
    const items = this.#items
    switch (delta.type) {
      case 'text':
        return delta.refusal ? items.refuse(delta.text) : items.text(delta.text)
      case 'thinking':
        items.settle()
        items.think(delta.thinking, delta.signature)
        return items.settle()
      case 'tool_call':
        return this.#call(delta.tool_call)
      case 'tool_result':
        return items.result(delta.tool_result)
      case 'tool_progress':
        if (this.#extras) this.#wire?.send('uamp:tool_progress', delta.tool_progress)
        return
      case 'image':
        return items.image(delta)
      default:
        return this.#media(delta)
    }
  }

  #call(call: ToolCall): void {
    if (this.#functions.has(call.name)) this.#items.call(call)
    else this.#items.serverCall(call)
  }

  #media(item: MediaItem): void {
    // A chunk of a stream has no handle; the whole comes with one.
    if (item.type === 'audio' && item.content_id === undefined && typeof item.audio === 'string') {
      return this.#wire?.send('response.audio.delta', { delta: item.audio })
    }
    this.#items.media(item)
  }

  #done(event: EventOf<'response.done'>): void {
    this.#signature = event.signature
    const unpaid = this.questions.find((question) => question.type === 'payment.required')
    if (unpaid) return this.#fail(paymentRefusal(unpaid))
    const stop = stopReason(event)
    this.#reason = stop === 'length' ? 'max_output_tokens' : stop === 'content_filter' ? 'content_filter' : undefined
    if (this.#reason === undefined) this.#end('completed', 'response.completed')
    else this.#end('incomplete', 'response.incomplete')
  }

  #fail(failure: UampError): void {
    this.#failure = failure
    this.#end('failed', 'response.failed')
  }

  #end(status: ResponseState['status'], type: string): void {
    this.#items.close(status === 'completed' ? 'completed' : 'incomplete')
    this.#status = status
    this.#completedAt = status === 'completed' ? Math.floor(this.#endedAt() / 1000) : null
    this.#wire?.send(type, { response: this.response() })
  }

  #extra(event: ServerEvent): void {
    const { type, session_id: _, response_id: __, event_id: ___, seq: ____, ...fields } = event as ServerEvent & { response_id?: string }
    this.#wire?.send(`uamp:${type}`, fields)
  }
}

/** An answer on its way to its client. */
export function framesOf(run: ResponseRun, answer: Answer, wire: Wire): AsyncGenerator<Frame, Frame | undefined> {
  // Made when they are written, so that no text is kept.
  return run.frames((batch) => ({
    eachText: (visit) => {
      wire.to(visit)
      batch.visit(answer)
    },
  }))
}

function shownError(error: UampError): object {
  const { code, message, accepts } = openAiErrorBody(error)
  return { code, message, ...(accepts !== undefined && { accepts }) }
}
