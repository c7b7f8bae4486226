import { joinBase64 } from '../../protocol/base64.ts'
import type { ContentItem } from '../../protocol/content.ts'
import type { EventOf } from '../../protocol/events.ts'
import { AUDIO_EXPIRES_S, type ChunkHead } from './chunks.ts'
import { finishReason, saidBy, toUsage } from './finish.ts'
import type { Metadata } from './kept.ts'
import type { Shape } from './request.ts'
import { paidInAll } from '../../wire/payment.ts'
import { wav } from '../../wire/wav.ts'

interface Ended {
  readonly ends: readonly EventOf<'response.done'>[]
  readonly metadata: Metadata | undefined
}

/** A complete answer, made from the ends of its choices. */
export function toCompletion(head: ChunkHead, shape: Shape, { ends, metadata }: Ended): object {
  const { system_fingerprint: print } = saidBy(ends[0])
  const signature = ends.length === 1 ? ends[0]?.signature : undefined
  const paid = paidInAll(ends.map(({ response }) => response.extensions))
  return {
    id: head.id,
    object: 'chat.completion',
    created: head.created,
    model: head.model,
    choices: ends.map((end, index) => toChoice(head, shape, { end, index })),
    usage: toUsage(ends.map(({ response }) => response.usage)),
    ...(print !== undefined && { system_fingerprint: print }),
    ...(metadata && { metadata }),
    ...(paid && { uamp: paid }),
    ...(signature !== undefined && { signature }),
  }
}

function toChoice(head: ChunkHead, shape: Shape, { end, index }: { end: EventOf<'response.done'>; index: number }): object {
  const said = new Said(shape)
  for (const item of end.response.output) said.add(item)
  const finish_reason = finishReason(end, { pending: said.pending, legacy: shape.legacy })
  return { index, message: said.message(head), logprobs: saidBy(end).logprobs ?? null, finish_reason }
}

/** The items of an output, sorted into the fields of a message. */
class Said {
  readonly #shape: Shape
  #content = ''
  #refusal = ''
  #reasoning = ''
  readonly #audio: { readonly data: string; readonly item: Extract<ContentItem, { type: 'audio' }> }[] = []
  readonly #calls = new Map<string, { readonly name: string; readonly arguments: string }>()
  /** Items for which OpenAI has no field. */
  readonly #items: ContentItem[] = []

  constructor(shape: Shape) {
    this.#shape = shape
  }

  get pending(): boolean {
    return this.#calls.size > 0
  }

  add(item: ContentItem): void {
    switch (item.type) {
      case 'text':
        if (item.refusal) this.#refusal += item.text
        else this.#content += item.text
        return
      case 'thinking':
        this.#reasoning += item.thinking
        return
      case 'tool_call': {
        const { id, name, arguments: args } = item.tool_call
        if (this.#shape.functions.has(name)) this.#calls.set(id, { name, arguments: args })
        else this.#items.push(item)
        return
      }
      case 'tool_result':
        // A call that has its result is no longer pending.
        if (!this.#calls.delete(item.tool_result.call_id)) this.#items.push(item)
        return
      case 'audio':
        if (this.#shape.audio !== undefined && typeof item.audio === 'string') this.#audio.push({ data: item.audio, item })
        else {
          this.#content += item.transcript ?? ''
          this.#items.push(item)
        }
        return
      case 'image':
      case 'video':
      case 'file':
        this.#items.push(item)
    }
  }

  message({ id, created }: ChunkHead): object {
    const calls = [...this.#calls]
    const [first] = calls
    const silent = this.#content === '' && (calls.length > 0 || this.#refusal !== '' || this.#audio.length > 0)
    return {
      role: 'assistant',
      content: silent ? null : this.#content,
      refusal: this.#refusal === '' ? null : this.#refusal,
      ...(this.#reasoning !== '' && { reasoning_content: this.#reasoning }),
      ...(first && this.#shape.legacy && { function_call: first[1] }),
      ...(first &&
        !this.#shape.legacy && { tool_calls: calls.map(([callId, call]) => ({ id: callId, type: 'function', function: call })) }),
      ...(this.#audio.length > 0 && {
        audio: {
          id: `audio_${id}`,
          data: this.#data(),
          transcript: this.#audio.map(({ item }) => item.transcript ?? '').join(''),
          expires_at: created + AUDIO_EXPIRES_S,
        },
      }),
      ...(this.#items.length > 0 && { content_items: this.#items }),
    }
  }

  /** Joins the pieces of sound. Agents yield raw samples, but most clients ask for a WAV file. */
  #data(): string {
    const data = this.#audio.length === 1 ? (this.#audio[0]?.data ?? '') : joinBase64(this.#audio.map((each) => each.data))
    return this.#shape.audio === 'wav' && this.#audio.every(({ item }) => item.format === 'pcm16') ? wav(data) : data
  }
}
