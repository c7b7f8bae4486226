import type { EventOf, ServerEvent } from '../protocol/events.ts'
import type { ClientDraft } from './drafts.ts'
import { UampClientError } from './errors.ts'
import { Outbox } from './outbox.ts'
import { EventQueue, QUEUE_LIMIT } from './queue.ts'

/** Where a session was left. Pass it to `client.session({ resume })`, here or in another process. */
export interface Position {
  readonly session_id: string
  /** The `seq` of the last known event. */
  readonly after: number
}

export interface LineOptions {
  /** The `session.create` of this session, without its id and its `resume`. */
  readonly create: Omit<EventOf<'session.create'>, 'event_id'>
  readonly resume?: Position | undefined
  readonly newId: () => string
}

/** What the server adds to `session.created` and `response.created` under `extensions.uamp`. */
interface CreatedExtension {
  readonly request?: string
  readonly resume?: { readonly recovered: boolean; readonly head?: number }
}

export function createdExtension(event: EventOf<'session.created' | 'response.created'>): CreatedExtension | undefined {
  return event.extensions?.['uamp'] as CreatedExtension | undefined
}

/** One session, as its link sees it. It outlives connections. */
export class Line {
  /** Known once the server has answered the first `session.create`. */
  id: string | undefined
  seq: number
  /** The newest event when the connection was made. Events up to it are a replay. */
  head = 0
  readonly outbox = new Outbox()
  /** Resolves when the session is open, rejects if it cannot be opened. */
  readonly ready: Promise<void>
  readonly closed: Promise<void>
  /** False if the server does not acknowledge events, as one of another make. Then a sent event counts as acknowledged. */
  acks = true
  /** Set by the link that carries it. */
  onSend: () => void = () => undefined
  onOver: () => void = () => undefined
  /** The numbers may start again: takes the next one, whatever it is. */
  #astray = false
  /** Why the session is over, and the error that iterators throw, if any. */
  #end: { readonly reason: UampClientError; readonly thrown: UampClientError | undefined } | undefined
  #closed: () => void = () => undefined
  #settle: { readonly resolve: () => void; readonly reject: (error: UampClientError) => void } | undefined
  readonly #options: LineOptions
  readonly #listeners: ((event: ServerEvent) => void)[] = []
  readonly #queues = new Map<EventQueue, (event: ServerEvent) => boolean>()
  /** For the first iterator: keeps events from the first one on, which would be lost between `session()` and `for await`. */
  #backlog: EventQueue | undefined
  #wakeLink: (() => void) | undefined

  constructor(options: LineOptions) {
    this.#options = options
    this.id = options.resume?.session_id
    this.seq = options.resume?.after ?? 0
    this.ready = new Promise((resolve, reject) => (this.#settle = { resolve, reject }))
    this.ready.catch(() => undefined)
    this.closed = new Promise((resolve) => (this.#closed = resolve))
    this.#backlog = this.subscribe()
  }

  get over(): boolean {
    return this.#end !== undefined
  }

  get reason(): UampClientError | undefined {
    return this.#end?.reason
  }

  /** The extension events to receive. A stream names them itself, because it may follow a session that another client opened. */
  get extensions(): string {
    const uamp = this.#options.create.client_capabilities?.extensions?.['uamp'] as { events?: readonly string[] | true } | undefined
    return uamp?.events === true ? 'all' : (uamp?.events ?? []).join(',')
  }

  /** The event that opens the session, or resumes it. */
  hello(): EventOf<'session.create'> {
    const { create, newId } = this.#options
    if (this.id === undefined) return { ...create, event_id: newId() }
    const uamp = { ...(create.session.extensions?.['uamp'] as object | undefined), resume: { session_id: this.id, after: this.seq } }
    return { ...create, event_id: newId(), session: { ...create.session, extensions: { ...create.session.extensions, uamp } } }
  }

  open(id: string): void {
    this.id = id
    this.#settle?.resolve()
  }

  /** `size` is the length of the event's JSON text. */
  receive(event: ServerEvent, size: number): void {
    if (this.#end) return
    if (event.seq !== undefined) {
      // After a reconnect the server may repeat events.
      if (event.seq <= this.seq && !this.#astray) return
      this.#astray = false
      this.seq = event.seq
    }
    if (event.type === 'x.ack') return this.outbox.acknowledge(event.event_ids)
    const resume = event.type === 'session.created' ? createdExtension(event)?.resume : undefined
    if (resume?.head !== undefined) this.head = resume.head
    if (resume?.recovered === false) this.#gap(resume.head)
    if (event.type === 'session.error' || event.type === 'response.error') this.#refused(event)
    for (const listener of this.#listeners) listener(event)
    // The answer to a reconnect is not an event of the session.
    if (resume) return
    for (const [queue, wants] of this.#queues) {
      if (!wants(event)) continue
      queue.push(event, size)
      // One event may exceed the limit. Its reader is slow only if others wait, too.
      if (queue.size > QUEUE_LIMIT && queue.size > size) this.#overflow(queue)
    }
    if (event.type === 'session.end' && event.reason?.startsWith('token_')) {
      this.fail(new UampClientError({ code: 'unauthorized', message: 'The token is no longer valid', details: { reason: event.reason } }))
    } else if (event.type === 'session.end') {
      this.close(
        new UampClientError({ code: 'closed', message: `The session has ended${event.reason === undefined ? '' : `: ${event.reason}`}` }),
      )
    }
  }

  /** Calls the listener with every event, once and in order, before iterators get it. */
  listen(listener: (event: ServerEvent) => void): void {
    this.#listeners.push(listener)
  }

  newId(): string {
    return this.#options.newId()
  }

  /** Resolves when the event is acknowledged. */
  send(draft: ClientDraft): Promise<void> {
    const event_id = draft.event_id ?? this.newId()
    const sent = this.outbox.add({ id: event_id, text: JSON.stringify({ ...draft, event_id, session_id: this.id }) })
    this.onSend()
    return sent
  }

  /** A queue of events from now on. It must be read or returned. */
  subscribe(wants: (event: ServerEvent) => boolean = () => true): EventQueue {
    const queue = new EventQueue(() => {
      if (queue.ended) this.#queues.delete(queue)
      if (queue.size <= QUEUE_LIMIT / 4) this.#wakeLink?.()
    })
    if (this.#end) queue.end(this.#end.thrown)
    else this.#queues.set(queue, wants)
    return queue
  }

  /** A queue of every event: for the first caller from the beginning, for others from now on. */
  events(): EventQueue {
    const backlog = this.#backlog
    this.#backlog = undefined
    return backlog ?? this.subscribe()
  }

  /** Defined while a reader is far behind. A link that can stop reading waits for it. */
  get room(): Promise<void> | undefined {
    for (const queue of this.#queues.keys()) {
      if (queue !== this.#backlog && queue.size > QUEUE_LIMIT / 2) return new Promise((resolve) => (this.#wakeLink = resolve))
    }
    return undefined
  }

  /** Gives up readers that are far behind. */
  shed(): void {
    for (const queue of this.#queues.keys()) if (queue.size > QUEUE_LIMIT / 2) this.#overflow(queue)
  }

  /** Ends the session on purpose: iterators just end, and callers that wait for an answer get the reason. */
  close(reason: UampClientError): void {
    this.#finish(reason, undefined)
  }

  /** Ends the session with an error. */
  fail(reason: UampClientError): void {
    this.#finish(reason, reason)
  }

  #finish(reason: UampClientError, thrown: UampClientError | undefined): void {
    if (this.#end) return
    this.#end = { reason, thrown }
    this.#settle?.reject(reason)
    this.outbox.close(reason)
    for (const queue of this.#queues.keys()) queue.end(thrown)
    this.#queues.clear()
    this.#wakeLink?.()
    this.onOver()
    this.#closed()
  }

  #overflow(queue: EventQueue): void {
    this.#queues.delete(queue)
    // Nobody has read the backlog so far. A later iterator begins later.
    if (queue === this.#backlog) this.#backlog = undefined
    else queue.end(this.#error('slow_consumer', 'Events came faster than they were read; resume from details to read on'))
    this.#wakeLink?.()
  }

  #gap(head = this.seq): void {
    const error = this.#error('gap', 'The server no longer has the events that were missed')
    this.#astray = true
    // A server that was restored from a backup is behind: its next event is new, though its number is not.
    this.seq = Math.min(this.seq, head)
    for (const queue of this.#queues.keys()) queue.end(error)
    this.#queues.clear()
  }

  #refused(event: EventOf<'session.error' | 'response.error'>): void {
    const id = event.error.details?.['event_id']
    if (typeof id === 'string') this.outbox.refuse(id, UampClientError.from(event))
  }

  #error(code: 'gap' | 'slow_consumer', message: string): UampClientError {
    return new UampClientError({ code, message, details: { session_id: this.id, after: this.seq } })
  }
}
