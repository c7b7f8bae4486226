import type { Principal } from '../../../core/ports/access.ts'
import type { Host } from '../../../core/ports/transport.ts'
import type { Artifact, Message, Task } from '../model.ts'
import { artifactsOf, Gathering } from './content.ts'
import type { Live, Lives } from './live.ts'
import { Narration } from './narration.ts'
import { idsOf, notFound, ownerOf, statusOf, type Step, type TaskRecord, type TaskRecords } from './records.ts'

export interface Shown {
  /** Undefined: all. 0: none. */
  readonly historyLength?: number | undefined
  /** Default: true. */
  readonly artifacts?: boolean
}

/** Makes tasks as they are shown: from the store, and from the log while they run. */
export class Views {
  readonly #host: Host
  readonly #records: TaskRecords
  readonly #lives: Lives

  constructor(host: Host, records: TaskRecords, lives: Lives) {
    this.#host = host
    this.#records = records
    this.#lives = lives
  }

  /** A task as it is now, for its owner. */
  async now(owner: Principal, id: string): Promise<Task> {
    const live = this.#lives.get(this.#records.keyOf(owner, id))
    const record = live?.record ?? (await this.#records.find(owner, id))?.record
    if (!record) throw notFound(id)
    return this.stored(record)
  }

  async live(live: Live, { historyLength, artifacts = true }: Shown = {}): Promise<Task> {
    const { record } = live
    const known = artifacts ? [...(await this.before(record, live.index)), ...(await this.#ofLive(live))] : []
    return taskOf(record, known, await this.history(record, historyLength))
  }

  async stored(record: TaskRecord, { historyLength, artifacts = true }: Shown = {}): Promise<Task> {
    const live = this.#lives.get(this.#records.keyOf(ownerOf(record), record.id))
    if (live) return this.live(live, { historyLength, artifacts })
    const known = artifacts ? await this.before(record, record.steps.length) : []
    return taskOf(record, known, await this.history(record, historyLength))
  }

  /** What the first responses of a task gave. */
  before(record: TaskRecord, count: number): Promise<Artifact[]> {
    return this.given(record, record.steps.slice(0, count))
  }

  /** What some responses of a task gave. */
  async given(record: TaskRecord, steps: readonly Step[]): Promise<Artifact[]> {
    const each = await Promise.all(
      steps.map(async ({ turn, quiet }) => {
        const stored = await this.#host.gateway.response(turn, ownerOf(record))
        return stored ? artifactsOf(turn, stored.output, quiet) : []
      }),
    )
    return each.flat()
  }

  async history(record: TaskRecord, length?: number): Promise<readonly Message[] | undefined> {
    return length === 0 ? undefined : this.#records.history(record, length)
  }

  /** The task before its response has said anything. */
  async opening(live: Live, { isNew, historyLength }: { isNew: boolean; historyLength: number | undefined }): Promise<Task> {
    const { atStart: record, index, step } = live
    const status = statusOf(isNew ? 'TASK_STATE_SUBMITTED' : 'TASK_STATE_WORKING', step.startedAt)
    const [artifacts, history] = await Promise.all([this.before(record, index), this.history(record, historyLength)])
    return taskOf({ ...record, status }, artifacts, history)
  }

  /** What the response of a live task has given so far, and the number of the last event of the log that it is made from. */
  async soFar({ session, record, index, step }: Live): Promise<SoFar> {
    const until = session.lastSeq
    if (until <= step.after) return { artifacts: [], seq: step.after, ended: false }
    const gathering = new Gathering()
    const narration = new Narration({ ...idsOf(record), index, step, known: 0, extras: false, now: this.#host.now })
    const reader = session.read({ after: step.after, extensions: 'all' })
    try {
      for await (const batch of reader) {
        narration.read(batch, gathering)
        if (narration.ended || narration.seq >= until) break
      }
    } finally {
      reader.close()
    }
    return { artifacts: gathering.artifacts(), seq: narration.seq, ended: narration.ended }
  }

  async #ofLive(live: Live): Promise<readonly Artifact[]> {
    if (live.artifacts) return live.artifacts
    return live.step.end ? this.given(live.record, [live.step]) : (await this.soFar(live)).artifacts
  }
}

interface SoFar {
  readonly artifacts: readonly Artifact[]
  readonly seq: number
  /** The response has ended meanwhile. */
  readonly ended: boolean
}

export function taskOf(record: TaskRecord, artifacts: readonly Artifact[], history: readonly Message[] | undefined): Task {
  const { id, contextId, metadata } = record
  return {
    id,
    contextId,
    status: record.status,
    ...(artifacts.length > 0 && { artifacts }),
    ...(history && { history }),
    ...(metadata && { metadata }),
  }
}
