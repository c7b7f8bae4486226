import * as z from 'zod/mini'
import type { AnswerReader } from '../../upstream/answer-drafts.ts'
import { done } from '../../core/agent-kit/done.ts'
import type { ContentItem, ToolCall } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import { uampIn, excessIn, fieldsOf, isRecord, recordsIn, type Slot } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import type { Message } from '../../protocol/message.ts'
import { mediaItem, type WireMessage } from '../../wire/ag-ui/messages.ts'
import { cutOff, eventData } from '../../wire/upstream.ts'
import { activity, custom, FRAMES, PLAIN, text, usageOf } from './plain-events.ts'
import { Interrupt } from './questions.ts'
import { Speech } from './speech.ts'

const Media = z.object({ type: z.string(), source: z.object({ type: z.string(), value: z.string(), mimeType: z.nullish(z.string()) }) })
const Call = z.object({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) })

type Assistant = WireMessage & { content: string }

/** The most characters of another's message that are told at once. */
const OTHERS_LENGTH = 256 * 1024

/** How long a finished run waits for another run, or a late error, if its stream stays open. */
const LINGER_MS = 500

export interface HeardOptions {
  readonly name: string
  /** The messages of the request. */
  readonly messages: readonly WireMessage[]
  /** The ids of all calls in the conversation so far. */
  readonly taken: Set<string>
  readonly newId: () => string
}

/** Reads the answer to one request, usually one run: all events of 1.0, the chunk forms, and the thoughts of 0.0.x. */
export class Heard implements AnswerReader {
  over = false
  readonly lingerMs = LINGER_MS
  /** The calls of the run, by their ids there. A call whose id was used before has a new one here. */
  readonly calls = new Map<string, ToolCall>()
  readonly #results = new Set<string>()
  /** The interrupts that ended the run, for us to answer. */
  interrupts: readonly Interrupt[] = []
  /** The end of the run, if nothing is left to answer. */
  done: Draft = done()
  #result: unknown
  #pending: readonly unknown[] = []
  /** The conversation as the other side has it. */
  messages: WireMessage[]
  readonly #options: HeardOptions
  readonly #sent: ReadonlySet<string>
  /** What the other side says in the name of others, by message. */
  readonly #others = new Map<string, { readonly role: string; content: string }>()
  readonly #speech = new Speech()
  readonly #thoughts = new Set<string>()
  /** The id of the newest thought, if nothing came after it. */
  #thinking: string | undefined
  #spoke = false
  #last: Assistant | undefined
  /** The message and the call of a chunk without an id. */
  #said = ''
  #called = ''

  constructor(options: HeardOptions) {
    this.#options = options
    this.messages = [...options.messages]
    this.#sent = new Set(options.messages.map(({ id }) => id))
  }

  /** Calls that wait for us: those that the server names, and calls without a result of tools that we offered. */
  open(offered: ReadonlySet<string>): { readonly theirs: string; readonly call: ToolCall }[] {
    const isOpen = (id: string, { name }: ToolCall): boolean => !this.#results.has(id) && (this.#pending.includes(id) || offered.has(name))
    return [...this.calls].flatMap(([theirs, call]) => (isOpen(theirs, call) ? [{ theirs, call }] : []))
  }

  read(data: string, out: Draft[]): void {
    const { name } = this.#options
    const excess = excessIn(data, limits.depth)
    if (excess) throw new UampError('provider_error', `${name} sent an event of more than ${excess.most}`)
    const event = eventData(name, data)
    const { type } = event
    if (typeof type !== 'string') throw new UampError('provider_error', `${name} sent an event without a type`)
    // After the end of a run only a late error or another run may come.
    if (!this.over || type === 'RUN_ERROR') this.#event(type, event, out)
    else if (type === 'RUN_STARTED') {
      this.over = false
      this.interrupts = this.#pending = []
    }
  }

  usage(): void {
    // Servers tell it only with the end.
  }

  end(out: Draft[]): void {
    if (!this.over) throw cutOff(this.#options.name)
    for (const id of this.#others.keys()) this.#tellOther(id, out)
    if (this.#spoke || this.interrupts.length > 0) return
    // Some servers give their answer only in a snapshot, or as the result.
    for (const { id, role, content } of this.messages) {
      if (role === 'assistant' && !this.#sent.has(id)) this.#say(id, contentIn(content).content, out)
    }
    if (this.#spoke || this.#result == null) return
    this.#say('', typeof this.#result === 'string' ? this.#result : JSON.stringify(this.#result), out)
  }

  #event(type: string, event: Slot, out: Draft[]): void {
    const id = text(event['messageId'])
    const delta = text(event['delta'])
    if (event['rawEvent'] != null) out.push({ type: 'x.raw', event: event['rawEvent'], source: 'ag-ui' })
    if (type.startsWith('REASONING_') && id !== '') this.#thoughts.add(id)
    // The words of a subagent are not the answer.
    if (text(event['subagentRunId']) !== '' && /^(TEXT_MESSAGE|REASONING)_/.test(type)) return this.#beside(raw(event), out)
    switch (type) {
      case 'TEXT_MESSAGE_START':
        return this.#isOther(id, event['role']) ? undefined : this.#speech.begin(id)
      case 'TEXT_MESSAGE_CHUNK':
        this.#isOther(id || this.#said, event['role'])
        return this.#say((this.#said = id || this.#said), delta, out)
      case 'TEXT_MESSAGE_CONTENT':
        return this.#say(id, delta, out)
      case 'TEXT_MESSAGE_END':
        return this.#others.has(id) ? this.#tellOther(id, out) : this.#speech.end(id, out)
      case 'REASONING_MESSAGE_CONTENT':
      case 'REASONING_MESSAGE_CHUNK':
      case 'THINKING_TEXT_MESSAGE_CONTENT':
        return this.#think(id, delta, out)
      case 'REASONING_ENCRYPTED_VALUE':
        return this.#encrypted(event, out)
      case 'TOOL_CALL_START':
      case 'TOOL_CALL_ARGS':
      case 'TOOL_CALL_CHUNK':
        return this.#call(event, delta, out)
      case 'TOOL_CALL_RESULT':
        return this.#answered(event, out)
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
      case 'RUN_ERROR': {
        this.over = true
        this.#speech.flush(out)
        out.push(...usageOf(event['usage']))
        const message = text(event['message']) || `${this.#options.name} failed and gave no reason`
        return void out.push({ type: 'response.error', error: { code: text(event['code']) || 'provider_error', message } })
      }
      default: {
        const draft = Object.hasOwn(PLAIN, type) ? PLAIN[type]?.(event) : undefined
        if (draft) out.push(draft)
        else if (!FRAMES.test(type)) out.push(raw(event))
      }
    }
  }

  #say(id: string, delta: string, out: Draft[]): void {
    if (delta === '') return
    const other = this.#others.get(id)
    if (other) {
      other.content += delta
      if (other.content.length > OTHERS_LENGTH) this.#tellOther(id, out)
      return
    }
    this.#thinking = undefined
    this.#spoke = true
    this.#assistant(id).content += delta
    this.#speech.say(id, delta, out)
  }

  /** True if the message is not the assistant's. */
  #isOther(id: string, role: unknown): boolean {
    if (role != null && role !== 'assistant' && !this.#others.has(id)) this.#others.set(id, { role: text(role), content: '' })
    return this.#others.has(id)
  }

  /** The words of others are not the answer: only clients of AG-UI have a place for them. */
  #tellOther(messageId: string, out: Draft[]): void {
    const { role, content } = this.#others.get(messageId) ?? { role: '', content: '' }
    this.#others.set(messageId, { role, content: '' })
    if (content === '') return
    this.messages.push({ id: messageId, role, content })
    this.#beside(raw({ type: 'TEXT_MESSAGE_CHUNK', messageId, role, delta: content }), out)
  }

  #think(id: string, delta: string, out: Draft[]): void {
    if (delta === '') return
    const thought = id || (this.#thinking ?? '')
    const apart = this.#thinking !== undefined && this.#thinking !== thought ? '\n\n' : ''
    this.#beside({ type: 'thinking', content: apart + delta, is_delta: true }, out)
    this.#thinking = thought
  }

  #beside(draft: Draft, out: Draft[]): void {
    this.#speech.interrupt(out)
    this.#thinking = undefined
    out.push(draft)
  }

  #assistant(id: string): Assistant {
    if (this.#last?.id === id) return this.#last
    let message = this.messages.find((one) => one.id === id && one.role === 'assistant')
    if (!message) this.messages.push((message = { id, role: 'assistant' }))
    message.content ??= ''
    return (this.#last = message as Assistant)
  }

  /** The encrypted value of a thought is its signature. */
  #encrypted({ encryptedValue, entityId, subtype }: Slot, out: Draft[]): void {
    const value = text(encryptedValue)
    const entity = text(entityId)
    const message = this.messages.find(({ id, toolCalls }) => id === entity || recordsIn(toolCalls).some((call) => call['id'] === entity))
    if (message && subtype !== 'tool-call') Object.assign(message, { encryptedValue: value })
    else for (const call of recordsIn(message?.toolCalls)) if (call['id'] === entity) Object.assign(call, { encryptedValue: value })
    if (subtype !== 'tool-call' && (entity === '' || this.#thoughts.has(entity)))
      return this.#beside({ type: 'thinking', content: '', signature: value }, out)
    // Our client knows the call by our id, and the message as the newest one.
    const ours = subtype === 'tool-call' && { entity_id: this.calls.get(entity)?.id ?? entity }
    out.push({ type: 'x.reasoning.encrypted', value, ...ours, subtype: text(subtype) })
  }

  #call({ type, toolCallId, toolCallName, parentMessageId }: Slot, delta: string, out: Draft[]): void {
    const theirs = (this.#called = text(toolCallId) || this.#called)
    const { taken, newId } = this.#options
    let call = this.calls.get(theirs)
    const begins = !call || type === 'TOOL_CALL_START' || (toolCallName != null && this.#results.has(theirs))
    if (!call || begins) {
      call = { id: taken.has(theirs) ? newId() : theirs, name: text(toolCallName), arguments: '' }
      taken.add(call.id)
      this.#results.delete(theirs)
      this.calls.set(theirs, call)
      this.#wrote(theirs, call, text(parentMessageId) || theirs)
    }
    call.arguments += delta
    this.#spoke = true
    if (begins || delta !== '')
      this.#beside({ type: 'response.delta', delta: { type: 'tool_call', tool_call: { ...call, arguments: delta } } }, out)
  }

  #wrote(id: string, call: ToolCall, messageId: string): void {
    const message = this.#assistant(messageId)
    // The arguments still grow, so they are read when the message is sent.
    const made = { name: call.name, toJSON: () => ({ name: call.name, arguments: call.arguments }) }
    message.toolCalls = [...(message.toolCalls ?? []), { id, type: 'function', function: made }]
  }

  #answered({ toolCallId, messageId, content, metadata }: Slot, out: Draft[]): void {
    const theirs = text(toolCallId)
    const call_id = this.calls.get(theirs)?.id ?? theirs
    this.#results.add(theirs)
    this.messages.push({ id: text(messageId), role: 'tool', toolCallId: theirs, content })
    const { content: result, ...items } = contentIn(content)
    const is_error = uampIn(fieldsOf(metadata))['is_error'] === true
    const tool_result = { call_id, result, status: is_error ? ('failed' as const) : ('completed' as const), is_error, ...items }
    out.push({ type: 'tool.call_done', call_id })
    this.#beside({ type: 'response.delta', delta: { type: 'tool_result', tool_result } }, out)
  }

  #finished({ outcome, interrupt, metadata, usage, result }: Slot, out: Draft[]): void {
    this.over = true
    this.#speech.flush(out)
    out.push(...usageOf(usage))
    // In the first draft of interrupts the outcome was a text, with one interrupt beside it.
    const { type, interrupts, pendingToolCallIds } = isRecord(outcome) ? outcome : { type: outcome, interrupts: [interrupt] }
    if (type === 'interrupt') this.interrupts = recordsIn(interrupts).flatMap((one) => z.safeParse(Interrupt, one).data ?? [])
    if (Array.isArray(pendingToolCallIds)) this.#pending = pendingToolCallIds
    this.#result = result
    const { signature, stop_reason: stop, cancelled } = uampIn(fieldsOf(metadata))
    const extensions = result == null ? undefined : { 'ag-ui': { result } }
    const isCancelled = type === 'cancelled' || cancelled === true
    this.done = isCancelled ? { type: 'response.cancelled' } : done({ stop, signature: text(signature) || undefined, extensions })
  }
}

function raw(event: Slot): Draft {
  return { type: 'x.raw', event, source: 'ag-ui' }
}

/** The conversation of the other side as our messages. */
function toMessages(messages: readonly WireMessage[]): Message[] {
  return messages.flatMap(({ role, content, toolCalls, toolCallId = '' }): Message[] => {
    const said = contentIn(content)
    if (role === 'tool') return [{ role, tool_call_id: toolCallId, ...said }]
    if (role === 'user' || role === 'system') return [{ role, ...said }]
    if (role === 'developer') return [{ role: 'system', content: said.content }]
    if (role !== 'assistant') return []
    const calls = recordsIn(toolCalls).flatMap((call) => z.safeParse(Call, call).data ?? [])
    const made = calls.map(({ id, function: { name, arguments: args } }) => ({ id, name, arguments: args }))
    return [{ role, content: said.content, ...(made.length > 0 && { tool_calls: made }) }]
  })
}

/** The text of a content and, if it has more than text, all of its items. */
function contentIn(given: unknown): { content: string; content_items?: ContentItem[] } {
  const parts = typeof given === 'string' ? [{ text: given }] : recordsIn(given)
  const content = parts.reduce((all, { text }) => (typeof text === 'string' ? all + text : all), '')
  const media = parts.flatMap((part) => z.safeParse(Media, part).data ?? [])
  if (media.length === 0) return { content }
  const items = media.map(({ type, source }) => mediaItem(type, source, { mimeType: source.mimeType ?? undefined }))
  return { content, content_items: [...(content === '' ? [] : [{ type: 'text' as const, text: content }]), ...items] }
}
