import type { ContentItem, ToolCall, ToolResult } from '../../protocol/content.ts'
import { present } from '../../wire/fields.ts'

/** Pieces of a text that are kept before they are joined: thousands of small strings slow down garbage collection. */
const PIECES = 32

type Status = 'in_progress' | 'completed' | 'incomplete'

/** A text that grows by pieces. */
export class GrowingText {
  #text = ''
  #pieces: string[] = []

  add(piece: string): void {
    if (this.#pieces.push(piece) >= PIECES) this.#join()
  }

  toString(): string {
    this.#join()
    return this.#text
  }

  #join(): void {
    if (this.#pieces.length === 0) return
    this.#text += this.#pieces.join('')
    this.#pieces = []
  }
}

interface TextPart {
  readonly type: 'output_text' | 'refusal'
  readonly text: GrowingText
}

export function partOf({ type, text }: TextPart): object {
  return type === 'refusal' ? { type, refusal: String(text) } : { type, text: String(text), annotations: [], logprobs: [] }
}

interface Place {
  readonly id: string
  readonly index: number
}

/** An item of an answer, while it grows and when it is complete. */
export abstract class OutputItem {
  readonly id: string
  readonly index: number
  status: Status = 'in_progress'

  constructor({ id, index }: Place) {
    this.id = id
    this.index = index
  }

  /** Where its events say that it is. */
  get place(): { readonly item_id: string; readonly output_index: number } {
    return { item_id: this.id, output_index: this.index }
  }

  /** The item as the wire has it. */
  abstract render(): object
}

export class MessageItem extends OutputItem {
  readonly parts: TextPart[] = []
  /** What OpenAI has no part for. */
  readonly #media: ContentItem | undefined

  constructor(place: Place, media?: ContentItem) {
    super(place)
    this.#media = media
  }

  render(): object {
    const media = this.#media && { uamp: { content_items: [this.#media] } }
    return { type: 'message', id: this.id, role: 'assistant', status: this.status, content: this.parts.map(partOf), ...media }
  }
}

/** Thoughts are shown as a summary, which every client shows. Only the maker of a signature can read it. */
export class ReasoningItem extends OutputItem {
  readonly text = new GrowingText()
  signature: string | undefined
  /** Its text has begun. */
  told = false

  render(): object {
    const summary = this.told ? [{ type: 'summary_text', text: String(this.text) }] : []
    const signed = this.signature !== undefined && { encrypted_content: this.signature }
    return { type: 'reasoning', id: this.id, summary, ...signed, status: this.status }
  }
}

export abstract class CallItem extends OutputItem {
  abstract readonly type: 'function_call' | 'mcp_call'
  readonly call: ToolCall
  args = ''

  constructor(place: Place, call: ToolCall) {
    super(place)
    this.call = call
  }
}

/** A function that the client runs. */
export class FunctionCallItem extends CallItem {
  readonly type = 'function_call'

  render(): object {
    const { id: call_id, name } = this.call
    return { type: this.type, id: this.id, call_id, name, arguments: this.args, status: this.status }
  }
}

/** A tool that the agent runs itself, shown as OpenAI shows a tool of a remote server. The client has nothing to do. */
export class ServerCallItem extends CallItem {
  readonly type = 'mcp_call'
  readonly #agent: string
  result: ToolResult | undefined

  constructor(place: Place, call: ToolCall, agent: string) {
    super(place, call)
    this.#agent = agent
  }

  get failed(): boolean {
    return this.result?.is_error === true || this.result?.status === 'failed'
  }

  render(): object {
    const { result, failed } = this
    return {
      type: this.type,
      id: this.id,
      server_label: this.#agent,
      name: this.call.name,
      arguments: this.args,
      status: failed ? 'failed' : this.status,
      approval_request_id: null,
      output: result && !failed ? result.result : null,
      error: failed ? { type: 'mcp_tool_execution_error', content: [{ type: 'text', text: result?.result ?? '' }] } : null,
      ...(result?.content_items && { uamp: { content_items: result.content_items } }),
    }
  }
}

/** An item that comes in one piece. */
export class WholeItem extends OutputItem {
  readonly #whole: object
  readonly #begun: object

  constructor(place: Place, whole: object, begun: object = whole) {
    super(place)
    this.#whole = whole
    this.#begun = begun
  }

  render(): object {
    return this.status === 'in_progress' ? this.#begun : this.#whole
  }
}

/** An image, shown as a result of OpenAI's image tool. An image that is only a URL is in `uamp`. */
export function imageItem(place: Place, item: Extract<ContentItem, { type: 'image' }>): WholeItem {
  const { image, format, content_id, alt_text, description } = item
  const begun = { type: 'image_generation_call', id: place.id, status: 'in_progress', result: null }
  const [result, url] = typeof image === 'string' ? [image, undefined] : [null, image.url]
  const whole = {
    ...begun,
    status: 'completed',
    result,
    ...(format !== undefined && { output_format: format }),
    uamp: present({ content_id, alt_text, description, url }),
  }
  return new WholeItem(place, whole, begun)
}
