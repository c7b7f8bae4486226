import { ofResponse } from '../../core/edge/report-error.ts'
import type { Frame } from '../../core/ports/transport.ts'
import { ResponseFold, stopReason } from '../../core/reading/response-fold.ts'
import { ABOUT_OTHERS, ABOUT_PAYMENTS, ABOUT_SESSIONS, alike, BESIDE_ANSWERS, tellBy, type Mapping } from '../../core/reading/mapping.ts'
import type { ResponseRun } from '../../core/reading/response-run.ts'
import type { ContentItem, MediaItem, ToolCall } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import type { EventOf, ServerEvent } from '../../protocol/events.ts'
import { textOf } from '../../protocol/message.ts'
import type { Delta } from '../../protocol/server-events.ts'
import { openAiEventError, toldError } from '../../wire/openai/errors.ts'
import { BY_HEADER, paymentRefusal } from '../../protocol/payment-refusal.ts'
import { paidHeaders, paidIn } from '../../wire/payment.ts'
import { Items } from './item-list.ts'
import type { OutputItem } from './items.ts'
import { functionNames, wantsExtras } from './request.ts'
import { responseObject, shownUsage, type ResponseHead, type ResponseState } from './response.ts'
import type { Wire } from './wire.ts'

export interface AnswerOptions extends ResponseHead {
  /** When it ended, in milliseconds. */
  readonly endedAt: () => number
}

/** A larger gap between numbers of the log shows that a process died in between. */
const LEAP = 10_000

/**
 * One response, from the events of a session's log. The same events always give the same answer with the same numbers: while it runs,
 * when a client comes back, or days later. Without a wire it is only gathered.
 */
export class Answer extends ResponseFold {
  static readonly mapping: Mapping<Answer> = {
    'response.created': ['`response.created`, `response.in_progress`'],
    'response.delta': [
      'text: `response.output_text.delta`, or `response.refusal.delta`; calls of the client’s functions: `function_call` item; ' +
        'calls and results of the agent’s own tools: `mcp_call` item; images: `image_generation_call` item; other media: message item',
      (answer, { delta }) => answer.item(delta),
    ],
    thinking: [
      '`reasoning` item',
      (answer, { content, signature, is_delta }) => {
        answer.#items.think(content, signature)
        if (is_delta === false) answer.#items.settle()
      },
    ],
    'tool.call': [
      '`function_call` item',
      (answer, { call_id: id, name, arguments: args }) => answer.#items.ask({ id, name, arguments: args }),
    ],
    'tool.call_done': ['the end of a `function_call` item', (answer, { call_id }) => answer.#items.finishCall(call_id)],
    'x.approval.request': [
      '`mcp_approval_request` item; never asked with `store: false`',
      (answer, event) => answer.#items.approval(event),
    ],
    'audio.delta': ['`response.audio.delta`', (answer, { audio }) => answer.#audio(audio)],
    'audio.done': ['`response.audio.done`', (answer) => answer.#wire?.send('response.audio.done', {})],
    'transcript.delta': [
      '`response.audio.transcript.delta`',
      (answer, { transcript }) => {
        answer.#words += transcript
        answer.#wire?.send('response.audio.transcript.delta', { delta: transcript })
      },
    ],
    'transcript.done': [
      '`response.audio.transcript.done`',
      (answer, { transcript }) => {
        if (transcript?.startsWith(answer.#words)) answer.#words = transcript
        answer.#wire?.send('response.audio.transcript.done', {})
      },
    ],
    'usage.delta': ['added up: `usage`'],
    'payment.required': ['402, or `response.failed`'],
    'response.done': [
      '`response.completed`, or `response.incomplete`; `signature`, and `uamp` with the payments',
      (answer, event) => answer.#done(event),
    ],
    'response.error': ['a status, or `response.failed`', (answer, { error }) => answer.#fail(ofResponse(toldError(error)))],
    'response.cancelled': ['`response.incomplete`', (answer) => answer.#end('cancelled', 'response.incomplete')],
    ...alike(
      [...ABOUT_SESSIONS, ...ABOUT_OTHERS, ...ABOUT_PAYMENTS, ...BESIDE_ANSWERS, 'session.error', 'session.end', 'progress', 'x.plan'],
      ['an event named `uamp:…`, for clients that ask for those', (answer: Answer, event: ServerEvent) => answer.#extra(event)] as const,
    ),
  }

  readonly #options: AnswerOptions
  /** The functions that the client runs. Calls of others are the agent's own. */
  readonly #functions: ReadonlySet<string>
  /** Tell events that OpenAI does not have, as `uamp:…`. Only on request, because OpenAI's own clients fail on them. */
  readonly #extras: boolean
  readonly #wire: Wire | undefined
  readonly #items: Items
  #status: ResponseState['status'] = 'in_progress'
  #failure: UampError | undefined
  #reason: ResponseState['reason']
  #signature: string | undefined
  #extensions: EventOf<'response.done'>['response']['extensions']
  #completedAt: number | null = null
  /** Sound or words came in pieces, and no item has them yet. */
  #sound = false
  #words = ''
  /** The number of the last event that was read, or of the event before the response; -1 if that is not known. */
  seq = -1

  constructor(options: AnswerOptions, wire?: Wire) {
    const { id, agent, config } = options
    super(id)
    this.#options = options
    this.#functions = functionNames(config)
    this.#extras = wantsExtras(config)
    this.#wire = wire
    this.#items = new Items({ response: id, agent }, wire)
  }

  /** Why the response failed, if it did. */
  get failure(): UampError | undefined {
    return this.#status === 'cancelled' ? new UampError('cancelled', 'The answer was stopped') : this.#failure
  }

  /** What was paid for it, for clients that look at headers. */
  get headers(): Record<string, string> {
    return paidHeaders(this.#extensions)
  }

  /** The response object so far. */
  response(): object {
    return responseObject(this.#options, {
      status: this.#status,
      output: this.#items.rendered(),
      completedAt: this.#completedAt,
      error: this.#failure ? shownError(this.#failure) : null,
      reason: this.#reason,
      usage: this.ended ? shownUsage(this.usage) : null,
      signature: this.#signature,
      paid: paidIn(this.#extensions),
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

  /** A leap in the numbers of the log shows that a process died. Its last events are lost, and their numbers with them. */
  #reach(seq: number): void {
    if (this.seq >= 0 && seq - this.seq > LEAP) this.#wire?.skip(seq - this.seq)
    this.seq = seq
  }

  /** Reads the stored output, item by item. */
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
    tellBy(Answer.mapping, this, event)
  }

  protected item(delta: Delta | ContentItem): void {
    const items = this.#items
    switch (delta.type) {
      case 'text':
        if (delta.text === this.#words) this.#words = ''
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
      case 'audio':
      case 'video':
      case 'file':
        return this.#media(delta)
    }
  }

  #call(call: ToolCall): void {
    if (this.#functions.has(call.name)) this.#items.call(call)
    else this.#items.serverCall(call)
  }

  #media(item: MediaItem): void {
    // A piece of a stream has no content id; the whole has one.
    if (item.type === 'audio' && item.content_id === undefined && typeof item.audio === 'string') {
      return this.#audio(item.audio)
    }
    if (item.type === 'audio') {
      this.#sound = false
      this.#words = ''
    }
    this.#items.media(item)
  }

  #audio(piece: string): void {
    this.#sound = true
    this.#wire?.send('response.audio.delta', { delta: piece })
  }

  #done(event: EventOf<'response.done'>): void {
    this.#signature = event.signature
    this.#extensions = event.response.extensions
    const unpaid = this.questions.find((question) => question.type === 'payment.required')
    if (unpaid) return this.#fail(paymentRefusal(unpaid, BY_HEADER))
    // Speech that came only in pieces is an item now: its sound, or its words unless they were said as text, too.
    const { output } = event.response
    const isSaid = !this.silent && textOf(output) === this.#words
    const isSpeech = (item: ContentItem): boolean =>
      item.type === 'audio' ? this.#sound : item.type === 'text' && item.text === this.#words && !isSaid
    const speech = output.find(isSpeech)
    if (speech) this.item(speech)
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
    this.#completedAt = status === 'completed' ? Math.floor(this.#options.endedAt() / 1000) : null
    this.#wire?.send(type, { response: this.response() })
  }

  #extra(event: ServerEvent): void {
    if (!this.#extras) return
    const { type, session_id: _, response_id: __, event_id: ___, seq: ____, ...fields } = event as ServerEvent & { response_id?: string }
    this.#wire?.send(`uamp:${type}`, fields)
  }
}

/** The frames of an answer, as its client gets them. */
export function framesOf(run: ResponseRun, answer: Answer, wire: Wire): AsyncGenerator<Frame, Frame | undefined> {
  // Made while they are written, so that no text is kept in memory.
  return run.frames((batch) => ({
    eachText: (visit) => {
      wire.to(visit)
      answer.take(batch)
    },
  }))
}

function shownError(error: UampError): object {
  const { type: _, param: _p, code, message, ...beside } = openAiEventError(error)
  return { code, message, ...beside }
}
