import { nextTurn } from '../../core/basics/time.ts'
import { stopReason, type EndEvent } from '../../core/reading/response-fold.ts'
import { ABOUT_OTHERS, ABOUT_SESSIONS, alike, BESIDE_ANSWERS, tellBy, type Mapping } from '../../core/reading/mapping.ts'
import type { Batch, Reader, Session, Visitor } from '../../core/ports/session.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent, EventOf, ServerEvent, Unsent } from '../../protocol/events.ts'
import type { Message } from '../../protocol/message.ts'
import { openAiEventError, toldError } from '../../wire/openai/errors.ts'
import { invalid } from '../../wire/parse.ts'
import type { Outbox } from './outbox.ts'
import type { Ending, RealtimeResponse } from './response.ts'

/** OpenAI's names for the reasons why an answer is incomplete. */
const INCOMPLETE: Readonly<Record<string, string>> = { length: 'max_output_tokens', content_filter: 'content_filter' }

export interface TurnsOptions {
  readonly session: Session
  readonly reader: Reader
  readonly out: Outbox
  readonly newId: () => string
  /** A turn has ended, and no other begins right away. */
  readonly onIdle: () => void
}

/** A response that is to begin. */
export interface Start {
  readonly response: RealtimeResponse
  readonly messages: readonly Message[]
  readonly overrides: EventOf<'response.create'>['response']
  /** It may continue a turn that waits for the client's tools. */
  readonly mayGoOn: boolean
}

/**
 * The turns of a session, as Realtime responses. A turn that calls the client's tools ends its response there and waits; the response
 * that brings the results continues the same turn. While the turn waits its log is not read, so what the agent says meanwhile belongs
 * to that next response.
 */
export class Turns implements Visitor {
  static readonly mapping: Mapping<Turns> = {
    'response.created': ['`response.created`, `rate_limits.updated`', (turns) => turns.#speaker?.announce()],
    'response.delta': [
      'text, also of a refusal: `response.output_text.delta` (beta: `response.text.delta`); sound as below; calls of the client’s functions: ' +
        '`function_call` item; images, video, files and thoughts: the UAMP event; the agent’s own tools: not told',
      (turns, event) => turns.#delta(event),
    ],
    'audio.delta': ['`response.output_audio.delta` (beta: `response.audio.delta`)', (turns, event) => turns.#speaker?.sound(event)],
    'transcript.delta': [
      '`response.output_audio_transcript.delta` (beta: `response.audio_transcript.delta`); text for clients that do not want sound',
      (turns, { transcript }) => turns.#speaker?.words(transcript),
    ],
    'transcript.done': ['what of the words did not come before', (turns, { transcript }) => turns.#speaker?.allWords(transcript)],
    'tool.call': ['`function_call` item, and the end of the response', (turns, event) => turns.#call(event)],
    'usage.delta': ['added up: `usage` of `response.done`', (turns, { delta }) => turns.#speaker?.spend(delta)],
    'response.done': [
      '`response.done`, with `signature`',
      (turns, event) => {
        // An earlier Realtime response told what the turn said before its calls.
        if (turns.#asked.size === 0) turns.#speaker?.finish(event.response.output)
        turns.#ended(endingOf(event))
      },
    ],
    'response.cancelled': ['`response.done`, status `cancelled`', (turns, event) => turns.#ended(endingOf(event))],
    'response.error': ['`response.done`, status `failed`', (turns, event) => turns.#ended(endingOf(event))],
    thinking: ['the UAMP event', (turns, event) => turns.#speaker?.think(event)],
    ...alike(['progress', 'payment.required', 'payment.accepted', 'payment.error'], [
      'the UAMP event',
      (turns: Turns, event: ServerEvent) => turns.#speaker?.pass(event),
    ] as const),
    // Follows the end of the response, which nobody speaks for any more.
    'payment.balance': ['the UAMP event', (turns, event) => turns.#balance(event)],
    'x.approval.request': ['never asked: the agent is told that nobody is there to allow it'],
    'session.end': ['the connection closes'],
    ...alike(['audio.done', 'tool.call_done'], ['not told: the items say so']),
    ...alike([...ABOUT_SESSIONS, ...ABOUT_OTHERS, 'session.error', 'x.plan', ...BESIDE_ANSWERS], ['not told: no event for it']),
  }

  readonly #options: TurnsOptions
  #state: 'idle' | 'running' | 'waiting' | 'stopping' = 'idle'
  #active: RealtimeResponse | undefined
  /** Calls that wait for the client, with the outputs that have come. */
  readonly #calls = new Map<string, string | undefined>()
  /** All calls of the turn for the client. */
  readonly #asked = new Set<string>()
  /** The client added something other than outputs. */
  #distracted = false
  /** The agent made calls. Until this resolves, what it says belongs to the same response. */
  #called: Promise<void> | undefined
  /** The next batch, if it was asked for already. */
  #next: Promise<IteratorResult<Batch, unknown>> | undefined
  #release: (() => void) | undefined
  #settled: (() => void) | undefined
  #over = false
  /** The response that ended last. */
  #last: string | undefined

  constructor(options: TurnsOptions) {
    this.#options = options
  }

  get active(): RealtimeResponse | undefined {
    return this.#active
  }

  /** No turn runs, waits or is being stopped. */
  get idle(): boolean {
    return this.#state === 'idle'
  }

  /** The outbound loop: everything between the cursor and the head in one write. Ends with the session. */
  async follow(): Promise<void> {
    const batches = this.#options.reader[Symbol.asyncIterator]()
    try {
      while (await this.#step(batches));
    } finally {
      this.leave()
    }
  }

  /** The client has left. */
  leave(): void {
    this.#over = true
    this.#options.reader.close()
    this.#release?.()
    this.#settled?.()
  }

  /** Begins a response. Throws if it cannot. */
  async respond({ response, messages, overrides, mayGoOn }: Start): Promise<void> {
    this.checkIdle()
    this.#active = response
    try {
      if (mayGoOn && (await this.#goOn(response))) return
      await this.#settle()
      // The client cancelled the response while it waited for the turn before.
      if (this.#active !== response || this.#over) return
      this.#state = 'running'
      const { session, newId } = this.#options
      await session.say([{ type: 'input.text', event_id: newId(), text: '', messages: [...messages] }], {
        type: 'response.create',
        event_id: newId(),
        ...(overrides && { response: overrides }),
      })
    } catch (thrown) {
      if (this.#active === response) this.#active = undefined
      this.#state = 'idle'
      throw thrown
    }
  }

  checkIdle(): void {
    if (!this.#active) return
    throw invalid(
      `The response ${this.#active.id} is in progress: wait for its end, or cancel it`,
      undefined,
      'conversation_already_has_active_response',
    )
  }

  /** Ends the active response at once, and stops its turn. */
  cancel(reason: 'client_cancelled' | 'turn_detected'): void {
    const response = this.#active
    if (!response) return
    this.#active = undefined
    response.close({ status: 'cancelled', details: { reason } })
    if (this.#state === 'running') this.#stop()
  }

  /** Takes the output of a call. False if no call waits for it: it is then only part of the conversation. */
  answer(callId: string, output: string): boolean {
    if (!this.#calls.has(callId)) return false
    if (this.#state === 'waiting' || this.#called) {
      this.#calls.set(callId, output)
    } else {
      this.#calls.delete(callId)
      this.#send({ type: 'tool.result', call_id: callId, result: output }).catch(() => undefined)
    }
    return true
  }

  /** The client went on without the outputs that a turn waits for. */
  distract(): void {
    this.#distracted = true
  }

  text(text: string): void {
    if (this.#state === 'running') this.#active?.text(text)
  }

  event(event: ServerEvent): void {
    tellBy(Turns.mapping, this, event)
  }

  /** The response that tells what the turn says. */
  get #speaker(): RealtimeResponse | undefined {
    return this.#state === 'running' ? this.#active : undefined
  }

  #balance({ session_id: _, seq: __, event_id: ___, timestamp: ____, ...event }: EventOf<'payment.balance'>): void {
    this.#options.out.tell(this.#last === undefined ? event : { ...event, response_id: this.#last })
  }

  #delta(event: EventOf<'response.delta'>): void {
    const { delta } = event
    // The question may come before the delta that shows the call. That delta must not open the call again.
    if (delta.type !== 'tool_call' || !this.#asked.has(delta.tool_call.id)) this.#speaker?.delta(delta, event)
  }

  #call({ call_id: id, name, arguments: args }: EventOf<'tool.call'>): void {
    const speaker = this.#speaker
    if (!speaker) return
    this.#calls.set(id, undefined)
    this.#asked.add(id)
    // Twice: readers of what was said in this turn of the event loop are woken in the next one.
    this.#called ??= nextTurn().then(nextTurn)
    speaker.call({ id, name, arguments: args })
  }

  /** One function call per batch: a loop that waits for the next batch would keep the last one in memory. */
  async #step(batches: AsyncIterator<Batch>): Promise<boolean> {
    const next = (this.#next ??= batches.next())
    const step = await (this.#called ? Promise.race([this.#called, next]) : next)
    if (step) {
      this.#next = undefined
      if (step.done) return false
      step.value.visit(this)
    } else {
      this.#wait()
    }
    // The calls and the end of their response go in one write, as a client may answer as soon as it sees a call.
    if (!this.#called) await this.#options.out.flush()
    if (this.#state === 'waiting' && !this.#over) await new Promise<void>((resolve) => (this.#release = resolve))
    return true
  }

  /** Calls that were made in one turn of the event loop end the response together, even if they came in several batches. */
  #wait(): void {
    this.#called = undefined
    const response = this.#active
    if (this.#state !== 'running' || !response) return
    this.#active = undefined
    this.#state = 'waiting'
    this.#distracted = false
    response.close({ status: 'completed' })
  }

  async #goOn(response: RealtimeResponse): Promise<boolean> {
    const given = [...this.#calls].filter((call): call is [string, string] => call[1] !== undefined)
    if (this.#state !== 'waiting' || this.#distracted || given.length === 0) return false
    try {
      for (const [callId, output] of given) await this.#send({ type: 'tool.result', call_id: callId, result: output })
    } catch (thrown) {
      // The turn has given up waiting. A new turn finds the outputs in the conversation.
      if (UampError.from(thrown).code === 'not_found') return false
      throw thrown
    }
    for (const [callId] of given) this.#calls.delete(callId)
    this.#state = 'running'
    response.announce()
    this.#release?.()
    return true
  }

  /** Resolves when the turn before is over. A turn that waits for the client is stopped. */
  async #settle(): Promise<void> {
    if (this.#state === 'waiting') this.#stop()
    if (this.#state === 'stopping' && !this.#over) await new Promise<void>((resolve) => (this.#settled = resolve))
  }

  #stop(): void {
    this.#state = 'stopping'
    this.#calls.clear()
    // The cancel is refused if the turn has just ended by itself.
    this.#send({ type: 'response.cancel' }).catch(() => undefined)
    this.#release?.()
  }

  #ended(ending: Ending): void {
    const response = this.#state === 'running' ? this.#active : undefined
    const settled = this.#settled
    this.#state = 'idle'
    this.#called = undefined
    this.#calls.clear()
    this.#asked.clear()
    if (response) {
      this.#active = undefined
      this.#last = response.id
      response.close(ending)
    }
    this.#settled = undefined
    if (settled) settled()
    else this.#options.onIdle()
  }

  #send(event: Unsent): Promise<void> {
    return this.#options.session.send({ ...event, event_id: this.#options.newId() } as ClientEvent)
  }
}

function endingOf(event: EndEvent): Ending {
  switch (event.type) {
    case 'response.done': {
      const { status, usage } = event.response
      const reason = INCOMPLETE[stopReason(event) ?? '']
      const { signature } = event
      if (reason !== undefined) return { status: 'incomplete', details: { reason }, usage, signature }
      return { status, usage, signature }
    }
    case 'response.cancelled':
      return { status: 'cancelled', details: { reason: 'client_cancelled' } }
    case 'response.error': {
      const { param: _, accepts: _a, ...error } = openAiEventError(toldError(event.error))
      return { status: 'failed', details: { error } }
    }
  }
}
