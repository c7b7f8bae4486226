import type { Batch } from '../../core/ports/session.ts'
import { ABOUT_OTHERS, ABOUT_PAYMENTS, ABOUT_SESSIONS, alike, BESIDE_ANSWERS, tellBy, type Mapping } from '../../core/reading/mapping.ts'
import { ResponseFold } from '../../core/reading/response-fold.ts'
import type { ContentItem, ToolCall } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import type { EventOf, ServerEvent } from '../../protocol/events.ts'
import { jsonText } from '../../protocol/json.ts'
import type { Delta } from '../../protocol/server-events.ts'
import { openAiEventError, toldError } from '../../wire/openai/errors.ts'
import { BY_HEADER, paymentRefusal } from '../../protocol/payment-refusal.ts'
import { paidIn } from '../../wire/payment.ts'
import { Speech } from '../../wire/speech.ts'
import { finishReason, saidBy } from './finish.ts'
import type { Shape } from './request.ts'

/** `expires_at` of audio, a required field: after it, clients can no longer refer to the audio by its id. Nothing is kept here. */
export const AUDIO_EXPIRES_S = 3600

/** The fields that all chunks of one HTTP response share. */
export interface ChunkHead {
  readonly id: string
  readonly created: number
  readonly model: string
}

/**
 * Encodes one choice of a streamed answer as texts ready for the wire. Every chunk is complete, because clients that collect chunks
 * (`.stream()` of OpenAI's) fail on one without an index, on a first one without a role, and on an answer without a finish reason.
 */
export class ChunkEncoder extends ResponseFold {
  static readonly mapping: Mapping<ChunkEncoder> = {
    'response.created': ['the first chunk, with the first word'],
    'response.delta': [
      'text: `delta.content`, or `delta.refusal`; calls of the client’s functions: `delta.tool_calls`; everything else: `content_items`',
      (chunks, { delta }) => chunks.item(delta),
    ],
    thinking: ['`delta.reasoning_content`', (chunks, { content }) => content !== '' && chunks.#chunk({ reasoning_content: content })],
    'tool.call': [
      '`delta.tool_calls`; `finish_reason` is `tool_calls`',
      (chunks, { call_id: id, name, arguments: args }) => chunks.#ask({ id, name, arguments: args }),
    ],
    'audio.delta': ['`delta.audio.data`, for clients that want sound', (chunks, { audio }) => chunks.#piece(audio)],
    'transcript.delta': [
      '`delta.audio.transcript`; `delta.content` for clients that do not want sound',
      (chunks, { transcript }) => {
        chunks.#speech.say(transcript)
        chunks.#words(transcript)
      },
    ],
    'transcript.done': [
      'what of the words did not come before',
      (chunks, { transcript }) => chunks.#words(chunks.#speech.complete(transcript)),
    ],
    'usage.delta': ['added up: `usage`'],
    'response.done': [
      '`finish_reason`, `usage`, and `signature` and `uamp` (payments) in a last chunk without choices',
      (chunks, event) => chunks.#done(event),
    ],
    'response.error': ['a status, or an error in the stream', (chunks, { error }) => chunks.#fail(toldError(error))],
    'response.cancelled': ['an error, `cancelled`', (chunks) => chunks.#fail(new UampError('cancelled', 'The answer was stopped'))],
    'payment.required': ['402, or an error in the stream', (chunks, event) => chunks.#fail(paymentRefusal(event, BY_HEADER))],
    'x.approval.request': ['never asked: the agent is told that nobody is there to allow it'],
    ...alike([...ABOUT_SESSIONS, ...ABOUT_OTHERS, 'session.error', 'session.end'], ['not told: there is no session']),
    ...alike(ABOUT_PAYMENTS, ['not told: no field']),
    ...alike(['progress', 'tool.call_done', 'audio.done', 'x.plan', ...BESIDE_ANSWERS], ['not told: no field']),
  }

  readonly #head: ChunkHead
  readonly #shape: Shape
  /** The text of a chunk before its delta, and after it. */
  readonly #before: string
  readonly #after: string
  readonly #textBefore: string
  readonly #textAfter: string
  /** The index of each call of a client's function. */
  readonly #calls = new Map<string, number>()
  readonly #asked = new Set<string>()
  readonly #results = new Set<string>()
  readonly #speech = new Speech()
  #visit: (text: string) => void = () => undefined
  /** True between the first chunk and the last; read for every delta. */
  #begun = false
  #audible = false
  /** The response was refused or broke off, and the client was told why. */
  failed = false
  signature: string | undefined
  /** What was paid for the answer. */
  paid: ReturnType<typeof paidIn>

  constructor(response: string, { head, shape, index }: { readonly head: ChunkHead; readonly shape: Shape; readonly index: number }) {
    super(response)
    this.#head = head
    this.#shape = shape
    this.#before = `${chunkStart(head)}[{"index":${index},"delta":`
    this.#after = `,"finish_reason":null}]${shape.usage ? ',"usage":null' : ''}}\n\n`
    this.#textBefore = `${this.#before}{"content":`
    this.#textAfter = `}${this.#after}`
  }

  read(batch: Batch, visit: (text: string) => void): void {
    this.#visit = visit
    this.take(batch)
  }

  /** The hot path: only the text itself has to be quoted. */
  text(text: string): void {
    if (!this.#begun) {
      if (!this.running) return
      this.#start()
    }
    this.#visit(this.#textBefore + jsonText(text) + this.#textAfter)
  }

  protected get silent(): boolean {
    return !this.#begun
  }

  /** Writes nothing: an answer that is refused before its first word has no chunk. */
  protected begin(): void {}

  protected tell(event: ServerEvent): void {
    tellBy(ChunkEncoder.mapping, this, event)
  }

  protected item(delta: Delta): void {
    switch (delta.type) {
      case 'text':
        return delta.refusal ? this.#chunk({ refusal: delta.text }) : this.text(delta.text)
      case 'thinking':
        return this.#chunk({ reasoning_content: delta.thinking })
      case 'tool_call':
        return this.#call(delta.tool_call)
      case 'tool_result':
        this.#results.add(delta.tool_result.call_id)
        return this.#calls.has(delta.tool_result.call_id) ? undefined : this.#other(delta)
      case 'audio':
        return this.#sound(delta)
      case 'tool_progress':
        return
      case 'image':
      case 'video':
      case 'file':
        return this.#other(delta)
    }
  }

  /** Tells an item for which OpenAI has no field. */
  #other(item: ContentItem): void {
    this.#chunk({ content_items: [item] })
  }

  /** A call that the client is asked to run is complete: most often it was streamed before, and later pieces of it are ignored. */
  #ask(call: ToolCall): void {
    if (!this.#calls.has(call.id)) this.#call(call)
    this.#asked.add(call.id)
  }

  #call(call: ToolCall): void {
    if (this.#asked.has(call.id)) return
    const known = this.#calls.get(call.id)
    if (known === undefined && !this.#shape.functions.has(call.name)) return this.#other({ type: 'tool_call', tool_call: { ...call } })
    if (this.#shape.legacy) {
      this.#calls.set(call.id, 0)
      return this.#chunk({ function_call: { ...(known === undefined && { name: call.name }), arguments: call.arguments } })
    }
    const index = known ?? this.#calls.size
    this.#calls.set(call.id, index)
    const begins = known === undefined && { id: call.id, type: 'function' }
    const named = known === undefined && { name: call.name }
    this.#chunk({ tool_calls: [{ index, ...begins, function: { ...named, arguments: call.arguments } }] })
  }

  /** A chunk of sound has no content id. The complete item has one, and most often its chunks came before. */
  #sound(item: Extract<ContentItem, { type: 'audio' }>): void {
    const { audio, content_id, transcript } = item
    if (content_id === undefined) this.#speech.piece()
    const { isNew, words } = content_id === undefined ? { isNew: true, words: transcript ?? '' } : this.#speech.whole(transcript)
    if (this.#shape.audio === undefined || typeof audio !== 'string') {
      this.#other(item)
      return this.#words(words)
    }
    if (isNew) this.#audio({ data: audio, ...(words !== '' && { transcript: words }) })
    else this.#words(words)
  }

  #piece(data: string): void {
    this.#speech.piece()
    if (this.#shape.audio !== undefined) this.#audio({ data })
  }

  /** Tells spoken words. For clients without sound they are the answer itself. */
  #words(words: string): void {
    if (words === '') return
    if (this.#shape.audio === undefined) this.text(words)
    else this.#audio({ transcript: words })
  }

  #audio(audio: { data?: string; transcript?: string }): void {
    const begins = !this.#audible && { id: `audio_${this.#head.id}`, expires_at: this.#head.created + AUDIO_EXPIRES_S }
    this.#audible = true
    this.#chunk({ audio: { ...begins, ...audio } })
  }

  #done(event: EventOf<'response.done'>): void {
    if (!this.#begun) this.#start()
    this.signature = event.signature
    this.paid = paidIn(event.response.extensions)
    const pending = [...this.#calls.keys()].some((id) => !this.#results.has(id))
    const finish = finishReason(event, { pending, legacy: this.#shape.legacy })
    const { logprobs, system_fingerprint: print } = saidBy(event)
    const odds = logprobs === undefined ? '' : `,"logprobs":${JSON.stringify(logprobs)}`
    const more = `${print === undefined ? '' : `,"system_fingerprint":${JSON.stringify(print)}`}${this.#shape.usage ? ',"usage":null' : ''}`
    this.#visit(`${this.#before}{}${odds},"finish_reason":${JSON.stringify(finish)}}]${more}}\n\n`)
    this.#begun = false
  }

  #fail(error: UampError): void {
    this.ended = this.failed = true
    this.running = this.#begun = false
    this.#visit(errorChunk(openAiEventError(error)))
  }

  #chunk(delta: object): void {
    if (!this.#begun) this.#start()
    this.#visit(this.#before + JSON.stringify(delta) + this.#after)
  }

  #start(): void {
    this.#begun = true
    this.#visit(`${this.#before}{"role":"assistant","content":""}${this.#after}`)
  }
}

/** A chunk without choices, like OpenAI's chunk for usage: the only place where every client accepts unknown fields. */
export function lastChunk(head: ChunkHead, fields: Readonly<Record<string, unknown>>): string {
  return `${chunkStart(head)}[],${JSON.stringify(fields).slice(1)}\n\n`
}

export const DONE = 'data: [DONE]\n\n'

export function errorChunk(error: object): string {
  return `data: ${JSON.stringify({ error })}\n\n`
}

function chunkStart({ id, created, model }: ChunkHead): string {
  return `data: {"id":${JSON.stringify(id)},"object":"chat.completion.chunk","created":${created},"model":${JSON.stringify(model)},"choices":`
}
