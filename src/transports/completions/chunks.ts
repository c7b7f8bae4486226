import type { ContentItem, ToolCall } from '../../protocol/content.ts'
import type { EventOf, ServerEvent } from '../../protocol/events.ts'
import { jsonText } from '../../protocol/json.ts'
import type { Delta } from '../../protocol/server-events.ts'
import { openAiErrorBody, toldError } from '../../wire/openai/errors.ts'
import { paymentRefusal } from '../../wire/payment.ts'
import { Speech } from '../../wire/speech.ts'
import { finishReason } from './finish.ts'
import type { Shape } from './request.ts'

/** Clients are told when audio can no longer be referred to. Nothing is kept here: it is whole when it arrives. */
export const AUDIO_EXPIRES_S = 3600

/** What all chunks of one answer have in common. */
export interface ChunkHead {
  readonly id: string
  readonly created: number
  readonly model: string
}

/**
 * One choice of a streamed answer, event by event, as texts ready for the wire. Every chunk is complete: clients that gather them
 * (`.stream()` of OpenAI's) fail on one without an index, on a first one without a role, on an answer without a finish reason.
 */
export class ChunkEncoder {
  readonly #head: ChunkHead
  readonly #shape: Shape
  /** Up to the delta, and after it. */
  readonly #before: string
  readonly #after: string
  readonly #textBefore: string
  /** The place of each call of a client's function in this answer. */
  readonly #calls = new Map<string, number>()
  readonly #asked = new Set<string>()
  readonly #results = new Set<string>()
  readonly #speech = new Speech()
  #begun = false
  #audible = false

  constructor(head: ChunkHead, shape: Shape, index: number) {
    this.#head = head
    this.#shape = shape
    this.#before = `${chunkStart(head)}[{"index":${index},"delta":`
    this.#after = `,"finish_reason":null}]${shape.usage ? ',"usage":null' : ''}}\n\n`
    this.#textBefore = `${this.#before}{"content":`
  }

  /** The hot path: only the text itself is quoted. */
  text(text: string): string {
    const chunk = this.#textBefore + jsonText(text) + '}' + this.#after
    return this.#begun ? chunk : this.#begin() + chunk
  }

  /** The chunks that an event becomes; none, for most kinds. */
  event(event: ServerEvent): string {
    switch (event.type) {
      case 'response.delta':
        return this.#delta(event.delta)
      case 'thinking':
        return event.content === '' ? '' : this.#chunk({ reasoning_content: event.content })
      case 'tool.call':
        return this.#ask({ id: event.call_id, name: event.name, arguments: event.arguments })
      case 'audio.delta':
        this.#speech.piece()
        return this.#shape.audio === undefined ? '' : this.#audio({ data: event.audio })
      case 'transcript.delta':
        this.#speech.say(event.transcript)
        return this.#words(event.transcript)
      case 'transcript.done':
        return this.#words(this.#speech.complete(event.transcript))
      case 'response.done':
        return this.#done(event)
      case 'response.error':
        return errorChunk(openAiErrorBody(toldError(event.error)))
      case 'response.cancelled':
        return errorChunk(openAiErrorBody(toldError({ code: 'cancelled', message: 'The answer was stopped' })))
      case 'payment.required':
        return errorChunk(openAiErrorBody(paymentRefusal(event)))
      default:
        return ''
    }
  }

  #delta(delta: Delta): string {
    switch (delta.type) {
      case 'text':
        return delta.refusal ? this.#chunk({ refusal: delta.text }) : this.text(delta.text)
      case 'thinking':
        return this.#chunk({ reasoning_content: delta.thinking })
      case 'tool_call':
        return this.#call(delta.tool_call)
      case 'tool_result':
        this.#results.add(delta.tool_result.call_id)
        return this.#calls.has(delta.tool_result.call_id) ? '' : this.#item(delta)
      case 'audio':
        return this.#sound(delta)
      case 'tool_progress':
        return ''
      default:
        return this.#item(delta)
    }
  }

  /** What OpenAI has no field for, beside what it has. */
  #item(item: ContentItem): string {
    return this.#chunk({ content_items: [item] })
  }

  /** A call that is put to the client is whole: most often it was streamed before, and nothing of it comes after. */
  #ask(call: ToolCall): string {
    const chunk = this.#calls.has(call.id) ? '' : this.#call(call)
    this.#asked.add(call.id)
    return chunk
  }

  #call(call: ToolCall): string {
    if (this.#asked.has(call.id)) return ''
    const known = this.#calls.get(call.id)
    if (known === undefined && !this.#shape.functions.has(call.name)) return this.#item({ type: 'tool_call', tool_call: { ...call } })
    if (this.#shape.legacy) {
      this.#calls.set(call.id, 0)
      return this.#chunk({ function_call: { ...(known === undefined && { name: call.name }), arguments: call.arguments } })
    }
    const index = known ?? this.#calls.size
    this.#calls.set(call.id, index)
    const begins = known === undefined && { id: call.id, type: 'function' }
    const named = known === undefined && { name: call.name }
    return this.#chunk({ tool_calls: [{ index, ...begins, function: { ...named, arguments: call.arguments } }] })
  }

  /** A piece of sound has no handle. The whole has one, and most often its pieces came before. */
  #sound(item: Extract<ContentItem, { type: 'audio' }>): string {
    const { audio, content_id, transcript } = item
    if (content_id === undefined) this.#speech.piece()
    const { isNew, words } = content_id === undefined ? { isNew: true, words: transcript ?? '' } : this.#speech.whole(transcript)
    if (this.#shape.audio === undefined || typeof audio !== 'string') return this.#item(item) + this.#words(words)
    return isNew ? this.#audio({ data: audio, ...(words !== '' && { transcript: words }) }) : this.#words(words)
  }

  /** Words of what is spoken: the answer itself for those who only read. */
  #words(words: string): string {
    if (words === '') return ''
    return this.#shape.audio === undefined ? this.text(words) : this.#audio({ transcript: words })
  }

  #audio(audio: { data?: string; transcript?: string }): string {
    const begins = !this.#audible && { id: `audio_${this.#head.id}`, expires_at: this.#head.created + AUDIO_EXPIRES_S }
    this.#audible = true
    return this.#chunk({ audio: { ...begins, ...audio } })
  }

  #done(event: EventOf<'response.done'>): string {
    // An agent may say everything with its end.
    const unsaid = this.#begun ? '' : event.response.output.map((item) => this.#delta(item)).join('')
    const pending = [...this.#calls.keys()].some((id) => !this.#results.has(id))
    const finish = finishReason(event, { pending, legacy: this.#shape.legacy })
    const chunk = `${this.#before}{},"finish_reason":${JSON.stringify(finish)}}]${this.#shape.usage ? ',"usage":null' : ''}}\n\n`
    return unsaid + (this.#begun ? chunk : this.#begin() + chunk)
  }

  #chunk(delta: object): string {
    const chunk = this.#before + JSON.stringify(delta) + this.#after
    return this.#begun ? chunk : this.#begin() + chunk
  }

  #begin(): string {
    this.#begun = true
    return `${this.#before}{"role":"assistant","content":""}${this.#after}`
  }
}

/** A chunk without choices, where the usage stands: the one place at which every client takes more than it knows. */
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
