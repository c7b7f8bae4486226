import type { EndDraft, KeptResponse, TurnKeeper } from '../../../core/ports/keeper.ts'
import type { Session } from '../../../core/ports/session.ts'
import type { Operation } from '../../../core/ports/store.ts'
import { isMedia } from '../../../protocol/content.ts'
import { UampError } from '../../../protocol/errors.ts'
import type { Draft } from '../../../protocol/events.ts'
import type { Artifact, Message, StreamEvent, TaskStatus } from '../model.ts'
import { artifactsOf, mediaArtifact, textArtifactId } from './artifacts.ts'
import { closing } from './closing.ts'
import { DirectAnswer } from './direct.ts'
import { Endings } from './ending.ts'
import { ownerOf, type Found, type Step, type TaskRecord } from './records.ts'
import { KEEPER, notify, statusOf, type Shared } from './shared.ts'

export interface LiveParts {
  readonly session: Session
  /** The task before this response, and its version; of a new one there is no version. */
  readonly before: Pick<Found, 'record'> & Partial<Found>
  /** What the client says. */
  readonly message: Message
  /** Its agent may answer with a message instead of a task. */
  readonly mayBeMessage: boolean
}

/** A task while its agent works on it. Its record is written with the beginning and with the end of the response. */
export class Live implements TurnKeeper {
  readonly name = KEEPER
  readonly key: string
  readonly session: Session
  readonly #shared: Shared
  readonly #message: Message
  readonly #version: number
  readonly #endings = new Endings()
  /** Whether it is a task at all; undefined for agents that always answer with one. */
  readonly direct: DirectAnswer | undefined
  #record: TaskRecord
  #next: TaskRecord | undefined
  #artifacts: readonly Artifact[] | undefined
  /** Messages that have records of their own. */
  #apart: readonly Operation[] = []
  /** What webhooks are told once they know of the task. */
  #untold: StreamEvent[] | undefined = []
  /** Resolves when its response has ended and that is stored. Rejects when it could not be stored, and nobody was told of it. */
  readonly ended: Promise<void>
  #start: (() => void) | undefined
  #starting: Promise<void> | undefined
  #hasStarted = false
  isRefused = false
  #end: () => void = () => undefined
  #fail: (reason: unknown) => void = () => undefined

  constructor(shared: Shared, { session, before, message, mayBeMessage }: LiveParts) {
    const { record, version = 0 } = before
    this.#shared = shared
    this.session = session
    this.#record = record
    this.#version = version
    this.#message = message
    this.key = shared.records.keyOf(ownerOf(record), record.id)
    this.direct = mayBeMessage ? new DirectAnswer(record.contextId, shared.host.newId) : undefined
    this.ended = new Promise((resolve, reject) => {
      this.#end = resolve
      this.#fail = reject
    })
    // Whoever asks is told; mostly nobody does.
    this.ended.catch(() => undefined)
  }

  get record(): TaskRecord {
    return this.#record
  }

  /** The place of its response among those of the task. */
  get index(): number {
    return this.#record.steps.length - 1
  }

  get step(): Step {
    return this.#record.steps.at(-1) as Step
  }

  /** Resolves when its response has begun, or could not. */
  get started(): Promise<void> {
    return this.#hasStarted ? Promise.resolve() : (this.#starting ??= new Promise((resolve) => (this.#start = resolve)))
  }

  /** What its response gave, where that is known here. */
  get artifacts(): readonly Artifact[] | undefined {
    return this.#artifacts
  }

  opened({ id, session, after, createdAt }: KeptResponse): () => readonly Operation[] {
    const { records } = this.#shared
    const { steps } = this.#record
    const step: Step = { session, turn: id, after, startedAt: createdAt }
    const status = statusOf('TASK_STATE_WORKING', createdAt)
    const begun = { ...this.#record, status, updatedAt: createdAt, steps: [...steps, step] }
    const { record, operations } = records.withMessages(begun, [this.#message])
    this.#record = record
    this.#apart = operations
    return () => (this.direct ? [] : [records.set(record, this.#version), ...operations])
  }

  /** It is a task after all, for an agent that might have answered with a message. */
  async write(): Promise<void> {
    const { records } = this.#shared
    try {
      await records.store.batch([records.set(this.#record, 0), ...this.#apart])
    } catch (error) {
      // Its end may be there already. What could not be kept is not told.
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
    if (this.direct?.isMessage) return [this.#shared.records.setContext(this.#record, turn.id, host.now())]
    const ending = this.#endings.end(end, host.now())
    const before = { record: this.#record, ...(isFirst && { version: this.#version }) }
    const { record, operations } = closing(this.#shared, before, ending)
    this.#next = record
    if (ending.output) this.#artifacts = artifactsOf(turn.id, ending.output, ending.quiet)
    return isFirst || this.direct ? [...this.#apart, ...operations] : operations
  }

  /** A client that is told of a question may answer at once, so from here on the task takes that. */
  settled(failure?: unknown): void {
    if (this.#next) this.#record = this.#next
    this.#shared.lives.remove(this)
    this.direct?.over()
    if (failure !== undefined) return this.#fail(failure)
    this.#end()
    if (!this.#next) return
    const id = textArtifactId(this.step.turn)
    const text = this.#artifacts?.find(({ artifactId }) => artifactId === id)
    if (text) this.#tellArtifact(text)
    this.#notify({ statusUpdate: this.#update(this.#record.status) })
  }

  /** It has begun, and its client may know it. `isNew`: webhooks are told of the whole task. */
  begun(isNew: boolean): void {
    this.#starts()
    this.#shared.lives.wake(this.key)
    const untold = this.#untold ?? []
    this.#untold = undefined
    const { id, contextId } = this.#record
    const status = statusOf('TASK_STATE_WORKING', this.step.startedAt)
    if (isNew) this.#notify({ task: { id, contextId, status, history: [this.#message] } })
    this.#notify({ statusUpdate: this.#update(status) })
    for (const event of untold) this.#notify(event)
  }

  /** It could not begin: it is as if it had never been there. */
  refused(reason: unknown): void {
    this.isRefused = true
    this.#shared.lives.remove(this)
    this.#fail(reason)
    this.#starts()
  }

  #starts(): void {
    this.#hasStarted = true
    this.#start?.()
  }

  #tellArtifact(artifact: Artifact): void {
    const { id: taskId, contextId } = this.#record
    this.#notify({ artifactUpdate: { taskId, contextId, artifact, append: false, lastChunk: true } })
  }

  #update(status: TaskStatus) {
    const { id: taskId, contextId } = this.#record
    return { taskId, contextId, status }
  }

  #notify(event: StreamEvent): void {
    if (this.#untold) this.#untold.push(event)
    else notify(this.#shared, this.#record, event)
  }
}
