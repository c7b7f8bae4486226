import { eachBatch } from '../../core/each-batch.ts'
import type { Batch, InputEvent, Reader, Session } from '../../core/ports/session.ts'
import { reportError } from '../../core/report-error.ts'
import type { ClientEvent, EventOf, ServerEvent, Unsent } from '../../protocol/events.ts'
import type { Slot } from '../../protocol/json.ts'
import type { ToolDefinition } from '../../protocol/tools.ts'
import { pcm16 } from '../../wire/audio/samples.ts'
import { inputsOf } from './content.ts'
import { errorInfo, inFlight, refusedBy } from './errors.ts'
import { enabled } from './media/index.ts'
import { Narrator } from './narrator.ts'
import { placeOf, type Position } from './positions.ts'
import type { Message } from './schema.ts'
import type { Link } from './shared.ts'
import { ToolCalls } from './tool-calls.ts'

export interface LineOptions {
  /** Whether the client is greeted as one that comes back. Undefined: it is not greeted. */
  readonly resumed?: boolean | undefined
  /** What it has heard of the session, where that was not all. */
  readonly from?: Position | undefined
  /** What the client calls the session, where that is not its id. */
  readonly alias?: string | undefined
  /** Nothing was said in it, nor put into it. */
  readonly isFresh?: boolean
}

type Create = EventOf<'response.create'>

/** Who speaks is spoken to. */
const SPOKEN = { modalities: ['text', 'audio'] } satisfies Create['response']

/** A session as one connection has it: one message at a time goes in, and what the session says comes out. */
export class Line {
  readonly session: Session
  readonly calls: ToolCalls
  isFresh: boolean
  readonly #link: Link
  readonly #options: LineOptions
  readonly #reader: Reader
  readonly #narrator: Narrator
  readonly #unwatch: (() => void) | undefined
  #told: Position
  /** Where it has left off is kept also when all was told: else who comes back would be told some of it again. */
  #keeps: boolean
  #clientTools: ReadonlySet<string>
  /** A message was sent, and its answer has not begun. */
  #asking: { readonly id: string; readonly tools: readonly ToolDefinition[] | undefined } | undefined
  /** The answer that is given now, also to somebody elsewhere: its words could not be told from those of another. */
  #running: string | undefined
  #isMine = false
  /** It waits for money, and the client was told so. */
  #unpaid: boolean
  /** Something was said while another answer was given. */
  #owed = false
  #over: (() => void) | undefined
  #left = false
  /** Nothing more is told here. */
  ended = false

  constructor(link: Link, session: Session, options: LineOptions = {}) {
    const { host, limits, timers, media, binary } = link
    const { from, resumed = false, isFresh = false } = options
    this.session = session
    this.isFresh = isFresh
    this.#link = link
    this.#options = options
    this.#told = from ?? { seq: session.head }
    this.#keeps = resumed
    this.#unpaid = from?.unpaid === true
    this.#reader = session.read({ after: this.#told.seq, extensions: ['x.approval.request'] })
    this.#clientTools = namesOf(session.config.tools)
    this.#narrator = new Narrator({
      sessionId: session.id,
      binary,
      showsTool: (name) => link.options.toolMessages === true && !this.#clientTools.has(name),
      newId: host.newId,
      carried: from,
    })
    const place = placeOf(session)
    this.calls = new ToolCalls({ limits, timers, place, send: (answer) => this.session.send(this.#event(answer)) })
    this.#unwatch = media?.watch(place, (upload_complete) => void this.tell('upload_complete', { upload_complete }))
  }

  /** Whether a message with that id belongs here. */
  isCalled(id: string): boolean {
    return !this.ended && (id === this.session.id || id === this.#options.alias)
  }

  /** Tells what there is to tell. An answer may run already: it was begun before, or elsewhere. */
  async begin(): Promise<void> {
    const { host, principal } = this.#link
    const { resumed, from } = this.#options
    // The reader was there before: the end of what runs is still to come.
    const turn = this.session.turn === null ? undefined : await host.gateway.turn(this.session.turn, principal)
    if (turn?.status === 'open') {
      this.#running = turn.id
      this.#isMine = turn.id === from?.asked
    } else if (resumed && !from && turn?.error?.code === 'interrupted') {
      // The process was killed: how much of it was told, nobody could keep.
      await this.#tell(() => this.#narrator.recall(turn))
    }
    void this.#follow()
  }

  /** Nobody listens any more; somebody may come back for what was missed, unless it was for good. */
  leave(forGood = false): void {
    if (this.#left) return
    this.#left = this.ended = true
    this.#unwatch?.()
    this.calls.clear()
    this.#reader.close()
    this.#over?.()
    if (forGood || this.isFresh || !(this.#keeps || this.#running !== undefined || this.#told.seq < this.session.head)) return
    const asked = this.#isMine ? this.#running : undefined
    this.#link.positions.keep(this.session, { ...this.#told, ...(asked !== undefined && { asked }), unpaid: this.#unpaid })
  }

  tell(type: string, body?: Slot): Promise<void> {
    return this.#tell(() => this.#narrator.tell(type, body))
  }

  refuse(thrown: unknown): Promise<void> {
    const error = reportError(this.#link.host, thrown, { transport: 'omnia', message: 'A message failed', session: this.session.id })
    return this.tell('error', { error: errorInfo(error) })
  }

  async say(message: Message): Promise<void> {
    const { limits, options, media, principal } = this.#link
    const { metadata, ext, consent_grants, session_consent_grants } = message
    const token = metadata?.['payment_token']
    if (this.#unpaid && typeof token === 'string') {
      this.#unpaid = false
      return this.session.send(this.#event({ type: 'payment.submit', payment: { scheme: 'token', token } }))
    }
    this.checkIdle()
    const inputs = await inputsOf(message, {
      resolve: (ref) => enabled(media).resolve(ref, this.session.id, principal),
      most: limits.inlineLength,
    })
    if (this.#unpaid) await this.#giveUp()
    const tools = ext?.tools ? [...(options.clientTools ?? []), ...ext.tools] : undefined
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
    if (this.#running !== undefined) this.#narrator.quiet ??= 'says'
    this.#narrator.audible = false
    this.cancel()
    await this.tell('interrupt')
  }

  cancel(): void {
    // Refused when it has just ended by itself: its end is in the log.
    if (this.#isBusy) this.session.send(this.#event({ type: 'response.cancel' })).catch(() => undefined)
  }

  checkIdle(): void {
    if (this.#isBusy && !this.#unpaid && !this.ended) throw inFlight()
  }

  get #isBusy(): boolean {
    return this.#asking !== undefined || this.#running !== undefined
  }

  /** Says something and asks for an answer: all of it, or nothing. */
  async #ask(inputs: readonly Unsent<InputEvent>[], response: Create['response']): Promise<void> {
    this.checkIdle()
    const create = this.#event({ type: 'response.create', response })
    const asking = { id: create.event_id, tools: response?.tools ?? this.session.config.tools }
    this.#asking = asking
    try {
      await this.session.say(
        inputs.map((input) => this.#event(input)),
        create,
      )
    } catch (thrown) {
      if (this.#asking === asking) this.#asking = undefined
      throw refusedBy(thrown)
    }
  }

  /** The client went on without paying. */
  async #giveUp(): Promise<void> {
    this.#narrator.quiet = 'all'
    const over = new Promise<void>((resolve) => (this.#over = resolve))
    this.cancel()
    if (!this.ended) await over
  }

  /** The outbound loop: everything between the cursor and the head in one write. */
  async #follow(): Promise<void> {
    try {
      await eachBatch(this.#reader, (batch) => this.#write(batch))
    } catch (error) {
      this.#link.host.log('error', 'A reader failed', { session: this.session.id, error })
      this.#link.socket.close(1011, 'Internal error')
    } finally {
      this.ended = true
    }
  }

  async #write(batch: Batch): Promise<void> {
    const narrator = this.#narrator
    let last = this.#told.seq
    const sent = this.#tell(() =>
      batch.visit({
        text: (text, seq) => {
          last = seq ?? last
          narrator.text(text)
        },
        event: (event, seq) => {
          last = seq ?? last
          narrator.event(event)
          this.#notice(event)
        },
      }),
    )
    const told = { seq: last, ...narrator.carried }
    await sent
    this.#told = told
  }

  #tell(narrate: () => void): Promise<void> {
    this.#narrator.now = this.#link.host.now()
    narrate()
    return this.#link.socket.send(this.#narrator.take())
  }

  #notice(event: ServerEvent): void {
    switch (event.type) {
      case 'response.created':
        return this.#begun(event)
      case 'tool.call':
        if (this.#isMine) this.calls.asked(event.call_id)
        return
      case 'x.approval.request':
        if (this.#isMine) this.calls.asked(event.approval_id)
        return
      case 'payment.required':
        this.#unpaid = true
        return
      case 'response.error':
        this.#keeps ||= event.error.code === 'interrupted'
        return this.#idle()
      case 'response.done':
      case 'response.cancelled':
        return this.#idle()
      case 'session.end':
        this.ended = true
        return
      default:
    }
  }

  #begun({ response_id: id, extensions }: EventOf<'response.created'>): void {
    const { request } = (extensions?.['uamp'] ?? {}) as { readonly request?: string }
    // One-way sessions do not tell; there, only one can have asked.
    const asked = request === undefined || request === this.#asking?.id ? this.#asking : undefined
    this.#running = id
    this.#isMine = asked !== undefined
    this.#clientTools = namesOf(asked ? asked.tools : this.session.config.tools)
    if (asked) this.#asking = undefined
  }

  #idle(): void {
    this.#running = this.#narrator.quiet = undefined
    this.#isMine = this.#unpaid = false
    this.calls.clear()
    this.#over?.()
    if (!this.#owed || this.ended) return
    this.#owed = false
    this.#ask([], SPOKEN).catch((thrown: unknown) => this.refuse(thrown))
  }

  #event<E extends Unsent>(event: E): Extract<ClientEvent, { type: E['type'] }> {
    return { ...event, event_id: this.#link.host.newId() } as never
  }
}

function namesOf(tools: readonly ToolDefinition[] = []): ReadonlySet<string> {
  return new Set(tools.map((tool) => tool.function.name))
}
