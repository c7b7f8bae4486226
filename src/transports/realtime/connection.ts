import type { Hold, Session } from '../../core/ports/session.ts'
import type { Trace } from '../../core/ports/trace.ts'
import type { Host, Quota, Socket } from '../../core/ports/transport.ts'
import { reportError } from '../../core/edge/report-error.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import type { Slot } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import { InputBuffer, type Noticed } from '../../wire/audio/input-buffer.ts'
import { pcm16 } from '../../wire/audio/samples.ts'
import { invalid, parseObject } from '../../wire/parse.ts'
import { openAiEventError } from '../../wire/openai/errors.ts'
import { decoder, encoder, type Decode } from './audio/formats.ts'
import { Conversation, newItem, toMessages } from './conversation.ts'
import type { Command, Dialect, GivenItem, Item, MessageItem, ResponseRequest, Settings } from './model.ts'
import { Outbox } from './outbox.ts'
import { RealtimeResponse } from './response.ts'
import { configOf, DEFAULTS, listening, withChanges } from './settings.ts'
import { Turns } from './turns.ts'

export interface ConnectionOptions {
  readonly host: Pick<Host, 'gateway' | 'log' | 'meter' | 'newId' | 'secrets'>
  readonly socket: Socket
  readonly session: Session
  /** The connection. */
  readonly trace: Trace
  readonly capabilities: Capabilities | undefined
  /** The model that the client named. */
  readonly model: string | undefined
  readonly quota: () => Quota
  /** The dialect until the first event of the client. */
  readonly dialect: Dialect
  /** Chooses the dialect by the first event of the client. */
  readonly settle?: (event: Slot) => Dialect
}

type Of<T extends Command['type']> = Extract<Command, { type: T }>

/** One WebSocket: a session, and the conversation of Realtime, which goes to the agent whole with every turn. */
export class RealtimeConnection {
  readonly #options: ConnectionOptions
  readonly #out: Outbox
  readonly #turns: Turns
  readonly #conversation: Conversation
  readonly #buffer = new InputBuffer()
  readonly #holds: { readonly items: Hold; readonly buffer: Hold }
  #dialect: Dialect
  #settled = false
  #settings = DEFAULTS
  #decode: Decode = decoder(DEFAULTS.inputFormat)
  /** The id of the item that the current speech will become. */
  #speech: string | undefined
  /** The client spoke during an answer that it does not interrupt, and wants an answer after it. */
  #owed = false
  #lastResponse: string | null = null

  constructor(options: ConnectionOptions) {
    const { host, socket, session, dialect } = options
    this.#options = options
    this.#dialect = dialect
    this.#out = new Outbox(socket, host.newId())
    this.#holds = { items: host.gateway.hold(session.owner, 0), buffer: host.gateway.hold(session.owner, 0) }
    this.#conversation = new Conversation(`conv_${host.newId()}`, this.#holds.items)
    this.#turns = new Turns({ session, reader: session.read(), out: this.#out, newId: host.newId, onIdle: () => this.#payDebt() })
  }

  async run(): Promise<void> {
    const { socket, host, session, trace } = this.#options
    this.#out.tell({ type: 'session.created', session: this.#showSession() })
    this.#out.tell({ type: 'conversation.created', conversation: { id: this.#conversation.id, object: 'realtime.conversation' } })
    await this.#out.flush()
    const following = this.#turns.follow().catch((error: unknown) => {
      host.log('error', 'A reader failed', { session: session.id, error, ...trace.fields })
      this.#refuse(error, undefined)
      void this.#out.flush()
      socket.close(1011, 'Internal error')
    })
    // The session has ended, so nothing more will come.
    void following.then(() => socket.close(1000))
    try {
      for await (const frame of socket) await this.#receive(frame)
    } finally {
      this.#holds.items.close()
      this.#holds.buffer.close()
      this.#turns.leave()
      await following
      // A running response stops by itself, unless another protocol reads it.
      if (this.#turns.idle) await session.end()
    }
  }

  async #receive(frame: string | Uint8Array): Promise<void> {
    let eventId: string | undefined
    try {
      const event = parseFrame(frame)
      eventId = clientEventId(event)
      if (!this.#settled) this.#dialect = this.#options.settle?.(event) ?? this.#dialect
      this.#settled = true
      this.#options.host.gateway.checkSlots(event, frame.length)
      await this.#handle(this.#dialect.read(event))
    } catch (thrown) {
      this.#refuse(thrown, eventId)
    }
    this.#holds.buffer.set(this.#buffer.bytes)
    await this.#out.flush()
  }

  async #handle(command: Command): Promise<void> {
    switch (command.type) {
      case 'session.update':
        return this.#update(command.changes)
      case 'input_audio_buffer.append':
        return this.#append(command.audio)
      case 'input_audio_buffer.commit':
        if (this.#buffer.isEmpty)
          throw invalid('The input audio buffer is empty: append audio first', undefined, 'input_audio_buffer_commit_empty')
        return this.#commit(this.#buffer.take())
      case 'input_audio_buffer.clear':
        this.#buffer.clear()
        this.#speech = undefined
        return this.#out.tell({ type: 'input_audio_buffer.cleared' })
      // Only WebRTC has such a buffer. Over a socket the client itself stops playing.
      case 'output_audio_buffer.clear':
        return this.#out.tell({ type: 'output_audio_buffer.cleared', response_id: this.#lastResponse })
      case 'conversation.item.create':
        return this.#create(command)
      case 'conversation.item.retrieve':
        return this.#out.tell({ type: 'conversation.item.retrieved', item: this.#showWhole(this.#conversation.retrieve(command.item_id)) })
      case 'conversation.item.delete':
        this.#conversation.delete(command.item_id)
        return this.#out.tell({ type: 'conversation.item.deleted', item_id: command.item_id })
      case 'conversation.item.truncate': {
        const { item_id, content_index, audio_end_ms } = command
        this.#conversation.truncate(item_id, content_index, audio_end_ms)
        return this.#out.tell({ type: 'conversation.item.truncated', item_id, content_index, audio_end_ms })
      }
      case 'response.create':
        return this.#respond(command.request)
      case 'response.cancel':
        return this.#cancel(command)
      case 'payment.submit':
        return this.#options.session.send({ type: 'payment.submit', event_id: this.#options.host.newId(), payment: command.payment })
    }
  }

  async #update(changes: Partial<Settings>): Promise<void> {
    const { session, host, model } = this.#options
    const before = this.#settings
    const settings = withChanges(before, changes)
    await session.send({ type: 'session.update', event_id: host.newId(), session: configOf(settings, named(model)) })
    this.#settings = settings
    if (settings.inputFormat !== before.inputFormat) this.#decode = decoder(settings.inputFormat)
    this.#out.tell({ type: 'session.updated', session: this.#showSession() })
  }

  async #append(audio: string): Promise<void> {
    const samples = this.#decode(audio, 'audio')
    this.#holds.buffer.grow(this.#buffer.bytes + samples.byteLength)
    const noticed = this.#buffer.append(samples, listening(this.#settings))
    for (const change of noticed) await this.#notice(change)
  }

  async #notice(change: Noticed): Promise<void> {
    const { turnDetection } = this.#settings
    const item_id = (this.#speech ??= `item_${this.#options.host.newId()}`)
    if (change.type === 'started') {
      this.#out.tell({ type: 'input_audio_buffer.speech_started', audio_start_ms: change.ms, item_id })
      if (turnDetection?.interrupt_response !== false) this.#turns.cancel('turn_detected')
      return
    }
    this.#out.tell({ type: 'input_audio_buffer.speech_stopped', audio_end_ms: change.ms, item_id })
    this.#commit(change.samples)
    if (turnDetection?.create_response === false) return
    if (this.#turns.active) this.#owed = true
    else await this.#respond(UNCHANGED)
  }

  /** Speech becomes an item of the conversation. */
  #commit(samples: Int16Array): void {
    const id = this.#speech ?? `item_${this.#options.host.newId()}`
    this.#speech = undefined
    this.#out.tell({ type: 'input_audio_buffer.committed', item_id: id, previous_item_id: this.#conversation.last })
    const part = { type: 'audio' as const, audio: pcm16(samples), transcript: null }
    this.#add({ type: 'message', id, role: 'user', status: 'completed', content: [part] })
  }

  #create({ item: given, previous }: Of<'conversation.item.create'>): void {
    this.#add(this.#newItem(given), previous)
  }

  #add(item: Item, after?: string): void {
    this.#conversation.checkRoom(item)
    const previous = this.#conversation.add(item, after)
    const answers = item.type === 'function_call_output' && this.#turns.answer(item.call_id, item.output)
    if (!answers) this.#turns.distract()
    const { added, finished } = this.#dialect.names
    const told = { previous_item_id: previous, item: this.#dialect.item(item) }
    this.#out.tell({ type: added, ...told })
    if (finished) this.#out.tell({ type: finished, ...told })
  }

  #newItem(given: GivenItem): Item {
    return newItem(given, this.#options.host.newId, decoder(this.#settings.inputFormat))
  }

  #cancel({ response_id: id }: Of<'response.cancel'>): void {
    const { active } = this.#turns
    if (!active || (id != null && id !== active.id)) {
      throw invalid(
        id == null ? 'No response is in progress' : `The response "${id}" is not in progress`,
        undefined,
        'response_cancel_not_active',
      )
    }
    this.#turns.cancel('client_cancelled')
  }

  async #respond({ changes, metadata, conversation, input }: ResponseRequest): Promise<void> {
    const { host, model, quota, trace } = this.#options
    this.#turns.checkIdle()
    const settings = withChanges(this.#settings, changes)
    const messages = input ? toMessages(input.map((item) => this.#inputItem(item))) : this.#conversation.messages()
    const response = new RealtimeResponse({
      dialect: this.#dialect,
      out: this.#out,
      settings,
      metadata,
      conversation: conversation === 'none' ? undefined : this.#conversation,
      newId: host.newId,
      quota,
      onUnplayable: (format) => host.log('warn', 'An agent speaks in a format that cannot be converted', { format, ...trace.fields }),
    })
    this.#lastResponse = response.id
    this.#owed = false
    const { modalities, instructions, tools, extensions } = configOf(settings, { ...named(model), ...(metadata && { metadata }) })
    const overrides = { modalities, instructions, tools, extensions }
    await this.#turns.respond({ response, messages, overrides, mayGoOn: conversation === 'auto' && !input })
  }

  #inputItem(item: GivenItem | string): Item {
    return typeof item === 'string' ? this.#conversation.retrieve(item) : this.#newItem(item)
  }

  /** Answers what the client said during an answer that it did not interrupt. */
  #payDebt(): void {
    if (!this.#owed) return
    this.#respond(UNCHANGED).catch((thrown: unknown) => {
      this.#refuse(thrown, undefined)
      void this.#out.flush()
    })
  }

  #showSession(): Slot {
    const { session, model, capabilities } = this.#options
    return {
      object: 'realtime.session',
      id: session.id,
      model: model ?? session.agent,
      ...this.#dialect.session(this.#settings),
      ...(capabilities && { capabilities }),
    }
  }

  /** An item with its recording, in the format of its speaker. */
  #showWhole(item: Item): Slot {
    const { inputFormat, outputFormat } = this.#settings
    const recode = (audio: string, role: MessageItem['role']): string => encoder(role === 'assistant' ? outputFormat : inputFormat)(audio)
    return this.#dialect.item(item, recode)
  }

  #refuse(thrown: unknown, eventId: string | undefined): void {
    const { host, session, trace } = this.#options
    const report = { transport: 'realtime', message: 'An event failed', session: session.id, ...trace.fields }
    const error = reportError(host, thrown, report)
    this.#out.tell({ type: 'error', error: { ...openAiEventError(error), event_id: eventId ?? null } })
  }
}

/** A frame as the event that it should be. */
function parseFrame(frame: string | Uint8Array): Slot {
  if (typeof frame !== 'string') throw invalid('Events are JSON in text frames, not binary frames', undefined, 'invalid_frame')
  return parseObject(frame, 'An event', (message) => invalid(message, undefined, 'invalid_json'))
}

/** The client's own id of an event, to which an error refers. */
function clientEventId({ event_id: id }: Slot): string | undefined {
  if (id === undefined || id === null) return undefined
  if (typeof id !== 'string') throw invalid('"event_id" must be a string', 'event_id', 'invalid_type')
  if (id.length > limits.idLength)
    throw invalid(`"event_id" must be at most ${limits.idLength} characters long`, 'event_id', 'invalid_value')
  return id
}

/** Tells the agent which model the client named. */
export function named(model: string | undefined): Slot {
  return model === undefined ? {} : { model }
}

const UNCHANGED: ResponseRequest = { changes: {}, metadata: null, conversation: 'auto', input: undefined }
