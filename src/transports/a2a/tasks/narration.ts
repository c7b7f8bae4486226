import type { Batch, Visitor } from '../../../core/ports/session.ts'
import { isMedia, type ContentItem } from '../../../protocol/content.ts'
import type { ServerEvent } from '../../../protocol/events.ts'
import type { Json } from '../../../protocol/json.ts'
import type { Delta } from '../../../protocol/server-events.ts'
import { EVENTS_EXTENSION } from '../../../wire/a2a/extensions.ts'
import type { Artifact, StreamVisitor, TaskStatus } from '../model.ts'
import { artifactsOf, mediaArtifact, textArtifactId } from './artifacts.ts'
import { isEnd, type EndEvent } from './ending.ts'
import type { Step } from './records.ts'
import { statusOf } from './shared.ts'

export interface Told {
  readonly taskId: string
  readonly contextId: string
  /** The place of the response among those of the task. */
  readonly index: number
  readonly step: Step
  /** What a client has already: events up to this number of the log are left out. */
  readonly known: number
  /** The client wants thoughts, tool calls and progress too. */
  readonly extras: boolean
  readonly now: () => number
}

/** Events that a stream tells in other words, or that are of no concern to a client. */
const OWN: ReadonlySet<string> = new Set([
  'response.created',
  'session.created',
  'session.updated',
  'session.end',
  'capabilities',
  'tool.call',
  'x.approval.request',
  'payment.required',
  'audio.delta',
  'audio.done',
])

/**
 * One response as updates of its task, from the events of a session's log: the same events give the same updates under the same
 * ids, whenever they are read. Text, by far the most frequent, goes through without an object.
 */
export class Narration {
  readonly #told: Told
  readonly #prefix: string
  /** One for all texts: it is good until the next one. */
  readonly #place: { artifactId: string; first: boolean; seq: string | undefined }
  readonly #visitor: Visitor
  #out: StreamVisitor | undefined
  #running = false
  #over = false
  #spoke = false
  #showed = false
  /** Its response with what that left the task in. To be set before its end is read. */
  ended: Step | undefined
  /** Its end was read. */
  get over(): boolean {
    return this.#over
  }

  /** The last event that was read. */
  seq = 0

  constructor(told: Told) {
    this.#told = told
    this.#prefix = `${told.index}.`
    this.#place = { artifactId: textArtifactId(told.step.turn), first: true, seq: undefined }
    this.#visitor = {
      text: (text, seq) => this.#text(text, seq ?? 0),
      event: (event, seq) => this.#event(event, seq ?? 0),
    }
  }

  read(batch: Batch, out: StreamVisitor): void {
    this.#out = out
    batch.visit(this.#visitor)
    this.#out = undefined
  }

  #text(text: string, seq: number): void {
    if (!this.#running) return
    const place = this.#place
    place.first = !this.#spoke
    this.#spoke = true
    this.seq = seq
    if (seq <= this.#told.known) return
    place.seq = this.#prefix + seq
    this.#out?.text(text, place)
  }

  #event(event: ServerEvent, seq: number): void {
    if (this.#over) return
    if (event.type === 'response.created' && event.response_id === this.#told.step.turn) this.#running = true
    this.seq = seq
    if (isEnd(event)) {
      // A crash can take the beginning of a response, but not its end.
      if (this.#running || event.response_id === this.#told.step.turn) this.#end(event, seq)
    } else if (this.#running) this.#during(event, seq)
  }

  #during(event: ServerEvent, seq: number): void {
    if (event.type === 'response.created') return this.#status(statusOf('TASK_STATE_WORKING', this.#told.step.startedAt), seq)
    const delta = event.type === 'response.delta' ? event.delta : undefined
    if (delta?.type === 'text') return this.#text(delta.text, seq)
    // A chunk of audio has no handle; the whole comes with one.
    if (delta && isMedia(delta)) return delta.content_id === undefined ? undefined : this.#artifact(mediaArtifact(delta), seq)
    if (this.#told.extras && !OWN.has(event.type)) this.#extra(event, delta, seq)
  }

  #end(event: EndEvent, seq: number): void {
    this.#over = true
    this.#running = false
    if (seq <= this.#told.known) return
    if (event.type === 'response.done') {
      if (!this.#spoke && !this.#showed) this.#unsaid(event.response.output)
      if (this.#spoke) this.#lastChunk()
    }
    if (this.ended?.end) this.#status(this.ended.end, seq)
  }

  /** An agent may say everything with its end. */
  #unsaid(output: readonly ContentItem[]): void {
    for (const artifact of artifactsOf(this.#told.step.turn, output, this.ended?.quiet)) {
      if (artifact.artifactId !== this.#place.artifactId) this.#artifact(artifact, undefined)
      else {
        this.#spoke = true
        this.#place.first = true
        this.#place.seq = undefined
        this.#out?.text(artifact.parts[0]?.text ?? '', this.#place)
      }
    }
  }

  /** Which piece is the last is known only after it. Has no id of its own: who lost the status after it gets both. */
  #lastChunk(): void {
    const artifact = { artifactId: this.#place.artifactId, parts: [{ text: '' }] }
    this.#out?.event({ artifactUpdate: { ...this.#ids(), artifact, append: true, lastChunk: true } }, undefined)
  }

  #artifact(artifact: Artifact, seq: number | undefined): void {
    this.#showed = true
    if (seq !== undefined && seq <= this.#told.known) return
    const update = { ...this.#ids(), artifact, append: false, lastChunk: true }
    this.#out?.event({ artifactUpdate: update }, seq === undefined ? undefined : this.#prefix + seq)
  }

  #status(status: TaskStatus, seq: number): void {
    if (seq > this.#told.known) this.#out?.event({ statusUpdate: { ...this.#ids(), status } }, this.#prefix + seq)
  }

  #extra(event: ServerEvent, delta: Delta | undefined, seq: number): void {
    if (seq <= this.#told.known) return
    const { event_id: _, seq: __, session_id: ___, response_id: ____, ...fields } = event as ServerEvent & { response_id?: string }
    const { taskId, contextId } = this.#told
    const status = statusOf('TASK_STATE_WORKING', this.#told.now(), {
      messageId: `${this.#place.artifactId}-${seq}`,
      role: 'ROLE_AGENT',
      taskId,
      contextId,
      parts: [{ data: (delta ?? fields) as unknown as Json }],
      extensions: [EVENTS_EXTENSION],
    })
    this.#status(status, seq)
  }

  #ids(): { readonly taskId: string; readonly contextId: string } {
    const { taskId, contextId } = this.#told
    return { taskId, contextId }
  }
}
