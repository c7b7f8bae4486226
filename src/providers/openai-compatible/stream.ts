import * as z from 'zod/mini'
import { refusalDraft, type AnswerReader } from '../../upstream/answer-drafts.ts'
import { done } from '../../core/agent-kit/done.ts'
import { text } from '../../core/agent-kit/drafts.ts'
import { ContentItem } from '../../protocol/content.ts'
import type { Draft } from '../../protocol/events.ts'
import { UampError } from '../../protocol/errors.ts'
import { fieldsOf, isRecord, recordsIn } from '../../protocol/json.ts'
import type { Usage } from '../../protocol/usage.ts'
import { present } from '../../wire/fields.ts'
import { imageItem } from '../../wire/openai/media.ts'
import { SameShape } from './same-shape.ts'
import { cutOff, eventData, failureOf } from '../../wire/upstream.ts'
import type { ReasoningField } from './options.ts'
import { ReasoningDetails } from './reasoning-details.ts'
import { Speech } from './speech.ts'
import { ThinkTags } from './think-tags.ts'
import { ToolCalls } from './tool-calls.ts'

type Fields = Readonly<Record<string, unknown>>

/** The most tokens whose probabilities are told. */
const LOGPROBS = 32_768

export interface StreamOptions {
  readonly name: string
  readonly thinkTags: boolean
  /** Ids of earlier calls in the conversation. */
  readonly taken: Set<string>
  readonly newId: () => string
  /** Called with the field in which the server sends thoughts. */
  readonly onReasoning: (field: ReasoningField) => void
}

/** Turns the chunks of one answer into drafts. An answer in one piece counts as one chunk. */
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
  #fingerprint: string | undefined
  #logprobs: unknown[] | undefined
  #over = false

  constructor(options: StreamOptions) {
    this.#options = options
    this.#calls = new ToolCalls(options.taken, options.newId)
    this.#tags = new ThinkTags(options.thinkTags)
  }

  /** The server gave a finish reason, or sent `[DONE]`. */
  get over(): boolean {
    return this.#over || this.#finish !== undefined
  }

  read(data: string | Fields, out: Draft[]): void {
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

  /** Throws if the stream ends before the answer does. */
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
    const openai = present({
      system_fingerprint: this.#fingerprint,
      logprobs: this.#logprobs && { content: this.#logprobs, refusal: null },
    })
    const extensions = Object.keys(openai).length === 0 ? undefined : { openai }
    if (stop !== undefined || extensions || this.#signature !== undefined) out.push(done({ stop, signature: this.#signature, extensions }))
  }

  /** Returns the text of a chunk that holds nothing else. */
  #chunk(chunk: Fields, out: Draft[]): string | undefined {
    if (chunk['error'] != null) throw failureOf(this.#options.name, chunk['error'])
    if (isRecord(chunk['usage'])) this.#usage = chunk['usage']
    if (typeof chunk['system_fingerprint'] === 'string') this.#fingerprint = chunk['system_fingerprint']
    if (typeof chunk['signature'] === 'string') this.#signature = chunk['signature']
    const choices: unknown = chunk['choices']
    const choice: unknown = Array.isArray(choices) ? choices[0] : undefined
    if (!isRecord(choice)) return undefined
    // An answer in one piece has a message where a stream has deltas.
    const delta = choice['delta'] ?? choice['message']
    if (isRecord(delta)) this.#delta(delta, out, choice['delta'] == null)
    if (choice['error'] != null) throw failureOf(this.#options.name, choice['error'])
    if (isRecord(choice['logprobs'])) this.#odds(choice['logprobs']['content'])
    if (typeof choice['finish_reason'] === 'string') this.#finish = choice['finish_reason']
    return isRecord(delta) && saysOnlyText(chunk, choice, delta) ? String(delta['content']) : undefined
  }

  #delta(delta: Fields, out: Draft[], whole: boolean): void {
    const { content, refusal, tool_calls, audio, images, content_items } = delta
    this.#reason(delta, out)
    if (typeof content === 'string') this.#content(content, out)
    else if (Array.isArray(content)) for (const part of content) this.#part(part, out)
    if (typeof refusal === 'string' && refusal !== '') {
      out.push(refusalDraft(refusal))
    }
    if (Array.isArray(images)) for (const image of images) this.#image(image, out)
    if (isRecord(audio)) this.#speech.add(audio, out)
    if (Array.isArray(content_items)) out.push(...itemsIn(content_items))
    if (!Array.isArray(tool_calls) || tool_calls.length === 0) return
    for (const piece of this.#tags.end()) this.#said(piece, out)
    this.#sign(out)
    // Calls of a whole message have no index: each entry is a call of its own.
    for (const [index, piece] of tool_calls.entries()) this.#calls.add(whole && isRecord(piece) ? { index, ...piece } : piece, out)
  }

  /** Probabilities of tokens are told with the end: UAMP events have no place for them beside the text. */
  #odds(content: unknown): void {
    if (!Array.isArray(content)) return
    this.#logprobs ??= []
    for (const token of content as readonly unknown[]) if (this.#logprobs.length < LOGPROBS) this.#logprobs.push(token)
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

  /** Reads only one field, because one server sends the same thought in two. */
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

  /** Closes a thought with the data that must go back with it. */
  #sign(out: Draft[]): void {
    const signature = this.#details.take()
    if (signature !== undefined) out.push({ type: 'thinking', content: '', is_delta: true, signature })
  }

  /** Mistral sends thoughts and text as parts of the content. */
  #part(part: unknown, out: Draft[]): void {
    if (!isRecord(part)) return
    const { thinking } = part
    if (typeof part['text'] === 'string') this.#content(part['text'], out)
    else if (typeof thinking === 'string') this.#think(thinking, out)
    else if (Array.isArray(thinking)) {
      for (const { text: piece } of recordsIn(thinking)) if (typeof piece === 'string') this.#think(piece, out)
    }
  }

  #image(image: unknown, out: Draft[]): void {
    const { url } = fieldsOf(fieldsOf(image)['image_url'])
    if (typeof url !== 'string') return
    const delta = { ...imageItem(url, { param: 'images' }), content_id: this.#options.newId() }
    out.push({ type: 'response.delta', delta })
  }
}

/** Items of another UAMP server, for which OpenAI has no field. Anything else is left out. */
function itemsIn(given: readonly unknown[]): Draft[] {
  return given.flatMap((item) => {
    const { success, data } = z.safeParse(ContentItem, item)
    return success ? [{ type: 'response.delta', delta: data }] : []
  })
}

function said(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** True if a chunk holds nothing but a text, so that the next one like it needs no parsing. */
function saysOnlyText(chunk: Fields, choice: Fields, { content, role: _role, ...others }: Fields): boolean {
  if (typeof content !== 'string' || chunk['usage'] != null || choice['finish_reason'] != null || choice['error'] != null) return false
  if (choice['logprobs'] != null) return false
  return Object.values(others).every((value) => value == null)
}

/** UAMP events §8.7: here `input_tokens` includes the cache, and `cached_tokens` counts what was read from it. */
function toUsage(told: Readonly<Record<string, unknown>>): Usage {
  const input = count(told['prompt_tokens'])
  const output = count(told['completion_tokens'])
  const prompt = fieldsOf(told['prompt_tokens_details'])
  const completion = fieldsOf(told['completion_tokens_details'])
  // DeepSeek counts hits and misses of the cache beside the sum.
  const read = count(prompt['cached_tokens']) ?? count(told['prompt_cache_hit_tokens'])
  const written = count(prompt['cache_write_tokens'])
  const missed = count(told['prompt_cache_miss_tokens'])
  return present({
    input_tokens: input,
    output_tokens: output,
    total_tokens: count(told['total_tokens']),
    cached_tokens: read,
    input_uncached: missed ?? (input === undefined ? undefined : Math.max(0, input - (read ?? 0) - (written ?? 0))),
    cache_read: read,
    cache_write: written,
    output,
    reasoning: count(completion['reasoning_tokens']) ?? count(told['reasoning_tokens']),
    cost: isRecord(told['cost']) ? costIn(told['cost']) : undefined,
  })
}

/** The cost that another UAMP server reports. */
function costIn({ input_cost, output_cost, total_cost, currency }: Readonly<Record<string, unknown>>): Usage['cost'] {
  if (count(total_cost) === undefined) return undefined
  return present({
    input_cost: count(input_cost),
    output_cost: count(output_cost),
    total_cost: count(total_cost),
    currency: typeof currency === 'string' ? currency : undefined,
  })
}

function count(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 ? value : undefined
}
