import type { Visitor } from '../../core/ports/session.ts'
import type { ContentItem } from '../../protocol/content.ts'
import type { ServerEvent } from '../../protocol/events.ts'
import { jsonText, type Slot } from '../../protocol/json.ts'
import { itemsOf, type Message } from '../../protocol/message.ts'
import type { Delta } from '../../protocol/server-events.ts'
import { wholeInput, type Usage } from '../../protocol/usage.ts'
import { toBlock } from '../../wire/acp/blocks.ts'
import { notificationText } from '../../wire/json-rpc.ts'
import { Speech } from '../../wire/speech.ts'
import { ToolCalls } from './tool-calls.ts'

export interface UpdatesOptions {
  readonly sessionId: string
  readonly out: (frame: string) => void
  /** Tokens that fit into the agent's window, if it says so. */
  readonly window: () => number | undefined
  /** The client shows notices. */
  readonly notices: boolean
  /** The client wants what ACP has no word for as `_uamp/event`. */
  readonly extras: boolean
}

/** Where the text stands in the JSON of a chunk. Inside a string its quotes would be escaped, so it is found nowhere else. */
const EMPTY_TEXT = '"text":""'

/** The events of a session as `session/update`s. Text, by far the most frequent, is written into a template. */
export class Updates implements Visitor {
  readonly calls: ToolCalls
  readonly #options: UpdatesOptions
  #response = ''
  #message = 0
  #before = ''
  #after = ''
  /** The newest message is a thought. */
  #thinking = false
  /** Whether this response has said anything. */
  #spoke = false
  #speech = new Speech()
  #cost: { amount: number; currency: string } | undefined

  constructor(options: UpdatesOptions) {
    this.#options = options
    this.calls = new ToolCalls((update) => this.tell(update))
  }

  tell(update: Slot): void {
    const { sessionId, out } = this.#options
    out(notificationText('session/update', { sessionId, update }))
  }

  text(text: string): void {
    if (this.calls.unsettled) this.calls.settle()
    if (text === '') return
    this.#spoke = true
    if (this.#thinking) this.#nextMessage()
    if (this.#before === '') this.#template()
    this.#options.out(this.#before + jsonText(text) + this.#after)
  }

  event(event: ServerEvent): void {
    switch (event.type) {
      case 'response.created':
        return this.begin(event.response_id)
      case 'response.delta':
        return this.item(event.delta)
      case 'thinking':
        return this.#thought(event.content, event.redacted)
      case 'transcript.delta':
        this.#speech.say(event.transcript)
        return this.text(event.transcript)
      case 'transcript.done':
        return this.text(this.#speech.complete(event.transcript))
      case 'tool.call':
        return this.calls.asked({ id: event.call_id, name: event.name, arguments: event.arguments })
      case 'progress':
        if (event.target === 'tool' && event.target_id !== undefined)
          return this.calls.progress(event.target_id, event.message ?? event.stage ?? '')
        return this.#extra(event)
      case 'usage.delta':
        return this.#usage(event.delta)
      case 'x.plan':
        this.calls.settle()
        return this.tell({
          sessionUpdate: 'plan',
          entries: event.entries.map(({ priority, ...entry }) => ({ ...entry, priority: priorityOf(priority) })),
        })
      case 'rate_limit':
        if (this.#options.notices)
          this.tell({ sessionUpdate: 'notice', severity: 'warning', title: 'The agent is at its limit: try again shortly' })
        return
      case 'response.done':
        // An agent may say everything with its end.
        if (!this.#spoke) for (const item of event.response.output) this.item(item)
        return this.calls.end(true)
      case 'response.error':
      case 'response.cancelled':
        return this.calls.end(false)
      case 'x.approval.request':
        return this.calls.settle()
      case 'session.created':
      case 'session.updated':
      case 'session.end':
      case 'capabilities':
      case 'tool.call_done':
      case 'payment.required':
      case 'audio.delta':
      case 'audio.done':
        return
      default:
        return this.#extra(event)
    }
  }

  /** What the agent was told, by whoever. */
  heard(messages: readonly Message[]): void {
    for (const message of messages) {
      if (message.role === 'user') for (const item of itemsOf(message)) this.#said(item)
      if (message.role === 'assistant') for (const item of itemsOf(message)) this.item(item)
    }
  }

  #said(item: ContentItem): void {
    const block = toBlock(item)
    if (block) this.tell({ sessionUpdate: 'user_message_chunk', content: block })
  }

  /** Another response begins. */
  begin(response: string): void {
    this.#response = response
    this.#message = 0
    this.#spoke = false
    this.#speech = new Speech()
    this.#nextMessage()
  }

  /** A piece of an answer, or a whole item of it. */
  item(delta: Delta): void {
    switch (delta.type) {
      case 'text':
        return this.text(delta.text)
      case 'tool_call':
        this.#spoke = true
        this.#nextMessage()
        return this.calls.piece(delta.tool_call)
      case 'tool_result':
        return this.calls.result(delta.tool_result)
      case 'tool_progress': {
        const { call_id, text, data } = delta.tool_progress
        return this.calls.progress(call_id, text, data)
      }
      case 'thinking':
        return this.#thought(delta.thinking, delta.redacted)
      default: {
        // A chunk of audio has no handle; the whole comes with one.
        if (delta.type === 'audio' && delta.content_id === undefined) return
        if (delta.type === 'audio') this.text(this.#speech.whole(delta.transcript).words)
        const block = toBlock(delta)
        if (block) this.#chunk('agent_message_chunk', block)
      }
    }
  }

  #thought(text: string, redacted = false): void {
    if (!redacted && text !== '') this.#chunk('agent_thought_chunk', { type: 'text', text })
  }

  #chunk(sessionUpdate: 'agent_message_chunk' | 'agent_thought_chunk', content: object): void {
    this.calls.settle()
    this.#spoke = true
    const thinking = sessionUpdate === 'agent_thought_chunk'
    if (thinking !== this.#thinking) this.#nextMessage()
    this.#thinking = thinking
    this.tell({ sessionUpdate, messageId: this.#messageId, content })
  }

  get #messageId(): string {
    return `${this.#response}.${this.#message}`
  }

  #nextMessage(): void {
    this.#message++
    this.#thinking = false
    this.#before = ''
  }

  #template(): void {
    const { sessionId } = this.#options
    const update = { sessionUpdate: 'agent_message_chunk', messageId: this.#messageId, content: { type: 'text', text: '' } }
    const whole = notificationText('session/update', { sessionId, update })
    const at = whole.lastIndexOf(EMPTY_TEXT) + EMPTY_TEXT.length
    this.#before = whole.slice(0, at - 2)
    this.#after = whole.slice(at)
  }

  /** ACP, usage_update: what is in the agent's window now, and what the session has cost so far. */
  #usage(usage: Usage): void {
    const { total_cost: amount, currency = 'USD' } = usage.cost ?? {}
    if (amount !== undefined) this.#cost = { amount: (this.#cost?.amount ?? 0) + amount, currency }
    const size = this.#options.window()
    if (size === undefined) return
    const used = wholeInput(usage) + (usage.output_tokens ?? usage.output ?? 0)
    this.tell({ sessionUpdate: 'usage_update', used, size, ...(this.#cost && { cost: this.#cost }) })
  }

  #extra(event: ServerEvent): void {
    const { sessionId, out, extras } = this.#options
    if (extras) out(notificationText('_uamp/event', { sessionId, event }))
  }
}

function priorityOf(given: string | undefined): string {
  return given === 'high' || given === 'low' ? given : 'medium'
}
