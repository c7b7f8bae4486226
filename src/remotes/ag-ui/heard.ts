import * as z from 'zod/mini'
import type { AnswerReader } from '../../core/answer-drafts.ts'
import { done } from '../../core/done.ts'
import type { ToolCall } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import { uampIn } from '../../protocol/extensions.ts'
import { fieldsOf, isRecord, recordsIn, type Slot } from '../../protocol/json.ts'
import type { WireMessage } from '../../wire/ag-ui/messages.ts'
import { cutOff, eventData } from '../../wire/openai/upstream.ts'
import { contentIn, toMessages } from './messages.ts'
import { activity, custom, FRAMES, PLAIN, text, usageOf } from './plain-events.ts'
import { Interrupt } from './questions.ts'

type Assistant = WireMessage & { content: string }

/** Reads one run of the other side: every event of 1.0, the chunk forms, and those of 0.0.x for thoughts. */
export class Heard implements AnswerReader {
  over = false
  /** The calls of the run, by id. */
  readonly calls = new Map<string, ToolCall>()
  readonly #results = new Set<string>()
  /** What the run ended with for us to answer. */
  interrupts: readonly Interrupt[] = []
  /** How it ended, where nothing is left to answer. */
  done: Draft = done()
  #pending: readonly unknown[] = []
  /** The conversation as the other side has it. */
  messages: WireMessage[]
  readonly #name: string
  readonly #sent: ReadonlySet<string>
  readonly #ignored = new Set<unknown>()
  /** The message whose text was last: what another says begins a paragraph, if nothing came between. */
  #speaking: string | undefined
  #spoke = false
  #last: Assistant | undefined
  #chunk = ''

  constructor(name: string, messages: readonly WireMessage[]) {
    this.#name = name
    this.messages = [...messages]
    this.#sent = new Set(messages.map(({ id }) => id))
  }

  /** Calls that wait for us. A server that does not say which: those of tools that it was offered, without a result. */
  open(offered: ReadonlySet<string>): ToolCall[] {
    const isOpen = ({ id, name }: ToolCall): boolean => !this.#results.has(id) && (this.#pending.includes(id) || offered.has(name))
    return [...this.calls.values()].filter(isOpen)
  }

  read(data: string, out: Draft[]): void {
    const event = eventData(this.#name, data)
    if (typeof event['type'] !== 'string') throw new UampError('provider_error', `${this.#name} sent no event`)
    if (!this.over) this.#event(event['type'], event, out)
  }

  usage(): void {
    // Told with the end alone.
  }

  end(out: Draft[]): void {
    if (!this.over) throw cutOff(this.#name)
    if (this.#spoke) return
    // Some servers say what they have to say in a snapshot alone.
    for (const { id, role, content } of this.messages) {
      if (role === 'assistant' && !this.#sent.has(id)) this.#say(id, contentIn(content).content, out)
    }
  }

  #event(type: string, event: Slot, out: Draft[]): void {
    const id = text(event['messageId'])
    const delta = text(event['delta'])
    switch (type) {
      case 'TEXT_MESSAGE_START':
      case 'TEXT_MESSAGE_CHUNK':
        if (event['role'] != null && event['role'] !== 'assistant') this.#ignored.add(event['messageId'])
        if (type === 'TEXT_MESSAGE_CHUNK') this.#say((this.#chunk = id || this.#chunk), delta, out)
        return
      case 'TEXT_MESSAGE_CONTENT':
        return this.#say(id, delta, out)
      case 'REASONING_MESSAGE_CONTENT':
      case 'REASONING_MESSAGE_CHUNK':
      case 'THINKING_TEXT_MESSAGE_CONTENT':
        if (delta !== '') this.#beside({ type: 'thinking', content: delta, is_delta: true }, out)
        return
      case 'REASONING_ENCRYPTED_VALUE':
        return this.#encrypted(event, out)
      case 'TOOL_CALL_START':
      case 'TOOL_CALL_ARGS':
      case 'TOOL_CALL_CHUNK':
        return this.#call(event, delta, out)
      case 'TOOL_CALL_RESULT':
        return this.#result(event, out)
      case 'MESSAGES_SNAPSHOT':
        this.messages = recordsIn(event['messages']) as unknown as WireMessage[]
        this.#last = undefined
        return void out.push({ type: 'x.messages.snapshot', messages: toMessages(this.messages) })
      case 'ACTIVITY_SNAPSHOT':
        return this.#beside(activity(event), out)
      case 'CUSTOM':
        return this.#beside(custom(event), out)
      case 'RUN_FINISHED':
        return this.#finished(event, out)
      case 'RUN_ERROR':
        this.over = true
        out.push(...usageOf(event['usage']))
        out.push({ type: 'response.error', error: { code: text(event['code']) || 'provider_error', message: text(event['message']) } })
        return
      default: {
        const draft = Object.hasOwn(PLAIN, type) ? PLAIN[type]?.(event) : undefined
        if (draft) out.push(draft)
        else if (!FRAMES.test(type)) out.push({ type: 'x.raw', event, source: 'ag-ui' })
      }
    }
  }

  #say(id: string, delta: string, out: Draft[]): void {
    if (delta === '' || this.#ignored.has(id)) return
    const apart = this.#speaking !== undefined && this.#speaking !== id ? '\n\n' : ''
    this.#speaking = id
    this.#spoke = true
    this.#assistant(id).content += delta
    out.push({ type: 'response.delta', delta: { type: 'text', text: apart + delta } })
  }

  #beside(draft: Draft, out: Draft[]): void {
    this.#speaking = undefined
    out.push(draft)
  }

  #assistant(id: string): Assistant {
    if (this.#last?.id === id) return this.#last
    let message = this.messages.find((one) => one.id === id && one.role === 'assistant')
    if (!message) this.messages.push((message = { id, role: 'assistant' }))
    message.content ??= ''
    return (this.#last = message as Assistant)
  }

  #encrypted({ encryptedValue, entityId, subtype }: Slot, out: Draft[]): void {
    const value = text(encryptedValue)
    // Of a thought it is the signature, and stands with it.
    if (out.at(-1)?.type === 'thinking' || subtype !== 'tool-call')
      return this.#beside({ type: 'thinking', content: '', signature: value }, out)
    out.push({ type: 'x.reasoning.encrypted', value, entity_id: text(entityId), subtype })
  }

  #call({ toolCallId, toolCallName, parentMessageId }: Slot, delta: string, out: Draft[]): void {
    const id = (this.#chunk = text(toolCallId) || this.#chunk)
    const known = this.calls.get(id)
    const call = known ?? { id, name: text(toolCallName), arguments: '' }
    call.arguments += delta
    this.#spoke = true
    if (known && delta === '') return
    if (!known) {
      this.calls.set(id, call)
      const message = this.#assistant(text(parentMessageId) || id)
      // Its arguments are read when it is sent.
      const made = { name: call.name, toJSON: () => ({ name: call.name, arguments: call.arguments }) }
      message.toolCalls = [...(message.toolCalls ?? []), { id, type: 'function', function: made }]
    }
    this.#beside({ type: 'response.delta', delta: { type: 'tool_call', tool_call: { id, name: call.name, arguments: delta } } }, out)
  }

  #result({ toolCallId, messageId, content, metadata }: Slot, out: Draft[]): void {
    const call_id = text(toolCallId)
    this.#results.add(call_id)
    this.messages.push({ id: text(messageId), role: 'tool', toolCallId: call_id, content })
    const { content: result, ...items } = contentIn(content)
    const is_error = uampIn(fieldsOf(metadata))['is_error'] === true
    const tool_result = { call_id, result, status: is_error ? ('failed' as const) : ('completed' as const), is_error, ...items }
    out.push({ type: 'tool.call_done', call_id })
    this.#beside({ type: 'response.delta', delta: { type: 'tool_result', tool_result } }, out)
  }

  #finished({ outcome, interrupt, metadata, usage }: Slot, out: Draft[]): void {
    this.over = true
    out.push(...usageOf(usage))
    // The first draft of interrupts had a text, and one of them.
    const { type, interrupts, pendingToolCallIds } = isRecord(outcome) ? outcome : { type: outcome, interrupts: [interrupt] }
    if (type === 'interrupt') this.interrupts = recordsIn(interrupts).flatMap((one) => z.safeParse(Interrupt, one).data ?? [])
    if (Array.isArray(pendingToolCallIds)) this.#pending = pendingToolCallIds
    const { signature, stop_reason: stop, cancelled } = uampIn(fieldsOf(metadata))
    const isCancelled = type === 'cancelled' || cancelled === true
    this.done = isCancelled ? { type: 'response.cancelled' } : done({ stop, signature: text(signature) || undefined })
  }
}
