import type { ContentItem, MediaItem, ToolCall, ToolResult } from '../../protocol/content.ts'
import type { EventOf } from '../../protocol/events.ts'
import { itemId, type ItemPrefix } from './ids.ts'
import {
  CallItem,
  FunctionCallItem,
  GrowingText,
  imageItem,
  MessageItem,
  partOf,
  ReasoningItem,
  ServerCallItem,
  WholeItem,
  type OutputItem,
} from './items.ts'
import type { TextPlace, Wire } from './wire.ts'

/**
 * The output of a response as it grows, told event by event in the order that OpenAI's clients demand: items and parts are added
 * before other events name them, and each is done before the response is.
 */
export class Items {
  readonly all: OutputItem[] = []
  readonly #response: string
  readonly #agent: string
  readonly #wire: Wire | undefined
  /** The message or thought that grows. Anything else ends it. */
  #open: MessageItem | ReasoningItem | undefined
  /** The text that grows. Kept here because every delta needs it. */
  #text: GrowingText | undefined
  /** Calls whose arguments may still come, several at once. */
  readonly #calls = new Map<string, CallItem>()

  constructor({ response, agent }: { response: string; agent: string }, wire: Wire | undefined) {
    this.#response = response
    this.#agent = agent
    this.#wire = wire
  }

  rendered(): object[] {
    return this.all.map((item) => item.render())
  }

  text(text: string): void {
    if (this.#text === undefined) {
      // An empty text opens no item.
      if (text === '') return
      this.#text = this.#part('output_text')
    }
    this.#text.add(text)
    this.#wire?.text(text)
  }

  refuse(text: string): void {
    if (text === '') return
    const open = this.#open instanceof MessageItem ? this.#open.parts.at(-1) : undefined
    const part = open?.type === 'refusal' ? open.text : this.#part('refusal')
    part.add(text)
    this.#wire?.send('response.refusal.delta', { ...partPlace(this.#open as MessageItem), delta: text })
  }

  think(text: string, signature?: string): void {
    // A signature ends its thought; the next text is a new one.
    if (!(this.#open instanceof ReasoningItem) || this.#open.signature !== undefined) {
      this.settle()
      this.#open = this.#add(new ReasoningItem(this.#next('rs')))
    }
    const item = this.#open
    if (signature !== undefined) item.signature = signature
    if (text === '') return
    const place = { ...item.place, summary_index: 0 }
    if (!item.told) this.#wire?.send('response.reasoning_summary_part.added', { ...place, part: { type: 'summary_text', text: '' } })
    item.told = true
    item.text.add(text)
    this.#wire?.send('response.reasoning_summary_text.delta', { ...place, delta: text })
  }

  /** A call of the client's function, or a piece of its arguments. */
  call(call: ToolCall): void {
    const item = this.#calls.get(call.id) ?? this.#begin(new FunctionCallItem(this.#next('fc'), call))
    this.#arguments(item, call.arguments)
  }

  /** A call that the client is asked to run is complete. Usually it was streamed before. */
  ask(call: ToolCall): void {
    const known = this.all.find((item) => item instanceof FunctionCallItem && item.call.id === call.id)
    if (!known) {
      this.#calls.delete(call.id)
      this.call(call)
    }
    this.finishCall(call.id)
  }

  /** A call of the agent's own tool, or a piece of its arguments. */
  serverCall(call: ToolCall): void {
    const item = this.#calls.get(call.id) ?? this.#begin(new ServerCallItem(this.#next('mcp'), call, this.#agent))
    this.#arguments(item, call.arguments)
  }

  result(result: ToolResult): void {
    const item = this.#calls.get(result.call_id)
    if (!(item instanceof ServerCallItem)) return
    item.result = result
    this.#finish(item, 'completed')
  }

  /** Only for calls of the client's functions: a call of the agent's own tool is done with its result. */
  finishCall(callId: string): void {
    const item = this.#calls.get(callId)
    if (item instanceof FunctionCallItem) this.#finish(item, 'completed')
  }

  approval({ approval_id, message, tool_call, options }: EventOf<'x.approval.request'>): void {
    this.settle()
    const id = itemId('mcpr', this.#response, approval_id)
    const { name = 'approval', arguments: args = JSON.stringify({ message }) } = tool_call ?? {}
    const request = { type: 'mcp_approval_request', id, server_label: this.#agent, name, arguments: args }
    const item = new WholeItem({ id, index: this.all.length }, { ...request, uamp: { message, ...(options && { options }) } })
    this.#finish(this.#add(item), 'completed')
  }

  image(item: Extract<ContentItem, { type: 'image' }>): void {
    this.settle()
    const added = this.#add(imageItem(this.#next('ig'), item))
    this.#wire?.send('response.image_generation_call.in_progress', added.place)
    this.#wire?.send('response.image_generation_call.completed', added.place)
    this.#finish(added, 'completed')
  }

  /** OpenAI has no item for it, so it goes with a message whose text is its transcript. */
  media(item: MediaItem): void {
    this.settle()
    this.#open = this.#add(new MessageItem(this.#next('msg'), item))
    if (item.type === 'audio' && item.transcript !== undefined) this.text(item.transcript)
    this.settle()
  }

  /** Ends the message or thought that grows. */
  settle(status: 'completed' | 'incomplete' = 'completed'): void {
    const open = this.#open
    if (!open) return
    this.#open = this.#text = undefined
    if (open instanceof MessageItem) this.#closePart(open)
    else if (open.told) this.#closeSummary(open)
    this.#finish(open, status)
  }

  close(status: 'completed' | 'incomplete'): void {
    this.settle(status)
    for (const item of this.#calls.values()) this.#finish(item, item instanceof ServerCallItem ? 'incomplete' : status)
  }

  #begin(item: CallItem): CallItem {
    this.settle()
    this.#calls.set(item.call.id, this.#add(item))
    if (item instanceof ServerCallItem) this.#wire?.send('response.mcp_call.in_progress', item.place)
    return item
  }

  #arguments(item: CallItem, text: string): void {
    if (text === '') return
    item.args += text
    this.#wire?.send(`response.${item.type}_arguments.delta`, { ...item.place, delta: text })
  }

  #part(type: 'output_text' | 'refusal'): GrowingText {
    if (!(this.#open instanceof MessageItem)) {
      this.settle()
      this.#open = this.#add(new MessageItem(this.#next('msg')))
    }
    const item = this.#open
    this.#text = undefined
    this.#closePart(item)
    const part = { type, text: new GrowingText() }
    item.parts.push(part)
    const place = partPlace(item)
    this.#wire?.send('response.content_part.added', { ...place, part: partOf(part) })
    if (type === 'output_text') this.#wire?.place(place)
    return part.text
  }

  #closePart(item: MessageItem): void {
    const part = item.parts.at(-1)
    if (!part || !this.#wire) return
    const place = partPlace(item)
    if (part.type === 'refusal') this.#wire.send('response.refusal.done', { ...place, refusal: String(part.text) })
    else this.#wire.send('response.output_text.done', { ...place, text: String(part.text), logprobs: [] })
    this.#wire.send('response.content_part.done', { ...place, part: partOf(part) })
  }

  #closeSummary(item: ReasoningItem): void {
    const place = { ...item.place, summary_index: 0 }
    const text = String(item.text)
    this.#wire?.send('response.reasoning_summary_text.done', { ...place, text })
    this.#wire?.send('response.reasoning_summary_part.done', { ...place, part: { type: 'summary_text', text } })
  }

  #next(prefix: ItemPrefix): { readonly id: string; readonly index: number } {
    return { id: itemId(prefix, this.#response, this.all.length), index: this.all.length }
  }

  #add<I extends OutputItem>(item: I): I {
    this.all.push(item)
    this.#wire?.send('response.output_item.added', { output_index: item.index, item: item.render() })
    return item
  }

  #finish(item: OutputItem, status: 'completed' | 'incomplete'): void {
    if (item.status !== 'in_progress') return
    item.status = status
    if (item instanceof CallItem) this.#finishArguments(item)
    this.#wire?.send('response.output_item.done', { output_index: item.index, item: item.render() })
  }

  #finishArguments(item: CallItem): void {
    const name = item instanceof FunctionCallItem && { name: item.call.name }
    this.#wire?.send(`response.${item.type}_arguments.done`, { ...item.place, arguments: item.args, ...name })
    if (!(item instanceof ServerCallItem) || !item.result) return
    this.#wire?.send(`response.mcp_call.${item.failed ? 'failed' : 'completed'}`, item.place)
  }
}

/** The place of the newest part of a message. */
function partPlace(item: MessageItem): TextPlace {
  return { ...item.place, content_index: item.parts.length - 1 }
}
