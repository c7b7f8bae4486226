import { callDraft, refusalDraft, type AnswerReader } from '../../upstream/answer-drafts.ts'
import { done } from '../../core/agent-kit/done.ts'
import { text } from '../../core/agent-kit/drafts.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import type { Usage } from '../../protocol/usage.ts'
import { cutOff, eventData, failureOf } from '../../wire/upstream.ts'
import { JSON_TOOL } from './tools.ts'

/** Messages API, streaming: the fields that are read. Any of them may be missing, and other events may come. */
interface WireEvent {
  readonly type?: string
  readonly index?: number
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

/** What is known of a block that has begun. */
type Open =
  | { readonly type: 'tool'; readonly id: string; readonly name: string; streamed: boolean }
  /** `whole`: it directly follows another thought, and comes in one piece, because pieces would be added to the first. */
  | { readonly type: 'thought'; readonly whole: boolean; content: string; signature: string | undefined }
  | { readonly type: 'json' | 'other' }

interface Block {
  readonly index: number | undefined
  readonly open: Open
  /** What it said while an earlier block was still open. */
  readonly held: Draft[]
  stopped: boolean
}

/** The most drafts that wait for an earlier block to stop. */
const HELD = 65_536

/**
 * Turns the events of one answer into drafts. Blocks may overlap, and their `index` tells whose a delta is. Texts and thoughts have no
 * number in UAMP events, so the blocks are told one after the other: a later block waits until the earlier ones have stopped.
 */
export class AnswerStream implements AnswerReader {
  readonly #name: string
  /** The blocks that are not told to their end, in their order. */
  #blocks: Block[] = []
  #held = 0
  #afterThought = false
  #usage: WireUsage | undefined
  #stop: { readonly reason: string; readonly explanation: string | undefined } | undefined
  #ended = false

  constructor(name = 'anthropic') {
    this.#name = name
  }

  get over(): boolean {
    return this.#ended
  }

  read(data: string, out: Draft[]): void {
    const event = eventData(this.#name, data) as WireEvent
    switch (event.type) {
      case 'content_block_delta':
        if (event.delta) this.#delta(event.index, event.delta, out)
        return
      case 'content_block_start':
        this.#start(event.index, event.content_block ?? {}, out)
        return
      case 'content_block_stop':
        this.#close(this.#find(event.index), out)
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
        this.#closeAll(out)
        this.#ended = true
        return
      case 'error':
        throw failureOf(this.#name, event.error)
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
    if (!this.#ended) throw cutOff(this.#name)
    const { reason = '', explanation } = this.#stop ?? {}
    const stop_reason = STOPS[reason]
    if (reason === 'refusal' && explanation !== undefined) out.push(refusalDraft(explanation))
    if (stop_reason) out.push(done({ stop: stop_reason }))
  }

  /** The block with this number; without a number, the one that began last. */
  #find(index: number | undefined): Block | undefined {
    const [first] = this.#blocks
    if (first?.index === index && this.#blocks.length <= 1) return first
    return index === undefined ? this.#blocks.at(-1) : this.#blocks.find((block) => block.index === index && !block.stopped)
  }

  /** Where the drafts of a block go: out, or into what waits. */
  #sink(block: Block, out: Draft[]): Draft[] {
    if (block === this.#blocks[0]) return out
    if (++this.#held > HELD) throw new UampError('provider_error', `${this.#name} sent too much of one block before it ended another`)
    return block.held
  }

  #start(index: number | undefined, wire: WireBlock, out: Draft[]): void {
    // Imitations leave out the number, or the end of a block.
    const before = index === undefined ? this.#blocks.at(-1) : this.#find(index)
    if (before) this.#close(before, out)
    const follows = this.#afterThought
    this.#afterThought = wire.type === 'thinking' || wire.type === 'redacted_thinking'
    const block: Block = { index, open: opened(wire, follows), held: [], stopped: false }
    this.#blocks.push(block)
    switch (wire.type) {
      case 'text':
        if (wire.text) this.#sink(block, out).push(text(wire.text))
        return
      case 'tool_use':
        this.#arguments(block, isFilled(wire.input) ? JSON.stringify(wire.input) : '', out)
        return
      case 'thinking':
        if (wire.thinking) this.#think(block, wire.thinking, out)
        return
      case 'redacted_thinking': {
        // It has no text. Its data goes back like the signature of other thoughts.
        const { data: signature } = wire
        const draft: Draft = {
          type: 'thinking',
          content: '',
          redacted: true,
          is_delta: false,
          ...(signature !== undefined && { signature }),
        }
        this.#sink(block, out).push(draft)
        return
      }
      default:
      // What tools that run at Anthropic were asked and found: the answer says it in words.
    }
  }

  #delta(index: number | undefined, delta: WireDelta, out: Draft[]): void {
    const block = this.#find(index)
    // Text needs no block: some imitations send none.
    if (delta.type === 'text_delta') {
      if (delta.text) (block ? this.#sink(block, out) : out).push(text(delta.text))
      return
    }
    if (!block) return
    switch (delta.type) {
      case 'input_json_delta':
        if (delta.partial_json) this.#arguments(block, delta.partial_json, out)
        return
      case 'thinking_delta':
        if (delta.thinking) this.#think(block, delta.thinking, out)
        return
      case 'signature_delta':
        if (block.open.type === 'thought') block.open.signature = (block.open.signature ?? '') + (delta.signature ?? '')
        return
      default:
      // Citations have no place in UAMP events.
    }
  }

  #arguments(block: Block, piece: string, out: Draft[]): void {
    const { open } = block
    if (open.type === 'json' && piece !== '') this.#sink(block, out).push(text(piece))
    if (open.type !== 'tool') return
    if (piece !== '') open.streamed = true
    this.#sink(block, out).push(callDraft(open.id, open.name, piece))
  }

  #think(block: Block, piece: string, out: Draft[]): void {
    const { open } = block
    if (open.type !== 'thought') return
    if (open.whole) open.content += piece
    else this.#sink(block, out).push({ type: 'thinking', content: piece, is_delta: true })
  }

  /** The block has said all of it. If it was the first one, those that waited for it go on. */
  #close(block: Block | undefined, out: Draft[]): void {
    if (!block || block.stopped) return
    block.stopped = true
    const { open } = block
    if (open.type === 'tool' && !open.streamed) this.#sink(block, out).push(callDraft(open.id, open.name, '{}'))
    if (open.type === 'thought') {
      const { whole, content, signature } = open
      if (whole || signature !== undefined) {
        this.#sink(block, out).push({ type: 'thinking', content, is_delta: !whole, ...(signature !== undefined && { signature }) })
      }
    }
    while (this.#blocks[0]?.stopped) {
      this.#blocks.shift()
      for (const draft of this.#blocks[0]?.held.splice(0) ?? []) out.push(draft)
    }
    if (this.#blocks.length <= 1) this.#held = 0
  }

  #closeAll(out: Draft[]): void {
    for (const block of this.#blocks.slice()) this.#close(block, out)
  }
}

function opened(block: WireBlock, follows: boolean): Open {
  if (block.type === 'thinking') return { type: 'thought', whole: follows, content: '', signature: block.signature || undefined }
  if (block.type !== 'tool_use') return { type: 'other' }
  if (block.name === JSON_TOOL) return { type: 'json' }
  return { type: 'tool', id: block.id ?? '', name: block.name ?? '', streamed: false }
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
