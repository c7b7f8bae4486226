import * as z from 'zod/mini'
import type { AnswerReader } from '../../core/answer-drafts.ts'
import { ContentItem, type ToolCall } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import { ServerEvent, type Draft } from '../../protocol/events.ts'
import { PatchOperation } from '../../protocol/extension-events.ts'
import { isRecord } from '../../protocol/json.ts'
import { CONTENT_ACTIVITY, type WireMessage } from '../../wire/ag-ui/messages.ts'
import { textIn, toMessages } from './messages.ts'
import { interruptsIn, type Interrupt } from './questions.ts'
import { usageOf } from './usage.ts'

type Fields = Readonly<Record<string, unknown>>
type Assistant = WireMessage & { content: string }

const Patch = z.array(PatchOperation)

/** Events of another uamp server that AG-UI has no name for. */
const OWN = /^uamp\.(audio\.(?:delta|done)|payment\.(?:accepted|balance|error)|response\.delta)$/

/** Reads one run of the other side: every event of 1.0, the chunk forms, and those of 0.0.x for thoughts. */
export class Heard implements AnswerReader {
  over = false
  /** The calls of the run, by id. */
  readonly calls = new Map<string, ToolCall>()
  readonly #results = new Set<string>()
  /** What the run ended with for us to answer. */
  interrupts: readonly Interrupt[] = []
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
  #done: Draft = { type: 'response.done', response: { id: '', status: 'completed', output: [] } }

  constructor(name: string, messages: readonly WireMessage[]) {
    this.#name = name
    this.messages = [...messages]
    this.#sent = new Set(messages.map(({ id }) => id))
  }

  /** How it ended, where nothing is left to answer. */
  done(): Draft {
    return this.#done
  }

  /** Calls that wait for us. A server that does not say which: those of tools that it was offered, without a result. */
  open(offered: ReadonlySet<string>): ToolCall[] {
    const isOpen = ({ id, name }: ToolCall): boolean => !this.#results.has(id) && (this.#pending.includes(id) || offered.has(name))
    return [...this.calls.values()].filter(isOpen)
  }

  read(data: string, out: Draft[]): void {
    let event: unknown
    try {
      event = JSON.parse(data)
    } catch (cause) {
      throw new UampError('provider_error', `"${this.#name}" sent something that is not JSON`, { cause })
    }
    if (!isRecord(event) || typeof event['type'] !== 'string') throw new UampError('provider_error', `"${this.#name}" sent no event`)
    if (!this.over) this.#event(event['type'], event, out)
  }

  usage(): void {
    // Told with the end alone.
  }

  end(out: Draft[]): void {
    if (!this.over) throw new UampError('provider_error', `The answer of "${this.#name}" was cut off`)
    if (!this.#spoke) this.#unsaid(out)
  }

  #event(type: string, event: Fields, out: Draft[]): void {
    const id = text(event['messageId'])
    switch (type) {
      case 'TEXT_MESSAGE_START':
      case 'TEXT_MESSAGE_CHUNK':
        if (event['role'] != null && event['role'] !== 'assistant') this.#ignored.add(event['messageId'])
        if (type === 'TEXT_MESSAGE_CHUNK') this.#say((this.#chunk = id || this.#chunk), event, out)
        return
      case 'TEXT_MESSAGE_CONTENT':
        return this.#say(id, event, out)
      case 'REASONING_MESSAGE_CONTENT':
      case 'REASONING_MESSAGE_CHUNK':
      case 'THINKING_TEXT_MESSAGE_CONTENT':
        if (text(event['delta']) !== '') this.#beside({ type: 'thinking', content: text(event['delta']), is_delta: true }, out)
        return
      case 'REASONING_ENCRYPTED_VALUE':
        return this.#encrypted(event, out)
      case 'TOOL_CALL_START':
      case 'TOOL_CALL_ARGS':
      case 'TOOL_CALL_CHUNK':
        return this.#call(event, out)
      case 'TOOL_CALL_RESULT':
        return this.#result(event, out)
      case 'STATE_SNAPSHOT':
        return void out.push({ type: 'x.state.snapshot', snapshot: event['snapshot'] })
      case 'STATE_DELTA':
        return void out.push({ type: 'x.state.delta', delta: patchIn(event['delta']) })
      case 'MESSAGES_SNAPSHOT':
        return this.#snapshot(event['messages'], out)
      case 'ACTIVITY_SNAPSHOT':
        return this.#beside(activity(event), out)
      case 'ACTIVITY_DELTA':
        return void out.push({ ...activityIds(event), type: 'x.activity.delta', patch: patchIn(event['patch']) })
      case 'STEP_STARTED':
        return void out.push({ type: 'x.step.started', name: text(event['stepName']) })
      case 'STEP_FINISHED':
        return void out.push({ type: 'x.step.finished', name: text(event['stepName']) })
      case 'SUBAGENT_STARTED':
      case 'SUBAGENT_FINISHED':
      case 'SUBAGENT_ERROR':
        return void out.push(subagent(type, event))
      case 'CUSTOM':
        return this.#beside(custom(event), out)
      // A draft of the protocol: an annotation.
      case 'META':
        return void out.push({ type: 'x.custom', name: `meta.${text(event['metaType'])}`, value: event['payload'] })
      case 'RAW':
        return void out.push({ type: 'x.raw', event: event['event'], ...(event['source'] != null && { source: text(event['source']) }) })
      case 'RUN_FINISHED':
        return this.#finished(event, out)
      case 'RUN_ERROR':
        this.over = true
        out.push(...usageOf(event['usage']))
        out.push({ type: 'response.error', error: { code: text(event['code']) || 'provider_error', message: text(event['message']) } })
        return
      default:
        if (!FRAMES.test(type)) out.push({ type: 'x.raw', event, source: 'ag-ui' })
    }
  }

  #say(id: string, event: Fields, out: Draft[]): void {
    const delta = text(event['delta'])
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

  #encrypted(event: Fields, out: Draft[]): void {
    const [value, entity, subtype] = [text(event['encryptedValue']), text(event['entityId']), text(event['subtype'])]
    // Of a thought it is the signature, and stands with it.
    if (out.at(-1)?.type === 'thinking' || subtype !== 'tool-call')
      return this.#beside({ type: 'thinking', content: '', signature: value }, out)
    out.push({ type: 'x.reasoning.encrypted', value, entity_id: entity, subtype })
  }

  #call(event: Fields, out: Draft[]): void {
    const id = text(event['toolCallId']) || this.#chunk
    this.#chunk = id
    const delta = text(event['delta'])
    const isNew = !this.calls.has(id)
    const call = this.calls.get(id) ?? { id, name: text(event['toolCallName']), arguments: '' }
    call.arguments += delta
    this.calls.set(id, call)
    if (isNew) {
      const message = this.#assistant(text(event['parentMessageId']) || id)
      // Its arguments are read when it is sent.
      const made = { name: call.name, toJSON: () => ({ name: call.name, arguments: call.arguments }) }
      message.toolCalls = [...(message.toolCalls ?? []), { id, type: 'function', function: made }]
    }
    this.#spoke = true
    if (!isNew && delta === '') return
    this.#beside({ type: 'response.delta', delta: { type: 'tool_call', tool_call: { id, name: call.name, arguments: delta } } }, out)
  }

  #result(event: Fields, out: Draft[]): void {
    const call_id = text(event['toolCallId'])
    this.#results.add(call_id)
    const [message] = toMessages([{ id: '', role: 'tool', toolCallId: call_id, content: event['content'] }])
    const { content = '', content_items } = message ?? {}
    this.messages.push({ id: text(event['messageId']), role: 'tool', toolCallId: call_id, content: event['content'] })
    const is_error = uampOf(event)['is_error'] === true
    const more = content_items && { content_items }
    const result = { call_id, result: content, status: is_error ? ('failed' as const) : ('completed' as const), is_error, ...more }
    out.push({ type: 'tool.call_done', call_id })
    this.#beside({ type: 'response.delta', delta: { type: 'tool_result', tool_result: result } }, out)
  }

  #snapshot(given: unknown, out: Draft[]): void {
    const messages = (Array.isArray(given) ? given.filter(isRecord) : []) as unknown as WireMessage[]
    this.messages = [...messages]
    this.#last = undefined
    out.push({ type: 'x.messages.snapshot', messages: toMessages(messages) })
  }

  /** Some servers say what they have to say in a snapshot alone. */
  #unsaid(out: Draft[]): void {
    for (const message of this.messages) {
      if (message.role === 'assistant' && !this.#sent.has(message.id)) this.#say(message.id, { delta: textIn(message.content) }, out)
    }
  }

  #finished(event: Fields, out: Draft[]): void {
    this.over = true
    out.push(...usageOf(event['usage']))
    // The first draft of interrupts had a text, and one of them.
    const { outcome, interrupt } = event
    const { type, interrupts, pendingToolCallIds } = isRecord(outcome)
      ? outcome
      : { type: outcome, interrupts: [interrupt], pendingToolCallIds: [] }
    if (type === 'interrupt' && Array.isArray(interrupts)) this.interrupts = interruptsIn(interrupts)
    if (Array.isArray(pendingToolCallIds)) this.#pending = pendingToolCallIds
    const { signature, stop_reason, cancelled } = uampOf(event)
    if (type === 'cancelled' || cancelled === true) this.#done = { type: 'response.cancelled' }
    else {
      const extensions = stop_reason !== undefined && { extensions: { uamp: { stop_reason } } }
      const response = { id: '', status: 'completed' as const, output: [], ...extensions }
      this.#done = { type: 'response.done', response, ...(typeof signature === 'string' && { signature }) }
    }
  }
}

/** What only frames something else. */
const FRAMES =
  /^(RUN_STARTED|TEXT_MESSAGE_END|TOOL_CALL_END|(REASONING|THINKING)_(START|END|MESSAGE_START|MESSAGE_END|TEXT_MESSAGE_START|TEXT_MESSAGE_END))$/

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function uampOf({ metadata }: Fields): Fields {
  const uamp = isRecord(metadata) ? metadata['uamp'] : undefined
  return isRecord(uamp) ? uamp : {}
}

function patchIn(value: unknown): z.infer<typeof Patch> {
  return z.safeParse(Patch, value).data ?? []
}

function activityIds(event: Fields) {
  return { activity_id: text(event['messageId']), activity_type: text(event['activityType']) }
}

/** Media, progress and plans of another uamp server become what they were. */
function activity(event: Fields): Draft {
  const content = isRecord(event['content']) ? event['content'] : {}
  const ids = activityIds(event)
  const own =
    ids.activity_type === CONTENT_ACTIVITY
      ? { type: 'response.delta', delta: z.safeParse(ContentItem, content['item']).data }
      : ids.activity_type === 'uamp.progress'
        ? { type: 'progress', ...content }
        : ids.activity_type === 'uamp.tool_progress'
          ? { type: 'response.delta', delta: { type: 'tool_progress', tool_progress: content } }
          : ids.activity_type === 'PLAN'
            ? { type: 'x.plan', ...content }
            : undefined
  const replace = typeof event['replace'] === 'boolean' && { replace: event['replace'] }
  return (own && eventOf(own)) ?? { type: 'x.activity.snapshot', ...ids, content, ...replace }
}

function custom({ name, value }: Fields): Draft {
  const type = OWN.exec(text(name))?.[1]
  const own = type !== undefined && isRecord(value) ? eventOf({ type, ...value }) : undefined
  return own ?? { type: 'x.custom', name: text(name), value }
}

function eventOf(draft: Fields): Draft | undefined {
  const { success } = z.safeParse(ServerEvent, { event_id: '', response_id: '', ...draft })
  return success ? (draft as unknown as Draft) : undefined
}

function subagent(type: string, event: Fields): Draft {
  const subagent_id = text(event['subagentRunId'])
  if (type === 'SUBAGENT_STARTED') {
    const parent = event['parentSubagentRunId'] != null && { parent_id: text(event['parentSubagentRunId']) }
    const call = event['parentToolCallId'] != null && { call_id: text(event['parentToolCallId']) }
    return { type: 'x.subagent.started', subagent_id, name: text(event['name']), ...parent, ...call }
  }
  const status = type === 'SUBAGENT_FINISHED' ? 'completed' : event['code'] === 'cancelled' ? 'cancelled' : 'failed'
  return { type: 'x.subagent.finished', subagent_id, status, ...(event['result'] !== undefined && { result: event['result'] }) }
}
