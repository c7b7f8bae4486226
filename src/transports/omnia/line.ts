import { eachBatch } from '../../core/reading/each-batch.ts'
import { isEnd } from '../../core/reading/ends.ts'
import type { Batch, InputEvent, Reader, Session, StoredResponse } from '../../core/ports/session.ts'
import { reportError } from '../../core/edge/report-error.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent, EventOf, ServerEvent, Unsent } from '../../protocol/events.ts'
import type { Slot } from '../../protocol/json.ts'
import type { ToolDefinition } from '../../protocol/tools.ts'
import { pcm16 } from '../../wire/audio/samples.ts'
import { inputsOf } from './content.ts'
import { errorInfo, inFlight, refusedBy } from './errors.ts'
import { enabled, type Referring } from './media/index.ts'
import { Narrator } from './narrator.ts'
import { placeOf, type Position } from './positions.ts'
import type { Message } from './schema.ts'
import { offeredTools, type Link } from './shared.ts'
import { ToolCalls } from './tool-calls.ts'

export interface LineOptions {
  /** It comes back, and nobody knows what it has heard: the process was killed meanwhile. */
  readonly isUnknown?: boolean
  /** Where it goes on, if that was kept. */
  readonly kept?: Position | undefined
  /** What the client calls the session, where that is not its id. */
  readonly alias?: string | undefined
  /** Nothing was said in it, nor put into it. */
  readonly isFresh?: boolean
}

type Create = EventOf<'response.create'>
type Inputs = readonly Unsent<InputEvent>[]

/** Before the ids of what clients of Omnia ask for: who comes back, or watches, so knows whose answer it is. */
const OURS = 'omnia-'

/** Who speaks is spoken to. */
const SPOKEN = { modalities: ['text', 'audio'] } satisfies Create['response']

/** A session as one connection has it: one message at a time goes in, and what the session says comes out. */
export class Line {
  readonly session: Session
  readonly calls: ToolCalls
  isFresh: boolean
  readonly #link: Link
  readonly #options: LineOptions
  readonly #narrator: Narrator
  readonly #unwatch: (() => void) | undefined
  #reader: Reader
  #told: Position
  /** The newest answer when this began. */
  #found: StoredResponse | undefined
  /** What is read up to here was said before this began. */
  readonly #past: number
  #clientTools: ReadonlySet<string>
  /** A message was sent, and its answer has not begun. */
  #asking: { readonly id: string; readonly tools: readonly ToolDefinition[] | undefined } | undefined
  /** The answer that is given now, also to somebody elsewhere: its words could not be told from those of another. */
  #running: string | undefined
  /** Where it began in the log. */
  #since: number | null = null
  #isMine = false
  /** Some client of Omnia asked for it. */
  #isOurs = false
  /** Something was said while another answer was given. */
  #owed = false
  #onIdle: (() => void) | undefined
  #left = false
  /** Nothing more is told here. */
  ended = false

  constructor(link: Link, session: Session, options: LineOptions = {}) {
    const { host, limits, places, media, binary } = link
    const { kept, isFresh = false } = options
    this.session = session
    this.isFresh = isFresh
    this.#link = link
    this.#options = options
    this.#past = session.lastSeq
    this.#told = kept ?? { seq: session.lastSeq, since: null }
    this.#reader = this.#read(this.#told.since ?? this.#told.seq)
    this.#clientTools = namesOf(session.config.tools)
    this.#narrator = new Narrator({
      sessionId: session.id,
      binary,
      showsTool: (name) => link.options.toolMessages === true && !this.#clientTools.has(name),
      newId: host.newId,
    })
    const place = placeOf(session)
    const send = (answer: Unsent): Promise<void> => session.send(this.#event(answer))
    this.calls = new ToolCalls({ limits, places, place, send, asks: (id) => this.#asks(id) })
    this.#unwatch = media?.watch(place, (upload_complete) => void this.tell('upload_complete', { upload_complete }))
  }

  /** Whether a message with that id belongs here. */
  isCalled(id: string): boolean {
    return !this.ended && (id === this.session.id || id === this.#options.alias)
  }

  /** Finds out what goes on there: an answer may run that was begun before, or elsewhere. */
  async look(): Promise<void> {
    const { host, principal } = this.#link
    // The reader was there before: the end of what runs is still to come.
    const turn = this.session.lastResponse === null ? undefined : await host.gateway.response(this.session.lastResponse, principal)
    this.#found = turn
    if (turn?.status !== 'open') return
    this.#running = turn.id
    if (this.#options.kept) return
    // What is known of it by now is read again, but not told.
    this.#told = { ...this.#told, since: turn.after }
    const late = this.#reader
    this.#reader = this.#read(turn.after)
    late.close()
  }

  /** Tells what there is to tell. */
  async begin(): Promise<void> {
    // A client speaks again only after the end of an answer, so it knows those before the newest.
    if (this.#options.isUnknown && this.#found) await this.#recall(this.#found)
    void this.#follow()
  }

  /** Tells how an answer ended, and all that there is of it. */
  async #recall(turn: StoredResponse): Promise<void> {
    const { status, error } = turn
    if (status === 'open' || status === 'waiting') return
    if (error) await this.tell('error', { error: errorInfo(error) })
    if (!error || error.code === 'interrupted') await this.#tell(() => this.#narrator.recall(turn))
  }

  /** Nobody listens any more. `gone`: somebody may come back for what was missed. */
  leave(how: 'gone' | 'hangup' | 'unused' = 'gone'): void {
    if (this.#left) return
    this.#left = this.ended = true
    const { session } = this
    const { positions, host } = this.#link
    this.#unwatch?.()
    this.calls.leave()
    this.#reader.close()
    this.#onIdle?.()
    if (how === 'hangup') positions.forget(session, this.#options.kept)
    if (how === 'gone' && !this.isUnused) positions.keep(session, this.#told, this.#options.kept)
    if (!this.isFresh) return
    // Not ended: others may have come to it. What is empty costs next to nothing until its time is over.
    session.release().catch((error: unknown) => host.log('warn', 'A session was not let go', { session: session.id, error }))
  }

  /** Nobody said anything in it. */
  get isUnused(): boolean {
    return this.isFresh && this.session.lastResponse === null
  }

  tell(type: string, body?: Slot): Promise<void> {
    return this.#tell(() => this.#narrator.tell(type, body))
  }

  refuse(thrown: unknown): Promise<void> {
    const error = reportError(this.#link.host, thrown, { transport: 'omnia', message: 'A message failed', session: this.session.id })
    return this.tell('error', { error: errorInfo(error) })
  }

  /** What a message says, if it can be said now; undefined where it pays. Throws else, and has done nothing. */
  async prepare(message: Message, hold: Referring['hold']): Promise<Inputs | undefined> {
    const { limits, media, principal } = this.#link
    if (this.#unpaid && tokenIn(message) !== undefined) return undefined
    this.checkIdle()
    const resolve = (ref: string) => enabled(media).resolve(ref, { session: this.session.id, principal, hold })
    return inputsOf(message, { resolve, most: limits.inlineLength })
  }

  async say(message: Message, inputs: Inputs | undefined): Promise<void> {
    const clientTools = offeredTools(this.#link)
    const { metadata, ext, consent_grants, session_consent_grants } = message
    if (!inputs) {
      return this.session.send(this.#event({ type: 'payment.submit', payment: { scheme: 'token', token: tokenIn(message) ?? '' } }))
    }
    if (this.#unpaid) await this.#giveUp()
    const tools = ext?.tools ? [...clientTools, ...ext.tools] : undefined
    const given = { metadata, consent_grants, session_consent_grants }
    const extensions = Object.values(given).some((value) => value != null) ? { omnia: given } : undefined
    await this.#ask(inputs, { tools, extensions })
    this.isFresh = false
  }

  /** What was spoken. An answer that runs is not broken off for it; the next one is about it. */
  async hear(samples: Int16Array): Promise<void> {
    this.isFresh = false
    const input = { type: 'input.audio', audio: pcm16(samples), format: 'pcm16', is_final: true } as const
    if (!this.#isBusy) return this.#ask([input], SPOKEN)
    await this.session.send(this.#event(input)).catch((thrown: unknown) => {
      throw refusedBy(thrown)
    })
    if (this.#isBusy) this.#owed = true
    else await this.#ask([], SPOKEN)
  }

  /** Somebody speaks: what is said now is cut short, and the client plays no more of it, nor of what was said before. */
  async interrupt(): Promise<void> {
    if (!this.#isBusy && !this.#narrator.audible) return
    if (this.#isBusy) this.#narrator.quiet ??= 'says'
    this.#narrator.audible = false
    this.cancel()
    await this.tell('interrupt')
  }

  cancel(): void {
    // Refused when it has just ended by itself: its end is in the log.
    if (this.#isBusy) this.session.send(this.#event({ type: 'response.cancel' })).catch(() => undefined)
  }

  /** The client ends it, but not what somebody else is being told. */
  hangUp(): void {
    if (this.#asking || this.#isMine || (this.#isOurs && this.calls.isAlone)) this.cancel()
    this.leave('hangup')
  }

  checkIdle(): void {
    if (this.#isBusy && !this.#unpaid && !this.ended) throw inFlight()
  }

  /** What is answered now waits for money. */
  get #unpaid(): boolean {
    return this.session.asking.some(({ type }) => type === 'payment.required')
  }

  #asks(id: string): boolean {
    return this.session.asking.some((question) => question.id === id)
  }

  #read(after: number): Reader {
    return this.session.read({ after, extensions: ['x.approval.request'] })
  }

  get #isBusy(): boolean {
    return this.#asking !== undefined || this.#running !== undefined
  }

  /** Says something and asks for an answer: all of it, or nothing. */
  async #ask(inputs: Inputs, response: Create['response']): Promise<void> {
    this.checkIdle()
    const create = this.#event({ type: 'response.create', response })
    const asking = { id: create.event_id, tools: response?.tools ?? this.session.config.tools }
    this.#asking = asking
    try {
      const said = inputs.map((input) => this.#event(input))
      await this.session.say(said, create)
    } catch (thrown) {
      if (this.#asking === asking) this.#asking = undefined
      if (!this.#isBusy) this.#narrator.quiet = undefined
      throw refusedBy(thrown)
    }
  }

  /** The client went on without paying. */
  async #giveUp(): Promise<void> {
    this.#narrator.quiet = 'all'
    const over = new Promise<void>((resolve) => (this.#onIdle = resolve))
    this.cancel()
    if (!this.ended) await over
  }

  /** The outbound loop: everything between the cursor and the head in one write. */
  async #follow(): Promise<void> {
    try {
      await eachBatch(this.#reader, (batch) => this.#write(batch))
    } catch (error) {
      this.#link.host.log('error', 'A reader failed', { session: this.session.id, error })
      void this.tell('error', { error: errorInfo(UampError.from(error)) })
      this.#link.socket.close(1011, 'Internal error')
    } finally {
      this.ended = true
    }
  }

  async #write(batch: Batch): Promise<void> {
    const narrator = this.#narrator
    const { seq: known } = this.#told
    let last = known
    const sent = this.#tell(() =>
      batch.visit({
        text: (text, seq = 0) => {
          last = seq
          narrator.muted = seq <= known
          narrator.text(text)
        },
        // Without a number it is for whoever listens now.
        event: (event, seq) => {
          last = seq ?? last
          narrator.muted = seq !== undefined && this.#isKnown(event, seq)
          narrator.event(event)
          this.#notice(event, last)
        },
      }),
    )
    const told = { seq: Math.max(last, known), since: this.#since }
    await sent
    this.#told = told
  }

  /** Whether the client need not be told of it. */
  #isKnown(event: ServerEvent, seq: number): boolean {
    const question = questionIn(event)
    // One that is still open may have been lost with the connection. One that was answered would have its tool run again.
    if (question !== '' && seq <= this.#past) return !this.#asks(question)
    return seq <= this.#told.seq
  }

  #tell(narrate: () => void): Promise<void> {
    this.#narrator.now = this.#link.host.now()
    this.#narrator.muted = false
    narrate()
    return this.#link.socket.send(this.#narrator.take())
  }

  #notice(event: ServerEvent, seq: number): void {
    if (event.type === 'response.created') {
      this.#since = seq - 1
      this.#begun(event, seq)
    } else if (event.type === 'tool.call' || event.type === 'x.approval.request') {
      if (this.#isOurs) this.calls.asked(questionIn(event))
    } else if (isEnd(event)) {
      const died = event.type === 'response.error' && this.#found?.error?.code === 'interrupted' && event.response_id === this.#found.id
      // With the process, before this began.
      if (died) this.#narrator.recall(this.#found as StoredResponse)
      this.#over(event.response_id, seq)
    } else if (event.type === 'session.end') this.ended = true
  }

  #begun({ response_id: id, extensions }: EventOf<'response.created'>, seq: number): void {
    const { request } = (extensions?.['uamp'] ?? {}) as { readonly request?: string }
    // One-way sessions do not tell; there, only one can have asked.
    const asked = request === undefined || request === this.#asking?.id ? this.#asking : undefined
    if (seq > this.#past) this.#running = id
    this.#isMine = asked !== undefined
    this.#isOurs = this.#isMine || request?.startsWith(OURS) === true
    this.#clientTools = namesOf(asked ? asked.tools : (id === this.#found?.id ? this.#found : this.session).config.tools)
    if (asked) this.#asking = undefined
  }

  #over(id: string | undefined, seq: number): void {
    this.#since = null
    // An answer that was over before this began does not keep the client from speaking, and its end does not let them.
    if (id === undefined || id === this.#running || seq > this.#past) this.#idle()
  }

  #idle(): void {
    this.#running = this.#narrator.quiet = undefined
    this.#isMine = this.#isOurs = false
    this.calls.clear()
    this.#onIdle?.()
    if (!this.#owed || this.ended) return
    this.#owed = false
    this.#ask([], SPOKEN).catch((thrown: unknown) => this.refuse(thrown))
  }

  #event<E extends Unsent>(event: E): Extract<ClientEvent, { type: E['type'] }> {
    return { ...event, event_id: OURS + this.#link.host.newId() } as never
  }
}

function tokenIn({ metadata }: Message): string | undefined {
  const token = metadata?.['payment_token']
  return typeof token === 'string' ? token : undefined
}

/** Those that can be answered by their id; else empty, which no id is. */
function questionIn(event: ServerEvent): string {
  return event.type === 'tool.call' ? event.call_id : event.type === 'x.approval.request' ? event.approval_id : ''
}

function namesOf(tools: readonly ToolDefinition[] = []): ReadonlySet<string> {
  return new Set(tools.map((tool) => tool.function.name))
}
