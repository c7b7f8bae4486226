import type { Batch, Reader, Session } from '../../../core/ports/session.ts'
import type { Operation } from '../../../core/ports/store.ts'
import { isMedia } from '../../../protocol/content.ts'
import type { ServerEvent } from '../../../protocol/events.ts'
import type { Artifact, Message, StreamEvent, TaskStatus } from '../model.ts'
import { artifactsOf, mediaArtifact, textArtifactId } from './artifacts.ts'
import { Endings, isEnd, type Ending } from './ending.ts'
import { ownerOf, type Step, type TaskRecord } from './records.ts'
import { notify, statusOf, type Shared } from './shared.ts'

/** How long a task that nobody has been told of need not be in the store. */
const SILENT_MS = 100

export interface LiveParts {
  readonly session: Session
  /** Stands before the first event of the response. */
  readonly reader: Reader
  readonly record: TaskRecord
  /** Its history, where all of it is known: that of a task which begins. */
  readonly history: readonly Message[] | undefined
}

/** A task while its agent works on it. Reads the response to its end, so that it goes on when its clients leave. */
export class Live {
  readonly key: string
  readonly session: Session
  readonly #shared: Shared
  readonly #reader: Reader
  readonly #endings = new Endings()
  #record: TaskRecord
  #history: readonly Message[] | undefined
  #artifacts: readonly Artifact[] | undefined
  /** The beginning, while it waits to be written: nobody has been told of the task yet. */
  #unwritten: Operation | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  /** Resolves when its response has begun; rejects when it could not. */
  readonly started: Promise<void>
  /** Resolves when its response has ended and that is stored. */
  readonly ended: Promise<void>
  #start: () => void = () => undefined
  #refuse: (reason: unknown) => void = () => undefined
  #end: () => void = () => undefined

  constructor(shared: Shared, { session, reader, record, history }: LiveParts) {
    this.#shared = shared
    this.session = session
    this.#reader = reader
    this.#record = record
    this.#history = history
    this.key = shared.records.keyOf(ownerOf(record), record.id)
    this.ended = new Promise((resolve) => (this.#end = resolve))
    this.started = new Promise((resolve, reject) => {
      this.#start = resolve
      this.#refuse = reject
    })
    // Whoever asks is told; mostly nobody does.
    this.started.catch(() => undefined)
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

  /** What its response gave, where that is known here. */
  get artifacts(): readonly Artifact[] | undefined {
    return this.#artifacts
  }

  /** Undefined: the store has it. */
  get history(): readonly Message[] | undefined {
    return this.#history
  }

  /** The response has been asked for. */
  asked(turn: string): void {
    this.#record = { ...this.#record, steps: [...this.#record.steps.slice(0, -1), { ...this.step, turn }] }
  }

  /**
   * Nobody is told of it before it has ended, or has taken a while: then its beginning, with the message that it begins with, is
   * written with its end.
   */
  writeLater(message: Operation): void {
    this.#unwritten = message
    this.#timer = setTimeout(() => this.#writeBeginning(), SILENT_MS)
  }

  #writeBeginning(): void {
    const { records, host } = this.#shared
    const message = this.#unwritten
    this.#unwritten = undefined
    if (!message) return
    records.store
      .batch([records.set(this.#record, 0), message])
      .catch((error: unknown) => host.log('error', 'A task could not be stored', { task: this.#record.id, error }))
  }

  /** It could not begin: it is as if it had never been there. */
  refused(reason: unknown): void {
    clearTimeout(this.#timer)
    this.#shared.lives.remove(this)
    this.#refuse(reason)
    this.#reader.close()
    this.#release()
  }

  /** Follows it to its end, in the background. */
  follow(): void {
    this.#start()
    this.#shared.lives.wake(this.key)
    this.#follow().catch((error: unknown) =>
      this.#shared.host.log('error', 'A task was not brought to its end', { task: this.#record.id, error }),
    )
  }

  async #follow(): Promise<void> {
    try {
      for await (const batch of this.#reader) {
        const ending = this.#read(batch)
        if (ending) return await this.#finish(ending)
      }
    } finally {
      clearTimeout(this.#timer)
      this.#reader.close()
      this.#shared.lives.remove(this)
      this.#end()
      this.#release()
    }
  }

  #read(batch: Batch): Ending | undefined {
    let ending: Ending | undefined
    const endings = this.#endings
    batch.visit({
      text: () => {
        endings.spoke = true
      },
      event: (event) => {
        if (ending) return
        if (isEnd(event)) ending = endings.end(event, this.#shared.host.now())
        else this.#see(event)
      },
    })
    return ending
  }

  #see(event: ServerEvent): void {
    this.#endings.see(event)
    if (event.type === 'response.created') this.#notify({ statusUpdate: this.#update(this.#record.status) })
    else if (event.type === 'response.delta' && isMedia(event.delta) && event.delta.content_id !== undefined) {
      this.#tellArtifact(mediaArtifact(event.delta))
    }
  }

  async #finish(ending: Ending): Promise<void> {
    const { records, host } = this.#shared
    const { record, message } = ended(this.#record, ending, host)
    try {
      const beginning = this.#unwritten ? [this.#unwritten] : []
      this.#unwritten = undefined
      await records.store.batch([...beginning, ...endOperations(this.#shared, record, { ending, message })])
    } catch (error) {
      // Nobody shall wait for an end that never comes.
      host.log('error', 'The end of a task could not be stored', { task: record.id, error })
    }
    // Not before it is stored: a client that is told of a question may answer at once, and the task must take that.
    this.#record = record
    if (message && this.#history) this.#history = [...this.#history, message]
    if (ending.output) this.#artifacts = artifactsOf(this.step.turn, ending.output, ending.quiet)
    this.#shared.lives.remove(this)
    const id = textArtifactId(this.step.turn)
    const text = this.#artifacts?.find(({ artifactId }) => artifactId === id)
    if (text) this.#tellArtifact(text)
    this.#notify({ statusUpdate: this.#update(record.status) })
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
    notify(this.#shared, this.#record, event)
  }

  #release(): void {
    const failed = (error: unknown): void =>
      this.#shared.host.log('error', 'A session could not be let go', { session: this.session.id, error })
    this.session.release().catch(failed)
  }
}

/** The record of a task whose response has ended. */
export function ended(
  record: TaskRecord,
  ending: Ending,
  { now, newId }: Shared['host'],
): { record: TaskRecord; message: Message | undefined } {
  const { id: taskId, contextId, steps } = record
  const updatedAt = now()
  const said = ending.message
  const message: Message | undefined = said && { messageId: newId(), role: 'ROLE_AGENT', taskId, contextId, ...said }
  const status = statusOf(ending.state, updatedAt, message)
  const step: Step = { ...(steps.at(-1) as Step), end: status, ...(ending.waits && { waits: true }), ...(ending.quiet && { quiet: true }) }
  return {
    message,
    record: {
      ...record,
      updatedAt,
      status,
      steps: [...steps.slice(0, -1), step],
      messages: record.messages + (message ? 1 : 0),
      ...(ending.metadata && { metadata: { ...record.metadata, ...ending.metadata } }),
    },
  }
}

/** What is written when a response has ended. A run that waits is not part of its context yet: there it would stay unanswered. */
export function endOperations(
  { records }: Shared,
  record: TaskRecord,
  { ending, message }: { ending: Ending; message: Message | undefined },
) {
  const turn = record.steps.at(-1)?.turn
  return [
    records.set(record),
    ...(message ? [records.setMessage(record, record.messages, message)] : []),
    ...(ending.waits || turn === undefined ? [] : [records.setContext(record, turn)]),
  ]
}
