import type { ContentItem, ToolCall, ToolResult } from '../../protocol/content.ts'

/** Pieces of a text that are kept apart until there are so many: a thousand small strings are a burden to the collector. */
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

/** What an answer consists of, while it grows and when it is whole. `render` gives it as the wire has it. */
export interface OutputItem {
  readonly id: string
  readonly index: number
  status: Status
  render(): object
}

export class MessageItem implements OutputItem {
  readonly id: string
  readonly index: number
  status: Status = 'in_progress'
  readonly parts: TextPart[] = []
  /** What OpenAI has no part for. */
  readonly #media: ContentItem | undefined

  constructor(id: string, index: number, media?: ContentItem) {
    this.id = id
    this.index = index
    this.#media = media
  }

  render(): object {
    const media = this.#media && { uamp: { content_items: [this.#media] } }
    return { type: 'message', id: this.id, role: 'assistant', status: this.status, content: this.parts.map(partOf), ...media }
  }
}

/** Thoughts are shown as a summary: the form that every client shows. A signature is what only its maker can read. */
export class ReasoningItem implements OutputItem {
  readonly id: string
  readonly index: number
  status: Status = 'in_progress'
  readonly text = new GrowingText()
  signature: string | undefined
  /** Its text has begun. */
  told = false

  constructor(id: string, index: number) {
    this.id = id
    this.index = index
  }

  render(): object {
    const summary = this.told ? [{ type: 'summary_text', text: String(this.text) }] : []
    const signed = this.signature !== undefined && { encrypted_content: this.signature }
    return { type: 'reasoning', id: this.id, summary, ...signed, status: this.status }
  }
}

/** A function that the client runs. */
export class FunctionCallItem implements OutputItem {
  readonly id: string
  readonly index: number
  readonly call: ToolCall
  status: Status = 'in_progress'
  args = ''

  constructor(id: string, index: number, call: ToolCall) {
    this.id = id
    this.index = index
    this.call = call
  }

  render(): object {
    const { id: call_id, name } = this.call
    return { type: 'function_call', id: this.id, call_id, name, arguments: this.args, status: this.status }
  }
}

/** A tool that the agent runs itself: what OpenAI calls a tool of a remote server. The client has nothing to do. */
export class ServerCallItem implements OutputItem {
  readonly id: string
  readonly index: number
  readonly call: ToolCall
  readonly #agent: string
  status: Status = 'in_progress'
  args = ''
  result: ToolResult | undefined

  constructor(place: { id: string; index: number }, call: ToolCall, agent: string) {
    this.id = place.id
    this.index = place.index
    this.call = call
    this.#agent = agent
  }

  get failed(): boolean {
    return this.result?.is_error === true || this.result?.status === 'failed'
  }

  render(): object {
    const { result, failed } = this
    return {
      type: 'mcp_call',
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
export class WholeItem implements OutputItem {
  readonly id: string
  readonly index: number
  readonly #whole: object
  readonly #begun: object
  status: Status = 'in_progress'

  constructor(place: { id: string; index: number }, whole: object, begun: object = whole) {
    this.id = place.id
    this.index = place.index
    this.#whole = whole
    this.#begun = begun
  }

  render(): object {
    return this.status === 'in_progress' ? this.#begun : this.#whole
  }
}

/** An image is what OpenAI's own image tool gives; one that is only a URL has its place beside it. */
export function imageCall(id: string, item: Extract<ContentItem, { type: 'image' }>): { whole: object; begun: object } {
  const { image, format, content_id, alt_text, description } = item
  const known = { ...(content_id !== undefined && { content_id }), ...(alt_text !== undefined && { alt_text }) }
  const more = { ...(description !== undefined && { description }), ...(typeof image !== 'string' && { url: image.url }) }
  const begun = { type: 'image_generation_call', id, status: 'in_progress', result: null }
  const result = typeof image === 'string' ? image : null
  const whole = {
    ...begun,
    status: 'completed',
    result,
    ...(format !== undefined && { output_format: format }),
    uamp: { ...known, ...more },
  }
  return { whole, begun }
}
