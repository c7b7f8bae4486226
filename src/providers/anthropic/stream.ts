import { callDraft, refusalDraft, type AnswerReader } from '../../upstream/answer-drafts.ts'
import { done } from '../../core/agent-kit/done.ts'
import { text } from '../../core/agent-kit/drafts.ts'
import type { Draft } from '../../protocol/events.ts'
import type { Usage } from '../../protocol/usage.ts'
import { cutOff, eventData, failureOf } from '../../wire/upstream.ts'
import { JSON_TOOL } from './tools.ts'

/** Messages API, streaming: the fields that are read. Any of them may be missing, and other events may come. */
interface WireEvent {
  readonly type?: string
  readonly message?: { readonly usage?: WireUsage | null } | null
  readonly content_block?: WireBlock | null
  readonly delta?: WireDelta | null
  readonly usage?: WireUsage | null
  readonly error?: unknown
}

interface WireBlock {
  readonly type?: string
  readonly text?: string
  readonly thinking?: string
  readonly signature?: string
  readonly data?: string
  readonly id?: string
  readonly name?: string
  readonly input?: unknown
}

interface WireDelta {
  readonly type?: string
  readonly text?: string
  readonly partial_json?: string
  readonly thinking?: string
  readonly signature?: string
  readonly stop_reason?: string | null
  readonly stop_details?: { readonly explanation?: string | null } | null
}

/** Messages API, usage. The counts of `message_delta` are totals so far; null means unchanged. */
interface WireUsage {
  readonly input_tokens?: number | null
  readonly output_tokens?: number | null
  readonly cache_read_input_tokens?: number | null
  readonly cache_creation_input_tokens?: number | null
  readonly output_tokens_details?: { readonly thinking_tokens?: number | null } | null
}

/** Stop reasons of incomplete answers. A paused turn goes on only for tools that run at Anthropic. */
const STOPS: Readonly<Record<string, 'length' | 'content_filter'>> = {
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  pause_turn: 'length',
  refusal: 'content_filter',
}

/** Blocks come one after the other, so deltas belong to the block that began last. */
type Open =
  | { readonly type: 'tool'; readonly id: string; readonly name: string; streamed: boolean }
  /** `whole`: it directly follows another thought, and comes in one piece, because pieces would be added to the first. */
  | { readonly type: 'thought'; readonly whole: boolean; content: string; signature: string | undefined }
  | { readonly type: 'json' | 'other' }

/** Turns the events of one answer into drafts. */
export class AnswerStream implements AnswerReader {
  #open: Open = { type: 'other' }
  #afterThought = false
  #usage: WireUsage | undefined
  #stop: { readonly reason: string; readonly explanation: string | undefined } | undefined
  #ended = false

  get over(): boolean {
    return this.#ended
  }

  read(data: string, out: Draft[]): void {
    const event = eventData('anthropic', data) as WireEvent
    switch (event.type) {
      case 'content_block_delta':
        if (event.delta) this.#delta(event.delta, out)
        return
      case 'content_block_start':
        this.#start(event.content_block ?? {}, out)
        return
      case 'content_block_stop':
        this.#close(out)
        return
      case 'message_start':
        this.#usage = laterUsage({}, event.message?.usage)
        return
      case 'message_delta': {
        this.#usage = laterUsage(this.#usage ?? {}, event.usage)
        const { stop_reason: reason, stop_details: details } = event.delta ?? {}
        if (reason != null) this.#stop = { reason, explanation: details?.explanation ?? undefined }
        return
      }
      case 'message_stop':
        this.#ended = true
        return
      case 'error':
        throw failureOf('anthropic', event.error)
      default:
      // `ping`, and events that Anthropic adds later.
    }
  }

  usage(out: Draft[]): void {
    if (this.#usage) out.push({ type: 'usage.delta', delta: toUsage(this.#usage) })
    this.#usage = undefined
  }

  end(out: Draft[]): void {
    this.usage(out)
    if (!this.#ended) throw cutOff('anthropic')
    const { reason = '', explanation } = this.#stop ?? {}
    const stop_reason = STOPS[reason]
    if (reason === 'refusal' && explanation !== undefined) out.push(refusalDraft(explanation))
    if (stop_reason) out.push(done({ stop: stop_reason }))
  }

  #start(block: WireBlock, out: Draft[]): void {
    const follows = this.#afterThought
    this.#afterThought = false
    this.#open = { type: 'other' }
    switch (block.type) {
      case 'text':
        if (block.text) out.push(text(block.text))
        return
      case 'tool_use':
        if (block.name === JSON_TOOL) {
          this.#open = { type: 'json' }
          return
        }
        this.#open = { type: 'tool', id: block.id ?? '', name: block.name ?? '', streamed: false }
        this.#arguments(isFilled(block.input) ? JSON.stringify(block.input) : '', out)
        return
      case 'thinking':
        this.#open = { type: 'thought', whole: follows, content: '', signature: block.signature || undefined }
        if (block.thinking) this.#think(block.thinking, out)
        return
      case 'redacted_thinking':
        // It has no text. Its data goes back like the signature of other thoughts.
        out.push({
          type: 'thinking',
          content: '',
          redacted: true,
          is_delta: false,
          ...(block.data !== undefined && { signature: block.data }),
        })
        this.#afterThought = true
        return
      default:
      // Tools that run at Anthropic are never requested.
    }
  }

  #delta(delta: WireDelta, out: Draft[]): void {
    switch (delta.type) {
      case 'text_delta':
        if (delta.text) out.push(text(delta.text))
        return
      case 'input_json_delta':
        if (delta.partial_json) this.#arguments(delta.partial_json, out)
        return
      case 'thinking_delta':
        if (delta.thinking) this.#think(delta.thinking, out)
        return
      case 'signature_delta':
        if (this.#open.type === 'thought') this.#open.signature = (this.#open.signature ?? '') + (delta.signature ?? '')
        return
      default:
      // Citations have no place in UAMP events.
    }
  }

  #arguments(piece: string, out: Draft[]): void {
    if (this.#open.type === 'json') out.push(text(piece))
    if (this.#open.type !== 'tool') return
    const { id, name } = this.#open
    if (piece !== '') this.#open.streamed = true
    out.push(callDraft(id, name, piece))
  }

  #think(piece: string, out: Draft[]): void {
    if (this.#open.type !== 'thought') return
    if (this.#open.whole) this.#open.content += piece
    else out.push({ type: 'thinking', content: piece, is_delta: true })
  }

  #close(out: Draft[]): void {
    const open = this.#open
    this.#open = { type: 'other' }
    if (open.type === 'tool' && !open.streamed) out.push(callDraft(open.id, open.name, '{}'))
    if (open.type !== 'thought') return
    const { whole, content, signature } = open
    this.#afterThought = true
    if (whole || signature !== undefined) {
      out.push({ type: 'thinking', content, is_delta: !whole, ...(signature !== undefined && { signature }) })
    }
  }
}

function isFilled(input: unknown): boolean {
  return typeof input === 'object' && input !== null && Object.keys(input).length > 0
}

function laterUsage(before: WireUsage, later: WireUsage | null | undefined): WireUsage {
  const told = Object.entries(later ?? {}).filter(([, value]) => value !== null && value !== undefined)
  return { ...before, ...Object.fromEntries(told) }
}

/** UAMP events §8.7: here `input_tokens` excludes the cache, and `cached_tokens` counts what was read from it and written to it. */
function toUsage(wire: WireUsage): Usage {
  const { input_tokens: input, output_tokens: output, cache_read_input_tokens: read, cache_creation_input_tokens: write } = wire
  const reasoning = wire.output_tokens_details?.thinking_tokens
  const cache = read != null || write != null
  return {
    input_tokens: input ?? 0,
    output_tokens: output ?? 0,
    ...(cache && { cached_tokens: (read ?? 0) + (write ?? 0), cache_read: read ?? 0, cache_write: write ?? 0 }),
    input_uncached: input ?? 0,
    output: output ?? 0,
    ...(reasoning != null && { reasoning }),
  }
}
