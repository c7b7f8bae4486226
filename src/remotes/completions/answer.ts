import * as z from 'zod/mini'
import type { AnswerReader } from '../../core/answer-drafts.ts'
import { done } from '../../core/done.ts'
import { ContentItem, type ToolCall } from '../../protocol/content.ts'
import type { Draft } from '../../protocol/events.ts'
import { isRecord } from '../../protocol/json.ts'
import type { Message } from '../../protocol/message.ts'
import { textOf } from '../../protocol/message.ts'
import type { Usage } from '../../protocol/usage.ts'
import { cutOff, eventData, failureOf } from '../../wire/openai/upstream.ts'
import { Speech } from './speech.ts'
import { toUsage } from './usage.ts'

type Fields = Readonly<Record<string, unknown>>

interface Call {
  readonly id: string
  readonly name: string
  arguments: string
}

export interface AnswerOptions {
  readonly name: string
  /** Ids of calls that the conversation has already: some servers begin to count anew with each answer. */
  readonly taken: Set<string>
  readonly newId: () => string
}

/** One answer, chunk by chunk: what is said of it goes on at once, the rest is known at its end. */
export class Answer implements AnswerReader {
  readonly #options: AnswerOptions
  readonly #speech = new Speech()
  readonly #calls = new Map<number, Call>()
  #text = ''
  #thinking = ''
  #usage: Usage | undefined
  #finish: string | undefined
  #signature: string | undefined

  constructor(options: AnswerOptions) {
    this.#options = options
  }

  /** Whether it was told why it ended. */
  get over(): boolean {
    return this.#finish !== undefined
  }

  /** The calls that it ended with. */
  get calls(): readonly ToolCall[] {
    return [...this.#calls.values()]
  }

  read(data: string, out: Draft[]): void {
    if (data !== '[DONE]') this.take(eventData(this.#options.name, data), out)
  }

  /** A chunk, or an answer in one piece. */
  take(chunk: Fields, out: Draft[]): void {
    if (chunk['error'] != null) throw failureOf(this.#options.name, chunk['error'])
    // Some servers tell with each chunk what was used so far, so it is the last that counts.
    if (isRecord(chunk['usage'])) this.#usage = toUsage(chunk['usage'])
    if (typeof chunk['signature'] === 'string') this.#signature = chunk['signature']
    const choices = chunk['choices']
    const choice: unknown = Array.isArray(choices) ? choices[0] : undefined
    if (!isRecord(choice)) return
    if (typeof choice['finish_reason'] === 'string') this.#finish = choice['finish_reason']
    // An answer in one piece has a message where a stream has deltas.
    const said = choice['delta'] ?? choice['message']
    if (isRecord(said)) this.#delta(said, out)
  }

  usage(out: Draft[]): void {
    if (this.#usage) out.push({ type: 'usage.delta', delta: this.#usage })
    this.#usage = undefined
  }

  end(out: Draft[]): void {
    if (this.over) out.push(...this.#speech.end())
    this.usage(out)
    if (!this.over) throw cutOff(this.#options.name)
  }

  /** Why it ended, if that is more than that it was complete. */
  done(): Draft | undefined {
    const stop = this.#finish === 'length' || this.#finish === 'content_filter' ? this.#finish : undefined
    if (stop === undefined && this.#signature === undefined) return undefined
    return done({ stop, signature: this.#signature })
  }

  /** As it stands in the conversation when its calls are answered. */
  message(): Message {
    const items: ContentItem[] = []
    if (this.#thinking !== '') items.push({ type: 'thinking', thinking: this.#thinking })
    if (this.#text !== '') items.push({ type: 'text', text: this.#text })
    const calls = this.calls
    for (const tool_call of calls) items.push({ type: 'tool_call', tool_call })
    return { role: 'assistant', content: textOf(items), content_items: items, tool_calls: [...calls] }
  }

  #delta(delta: Fields, out: Draft[]): void {
    const { content, refusal, reasoning_content, reasoning, tool_calls, content_items, audio } = delta
    const thought = reasoning_content ?? reasoning
    if (isText(thought)) {
      this.#thinking += thought
      out.push({ type: 'thinking', content: thought, is_delta: true })
    }
    if (isText(content)) {
      this.#text += content
      out.push({ type: 'response.delta', delta: { type: 'text', text: content } })
    }
    if (isText(refusal)) out.push({ type: 'response.delta', delta: { type: 'text', text: refusal, refusal: true } })
    if (isRecord(audio)) out.push(...this.#speech.hear(audio))
    if (Array.isArray(content_items)) out.push(...itemsIn(content_items))
    if (Array.isArray(tool_calls)) for (const [index, piece] of tool_calls.entries()) out.push(...this.#call(piece, index))
  }

  #call(piece: unknown, place: number): Draft[] {
    if (!isRecord(piece)) return []
    const { name, arguments: given } = isRecord(piece['function']) ? piece['function'] : {}
    const index = typeof piece['index'] === 'number' ? piece['index'] : place
    const args = typeof given === 'string' ? given : ''
    const known = this.#calls.get(index)
    if (known) known.arguments += args
    else if (!isText(name)) return []
    const call = known ?? { id: this.#id(piece['id']), name: name as string, arguments: args }
    this.#calls.set(index, call)
    if (known && args === '') return []
    return [{ type: 'response.delta', delta: { type: 'tool_call', tool_call: { id: call.id, name: call.name, arguments: args } } }]
  }

  #id(given: unknown): string {
    const { taken, newId } = this.#options
    const id = isText(given) && !taken.has(given) ? given : `call_${newId()}`
    taken.add(id)
    return id
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** What OpenAI has no field for, from a server that speaks UAMP as well. An item that is none is left out. */
function itemsIn(given: readonly unknown[]): Draft[] {
  return given.flatMap((item) => {
    const { success, data } = z.safeParse(ContentItem, item)
    return success ? [{ type: 'response.delta', delta: data }] : []
  })
}
