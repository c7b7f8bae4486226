import { Output, outputMessages } from '../../core/reading/output.ts'
import type { ToolCall } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft, EventOf } from '../../protocol/events.ts'
import type { Message } from '../../protocol/message.ts'

/** The most characters of an answer that is held back until it is checked. */
const HELD = 8 * 1024 * 1024

/** Gives every call of a turn an id of its own, because some models count from zero in every request. */
export class CallIds {
  readonly #used = new Set<string>()
  #count = 0

  constructor(messages: readonly Message[]) {
    for (const { tool_calls = [], content_items = [] } of messages) {
      for (const { id } of tool_calls) this.#used.add(id)
      for (const item of content_items) if (item.type === 'tool_call') this.#used.add(item.tool_call.id)
    }
  }

  take(id: string): string {
    let own = id
    while (own === '' || this.#used.has(own)) own = `${id === '' ? 'call' : id}_${++this.#count}`
    this.#used.add(own)
    return own
  }
}

/** The model's answer to one request: passed on as it comes, and gathered for the next request. */
export class Step {
  readonly #output = new Output()
  readonly #ids: CallIds
  /** The text waits until it is checked. */
  readonly #holds: boolean
  readonly #names = new Map<string, string>()
  /** Calls that the provider has run itself: their results came with them. */
  readonly #answered = new Set<string>()
  readonly #held: string[] = []
  #heldLength = 0
  #usage = false
  /** The model declined, which has no other form than a text. */
  refused = false
  /** The model's own `response.done`, if it sent one. */
  #done: Draft<EventOf<'response.done'>> | undefined

  constructor(ids: CallIds, holds: boolean) {
    this.#ids = ids
    this.#holds = holds
  }

  /** The draft for clients, if any. */
  take(draft: Draft): Draft | undefined {
    switch (draft.type) {
      case 'response.delta':
        return this.#delta(draft)
      case 'thinking':
        this.#output.add(draft)
        return draft
      case 'usage.delta':
        this.#usage = true
        return draft
      case 'response.done':
        return this.#ended(draft)
      case 'response.error':
        throw new UampError('provider_error', draft.error.message, { details: { ...draft.error.details, code: draft.error.code } })
      default:
        return draft
    }
  }

  #delta(draft: Draft<EventOf<'response.delta'>>): Draft | undefined {
    const { delta } = draft
    if (delta.type === 'tool_call') {
      const call = this.#named(delta.tool_call)
      const told: Draft = call === delta.tool_call ? draft : { type: 'response.delta', delta: { type: 'tool_call', tool_call: call } }
      this.#output.add(told)
      return told
    }
    if (delta.type === 'tool_result') {
      const { tool_result } = delta
      const call_id = this.#names.get(tool_result.call_id) ?? tool_result.call_id
      this.#answered.add(call_id)
      const told: Draft = { type: 'response.delta', delta: { type: 'tool_result', tool_result: { ...tool_result, call_id } } }
      this.#output.add(told)
      return told
    }
    this.#output.add(draft)
    if (delta.type !== 'text') return draft
    if (delta.refusal) this.refused = true
    if (!this.#holds || delta.refusal) return draft
    this.#heldLength += delta.text.length
    if (this.#heldLength > HELD) throw new UampError('provider_error', `The answer is longer than ${HELD} characters`)
    this.#held.push(delta.text)
    return undefined
  }

  /** All pieces of a call share the id of its first piece. */
  #named(call: ToolCall): ToolCall {
    let id = this.#names.get(call.id)
    if (id === undefined) this.#names.set(call.id, (id = this.#ids.take(call.id)))
    return id === call.id ? call : { ...call, id }
  }

  #ended(done: Draft<EventOf<'response.done'>>): Draft | undefined {
    const { status, usage } = done.response
    if (status === 'failed') throw new UampError('provider_error', 'The model failed')
    this.#done = done
    // The usage of the response is the sum over its steps.
    if (!usage || this.#usage) return undefined
    this.#usage = true
    return { type: 'usage.delta', delta: usage }
  }

  /** The text that was held back. */
  get held(): string {
    return this.#held.join('')
  }

  /** A limit or a filter cut the answer off. */
  get stopped(): boolean {
    const { uamp } = (this.#done?.response.extensions ?? {}) as { uamp?: { stop_reason?: unknown } }
    return uamp?.stop_reason !== undefined || this.#done?.response.status === 'cancelled'
  }

  /** The `response.done` to pass on, if it says more than that the answer is complete. */
  get end(): Draft | undefined {
    if (!this.#done) return undefined
    const { status, extensions } = this.#done.response
    const { signature } = this.#done
    if (status === 'completed' && !extensions && signature === undefined) return undefined
    const response = { id: '', status, output: [], ...(extensions && { extensions }) }
    return { type: 'response.done', response, ...(signature !== undefined && { signature }) }
  }

  /** The messages that the step adds to the conversation. */
  get messages(): Message[] {
    return outputMessages(this.#output.items())
  }

  /** The calls that still have to run. */
  get calls(): ToolCall[] {
    const calls = this.#output.items().flatMap((item) => (item.type === 'tool_call' ? [item.tool_call] : []))
    return calls.filter(({ id }) => !this.#answered.has(id))
  }
}
