import type { Quota } from '../../core/ports/transport.ts'
import type { ContentItem, ToolCall } from '../../protocol/content.ts'
import type { Draft, EventOf, ServerEvent } from '../../protocol/events.ts'
import type { Slot } from '../../protocol/json.ts'
import type { Delta } from '../../protocol/server-events.ts'
import { addUsage, type Usage } from '../../protocol/usage.ts'
import { Speech } from '../../wire/speech.ts'
import { encoder, type Encode } from './audio/formats.ts'
import type { Conversation } from './conversation.ts'
import type { CallItem, Dialect, Item, ResponseState, Settings } from './model.ts'
import type { Outbox } from './outbox.ts'
import { ResponseMessage } from './response-message.ts'

export interface ResponseOptions {
  readonly dialect: Dialect
  readonly out: Outbox
  readonly settings: Settings
  readonly metadata: Slot | null
  /** `undefined`: the response does not belong to the conversation. */
  readonly conversation: Conversation | undefined
  readonly newId: () => string
  /** How many requests the client has left. */
  readonly quota: () => Quota
  /** Called for audio in a format that cannot be converted. */
  readonly onUnplayable: (format: string) => void
}

/** How a response ends. */
export interface Ending {
  readonly status: Exclude<ResponseState['status'], 'in_progress'>
  readonly details?: Slot
  readonly usage?: Usage | undefined
  readonly signature?: string | undefined
}

interface OpenMessage {
  readonly parts: ResponseMessage
  readonly index: number
  readonly previous: string | null
}

interface OpenCall {
  item: CallItem
  /** Where its events say that it is. */
  readonly place: { readonly output_index: number; readonly [field: string]: unknown }
  readonly previous: string | null
  readonly send: (delta: string) => void
}

/** One Realtime response: turns what an agent says into events, and puts them into the outbox. */
export class RealtimeResponse {
  readonly id: string
  readonly #options: ResponseOptions
  readonly #encode: Encode
  readonly #offered: ReadonlySet<string>
  readonly #output: Item[] = []
  readonly #open = new Map<string, OpenCall>()
  #announced = false
  #message: OpenMessage | undefined
  readonly #speech = new Speech()
  /** The agent has said something other than plain text. */
  #spoke = false
  #usage: Usage | undefined

  constructor(options: ResponseOptions) {
    this.id = `resp_${options.newId()}`
    this.#options = options
    this.#encode = encoder(options.settings.outputFormat)
    this.#offered = new Set(options.settings.tools.map((tool) => tool.function.name))
  }

  announce(): void {
    if (this.#announced) return
    this.#announced = true
    const { out, quota } = this.#options
    out.tell({ type: 'response.created', response: this.#show('in_progress') })
    const { limit, remaining, resetMs } = quota()
    out.tell({ type: 'rate_limits.updated', rate_limits: [{ name: 'requests', limit, remaining, reset_seconds: resetMs / 1000 }] })
  }

  text(piece: string): void {
    ;(this.#message ?? this.#openMessage()).parts.addText(piece)
  }

  sound({ audio, format }: EventOf<'audio.delta'>): void {
    this.#spoke = true
    this.#speech.piece()
    this.#audio(audio, format)
  }

  words(words: string): void {
    this.#transcript(this.#speech.say(words))
  }

  /** All words of an utterance, some of which may not have come before. */
  allWords(words: string | undefined): void {
    this.#transcript(this.#speech.complete(words))
  }

  spend(usage: Usage): void {
    this.#usage = addUsage(this.#usage, usage)
  }

  think(event: EventOf<'thinking'>): void {
    this.#spoke = true
    this.pass(event)
  }

  /** The output of the agent, told now if nothing was said before: the reason why it needs input comes only with the end. */
  finish(output: readonly ContentItem[]): void {
    if (this.#spoke || this.#output.length > 0) return
    for (const item of output) this.delta(item, { type: 'response.delta', delta: item })
  }

  /** A call that the client is asked to run, so it is complete. */
  call({ id, name, arguments: args }: ToolCall): void {
    const { item } = this.#open.get(id) ?? this.#openCall(id, name)
    if (item.arguments === '' && args !== '') this.#extend(id, args)
    this.#closeCall(id, 'completed')
  }

  close({ status, details, usage, signature }: Ending): void {
    this.announce()
    const whole = status === 'completed' ? 'completed' : 'incomplete'
    this.#closeMessage(whole)
    for (const id of this.#open.keys()) this.#closeCall(id, whole)
    // Realtime counts tokens alone: seconds of sound have no place in its usage.
    const tokens = usage?.input_tokens === undefined && usage?.output_tokens === undefined ? undefined : usage
    const counted = this.#usage ?? tokens
    const response = this.#show(status, { details: status === 'completed' ? null : { type: status, ...details }, usage: counted })
    this.#options.out.tell({ type: 'response.done', response, ...(signature !== undefined && { signature }) })
  }

  /** A piece or an item of the output, and the event that has it. */
  delta(delta: Delta, event: ServerEvent | Draft): void {
    this.#spoke = true
    switch (delta.type) {
      case 'text':
        return this.text(delta.text)
      case 'audio':
        if (typeof delta.audio !== 'string') return this.pass(event)
        return this.#sound(delta, delta.audio)
      case 'tool_call':
        return this.#callDelta(delta.tool_call)
      // Realtime does not show an agent's own tools.
      case 'tool_result':
      case 'tool_progress':
        return
      case 'image':
      case 'video':
      case 'file':
      case 'thinking':
        return this.pass(event)
    }
  }

  /** A piece of sound has no content id. The whole has one, and usually its pieces came before. */
  #sound({ content_id, format, transcript }: Extract<ContentItem, { type: 'audio' }>, base64: string): void {
    if (content_id === undefined) this.#speech.piece()
    const { isNew, words } = content_id === undefined ? { isNew: true, words: transcript ?? '' } : this.#speech.whole(transcript)
    if (isNew) this.#audio(base64, format)
    this.#transcript(words)
  }

  #audio(base64: string, format = 'pcm16'): void {
    if (!this.#options.settings.speaks) return
    if (format === 'pcm16') (this.#message ?? this.#openMessage()).parts.addAudio(base64)
    else this.#options.onUnplayable(format)
  }

  /** A client without sound gets the words as text. */
  #transcript(text: string): void {
    if (text === '') return
    if (!this.#options.settings.speaks) return this.text(text)
    ;(this.#message ?? this.#openMessage()).parts.addTranscript(text)
  }

  #callDelta({ id, name, arguments: args }: ToolCall): void {
    if (!this.#open.has(id)) {
      if (!this.#offered.has(name)) return
      this.#openCall(id, name)
    }
    this.#extend(id, args)
  }

  #extend(id: string, args: string): void {
    const open = this.#open.get(id)
    if (!open || args === '') return
    open.item = { ...open.item, arguments: open.item.arguments + args }
    open.send(args)
  }

  #openCall(callId: string, name: string): OpenCall {
    this.#closeMessage('completed')
    const { out, newId } = this.#options
    const item: CallItem = { type: 'function_call', id: `item_${newId()}`, status: 'in_progress', call_id: callId, name, arguments: '' }
    const place = { response_id: this.id, item_id: item.id, output_index: this.#output.length, call_id: callId }
    const send = out.deltas({ type: 'response.function_call_arguments.delta', ...place })
    const open = { item, place, previous: this.#begin(item), send }
    this.#open.set(callId, open)
    return open
  }

  #closeCall(callId: string, status: 'completed' | 'incomplete'): void {
    const open = this.#open.get(callId)
    if (!open) return
    this.#open.delete(callId)
    const { item, place, previous } = open
    const { name, arguments: args } = item
    this.#options.out.tell({ type: 'response.function_call_arguments.done', ...place, name, arguments: args })
    this.#end({ ...item, status }, place.output_index, previous)
  }

  #openMessage(): OpenMessage {
    const { dialect, out, newId } = this.#options
    const index = this.#output.length
    const id = `item_${newId()}`
    const parts = new ResponseMessage({ id, responseId: this.id, outputIndex: index, dialect, out, encode: this.#encode })
    this.#message = { parts, index, previous: this.#begin(parts.item('in_progress')) }
    return this.#message
  }

  #closeMessage(status: 'completed' | 'incomplete'): void {
    if (!this.#message) return
    const { parts, index, previous } = this.#message
    this.#message = undefined
    parts.close()
    this.#end(parts.item(status), index, previous)
  }

  /** An item of the answer begins. Returns the id of the item before it. */
  #begin(item: Item): string | null {
    this.announce()
    const { dialect, out, conversation } = this.#options
    const shown = dialect.item(item)
    out.tell({ type: 'response.output_item.added', response_id: this.id, output_index: this.#output.length, item: shown })
    this.#output.push(item)
    const previous = conversation?.add(item) ?? null
    if (conversation) out.tell({ type: dialect.names.added, previous_item_id: previous, item: shown })
    return previous
  }

  #end(item: Item, index: number, previous: string | null): void {
    const { dialect, out, conversation } = this.#options
    this.#output[index] = item
    conversation?.replace(item)
    const shown = dialect.item(item)
    out.tell({ type: 'response.output_item.done', response_id: this.id, output_index: index, item: shown })
    const { finished } = dialect.names
    if (conversation && finished) out.tell({ type: finished, previous_item_id: previous, item: shown })
  }

  /** Events that Realtime has no counterpart for go out as UAMP events. */
  pass(given: ServerEvent | Draft): void {
    const { session_id: _session, seq: _seq, event_id: _event, timestamp: _time, ...event } = given as ServerEvent
    this.#options.out.tell({ ...event, response_id: this.id })
  }

  #show(status: ResponseState['status'], { details = null, usage }: { details?: Slot | null; usage?: Usage | undefined } = {}): Slot {
    const { dialect, settings, metadata, conversation } = this.#options
    const output = status === 'in_progress' ? [] : this.#output
    return dialect.response({ id: this.id, status, details, output, usage, conversationId: conversation?.id ?? null, metadata, settings })
  }
}
