import * as z from 'zod/mini'
import type { AnswerReader } from '../../upstream/answer-drafts.ts'
import { done } from '../../core/agent-kit/done.ts'
import type { ToolCall } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import { uampIn } from '../../protocol/extensions.ts'
import { excessIn, fieldsOf, isRecord, recordsIn, type Slot } from '../../protocol/json.ts'
import type { WireMessage } from '../../wire/ag-ui/messages.ts'
import { limits } from '../../protocol/limits.ts'
import { cutOff, eventData } from '../../wire/upstream.ts'
import { contentIn, toMessages } from './messages.ts'
import { activity, custom, FRAMES, PLAIN, text, usageOf } from './plain-events.ts'
import { Interrupt } from './questions.ts'
import { Speech } from './speech.ts'

type Assistant = WireMessage & { content: string }

/** How long a run that is over waits for another one, or a late error, where its stream does not end. */
const LINGER_MS = 500

export interface HeardOptions {
  readonly name: string
  /** What was sent. */
  readonly messages: readonly WireMessage[]
  /** The ids of all calls so far. */
  readonly taken: Set<string>
  readonly newId: () => string
}

/** Reads what is answered to one request, mostly one run: every event of 1.0, the chunk forms, and those of 0.0.x for thoughts. */
export class Heard implements AnswerReader {
  over = false
  readonly lingerMs = LINGER_MS
  /** The calls of the run, by their ids there. An id that was used before is another one here. */
  readonly calls = new Map<string, ToolCall>()
  readonly #results = new Set<string>()
  /** What the run ended with for us to answer. */
  interrupts: readonly Interrupt[] = []
  /** How it ended, where nothing is left to answer. */
  done: Draft = done()
  #result: unknown
  #pending: readonly unknown[] = []
  /** The conversation as the other side has it. */
  messages: WireMessage[]
  readonly #options: HeardOptions
  readonly #sent: ReadonlySet<string>
  readonly #ignored = new Set<unknown>()
  readonly #speech = new Speech()
  readonly #thoughts = new Set<string>()
  /** The thought that was last, if nothing came since. */
  #thinking: string | undefined
  #spoke = false
  #last: Assistant | undefined
  /** What a chunk without an id belongs to. */
  #said = ''
  #called = ''

  constructor(options: HeardOptions) {
    this.#options = options
    this.messages = [...options.messages]
    this.#sent = new Set(options.messages.map(({ id }) => id))
  }

  /** Calls that wait for us. A server that does not say which: those of tools that it was offered, without a result. */
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
    if (typeof type !== 'string') throw new UampError('provider_error', `${name} sent no event`)
    // Behind the end of a run only a late error comes, or another run.
    if (!this.over || type === 'RUN_ERROR') this.#event(type, event, out)
    else if (type === 'RUN_STARTED') {
      this.over = false
      this.interrupts = this.#pending = []
    }
  }

  usage(): void {
    // Told with the end alone.
  }

  end(out: Draft[]): void {
    if (!this.over) throw cutOff(this.#options.name)
    if (this.#spoke || this.interrupts.length > 0) return
    // Some servers say what they have to say in a snapshot alone, or as the result.
    for (const { id, role, content } of this.messages) {
      if (role === 'assistant' && !this.#sent.has(id)) this.#say(id, contentIn(content).content, out)
    }
    if (this.#spoke || this.#result == null) return
    this.#say('', typeof this.#result === 'string' ? this.#result : JSON.stringify(this.#result), out)
  }

  #event(type: string, event: Slot, out: Draft[]): void {
    const id = text(event['messageId'])
    const delta = text(event['delta'])
    if (type.startsWith('REASONING_') && id !== '') this.#thoughts.add(id)
    // What a subagent says is not the answer.
    if (text(event['subagentRunId']) !== '' && /^(TEXT_MESSAGE|REASONING)_/.test(type)) return this.#beside(raw(event), out)
    switch (type) {
      case 'TEXT_MESSAGE_START':
        if (event['role'] != null && event['role'] !== 'assistant') this.#ignored.add(id)
        return this.#speech.begin(id)
      case 'TEXT_MESSAGE_CHUNK':
        if (event['role'] != null && event['role'] !== 'assistant') this.#ignored.add(id)
        return this.#say((this.#said = id || this.#said), delta, out)
      case 'TEXT_MESSAGE_CONTENT':
        return this.#say(id, delta, out)
      case 'TEXT_MESSAGE_END':
        return this.#speech.end(id, out)
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
        const message = text(event['message']) || `${this.#options.name} failed without a word`
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
    if (delta === '' || this.#ignored.has(id)) return
    this.#thinking = undefined
    this.#spoke = true
    this.#assistant(id).content += delta
    this.#speech.say(id, delta, out)
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

  /** Of a thought it is the signature, and stands with it. */
  #encrypted({ encryptedValue, entityId, subtype }: Slot, out: Draft[]): void {
    const value = text(encryptedValue)
    const entity = text(entityId)
    if (subtype !== 'tool-call' && (entity === '' || this.#thoughts.has(entity)))
      return this.#beside({ type: 'thinking', content: '', signature: value }, out)
    out.push({ type: 'x.reasoning.encrypted', value, entity_id: entity, subtype: text(subtype) })
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
    // Its arguments are read when it is sent.
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
    // The first draft of interrupts had a text, and one of them.
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
