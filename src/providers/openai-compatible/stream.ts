import * as z from 'zod/mini'
import type { AnswerReader } from '../../upstream/answer-drafts.ts'
import { done } from '../../core/agent-kit/done.ts'
import { text } from '../../core/agent-kit/drafts.ts'
import { ContentItem } from '../../protocol/content.ts'
import type { Draft } from '../../protocol/events.ts'
import { UampError } from '../../protocol/errors.ts'
import { isRecord } from '../../protocol/json.ts'
import { imageItem } from '../../wire/openai/media.ts'
import { SameShape } from './same-shape.ts'
import { cutOff, eventData, failureOf } from '../../wire/upstream.ts'
import type { ReasoningField } from './options.ts'
import { ReasoningDetails } from './reasoning-details.ts'
import { Speech } from './speech.ts'
import { ThinkTags } from './think-tags.ts'
import { ToolCalls } from './tool-calls.ts'
import { toUsage } from './usage.ts'

type Fields = Readonly<Record<string, unknown>>

export interface StreamOptions {
  readonly name: string
  readonly thinkTags: boolean
  /** Ids of the conversation's calls so far. */
  readonly taken: Set<string>
  readonly newId: () => string
  /** The server tells its thoughts in this field. */
  readonly onReasoning: (field: ReasoningField) => void
}

/** One answer, chunk by chunk: what it says goes to `out`. The same for an answer in one piece. */
export class ChatStream implements AnswerReader<string | Fields> {
  readonly #options: StreamOptions
  readonly #calls: ToolCalls
  readonly #details = new ReasoningDetails()
  readonly #speech = new Speech()
  readonly #shape = new SameShape()
  readonly #tags: ThinkTags
  #usage: Fields | undefined
  #finish: string | undefined
  #signature: string | undefined
  #over = false

  constructor(options: StreamOptions) {
    this.#options = options
    this.#calls = new ToolCalls(options.taken, options.newId)
    this.#tags = new ThinkTags(options.thinkTags)
  }

  /** The server said why it ended, or `[DONE]`. */
  get over(): boolean {
    return this.#over || this.#finish !== undefined
  }

  read(data: string | Fields, out: Draft[]): void {
    // Nothing after `[DONE]` counts.
    if (this.#over) return
    if (typeof data !== 'string') return void this.#chunk(data, out)
    const text = this.#shape.textOf(data)
    if (text !== undefined) return this.#content(text, out)
    if (data === '[DONE]') this.#over = true
    else {
      const only = this.#chunk(eventData(this.#options.name, data), out)
      if (only !== undefined) this.#shape.learn(data, only)
    }
  }

  usage(out: Draft[]): void {
    if (this.#usage) out.push({ type: 'usage.delta', delta: toUsage(this.#usage) })
    this.#usage = undefined
  }

  /** The end of the stream. Throws if it is not the end of the answer. */
  end(out: Draft[]): void {
    const { name, newId } = this.#options
    const finish = this.#finish
    for (const piece of this.#tags.end()) this.#said(piece, out)
    this.#sign(out)
    this.#speech.end(newId, out)
    this.usage(out)
    if (!this.over) throw cutOff(name)
    if (finish === 'error' || finish === 'insufficient_system_resource') {
      throw new UampError(finish === 'error' ? 'provider_error' : 'overloaded', `${name} stopped in the middle of its answer`)
    }
    const stop = finish === 'length' || finish === 'content_filter' ? finish : undefined
    if (stop !== undefined || this.#signature !== undefined) out.push(done({ stop, signature: this.#signature }))
  }

  /** Returns the text of a chunk that says nothing else. */
  #chunk(chunk: Fields, out: Draft[]): string | undefined {
    if (chunk['error'] != null) throw failureOf(this.#options.name, chunk['error'])
    if (isRecord(chunk['usage'])) this.#usage = chunk['usage']
    if (typeof chunk['signature'] === 'string') this.#signature = chunk['signature']
    const choices: unknown = chunk['choices']
    const choice: unknown = Array.isArray(choices) ? choices[0] : undefined
    if (!isRecord(choice)) return undefined
    // An answer in one piece has a message where a stream has deltas.
    const delta = choice['delta'] ?? choice['message']
    if (isRecord(delta)) this.#delta(delta, out, choice['delta'] == null)
    if (choice['error'] != null) throw failureOf(this.#options.name, choice['error'])
    if (typeof choice['finish_reason'] === 'string') this.#finish = choice['finish_reason']
    return isRecord(delta) && saysOnlyText(chunk, choice, delta) ? String(delta['content']) : undefined
  }

  #delta(delta: Fields, out: Draft[], whole: boolean): void {
    const { content, refusal, tool_calls, audio, images, content_items } = delta
    this.#reason(delta, out)
    if (typeof content === 'string') this.#content(content, out)
    else if (Array.isArray(content)) for (const part of content) this.#part(part, out)
    if (typeof refusal === 'string' && refusal !== '') {
      out.push({ type: 'response.delta', delta: { type: 'text', text: refusal, refusal: true } })
    }
    if (Array.isArray(images)) for (const image of images) this.#image(image, out)
    if (isRecord(audio)) this.#speech.add(audio, out)
    if (Array.isArray(content_items)) out.push(...itemsIn(content_items))
    if (!Array.isArray(tool_calls) || tool_calls.length === 0) return
    for (const piece of this.#tags.end()) this.#said(piece, out)
    this.#sign(out)
    // Calls of a whole message need no index: each is one of its own.
    for (const [index, piece] of tool_calls.entries()) this.#calls.add(whole && isRecord(piece) ? { index, ...piece } : piece, out)
  }

  #content(content: string, out: Draft[]): void {
    if (content === '') return
    if (this.#tags.settled) {
      this.#sign(out)
      out.push(text(content))
    } else for (const piece of this.#tags.add(content)) this.#said(piece, out)
  }

  #said(piece: { readonly thinking: boolean; readonly text: string }, out: Draft[]): void {
    if (piece.thinking) return this.#think(piece.text, out)
    this.#sign(out)
    out.push(text(piece.text))
  }

  /** One server sends the same thought in two fields, so only one of them is read. */
  #reason({ reasoning_content, reasoning, reasoning_details }: Fields, out: Draft[]): void {
    const field = said(reasoning_content) ? 'reasoning_content' : said(reasoning) ? 'reasoning' : undefined
    const readable = Array.isArray(reasoning_details) ? this.#details.add(reasoning_details) : ''
    if (field !== undefined && readable === '') this.#options.onReasoning(field)
    const thought = said(reasoning_content) ? reasoning_content : said(reasoning) ? reasoning : readable
    this.#think(thought, out)
  }

  #think(content: string, out: Draft[]): void {
    if (content !== '') out.push({ type: 'thinking', content, is_delta: true })
  }

  /** What must be sent back with the thought goes with it, before anything else is said. */
  #sign(out: Draft[]): void {
    const signature = this.#details.take()
    if (signature !== undefined) out.push({ type: 'thinking', content: '', is_delta: true, signature })
  }

  /** Mistral's form: thoughts and text are parts of the content. */
  #part(part: unknown, out: Draft[]): void {
    if (!isRecord(part)) return
    const { thinking } = part
    if (typeof part['text'] === 'string') this.#content(part['text'], out)
    else if (typeof thinking === 'string') this.#think(thinking, out)
    else if (Array.isArray(thinking)) {
      for (const inner of thinking) if (isRecord(inner) && typeof inner['text'] === 'string') this.#think(inner['text'], out)
    }
  }

  #image(image: unknown, out: Draft[]): void {
    const url = isRecord(image) && isRecord(image['image_url']) ? image['image_url']['url'] : undefined
    if (typeof url !== 'string') return
    const delta = { ...imageItem(url, { param: 'images' }), content_id: this.#options.newId() }
    out.push({ type: 'response.delta', delta })
  }
}

/** What OpenAI has no field for, from a server that speaks UAMP as well. Anything else is left out. */
function itemsIn(given: readonly unknown[]): Draft[] {
  return given.flatMap((item) => {
    const { success, data } = z.safeParse(ContentItem, item)
    return success ? [{ type: 'response.delta', delta: data }] : []
  })
}

function said(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** Whether a chunk does nothing but say a text: the same one with another text is then told without parsing it. */
function saysOnlyText(chunk: Fields, choice: Fields, { content, role: _role, ...others }: Fields): boolean {
  if (typeof content !== 'string' || chunk['usage'] != null || choice['finish_reason'] != null || choice['error'] != null) return false
  return Object.values(others).every((value) => value == null)
}
