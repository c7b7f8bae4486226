import type { Visitor } from '../../core/ports/session.ts'
import { ABOUT_OTHERS, ABOUT_PAYMENTS, alike, BESIDE_ANSWERS, tellBy, type Mapping } from '../../core/reading/mapping.ts'
import type { ContentItem } from '../../protocol/content.ts'
import type { EventOf, ServerEvent } from '../../protocol/events.ts'
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
  /** Tokens that fit into the agent's context window, if it says so. */
  readonly window: () => number | undefined
  /** The client shows notices. */
  readonly notices: boolean
  /** The client wants events that ACP has no update for, as `_uamp/event`. */
  readonly extras: boolean
  /** The client can show this terminal. */
  readonly hasTerminal: (id: unknown) => boolean
}

/** Marks the place of the text in the JSON of a chunk. Inside a string the quotes would be escaped, so it occurs nowhere else. */
const EMPTY_TEXT = '"text":""'

/** The events of a session as `session/update`s. Text, by far the most frequent, is written into a template. */
export class Updates implements Visitor {
  static readonly mapping: Mapping<Updates> = {
    'response.created': [
      'the next message; before it what was asked elsewhere: `user_message_chunk`',
      (updates, event) => updates.begin(event.response_id),
    ],
    'response.delta': [
      'text and media: `agent_message_chunk`; thoughts: `agent_thought_chunk`; calls, their progress and results: `tool_call`, `tool_call_update`',
      (updates, { delta }) => updates.item(delta),
    ],
    thinking: ['`agent_thought_chunk`', (updates, { content, redacted }) => updates.#thought(content, redacted)],
    'transcript.delta': ['`agent_message_chunk`', (updates, { transcript }) => updates.text(updates.#speech.say(transcript))],
    'transcript.done': [
      'what of the words did not come before',
      (updates, { transcript }) => updates.text(updates.#speech.complete(transcript)),
    ],
    ...alike(['audio.delta', 'audio.done'], ['not told: the whole of a speech is']),
    'tool.call': [
      '`tool_call_update`, and the client’s own method or MCP server',
      (updates, { call_id: id, name, arguments: args }) => updates.calls.asked({ id, name, arguments: args }),
    ],
    'tool.call_done': ['not told: the result is'],
    'x.approval.request': ['`session/request_permission`', (updates) => updates.calls.settle()],
    'payment.required': ['the prompt fails with -32402'],
    progress: ['of a tool: `tool_call_update`; else `_uamp/event`', (updates, event) => updates.#progress(event)],
    'usage.delta': ['`usage_update`, where the agent says how large its window is', (updates, { delta }) => updates.#usage(delta)],
    'x.plan': ['`plan`', (updates, event) => updates.#plan(event)],
    rate_limit: ['`notice`, for clients that show them', (updates) => updates.#limited()],
    'response.done': ['the answer to `session/prompt`, with its `stopReason`', (updates, { response }) => updates.#end(response.output)],
    'response.error': ['`session/prompt` fails', (updates) => updates.calls.end(false)],
    'response.cancelled': ['`stopReason` is `cancelled`', (updates) => updates.calls.end(false)],
    'session.updated': ['`current_mode_update`, `config_option_update`, where they changed'],
    capabilities: ['`available_commands_update`, and what changed of modes and options'],
    ...alike(['session.created', 'session.end'], ['not told: the methods of ACP say so']),
    ...alike(['session.error', 'pong', 'x.ack', ...ABOUT_OTHERS, ...ABOUT_PAYMENTS, ...BESIDE_ANSWERS], [
      '`_uamp/event`, for clients that ask for it',
      (updates: Updates, event: ServerEvent) => updates.#extra(event),
    ] as const),
  }

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
    this.calls = new ToolCalls((update) => this.tell(update), options.hasTerminal)
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
    tellBy(Updates.mapping, this, event)
  }

  #end(output: readonly ContentItem[]): void {
    // The reason why an agent needs input comes only with the end.
    if (!this.#spoke) for (const item of output) this.item(item)
    this.calls.end(true)
  }

  #progress(event: EventOf<'progress'>): void {
    const { target, target_id, message, stage = '' } = event
    if (target === 'tool' && target_id !== undefined) this.calls.progress(target_id, message ?? stage)
    else this.#extra(event)
  }

  #plan({ entries }: EventOf<'x.plan'>): void {
    this.calls.settle()
    this.tell({
      sessionUpdate: 'plan',
      entries: entries.map(({ priority, ...entry }) => ({ ...entry, priority: priorityOf(priority) })),
    })
  }

  #limited(): void {
    if (!this.#options.notices) return
    this.tell({ sessionUpdate: 'notice', severity: 'warning', title: 'The agent is at its limit: try again shortly' })
  }

  /** Messages that the agent got, from any client. */
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
      case 'image':
      case 'audio':
      case 'video':
      case 'file': {
        // A piece of audio has no content id; the whole has one.
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
