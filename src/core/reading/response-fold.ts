import type { ContentItem } from '../../protocol/content.ts'
import type { ServerEvent } from '../../protocol/events.ts'
import { addUsage, type Usage } from '../../protocol/usage.ts'
import type { Batch, Visitor } from '../ports/session.ts'
import { isEnd, isQuestion, type Question } from './ends.ts'

/**
 * One response, picked out of the events of a session's log, which holds other responses too. An encoder extends it, so that the log
 * calls the encoder itself for every text: `text` must look at `running` first.
 */
export abstract class ResponseFold implements Visitor {
  /** The id of the response. */
  readonly id: string
  /** Between its first event and its last. */
  running = false
  ended = false
  /** The increments added up; once it has ended, what the end says. */
  usage: Usage | undefined
  /** What the client was asked, in order. */
  readonly questions: Question[] = []

  constructor(id: string) {
    this.id = id
  }

  /** The hot path. */
  abstract text(text: string, seq: number | undefined): void

  /** The client was told nothing of the answer yet. */
  protected abstract get silent(): boolean
  protected abstract begin(): void
  /** A whole item of the output. */
  protected abstract item(item: ContentItem): void
  /** An event of the response that is not its beginning. Of its last one `ended` is true. */
  protected abstract tell(event: ServerEvent): void

  /** By functions of one shape for all encoders: a visitor of a class of its own makes each text a tenth dearer. */
  take(batch: Batch): void {
    batch.visit({ text: (text, seq) => this.text(text, seq), event: (event, seq) => this.event(event, seq) })
  }

  event(event: ServerEvent, _seq: number | undefined): void {
    if (this.ended) return
    if (!this.running) {
      if (!('response_id' in event) || event.response_id !== this.id) return
      const begins = event.type === 'response.created'
      // A crash can take the beginning of a response, but not its end.
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
        // Logs of older data folders have outputs that were said only with the end.
        if (this.silent) for (const item of event.response.output) this.item(item)
      }
      this.running = false
      this.ended = true
    }
    this.tell(event)
  }
}
