import type { Batch } from '../../../core/ports/session.ts'
import { ABOUT_OTHERS, ABOUT_PAYMENTS, alike, BESIDE_ANSWERS, tellBy, type Mapping } from '../../../core/reading/mapping.ts'
import { ResponseFold } from '../../../core/reading/response-fold.ts'
import { isMedia, type ContentItem } from '../../../protocol/content.ts'
import type { Draft, EventOf, ServerEvent } from '../../../protocol/events.ts'
import type { Json } from '../../../protocol/json.ts'
import type { Delta } from '../../../protocol/server-events.ts'
import { EVENTS_EXTENSION } from '../../../wire/a2a/extensions.ts'
import type { Artifact, StreamVisitor, TaskStatus } from '../model.ts'
import { mediaArtifact, textArtifactId } from './content.ts'
import { statusOf, type Step } from './records.ts'

export interface Told {
  readonly taskId: string
  readonly contextId: string
  /** The place of the response among those of the task. */
  readonly index: number
  readonly step: Step
  /** Events up to this number of the log are left out, because the client has them. */
  readonly known: number
  /** The client wants thoughts, tool calls and progress too. */
  readonly extras: boolean
  readonly now: () => number
}

const EXTRA = 'for clients that activate `https://uamp.dev/a2a/events/v1`: `TASK_STATE_WORKING` with a message of `data`'
const QUESTION = '`TASK_STATE_INPUT_REQUIRED` with the end of the response; its message has the question in words and as `data`'

/**
 * Makes updates of a task from the events of one response. The same events give the same updates under the same ids, whenever they are
 * read. Text, by far the most frequent, goes through without an object.
 */
export class Narration extends ResponseFold {
  static readonly mapping: Mapping<Narration> = {
    'response.created': ['`TASK_STATE_WORKING`'],
    'response.delta': [
      `text: \`artifactUpdate\` with one \`artifactId\`, \`append\`, \`lastChunk\`; media: an artifact each, \`raw\` or \`url\`, JSON as \`data\`; everything else ${EXTRA}`,
      (told, event) => told.#delta(event),
    ],
    'response.done': [
      '`TASK_STATE_COMPLETED`; by `stop_reason` `TASK_STATE_INPUT_REQUIRED`, `_AUTH_REQUIRED`, `_REJECTED`',
      (told, event) => told.#done(event),
    ],
    'response.cancelled': ['`TASK_STATE_CANCELED`', (told) => told.#end()],
    'response.error': ['`TASK_STATE_FAILED`, with `metadata.code` of its message', (told) => told.#end()],
    ...alike(['tool.call', 'x.approval.request', 'payment.required'], [QUESTION]),
    'usage.delta': [EXTRA, (told, event) => told.#usage(event)],
    ...alike(['audio.delta', 'audio.done'], ['not told: the whole comes as an artifact']),
    ...alike(['session.created', 'session.updated', 'session.end', 'capabilities', 'pong', 'x.ack'], ['not told: a task has no session']),
    ...alike(
      [
        'thinking',
        'progress',
        'tool.call_done',
        'transcript.delta',
        'transcript.done',
        'rate_limit',
        'session.error',
        'x.plan',
        ...ABOUT_PAYMENTS,
        ...ABOUT_OTHERS,
        ...BESIDE_ANSWERS,
      ],
      [EXTRA, (told: Narration, event: ServerEvent) => told.#extra(event)],
    ),
  }

  readonly #told: Told
  readonly #prefix: string
  /** One object for all texts: it holds until the next one. */
  readonly #place: { artifactId: string; first: boolean; seq: string | undefined }
  #out: StreamVisitor | undefined
  #spoke = false
  /** The media that were told. */
  readonly #shown = new Set<string>()
  #counted = false
  /** The response with its end. Set it before the end is read. */
  left: Step | undefined
  /** The last event that was read. */
  seq = 0

  constructor(told: Told) {
    super(told.step.turn)
    this.#told = told
    this.#prefix = `${told.index}.`
    this.#place = { artifactId: textArtifactId(told.step.turn), first: true, seq: undefined }
  }

  read(batch: Batch, out: StreamVisitor): void {
    this.#out = out
    this.take(batch)
    this.#out = undefined
  }

  text(text: string, seq = 0): void {
    if (!this.running) return
    this.seq = seq
    const place = this.#place
    place.first = !this.#spoke
    this.#spoke = true
    if (seq <= this.#told.known) return
    place.seq = this.#prefix + seq
    this.#out?.text(text, place)
  }

  override event(event: ServerEvent, seq = 0): void {
    if (!this.ended) this.seq = seq
    super.event(event, seq)
  }

  protected get silent(): boolean {
    return !this.#spoke && this.#shown.size === 0
  }

  protected begin(): void {
    this.#status(statusOf('TASK_STATE_WORKING', this.#told.step.startedAt))
  }

  protected tell(event: ServerEvent): void {
    tellBy(Narration.mapping, this, event)
  }

  /** Has no id of its own: a client that lost the status after it gets both again. */
  protected item(item: ContentItem): void {
    if (this.seq <= this.#told.known) return
    if (isMedia(item)) return this.#artifact(mediaArtifact(item), undefined)
    if (item.type !== 'text' || this.left?.quiet) return
    this.#place.first = !this.#spoke
    this.#place.seq = undefined
    this.#spoke = true
    this.#out?.text(item.text, this.#place)
  }

  #delta(event: EventOf<'response.delta'>): void {
    const { delta } = event
    if (delta.type === 'text') return this.text(delta.text, this.seq)
    if (!isMedia(delta)) return this.#extra(event, delta)
    // A chunk of audio has no content id; the whole has one.
    if (delta.content_id !== undefined) this.#artifact(mediaArtifact(delta), this.seq)
  }

  #usage(event: EventOf<'usage.delta'>): void {
    this.#counted = true
    this.#extra(event)
  }

  #done({ response }: EventOf<'response.done'>): void {
    if (this.seq <= this.#told.known) return
    // Speech that came in pieces is whole only now.
    for (const item of response.output) if (isMedia(item) && !this.#shown.has(item.content_id ?? '')) this.item(item)
    if (this.#spoke) this.#lastChunk()
    // Usage may be known only at the end.
    if (this.usage && !this.#counted) this.#extra({ type: 'usage.delta', delta: this.usage })
    this.#end()
  }

  #end(): void {
    if (this.left?.end) this.#status(this.left.end)
  }

  /** Only the end tells which piece was the last. Has no id of its own: a client that lost the status after it gets both again. */
  #lastChunk(): void {
    const artifact = { artifactId: this.#place.artifactId, parts: [{ text: '' }] }
    this.#out?.event({ artifactUpdate: { artifact, append: true, lastChunk: true, ...this.#ids() } }, undefined)
  }

  #artifact(artifact: Artifact, seq: number | undefined): void {
    this.#shown.add(artifact.artifactId)
    if (seq !== undefined && seq <= this.#told.known) return
    const update = { artifact, append: false, lastChunk: true, ...this.#ids() }
    this.#out?.event({ artifactUpdate: update }, seq === undefined ? undefined : this.#prefix + seq)
  }

  #status(status: TaskStatus): void {
    if (this.seq > this.#told.known) this.#out?.event({ statusUpdate: { status, ...this.#ids() } }, this.#prefix + this.seq)
  }

  #extra(event: ServerEvent | Draft<EventOf<'usage.delta'>>, delta?: Delta): void {
    if (!this.#told.extras || this.seq <= this.#told.known) return
    const { event_id: _, seq: __, session_id: ___, response_id: ____, ...fields } = event as Partial<ServerEvent> & { response_id?: string }
    const status = statusOf('TASK_STATE_WORKING', this.#told.now(), {
      messageId: `${this.#place.artifactId}-${this.seq}`,
      role: 'ROLE_AGENT',
      ...this.#ids(),
      parts: [{ data: (delta ?? fields) as unknown as Json }],
      extensions: [EVENTS_EXTENSION],
    })
    this.#status(status)
  }

  #ids(): { readonly taskId: string; readonly contextId: string } {
    const { taskId, contextId } = this.#told
    return { taskId, contextId }
  }
}
