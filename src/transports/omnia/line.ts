import { isEnd } from '../../core/reading/response-fold.ts'
import type { Batch, InputEvent, Reader, Session, StoredResponse } from '../../core/ports/session.ts'
import { reportError } from '../../core/edge/report-error.ts'
import { UampError } from '../../protocol/errors.ts'
import type { MediaItem } from '../../protocol/content.ts'
import type { ClientEvent, EventOf, ServerEvent, Unsent } from '../../protocol/events.ts'
import type { Slot } from '../../protocol/json.ts'
import type { ToolDefinition } from '../../protocol/tools.ts'
import { pcm16 } from '../../wire/audio/samples.ts'
import { inputsOf, paidWith } from './content.ts'
import { errorInfo, inFlight, omniaError, refusedBy } from './errors.ts'
import { enabled, type Referring } from './media/index.ts'
import type { Replays } from './media/replays.ts'
import { Narrator } from './narrator.ts'
import { placeOf, type Position } from './positions.ts'
import type { Message } from './schema.ts'
import { offeredTools, type Link } from './shared.ts'
import { ToolCalls } from './tool-calls.ts'

export interface LineOptions {
  /** The client comes back, and what it has heard is not known, because the process was killed. */
  readonly isUnknown?: boolean
  /** Where the client goes on, if that was kept. */
  readonly kept?: Position | undefined
  /** The client's name for the session, if that is not its id. */
  readonly alias?: string | undefined
  /** Nothing was said in it or uploaded to it. */
  readonly isFresh?: boolean
}

type Create = EventOf<'response.create'>
type Inputs = readonly Unsent<InputEvent>[]

/** Begins the ids of requests from Omnia, so that every connection knows which responses Omnia's clients asked for. */
const OURS = 'omnia-'

/** A client that speaks gets a spoken answer. */
const SPOKEN = { modalities: ['text', 'audio'] } satisfies Create['response']

/** One connection's view of a session: one message at a time goes in, and everything that the session says comes out. */
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
  /** The newest response when this began. */
  #found: StoredResponse | undefined
  /** Events up to here are older than this connection. */
  readonly #past: number
  #clientTools: ReadonlySet<string>
  /** The message that was sent, until its response begins. */
  #asking: { readonly id: string; readonly tools: readonly ToolDefinition[] | undefined } | undefined
  /** The running response, even if another client asked for it: two at once could not be told apart. */
  #running: string | undefined
  /** Where the response that is being told began in the log. */
  #since: number | null = null
  #isMine = false
  /** A client of Omnia asked for it. */
  #isOurs = false
  /** The client spoke during a response, and wants an answer after it. */
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
      keep: link.replays && ((items, response) => this.#keep(link.replays as Replays, items, response)),
    })
    const place = placeOf(session)
    const send = (answer: Unsent): Promise<void> => session.send(this.#event(answer))
    this.calls = new ToolCalls({ limits, places, place, send, asks: (id) => this.#asks(id) })
    this.#unwatch = media?.watch(place, (upload, failure) => void this.#uploaded(upload, failure))
  }

  #uploaded(upload: Slot, failure: UampError | undefined): Promise<void> {
    if (!failure) return this.tell('upload_complete', { upload_complete: upload })
    const { upload_id, storage_ref } = upload
    const error = omniaError('UPLOAD_FAILED', failure.code, failure.message)
    return this.tell('error', { error: errorInfo(error, { upload_id, storage_ref }) })
  }

  /** Whether a message with this session id belongs here. */
  isCalled(id: string): boolean {
    return !this.ended && (id === this.session.id || id === this.#options.alias)
  }

  /** Looks for a running response that began earlier, or over another connection. */
  async look(): Promise<void> {
    const { host, principal } = this.#link
    // The reader exists already, so it will see the end of a response that still runs.
    const turn = this.session.lastResponse === null ? undefined : await host.gateway.response(this.session.lastResponse, principal)
    this.#found = turn
    if (turn?.status !== 'open') return
    this.#running = turn.id
    if (this.#options.kept) return
    // The response is read again from its beginning, but what the client knows is not told again.
    this.#told = { ...this.#told, since: turn.after }
    const late = this.#reader
    this.#reader = this.#read(turn.after)
    late.close()
  }

  async begin(): Promise<void> {
    // A client speaks again only after the end of a response, so only the newest can be unknown to it.
    if (this.#options.isUnknown && this.#found) await this.#recall(this.#found)
    void this.#follow()
  }

  /** Tells how a response ended, and its whole output. */
  async #recall(turn: StoredResponse): Promise<void> {
    const { status, error } = turn
    if (status === 'open' || status === 'waiting') return
    if (error) await this.tell('error', { error: errorInfo(error) })
    if (!error || error.code === 'interrupted') await this.#tell(() => this.#narrator.recall(turn))
  }

  /** The connection stops listening. `gone`: the client may come back for what it missed. */
  leave(how: 'gone' | 'hangup' | 'unused' = 'gone'): void {
    if (this.#left) return
    this.#left = this.ended = true
    const { session } = this
    const { positions, host, trace } = this.#link
    this.#unwatch?.()
    this.calls.leave()
    this.#reader.close()
    this.#onIdle?.()
    if (how === 'hangup') positions.forget(session, this.#options.kept)
    if (how === 'gone' && !this.isUnused) positions.keep(session, this.#told, this.#options.kept)
    if (!this.isFresh) return session.leave()
    // Released, not ended: others may use it by now. An empty session costs next to nothing until it expires.
    const failed = (error: unknown): void =>
      host.log('warn', 'A session could not be let go', { session: session.id, error, ...trace.fields })
    session.release().catch(failed)
  }

  /** Nobody has said anything in it. */
  get isUnused(): boolean {
    return this.isFresh && this.session.lastResponse === null
  }

  tell(type: string, body?: Slot): Promise<void> {
    return this.#tell(() => this.#narrator.tell(type, body))
  }

  refuse(thrown: unknown): Promise<void> {
    const error = reportError(this.#link.host, thrown, {
      transport: 'omnia',
      message: 'A message failed',
      session: this.session.id,
      ...this.#link.trace.fields,
    })
    return this.tell('error', { error: errorInfo(error) })
  }

  /** The inputs of a message; undefined if it is a payment. Throws, without any effect, if it cannot be said now. */
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
    if (ext?.events != null) this.#narrator.tellsEvents = ext.events
    const tools = ext?.tools ? [...clientTools, ...ext.tools] : undefined
    const given = { metadata, consent_grants, session_consent_grants }
    const extensions = Object.values(given).some((value) => value != null) ? { omnia: given } : undefined
    await this.#ask(paidWith(tokenIn(message), inputs), { tools, extensions })
    this.isFresh = false
  }

  /** Sends speech. A running response is not stopped for it; the next response answers it. */
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

  /** The client begins to speak: stops the running response, and what the client still plays. */
  async interrupt(): Promise<void> {
    if (!this.#isBusy && !this.#narrator.audible) return
    if (this.#isBusy) this.#narrator.quiet ??= 'says'
    this.#narrator.audible = false
    this.cancel()
    await this.tell('interrupt')
  }

  cancel(): void {
    // The cancel is refused if the response has just ended by itself.
    if (this.#isBusy) this.session.send(this.#event({ type: 'response.cancel' })).catch(() => undefined)
  }

  /** The client ends the call, but not a response that other clients listen to. */
  hangUp(): void {
    if (this.#asking || this.#isMine || (this.#isOurs && this.calls.isAlone)) this.cancel()
    this.leave('hangup')
  }

  checkIdle(): void {
    if (this.#isBusy && !this.#unpaid && !this.ended) throw inFlight()
  }

  /** The running response waits for a payment. */
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

  /** Sends inputs and asks for a response, all or nothing. */
  async #ask(inputs: Inputs, response: Create['response']): Promise<void> {
    this.checkIdle()
    const create = this.#event({ type: 'response.create', response })
    const asking = { id: create.event_id, tools: response?.tools ?? this.session.config.tools }
    this.#asking = asking
    try {
      const said = inputs.map((input) => this.#event(input))
      await this.session.say(said, create, this.#link)
    } catch (thrown) {
      if (this.#asking === asking) this.#asking = undefined
      if (!this.#isBusy) this.#narrator.quiet = undefined
      throw refusedBy(thrown)
    }
  }

  /** Stops the response that waits for a payment, as the client says something else. */
  async #giveUp(): Promise<void> {
    this.#narrator.quiet = 'all'
    const over = new Promise<void>((resolve) => (this.#onIdle = resolve))
    this.cancel()
    if (!this.ended) await over
  }

  /** The outbound loop: everything between the cursor and the head in one write. */
  async #follow(): Promise<void> {
    try {
      await this.#reader.each((batch) => this.#write(batch))
    } catch (error) {
      this.#link.host.log('error', 'A reader failed', { session: this.session.id, error, ...this.#link.trace.fields })
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
        // An event without a number is only for those who listen now.
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

  /** Whether the client knows this event. */
  #isKnown(event: ServerEvent, seq: number): boolean {
    const question = questionIn(event)
    // An open question may have been lost with the connection. An answered one would make the client run its tool again.
    if (question !== '' && seq <= this.#past) return !this.#asks(question)
    return seq <= this.#told.seq
  }

  #tell(narrate: () => void): Promise<void> {
    this.#narrator.now = this.#link.host.now()
    this.#narrator.muted = false
    narrate()
    const frames = this.#narrator.take()
    const { socket } = this.#link
    return frames instanceof Promise ? frames.then((known) => socket.send(known)) : socket.send(frames)
  }

  async #keep(replays: Replays, items: readonly MediaItem[], id: string): Promise<ReadonlyMap<MediaItem, string>> {
    const { principal, url } = this.#link
    const kept = await replays.keep(items, { id, session: this.session, principal })
    return new Map([...kept].map(([item, path]) => [item, url + path]))
  }

  #notice(event: ServerEvent, seq: number): void {
    if (event.type === 'response.created') {
      this.#since = seq - 1
      this.#begun(event, seq)
    } else if (event.type === 'tool.call' || event.type === 'x.approval.request') {
      if (this.#isOurs) this.calls.asked(questionIn(event))
    } else if (isEnd(event)) {
      // The response died with the process, before this connection began.
      const died = event.type === 'response.error' && this.#found?.error?.code === 'interrupted' && event.response_id === this.#found.id
      if (died) this.#narrator.recall(this.#found as StoredResponse)
      this.#over(event.response_id, seq)
    } else if (event.type === 'session.end') this.ended = true
  }

  #begun({ response_id: id, extensions }: EventOf<'response.created'>, seq: number): void {
    const { request } = (extensions?.['uamp'] ?? {}) as { readonly request?: string }
    // Responses of one-way sessions do not name the request; only one client can have asked there.
    const asked = request === undefined || request === this.#asking?.id ? this.#asking : undefined
    if (seq > this.#past) this.#running = id
    this.#isMine = asked !== undefined
    this.#isOurs = this.#isMine || request?.startsWith(OURS) === true
    this.#clientTools = namesOf(asked ? asked.tools : (id === this.#found?.id ? this.#found : this.session).config.tools)
    if (asked) this.#asking = undefined
  }

  #over(id: string | undefined, seq: number): void {
    this.#since = null
    // A response that was over before this connection began does not make it busy, so its end does not make it idle.
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

/** The id of a question that is answered by its id, or else ''. */
function questionIn(event: ServerEvent): string {
  return event.type === 'tool.call' ? event.call_id : event.type === 'x.approval.request' ? event.approval_id : ''
}

function namesOf(tools: readonly ToolDefinition[] = []): ReadonlySet<string> {
  return new Set(tools.map((tool) => tool.function.name))
}
