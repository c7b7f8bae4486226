import { callDraft, refusalDraft, type AnswerReader } from '../../upstream/answer-drafts.ts'
import { done } from '../../core/agent-kit/done.ts'
import { text } from '../../core/agent-kit/drafts.ts'
import type { Draft } from '../../protocol/events.ts'
import { fieldsOf, isRecord, recordsIn } from '../../protocol/json.ts'
import type { Usage } from '../../protocol/usage.ts'
import { present } from '../../wire/fields.ts'
import { cutOff, eventData, failureOf } from '../../wire/upstream.ts'
import { toSignature } from './reasoning.ts'

type Fields = Readonly<Record<string, unknown>>

type StopReason = 'length' | 'content_filter'

interface Call {
  readonly id: string
  readonly name: string
  /** Arguments that were streamed. */
  streamed: string
}

/** Turns the events of one answer of the Responses API into drafts. An answer in one piece counts as one event. */
export class ResponseStream implements AnswerReader<string | Fields> {
  readonly #name: string
  readonly #calls = new Map<unknown, Call>()
  /** The part of a summary that the last thought belonged to. */
  #part: string | undefined
  /** Items that have said something. */
  readonly #said = new Set<unknown>()
  #over = false
  #usage: Fields | undefined
  #stop: StopReason | undefined

  constructor(name: string) {
    this.#name = name
  }

  get over(): boolean {
    return this.#over
  }

  read(data: string | Fields, out: Draft[]): void {
    if (this.#over || data === '[DONE]') return
    const event = typeof data === 'string' ? eventData(this.#name, data) : data
    switch (event['type']) {
      case 'response.output_text.delta':
        return this.#text(event, out)
      case 'response.refusal.delta':
        return this.#refuse(event, out)
      case 'response.function_call_arguments.delta':
        return this.#arguments(event['item_id'], event['delta'], out)
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        return this.#think(event, out)
      case 'response.output_item.added':
        return isRecord(event['item']) ? this.#added(event['item'], out) : undefined
      case 'response.output_item.done':
        return isRecord(event['item']) ? this.#done(event['item'], out) : undefined
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
        return isRecord(event['response']) ? this.#end(event['response']) : undefined
      case 'error':
        throw failureOf(this.#name, event['error'] ?? event)
      default:
        // Gateways in between send an error without a type.
        if (event['type'] === undefined && event['error'] != null) throw failureOf(this.#name, event['error'])
        if (event['object'] === 'response') this.#whole(event, out)
    }
  }

  /** An answer in one piece. */
  #whole(response: Fields, out: Draft[]): void {
    for (const item of recordsIn(response['output'])) {
      this.#added({ ...item, arguments: '' }, out)
      this.#done(item, out)
    }
    this.#end(response)
  }

  usage(out: Draft[]): void {
    if (this.#usage) out.push({ type: 'usage.delta', delta: toUsage(this.#usage) })
    this.#usage = undefined
  }

  /** Throws if the stream ends before the answer does. */
  end(out: Draft[]): void {
    if (!this.#over) throw cutOff(this.#name)
    this.usage(out)
    if (this.#stop) out.push(done({ stop: this.#stop }))
  }

  #text({ item_id, delta }: Fields, out: Draft[]): void {
    if (typeof delta !== 'string' || delta === '') return
    this.#said.add(item_id)
    out.push(text(delta))
  }

  #refuse({ item_id, delta }: Fields, out: Draft[]): void {
    if (typeof delta !== 'string' || delta === '') return
    this.#said.add(item_id)
    out.push(refusalDraft(delta))
  }

  #think({ item_id, summary_index, content_index, delta }: Fields, out: Draft[]): void {
    if (typeof delta !== 'string' || delta === '') return
    const part = `${String(item_id)} ${String(summary_index ?? content_index)}`
    const apart = this.#part !== undefined && this.#part !== part && this.#said.has(item_id) ? '\n\n' : ''
    this.#part = part
    this.#said.add(item_id)
    out.push({ type: 'thinking', content: apart + delta, is_delta: true })
  }

  #added({ type, id, call_id, name, arguments: args }: Fields, out: Draft[]): void {
    if (type !== 'function_call' || typeof call_id !== 'string' || typeof name !== 'string') return
    const call: Call = { id: call_id, name, streamed: '' }
    this.#calls.set(id, call)
    out.push(piece(call, typeof args === 'string' ? args : ''))
  }

  #arguments(itemId: unknown, delta: unknown, out: Draft[]): void {
    const call = this.#calls.get(itemId)
    if (call && typeof delta === 'string' && delta !== '') out.push(piece(call, delta))
  }

  #done(item: Fields, out: Draft[]): void {
    if (item['type'] === 'reasoning') return this.#reasoned(item, out)
    if (item['type'] === 'message') return this.#message(item, out)
    if (item['type'] === 'image_generation_call') return drawn(item, out)
    const { id, arguments: args } = item
    if (item['type'] !== 'function_call') return
    if (!this.#calls.has(id)) this.#added({ ...item, arguments: '' }, out)
    const call = this.#calls.get(id)
    // Some servers send the arguments only here.
    if (call && typeof args === 'string' && args.startsWith(call.streamed) && args !== call.streamed) {
      out.push(piece(call, args.slice(call.streamed.length)))
    }
  }

  /** Only now is the encrypted content complete. */
  #reasoned({ id, summary, content, encrypted_content }: Fields, out: Draft[]): void {
    if (!this.#said.has(id)) {
      for (const [index, part] of [summary, content].flatMap(recordsIn).entries()) {
        this.#think({ item_id: id, summary_index: index, delta: part['text'] }, out)
      }
    }
    if (typeof encrypted_content !== 'string' || encrypted_content === '') return
    out.push({ type: 'thinking', content: '', is_delta: true, signature: toSignature(id, encrypted_content) })
  }

  #message({ id, content }: Fields, out: Draft[]): void {
    if (this.#said.has(id)) return
    for (const part of recordsIn(content)) {
      if (part['type'] === 'refusal') this.#refuse({ item_id: id, delta: part['refusal'] }, out)
      else this.#text({ item_id: id, delta: part['text'] }, out)
    }
  }

  #end(response: Fields): void {
    const { usage, error, status, incomplete_details } = response
    if (isRecord(usage)) this.#usage = usage
    if (status === 'failed' || status === 'cancelled' || error != null) throw failureOf(this.#name, error)
    this.#over = true
    const { reason } = fieldsOf(incomplete_details)
    if (status === 'incomplete') this.#stop = reason === 'content_filter' ? 'content_filter' : 'length'
  }
}

function piece(call: Call, args: string): Draft {
  call.streamed += args
  return callDraft(call.id, call.name, args)
}

/** The picture of a hosted tool. */
function drawn({ result, output_format }: Fields, out: Draft[]): void {
  if (typeof result !== 'string' || result === '') return
  const format = typeof output_format === 'string' ? output_format : 'png'
  out.push({ type: 'response.delta', delta: { type: 'image', image: result, format } })
}

/** UAMP events §8.7: here `input_tokens` includes the cache, and `cached_tokens` counts what was read from it. */
function toUsage({ input_tokens, output_tokens, total_tokens, input_tokens_details, output_tokens_details }: Fields): Usage {
  const input = count(input_tokens)
  const output = count(output_tokens)
  const details = fieldsOf(input_tokens_details)
  const read = count(details['cached_tokens'])
  const written = count(details['cache_write_tokens'])
  return present({
    input_tokens: input,
    output_tokens: output,
    total_tokens: count(total_tokens),
    cached_tokens: read,
    input_uncached: input === undefined ? undefined : Math.max(0, input - (read ?? 0) - (written ?? 0)),
    cache_read: read,
    cache_write: written,
    output,
    reasoning: count(fieldsOf(output_tokens_details)['reasoning_tokens']),
  })
}

function count(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 ? value : undefined
}
