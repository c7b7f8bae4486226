import type { ContentItem, ToolCall, ToolResult } from '../../protocol/content.ts'
import type { Draft } from '../../protocol/events.ts'
import type { Delta } from '../../protocol/server-events.ts'
import { addUsage, type Usage } from '../../protocol/usage.ts'
import { StreamedSpeech } from './streamed-speech.ts'
import type { Spoken } from '../engine/unsaid.ts'
import { weigh } from '../basics/weight.ts'
import { textOf, type Message } from '../../protocol/message.ts'

/** How many pieces of a text are collected before they are joined. */
const PIECES = 32

type Piece = { text: string[]; pieces: string[]; item: { type: 'text' | 'thinking'; refusal?: boolean } & Partial<ContentItem> }

/** Collects what an agent yields into the output of its response, and merges consecutive pieces. */
export class Output {
  readonly #items: ContentItem[] = []
  /** The text or thought that is being streamed; its pieces are joined now and then, not with each delta. */
  #open: Piece | undefined
  #usage: Usage | undefined
  #size = 0
  #signed = false
  #speech: StreamedSpeech | undefined
  /** How many items come before the speech. */
  #speechAt = 0
  /** Calls that the client was asked to run: their arguments are complete. */
  readonly #asked = new Set<string>()

  /** Rough size in bytes. */
  get size(): number {
    return this.#size + (this.#speech?.size ?? 0)
  }

  get usage(): Usage | undefined {
    const { input_tokens: input, output_tokens: output } = this.#usage ?? {}
    if (input === undefined || output === undefined) return this.#usage
    return { total_tokens: input + output, ...this.#usage }
  }

  set usage(usage: Usage | undefined) {
    this.#usage = usage
  }

  add(draft: Draft): void {
    switch (draft.type) {
      case 'response.delta':
        this.#addDelta(draft.delta)
        return
      case 'thinking': {
        const { content, stage, redacted, signature, is_delta } = draft
        // A signature ends a thought: whatever follows is another one.
        const goesOn = is_delta !== false && this.#open?.item.type === 'thinking' && !this.#signed
        if (!goesOn) this.#close()
        this.#open ??= { text: [], pieces: [], item: { type: 'thinking' } }
        this.#extend(content)
        this.#signed = signature !== undefined
        Object.assign(this.#open.item, stage !== undefined && { stage }, redacted && { redacted }, signature !== undefined && { signature })
        if (is_delta === false) this.#close()
        return
      }
      case 'tool.call': {
        const { call_id: id, name, arguments: args } = draft
        this.#close()
        if (!this.#items.some((item) => item.type === 'tool_call' && item.tool_call.id === id)) this.#addCall({ id, name, arguments: args })
        this.#asked.add(id)
        return
      }
      case 'x.reasoning.encrypted':
        return this.#encrypt(draft)
      case 'usage.delta':
        this.#usage = addUsage(this.#usage, draft.delta)
        return
      case 'audio.delta':
        return this.#streamed().sound(draft.audio, draft.format)
      case 'transcript.delta':
        this.#size += draft.transcript.length
        return this.#streamed().say(draft.transcript)
      case 'transcript.done':
        return this.#streamed().complete(draft.transcript)
      default:
    }
  }

  get spoken(): Spoken {
    return this.#speech?.heard ?? { sound: false, words: '' }
  }

  /** The items without speech that was streamed in pieces. */
  get written(): readonly ContentItem[] {
    this.#close()
    return this.#items
  }

  /** Adds an item that clients have already heard in another form. */
  keep(item: ContentItem): void {
    this.#speech?.known(item)
    this.#addItem(item)
  }

  /** Adds a tool's result. It replaces an earlier one for the same call, as agents may repeat what their client answered. */
  addResult(result: ToolResult): void {
    this.#close()
    const index = this.#items.findLastIndex((item) => item.type === 'tool_result' && item.tool_result.call_id === result.call_id)
    const item: ContentItem = { type: 'tool_result', tool_result: result }
    this.#size += weigh(item) - weigh(this.#items[index])
    this.#items[index < 0 ? this.#items.length : index] = item
  }

  /** The items so far. Speech without a complete item stands where it began. */
  items(): ContentItem[] {
    this.#close()
    return this.#items.toSpliced(this.#speechAt, 0, ...(this.#speech?.items(this.#items) ?? []))
  }

  #streamed(): StreamedSpeech {
    if (!this.#speech) this.#speechAt = this.#items.length + (this.#open ? 1 : 0)
    return (this.#speech ??= new StreamedSpeech())
  }

  #addDelta(delta: Delta): void {
    switch (delta.type) {
      case 'text':
        if (this.#open?.item.type !== 'text' || this.#open.item.refusal !== delta.refusal) {
          this.#close()
          this.#open = { text: [], pieces: [], item: delta.refusal ? { type: 'text', refusal: true } : { type: 'text' } }
        }
        this.#extend(delta.text)
        return
      case 'tool_call':
        this.#close()
        this.#addCall(delta.tool_call)
        return
      case 'tool_result':
        this.addResult(delta.tool_result)
        return
      case 'tool_progress':
        return
      case 'audio':
        // A chunk of a stream has no content id. The complete item, which has one, follows at the end.
        if (delta.content_id !== undefined || typeof delta.audio !== 'string') return this.keep(delta)
        this.#streamed().sound(delta.audio, delta.format)
        if (delta.transcript !== undefined) this.#streamed().say(delta.transcript)
        return
      default:
        this.#addItem(delta)
    }
  }

  #extend(text: string): void {
    this.#size += text.length
    const open = this.#open
    if (!open || open.pieces.push(text) < PIECES) return
    // Thousands of short strings that live as long as the response would slow down the garbage collector.
    open.text.push(open.pieces.join(''))
    open.pieces = []
  }

  #addItem(item: ContentItem): void {
    this.#close()
    this.#items.push(item)
    this.#size += weigh(item)
  }

  /** Adds a call, or appends to its arguments, which come in pieces under the call's id. */
  #addCall(call: ToolCall): void {
    if (this.#asked.has(call.id)) return
    this.#size += call.arguments.length
    const index = this.#items.findLastIndex((item) => item.type === 'tool_call' && item.tool_call.id === call.id)
    const known = this.#items[index]
    if (known?.type !== 'tool_call') this.#items.push({ type: 'tool_call', tool_call: call })
    else this.#items[index] = { ...known, tool_call: { ...known.tool_call, arguments: known.tool_call.arguments + call.arguments } }
  }

  /** Encrypted reasoning stays with its call, or with what was said last. */
  #encrypt({ value, entity_id, subtype }: Draft & { type: 'x.reasoning.encrypted' }): void {
    this.#close()
    const isMeant = (item: ContentItem): boolean =>
      subtype === 'tool-call'
        ? item.type === 'tool_call' && item.tool_call.id === entity_id
        : item.type === 'text' || item.type === 'thinking'
    const item = this.#items.findLast(isMeant)
    if (!item) return
    this.#size += value.length
    if (item.type === 'tool_call') item.tool_call = { ...item.tool_call, encrypted_value: value }
    else Object.assign(item, item.type === 'text' ? { encrypted_value: value } : { signature: value })
  }

  #close(): void {
    if (!this.#open) return
    const { text, pieces, item } = this.#open
    const last = pieces.length === 1 ? (pieces[0] as string) : pieces.join('')
    const joined = text.length === 0 ? last : [...text, last].join('')
    this.#open = undefined
    if (joined === '' && item.type === 'text') return
    this.#items.push((item.type === 'text' ? { text: joined, ...item } : { thinking: joined, ...item }) as ContentItem)
  }
}

/** The output of a response as messages of the conversation: what the assistant said and called, and each tool's result. */
export function outputMessages(output: readonly ContentItem[]): Message[] {
  const messages: Message[] = []
  let said: ContentItem[] = []
  const flush = (): void => {
    if (said.length === 0) return
    const calls = said.flatMap((item) => (item.type === 'tool_call' ? [item.tool_call] : []))
    messages.push({ role: 'assistant', content: textOf(said), content_items: [...said], ...(calls.length > 0 && { tool_calls: calls }) })
    said = []
  }
  for (const item of output) {
    if (item.type === 'tool_result') {
      flush()
      const { call_id, result, content_items, is_error } = item.tool_result
      messages.push({
        role: 'tool',
        tool_call_id: call_id,
        content: result,
        ...(content_items && { content_items }),
        ...(is_error && { is_error }),
      })
    } else {
      said.push(item)
    }
  }
  flush()
  return messages
}
