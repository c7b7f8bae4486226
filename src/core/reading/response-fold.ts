import type { ContentItem } from '../../protocol/content.ts'
import type { ServerEvent, EventOf } from '../../protocol/events.ts'
import { addUsage, type Usage } from '../../protocol/usage.ts'
import type { Batch, Visitor } from '../ports/session.ts'
import { uampIn } from '../../protocol/json.ts'

/**
 * Picks the events of one response out of a session's log, which holds other responses too. Encoders extend it, so that each text is
 * a single call; therefore an encoder's `text` must check `running` first.
 */
export abstract class ResponseFold implements Visitor {
  /** The id of the response. */
  readonly id: string
  /** True between the first event of the response and the last. */
  running = false
  ended = false
  /** The sum of the increments; after the end, the usage that the end names. */
  usage: Usage | undefined
  /** The questions that the response asked, in order. */
  readonly questions: Question[] = []

  constructor(id: string) {
    this.id = id
  }

  /** The hot path. */
  abstract text(text: string, seq: number | undefined): void

  /** True while the client has seen nothing of the answer. */
  protected abstract get silent(): boolean
  protected abstract begin(): void
  /** A whole item of the output. */
  protected abstract item(item: ContentItem): void
  /** Every event of the response after its first. During the last one, `ended` is already true. */
  protected abstract tell(event: ServerEvent): void

  /** Passes functions instead of `this`: one visitor shape for all encoders makes each text a tenth cheaper. */
  take(batch: Batch): void {
    batch.visit({ text: (text, seq) => this.text(text, seq), event: (event, seq) => this.event(event, seq) })
  }

  event(event: ServerEvent, _seq: number | undefined): void {
    if (this.ended) return
    if (!this.running) {
      if (!('response_id' in event) || event.response_id !== this.id) return
      const begins = event.type === 'response.created'
      // After a crash the beginning of a response may be missing; its end never is.
      if (!begins && !isEnd(event)) return
      this.running = true
      this.begin()
      if (begins) return
    }
    if (event.type === 'usage.delta') this.usage = addUsage(this.usage, event.delta)
    else if (isQuestion(event)) this.questions.push(event)
    else if (isEnd(event)) {
      if (event.type === 'response.done') {
        this.usage = event.response.usage ?? this.usage
        // In logs of older versions, the end may hold output that was never streamed.
        if (this.silent) for (const item of event.response.output) this.item(item)
      }
      this.running = false
      this.ended = true
    }
    this.tell(event)
  }
}

/** The events that end a response. */
export const RESPONSE_ENDS: ReadonlySet<string> = new Set(['response.done', 'response.error', 'response.cancelled'])

export type EndEvent = EventOf<'response.done' | 'response.error' | 'response.cancelled'>

export function isEnd(event: { readonly type: string }): event is EndEvent {
  return RESPONSE_ENDS.has(event.type)
}

/** Stop reason; absent when the answer is complete. */
export function stopReason({ response }: Pick<EventOf<'response.done'>, 'response'>): string | undefined {
  const reason = uampIn(response.extensions)['stop_reason']
  return typeof reason === 'string' ? reason : undefined
}

/** True if a response ended with questions, which the next request answers. */
export function isWaiting({ response }: Pick<EventOf<'response.done'>, 'response'>): boolean {
  return Array.isArray(uampIn(response.extensions)['waiting'])
}

export type Question = EventOf<'tool.call' | 'x.approval.request' | 'payment.required'>

export function isQuestion<E extends { readonly type: string }>(event: E): event is Extract<E, Pick<Question, 'type'>> {
  return event.type === 'tool.call' || event.type === 'x.approval.request' || event.type === 'payment.required'
}
