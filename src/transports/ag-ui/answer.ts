import type { ToolCall, ToolResult } from '../../protocol/content.ts'
import type { EventOf } from '../../protocol/events.ts'
import type { AgUiEvent } from './events.ts'
import { idIn } from './ids.ts'
import { contentOf } from '../../wire/ag-ui/messages.ts'

/**
 * Begins each part of a run once, and ends it before the run ends: clients fail on an end without a beginning, on two beginnings with
 * one id, and on a run that ends with open parts. Ids follow from the order of the parts, so that a replay has the same ones.
 */
export class Answer {
  readonly #response: string
  readonly #emit: (event: AgUiEvent) => void
  #count = 0
  /** The id of the open text message; read for every delta. */
  text: string | undefined
  #refuses = false
  #thought: string | undefined
  /** The assistant's message, if it is the last in the client's list: calls then belong to it. */
  #last: string | undefined
  /** Calls; true while arguments may still come. */
  readonly #calls = new Map<string, boolean>()
  readonly #steps = new Set<string>()
  readonly #subagents = new Map<string, boolean>()
  /** True once the client was shown something of the answer. */
  spoke = false

  constructor(response: string, emit: (event: AgUiEvent) => void) {
    this.#response = response
    this.#emit = emit
  }

  /** The id for a new message, which becomes the last one. */
  next(): string {
    this.interject()
    return idIn(this.#response, this.#count++)
  }

  /** Another kind of message is now the last one. */
  interject(): void {
    this.#last = undefined
    this.spoke = true
  }

  /** Begins a text message, unless one is open; returns its id. */
  speak(refuses = false): string {
    if (this.text !== undefined && this.#refuses === refuses) return this.text
    this.settle()
    this.#refuses = refuses
    const messageId = (this.text = this.next())
    const refusal = refuses && { metadata: { uamp: { refusal: true } } }
    this.#emit({ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant', ...refusal })
    return (this.#last = messageId)
  }

  think(delta: string, { signature, whole = false }: { readonly signature?: string | undefined; readonly whole?: boolean } = {}): void {
    if (whole) this.settle()
    if (this.#thought === undefined) {
      this.settle()
      const messageId = (this.#thought = this.next())
      this.#emit({ type: 'REASONING_START', messageId })
      this.#emit({ type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning' })
    }
    const messageId = this.#thought
    if (delta !== '') this.#emit({ type: 'REASONING_MESSAGE_CONTENT', messageId, delta })
    if (signature !== undefined) this.encrypted({ value: signature })
    // A signature ends a thought: whatever follows is another one.
    if (whole || signature !== undefined) this.settle()
  }

  encrypted({ value, entity_id, subtype }: Pick<EventOf<'x.reasoning.encrypted'>, 'value' | 'entity_id' | 'subtype'>): void {
    const entityId = entity_id ?? this.#thought ?? this.#last ?? this.next()
    const kind = subtype === 'tool-call' ? subtype : 'message'
    this.#emit({ type: 'REASONING_ENCRYPTED_VALUE', subtype: kind, entityId, encryptedValue: value })
  }

  call({ id, name, arguments: delta }: ToolCall): void {
    if (!this.#calls.has(id)) {
      this.settle()
      const parentMessageId = this.#last ?? this.next()
      this.#last = parentMessageId
      this.spoke = true
      this.#calls.set(id, true)
      this.#emit({ type: 'TOOL_CALL_START', toolCallId: id, toolCallName: name, parentMessageId })
    }
    if (delta !== '' && this.#calls.get(id)) this.#emit({ type: 'TOOL_CALL_ARGS', toolCallId: id, delta })
  }

  /** A call that the client is asked to run is complete, and most often was streamed before. */
  ask(call: ToolCall): void {
    if (!this.#calls.has(call.id)) this.call(call)
    this.endCall(call.id)
  }

  endCall(id: string): void {
    if (!this.#calls.get(id)) return
    this.#calls.set(id, false)
    this.#emit({ type: 'TOOL_CALL_END', toolCallId: id })
  }

  result(result: ToolResult): void {
    this.settle()
    this.endCall(result.call_id)
    const failed = result.is_error === true || result.status === 'failed'
    const content = contentOf(result.content_items, result.result)
    const known = { ...(failed && { is_error: true }), ...(result.data !== undefined && { data: result.data }) }
    const metadata = Object.keys(known).length > 0 && { metadata: { uamp: known } }
    this.#emit({ type: 'TOOL_CALL_RESULT', messageId: this.next(), toolCallId: result.call_id, content, role: 'tool', ...metadata })
  }

  stepStarted(stepName: string): void {
    if (this.#steps.has(stepName)) return
    this.#steps.add(stepName)
    this.#emit({ type: 'STEP_STARTED', stepName })
  }

  stepFinished(stepName: string): void {
    if (this.#steps.delete(stepName)) this.#emit({ type: 'STEP_FINISHED', stepName })
  }

  subagentStarted({ subagent_id, name, parent_id, call_id }: EventOf<'x.subagent.started'>): void {
    if (this.#subagents.has(subagent_id)) return
    const parent = parent_id !== undefined && this.#subagents.has(parent_id) && { parentSubagentRunId: parent_id }
    this.#subagents.set(subagent_id, true)
    const call = call_id !== undefined && { parentToolCallId: call_id }
    this.#emit({ type: 'SUBAGENT_STARTED', subagentRunId: subagent_id, name, ...parent, ...call })
  }

  subagentFinished({ subagent_id, status, result }: Pick<EventOf<'x.subagent.finished'>, 'subagent_id' | 'status' | 'result'>): void {
    if (!this.#subagents.get(subagent_id)) return
    this.#subagents.set(subagent_id, false)
    if (status !== 'completed') {
      return this.#emit({ type: 'SUBAGENT_ERROR', subagentRunId: subagent_id, message: `The subagent was ${status}`, code: status })
    }
    const gave = result !== undefined && { result }
    this.#emit({ type: 'SUBAGENT_FINISHED', subagentRunId: subagent_id, ...gave, outcome: { type: 'success' } })
  }

  /** Ends the open text message or thought. */
  settle(): void {
    const { text } = this
    if (text !== undefined) {
      this.text = undefined
      this.#emit({ type: 'TEXT_MESSAGE_END', messageId: text })
    }
    const messageId = this.#thought
    if (messageId === undefined) return
    this.#thought = undefined
    this.#emit({ type: 'REASONING_MESSAGE_END', messageId })
    this.#emit({ type: 'REASONING_END', messageId })
  }

  /** Ends everything that is open. */
  close(status: 'completed' | 'cancelled' | 'failed'): void {
    this.settle()
    for (const id of this.#calls.keys()) this.endCall(id)
    for (const name of this.#steps) this.stepFinished(name)
    for (const subagent_id of this.#subagents.keys()) this.subagentFinished({ subagent_id, status })
  }
}
