import type { EndDraft, KeptResponse, RecoverKeeper, TurnKeeper } from '../../../core/ports/keeper.ts'
import type { Session } from '../../../core/ports/session.ts'
import type { Operation } from '../../../core/ports/store.ts'
import { isMedia } from '../../../protocol/content.ts'
import { UampError } from '../../../protocol/errors.ts'
import type { Draft } from '../../../protocol/events.ts'
import { isRecord } from '../../../protocol/json.ts'
import type { Artifact, Message, Part, StreamEvent, Struct } from '../model.ts'
import { artifactsOf, mediaArtifact, textArtifactId } from './content.ts'
import { Endings, type Ending } from './ending.ts'
import { type Found, idsOf, notify, ownerOf, type Shared, statusOf, type Step, type TaskRecord } from './records.ts'

/** The name by which recovery knows a response that belongs to a task. */
export const KEEPER = 'a2a'

/** Stored with a response, so that its task is found after a crash. */
export interface TaskNote {
  readonly task: string
}

/** A task before a response of it, and its version. A new task has no version. */
export type Before = Pick<Found, 'record'> & Partial<Found>

export interface LiveParts {
  readonly session: Session
  readonly before: Before
  readonly message: Message
  /** The agent may answer with a message instead of a task. */
  readonly mayBeMessage: boolean
}

/** A task while its agent works on it. Its record is written with the beginning and with the end of each response. */
export class Live implements TurnKeeper {
  readonly name = KEEPER
  readonly key: string
  readonly session: Session
  readonly #shared: Shared
  readonly #message: Message
  readonly #version: number
  readonly #endings = new Endings()
  /** Finds out whether the answer is a task at all; undefined for agents that always answer with one. */
  readonly direct: DirectAnswer | undefined
  record: TaskRecord
  /** The task as it was when the response began. */
  atStart: TaskRecord
  /** What the response gave; undefined until that is known here. */
  artifacts: readonly Artifact[] | undefined
  /** The task as the end of the response leaves it, until that is stored. */
  #next: TaskRecord | undefined
  /** Messages that have records of their own. */
  #apart: readonly Operation[] = []
  /** What webhooks are told once they know of the task. */
  #untold: StreamEvent[] | undefined = []
  /** Resolves when the response has begun, or could not. */
  readonly started: Promise<void>
  /** Resolves when the end of the response is stored. Rejects when it could not be stored; then nobody is told of it. */
  readonly ended: Promise<void>
  isRefused = false
  #start: () => void = () => undefined
  #end: () => void = () => undefined
  #fail: (reason: unknown) => void = () => undefined

  constructor(shared: Shared, { session, before, message, mayBeMessage }: LiveParts) {
    const { record, version = 0 } = before
    this.#shared = shared
    this.session = session
    this.record = this.atStart = record
    this.#version = version
    this.#message = message
    this.key = shared.records.keyOf(ownerOf(record), record.id)
    this.direct = mayBeMessage ? new DirectAnswer(record.contextId, shared.host.newId) : undefined
    this.started = new Promise((resolve) => (this.#start = resolve))
    this.ended = new Promise((resolve, reject) => {
      this.#end = resolve
      this.#fail = reject
    })
    // Mostly nobody waits for it.
    this.ended.catch(() => undefined)
  }

  /** The place of the response among those of the task. */
  get index(): number {
    return this.record.steps.length - 1
  }

  get step(): Step {
    return this.record.steps.at(-1) as Step
  }

  opened({ id, session, after, createdAt }: KeptResponse): () => readonly Operation[] {
    const { records } = this.#shared
    const { steps } = this.record
    const step: Step = { session, turn: id, after, startedAt: createdAt }
    const status = statusOf('TASK_STATE_WORKING', createdAt)
    const begun = { ...this.record, status, updatedAt: createdAt, steps: [...steps, step] }
    const { record, operations } = records.withMessages(begun, [this.#message])
    this.record = this.atStart = record
    this.#apart = operations
    return () => (this.direct ? [] : [records.set(record, this.#version), ...operations])
  }

  /** Stores the task of an agent that could have answered with a message, and did not. */
  async write(): Promise<void> {
    const { records } = this.#shared
    try {
      await records.store.batch([records.set(this.record, 0), ...this.#apart])
    } catch (error) {
      // A conflict: the end of the task is stored already.
      if (UampError.from(error).code !== 'conflict') throw error
    }
  }

  see(event: Draft): void {
    this.#endings.see(event)
    this.direct?.see(event)
    if (event.type === 'response.delta' && isMedia(event.delta) && event.delta.content_id !== undefined) {
      this.#tellArtifact(mediaArtifact(event.delta))
    }
  }

  closed(turn: KeptResponse, end: EndDraft, isFirst: boolean): readonly Operation[] {
    const { host } = this.#shared
    if (this.direct?.isMessage) return [this.#shared.records.setContext(this.record, turn.id, host.now())]
    const ending = this.#endings.end(end, host.now())
    const before = { record: this.record, ...(isFirst && { version: this.#version }) }
    const { record, operations } = closing(this.#shared, before, ending)
    this.#next = record
    if (ending.output) this.artifacts = artifactsOf(turn.id, ending.output, ending.quiet)
    return isFirst || this.direct ? [...this.#apart, ...operations] : operations
  }

  /** A client that is told of a question may answer at once, so from here on the task takes an answer. */
  settled(failure?: unknown): void {
    if (this.#next) this.record = this.#next
    this.#shared.lives.remove(this)
    this.direct?.over()
    if (failure !== undefined) return this.#fail(failure)
    this.#end()
    if (!this.#next) return
    const id = textArtifactId(this.step.turn)
    const text = this.artifacts?.find(({ artifactId }) => artifactId === id)
    if (text) this.#tellArtifact(text)
    this.#notify({ statusUpdate: { status: this.record.status, ...idsOf(this.record) } })
  }

  /** The response has begun, and its client may know. `isNew`: webhooks are told of the whole task. */
  begun(isNew: boolean): void {
    this.#start()
    this.#shared.lives.wake(this.key)
    const untold = this.#untold ?? []
    this.#untold = undefined
    const { id, contextId } = this.record
    const status = statusOf('TASK_STATE_WORKING', this.step.startedAt)
    if (isNew) this.#notify({ task: { id, contextId, status, history: [this.#message] } })
    this.#notify({ statusUpdate: { status, ...idsOf(this.record) } })
    for (const event of untold) this.#notify(event)
  }

  /** The response could not begin: the task is as it was before. */
  refused(reason: unknown): void {
    this.isRefused = true
    this.#shared.lives.remove(this)
    this.#fail(reason)
    this.#start()
  }

  #tellArtifact(artifact: Artifact): void {
    this.#notify({ artifactUpdate: { artifact, append: false, lastChunk: true, ...idsOf(this.record) } })
  }

  #notify(event: StreamEvent): void {
    if (this.#untold) this.#untold.push(event)
    else notify(this.#shared, this.record, event)
  }
}

/** A task whose response has ended, and what is written for that. */
export function closing(
  { host, records }: Shared,
  { record: before, version }: Before,
  ending: Ending,
): { readonly record: TaskRecord; readonly operations: readonly Operation[] } {
  const { steps } = before
  const updatedAt = host.now()
  const said = ending.message
  const message: Message | undefined = said && { messageId: host.newId(), role: 'ROLE_AGENT', ...idsOf(before), ...said }
  const status = statusOf(ending.state, updatedAt, message)
  const step: Step = { ...(steps.at(-1) as Step), end: status, ...(ending.waits && { waits: true }), ...(ending.quiet && { quiet: true }) }
  const ended = {
    ...before,
    updatedAt,
    status,
    steps: [...steps.slice(0, -1), step],
    ...(ending.metadata && { metadata: { ...before.metadata, ...ending.metadata } }),
  }
  const { record, operations } = records.withMessages(ended, message ? [message] : [])
  return { record, operations: [records.set(record, version), ...operations] }
}

/** Closes the task of a response that a crash left open. */
export function recoverTask(shared: Shared): RecoverKeeper {
  return async (turn) => {
    const { task } = (turn.note ?? {}) as Partial<TaskNote>
    const found = task === undefined ? undefined : await shared.records.find(ownerOf(turn), task)
    if (found?.record.steps.at(-1)?.turn !== turn.id) return undefined
    const endings = new Endings()
    return {
      name: KEEPER,
      opened: () => () => [],
      see: (event) => endings.see(event),
      closed: (_, end) => closing(shared, { record: found.record }, endings.end(end, shared.host.now())).operations,
    }
  }
}

/** The tasks that run in this process, by their key: at most as many as the gateway has sessions. */
export class Lives {
  readonly #lives = new Map<string, Live>()
  /** Streams that stay open while their task does not run: at most as many as there are connections. */
  readonly #waiting = new Map<string, Set<() => void>>()

  get(key: string): Live | undefined {
    return this.#lives.get(key)
  }

  add(live: Live): void {
    this.#lives.set(live.key, live)
  }

  remove(live: Live): void {
    if (this.#lives.get(live.key) === live) this.#lives.delete(live.key)
  }

  /** The task goes on, or was cancelled while no response ran. */
  wake(key: string): void {
    const waiting = this.#waiting.get(key)
    this.#waiting.delete(key)
    for (const resolve of waiting ?? []) resolve()
  }

  /** Resolves when the task goes on or is over, or when the signal is aborted. */
  next(key: string, signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#lives.has(key)) return Promise.resolve()
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(key) ?? new Set()
      this.#waiting.set(key, waiting)
      const done = (): void => {
        signal.removeEventListener('abort', done)
        waiting.delete(done)
        if (waiting.size === 0 && this.#waiting.get(key) === waiting) this.#waiting.delete(key)
        resolve()
      }
      waiting.add(done)
      signal.addEventListener('abort', done)
    })
  }
}

/** The event by which an agent answers with a message instead of a task. */
const NAME = 'a2a.message'

/** Events that say nothing yet. */
const IDLE: ReadonlySet<string> = new Set(['usage.delta', 'payment.accepted', 'payment.error'])

/** Finds out from the first event of an agent whether it answers with a message. */
class DirectAnswer {
  readonly #contextId: string
  readonly #newId: () => string
  /** Resolves with the message, or with undefined if the answer is a task. */
  readonly decided: Promise<Message | undefined>
  isMessage = false
  #decide: (message: Message | undefined) => void = () => undefined
  #isDecided = false

  constructor(contextId: string, newId: () => string) {
    this.#contextId = contextId
    this.#newId = newId
    this.decided = new Promise((resolve) => (this.#decide = resolve))
  }

  see(event: Draft): void {
    if (this.#isDecided || IDLE.has(event.type)) return
    this.#isDecided = true
    const message = messageOf(event)
    this.isMessage = message !== undefined
    this.#decide(message && { messageId: this.#newId(), role: 'ROLE_AGENT', contextId: this.#contextId, ...message })
  }

  /** The agent said nothing at all. */
  over(): void {
    this.#decide(undefined)
  }
}

function messageOf(event: Draft): Pick<Message, 'parts' | 'metadata' | 'extensions'> | undefined {
  if (event.type !== 'x.custom' || event.name !== NAME) return undefined
  const { value } = event
  if (typeof value === 'string') return { parts: [{ text: value }] }
  if (!isRecord(value) || !Array.isArray(value['parts'])) return undefined
  const { parts, metadata, extensions } = value
  return {
    parts: parts as Part[],
    ...(isRecord(metadata) && { metadata: metadata as Struct }),
    ...(Array.isArray(extensions) && { extensions: extensions as string[] }),
  }
}
