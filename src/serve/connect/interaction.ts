import { principalKey } from '../../core/basics/principal.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { Batch, InputEvent, Reader, Session } from '../../core/ports/session.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent, EventOf, ServerEvent } from '../../protocol/events.ts'
import { jsonText, type Slot } from '../../protocol/json.ts'
import { DELTAS, WINDOW_EVENTS, WINDOW_LENGTH } from '../../wire/connect.ts'
import type { Outbox } from './outbox.ts'

/** What the session that runs here says of itself. The host has a session of its own. */
const ITS_OWN: ReadonlySet<string> = new Set<ServerEvent['type']>([
  'session.created',
  'session.updated',
  'session.end',
  'session.error',
  'capabilities',
  'pong',
  'x.ack',
  'rate_limit',
])
/** Characters of a run of texts, after which the next one begins. */
const RUN = 64 * 1024

export interface InteractionOptions {
  /** The id that the host gave it. */
  readonly id: string
  readonly agent: string
  readonly session: Session
  readonly principal: Principal
  readonly newId: () => string
}

/** Where the events of an interaction go at the moment. */
export interface Route {
  readonly outbox: Outbox
  /** The host joins, counts and resumes. */
  readonly isOurs: boolean
}

/** One session of the host, as a session of the agent here. Its log keeps what the host has not taken yet. */
export class Interaction {
  readonly id: string
  readonly agent: string
  readonly session: Session
  readonly #options: InteractionOptions
  #reader: Reader | undefined
  #route: Route | undefined
  /** The last events that were sent, by message: how far they reach, and how long they are. */
  #sent: { readonly seq: number; readonly length: number }[] = []
  #length = 0
  #taken = 0
  #waiting: (() => void) | undefined
  /** Inputs that no response has used. */
  #hasInput = false

  constructor(options: InteractionOptions) {
    this.id = options.id
    this.agent = options.agent
    this.session = options.session
    this.#options = options
  }

  get isAnswering(): boolean {
    return this.session.responding
  }

  /** Sends the log's events after `after` this way from now on. Throws if some of them are gone. */
  follow(route: Route, after: number): void {
    this.detach()
    const reader = this.session.read({ after, extensions: 'all' })
    if (!reader.recovered) {
      reader.close()
      throw new UampError('interrupted', 'A part of the answer is no longer there')
    }
    this.#reader = reader
    this.#route = route
    this.#taken = after
    reader
      .each(async (batch) => this.#pass(route, batch))
      .catch((thrown: unknown) => {
        if (this.#reader === reader) this.#tooLarge(route, thrown)
      })
  }

  /** Sends nothing until the next `follow`. The response goes on for a while. */
  detach(): void {
    this.#reader?.close()
    this.#reader = this.#route = undefined
    this.#sent = []
    this.#length = 0
    this.#waiting?.()
  }

  /** Takes an input of the host, which starts a response if it is a user's text. Rejects if one runs already. */
  async input(event: InputEvent, asked?: Pick<EventOf<'response.create'>, 'extensions' | 'metadata'>): Promise<void> {
    const starts = event.type === 'input.text' && (event.role ?? 'user') === 'user'
    if (!starts) {
      this.#hasInput = true
      return this.session.send(event, this.#sender)
    }
    // Named after its input: the same input never starts two.
    await this.session.say([event], { type: 'response.create', event_id: `${event.event_id} response`, ...asked }, this.#sender)
    this.#hasInput = false
  }

  async send(event: ClientEvent): Promise<void> {
    if (event.type === 'response.create') {
      // A text has started the response already.
      if (!this.#hasInput) return
      this.#hasInput = false
    }
    // Ids of responses are the host's own.
    const known = event.type === 'response.cancel' ? { type: event.type, event_id: event.event_id } : event
    await this.session.send(known, this.#sender)
  }

  get #sender(): { readonly principal: Principal } {
    return { principal: this.#options.principal }
  }

  /** The host has taken the events up to this one. */
  taken(seq: number): void {
    this.#taken = Math.max(this.#taken, seq)
    while (this.#sent[0] && this.#sent[0].seq <= this.#taken) this.#length -= this.#sent.shift()?.length ?? 0
    if (!this.#isFarAhead) this.#waiting?.()
  }

  get #isFarAhead(): boolean {
    const last = this.#sent.at(-1)?.seq ?? 0
    return this.#length > WINDOW_LENGTH || last - this.#taken > WINDOW_EVENTS
  }

  async #pass(route: Route, batch: Batch): Promise<void> {
    const { outbox, isOurs } = route
    const encoder = new Encoder(this.id, isOurs)
    batch.visit({ text: (text, seq) => encoder.text(text, seq), event: (event, seq) => encoder.event(event, seq) })
    const pieces = encoder.finish()
    for (const piece of pieces) outbox.add(piece)
    await outbox.room
    if (!isOurs || encoder.last === 0) return
    this.#sent.push({ seq: encoder.last, length: encoder.length })
    this.#length += encoder.length
    while (this.#isFarAhead && this.#route === route) {
      await new Promise<void>((resolve) => (this.#waiting = resolve))
      this.#waiting = undefined
    }
  }

  /** An event does not fit into a message of the host, or could not be written: the answer ends. */
  #tooLarge({ outbox }: Route, thrown: unknown): void {
    this.detach()
    outbox.add(errorText(this.id, UampError.from(thrown)))
    this.session.send({ type: 'response.cancel', event_id: this.#options.newId() }).catch(() => undefined)
  }
}

export function errorText(sessionId: string, error: UampError): string {
  return JSON.stringify({ type: 'response.error', event_id: crypto.randomUUID(), session_id: sessionId, error: error.toBody() })
}

/** Writes a batch as texts of events, with the session id of the host. Runs of text are one event, if the host knows that. */
class Encoder {
  /** The number of the last event, and the characters of all. */
  last = 0
  length = 0
  readonly #session: string
  readonly #joins: boolean
  readonly #pieces: string[] = []
  #run = ''
  #first = 0

  constructor(id: string, joins: boolean) {
    this.#session = jsonText(id)
    this.#joins = joins
  }

  text(text: string, seq = 0): void {
    this.last = seq
    if (!this.#joins) {
      const delta = `{"type":"response.delta","event_id":"${seq}","session_id":${this.#session},"response_id":"","delta":{"type":"text","text":`
      return this.#add(`${delta}${jsonText(text)}}}`)
    }
    if (this.#run === '') this.#first = seq
    this.#run += this.#run === '' ? jsonText(text) : `,${jsonText(text)}`
    if (this.#run.length > RUN) this.#endRun()
  }

  event(event: ServerEvent, seq: number | undefined): void {
    if (this.#run !== '') this.#endRun()
    if (seq !== undefined) this.last = seq
    if (!ITS_OWN.has(event.type)) this.#add(JSON.stringify({ ...event, session_id: JSON.parse(this.#session) as string }))
  }

  finish(): readonly string[] {
    if (this.#run !== '') this.#endRun()
    return this.#pieces
  }

  #endRun(): void {
    this.#add(`{"type":"${DELTAS}","session_id":${this.#session},"seq":${this.#first},"texts":[${this.#run}]}`)
    this.#run = ''
  }

  #add(piece: string): void {
    this.#pieces.push(piece)
    this.length += piece.length
  }
}

/** The principal of a caller at a host, as this process knows it: apart from those of other hosts, and from its own. */
export function callerOf(host: string, caller: Readonly<Slot>): Pick<Principal, 'tenant' | 'id'> {
  const { tenant = '', id = '' } = caller
  return { tenant: `connect ${host}`, id: principalKey({ tenant: String(tenant), id: String(id) }) }
}
