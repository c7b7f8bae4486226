import type { ContentItem, ToolCall, ToolResult } from '../../protocol/content.ts'
import type { Draft } from '../../protocol/events.ts'
import type { Delta } from '../../protocol/server-events.ts'
import { addUsage, type Usage } from '../../protocol/usage.ts'
import { StreamedSpeech } from './streamed-speech.ts'
import type { Spoken } from '../engine/unsaid.ts'
import { weigh } from '../basics/weight.ts'

/** Pieces of a text that are kept apart until there are so many. */
const PIECES = 32

type Piece = { text: string[]; pieces: string[]; item: { type: 'text' | 'thinking'; refusal?: boolean } & Partial<ContentItem> }

/** Gathers what an agent yields into the output of its response: consecutive pieces merged, each kind in its place. */
export class Output {
  readonly #items: ContentItem[] = []
  /** The text or thought that is being streamed; joined once, not per delta. */
  #open: Piece | undefined
  #usage: Usage | undefined
  #size = 0
  #signed = false
  #speech: StreamedSpeech | undefined
  /** Calls that were put to the client: they are whole. */
  readonly #asked = new Set<string>()

  /** Roughly what it holds. */
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
        // A signature is of the thought before it: what comes then is another.
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

  /** What was streamed as speech. */
  get spoken(): Spoken {
    this.#close()
    return this.#speech?.heardBeside(this.#items) ?? { sound: false, words: '', items: 0 }
  }

  /** What was heard in another way. */
  keep(item: ContentItem): void {
    this.#speech?.known(item)
    this.#addItem(item)
  }

  /** What a tool gave back. An agent that passes on what its client answered does not say it twice. */
  addResult(result: ToolResult): void {
    this.#close()
    const index = this.#items.findLastIndex((item) => item.type === 'tool_result' && item.tool_result.call_id === result.call_id)
    const item: ContentItem = { type: 'tool_result', tool_result: result }
    this.#size += weigh(item) - weigh(this.#items[index])
    this.#items[index < 0 ? this.#items.length : index] = item
  }

  /** The items so far. Speech that only came in pieces is the last. */
  items(): ContentItem[] {
    this.#close()
    return [...this.#items, ...(this.#speech?.items(this.#items) ?? [])]
  }

  #streamed(): StreamedSpeech {
    return (this.#speech ??= new StreamedSpeech())
  }

  #addDelta(delta: Delta): void {
    switch (delta.type) {
      case 'text':
        if (this.#open?.item.type !== 'text' || this.#open.item.refusal !== delta.refusal) {
          this.#close()
          this.#open = { text: [], pieces: [], item: { type: 'text', ...(delta.refusal && { refusal: true }) } }
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
        // A chunk of a stream has no handle; the agent yields the whole item, with its content id, when it is complete.
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
    // Joined now and then: a thousand small strings that live as long as the response are a burden to the collector.
    open.text.push(open.pieces.join(''))
    open.pieces = []
  }

  #addItem(item: ContentItem): void {
    this.#close()
    this.#items.push(item)
    this.#size += weigh(item)
  }

  /** Arguments are streamed in pieces under the id of their call. */
  #addCall(call: ToolCall): void {
    if (this.#asked.has(call.id)) return
    this.#size += call.arguments.length
    const index = this.#items.findLastIndex((item) => item.type === 'tool_call' && item.tool_call.id === call.id)
    const known = this.#items[index]
    if (known?.type !== 'tool_call') this.#items.push({ type: 'tool_call', tool_call: call })
    else this.#items[index] = { ...known, tool_call: { ...known.tool_call, arguments: known.tool_call.arguments + call.arguments } }
  }

  #close(): void {
    if (!this.#open) return
    const { text, pieces, item } = this.#open
    const joined = [...text, ...pieces].join('')
    this.#open = undefined
    if (joined === '' && item.type === 'text') return
    this.#items.push((item.type === 'text' ? { ...item, text: joined } : { ...item, thinking: joined }) as ContentItem)
  }
}
