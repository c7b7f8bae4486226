import type { Principal } from '../../../core/ports/access.ts'
import type { Host } from '../../../core/ports/transport.ts'
import type { Artifact, Message, Task } from '../model.ts'
import { artifactsOf, Gathering } from './artifacts.ts'
import type { Live, Lives } from './live.ts'
import { Narration } from './narration.ts'
import { ownerOf, type Step, type TaskRecord, type TaskRecords } from './records.ts'
import { idsOf, notFound, statusOf } from './shared.ts'

export interface Shown {
  /** Undefined: all. 0: none. */
  readonly historyLength?: number | undefined
  /** Default: true. */
  readonly artifacts?: boolean
}

/** Tasks as they are shown: from what is stored, and of one that runs from its log. */
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
    if (live) return this.live(live)
    const found = await this.#records.find(owner, id)
    if (!found) throw notFound(id)
    return this.stored(found.record)
  }

  async live(live: Live, { historyLength, artifacts = true }: Shown = {}): Promise<Task> {
    const { record } = live
    const known = artifacts ? [...(await this.before(record, live.index)), ...(await this.#given(live))] : []
    return taskOf(record, known, await this.history(record, historyLength))
  }

  async stored(record: TaskRecord, { historyLength, artifacts = true }: Shown = {}): Promise<Task> {
    const live = this.#lives.get(this.#records.keyOf(ownerOf(record), record.id))
    if (live) return this.live(live, { historyLength, artifacts })
    const known = artifacts ? await this.before(record, record.steps.length) : []
    return taskOf(record, known, await this.history(record, historyLength))
  }

  /** What the first responses of a task gave. */
  async before(record: TaskRecord, count: number): Promise<Artifact[]> {
    const owner = ownerOf(record)
    const each = await Promise.all(record.steps.slice(0, count).map((step) => this.#of(step, owner)))
    return each.flat()
  }

  /** What the newest response of a task gave. */
  async newest(record: TaskRecord): Promise<Artifact[]> {
    const step = record.steps.at(-1)
    return step ? this.#of(step, ownerOf(record)) : []
  }

  async history(record: TaskRecord, length?: number): Promise<readonly Message[] | undefined> {
    return length === 0 ? undefined : this.#records.history(record, length)
  }

  /** The task before its response has said anything. */
  async opening(live: Live, { isNew, historyLength }: { isNew: boolean; historyLength: number | undefined }): Promise<Task> {
    const { record, index, step } = live
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

  async #given(live: Live): Promise<readonly Artifact[]> {
    if (live.artifacts) return live.artifacts
    return live.step.end ? this.#of(live.step, ownerOf(live.record)) : (await this.soFar(live)).artifacts
  }

  async #of({ turn, quiet }: Step, owner: Principal): Promise<Artifact[]> {
    const stored = await this.#host.gateway.response(turn, owner)
    return stored ? artifactsOf(turn, stored.output, quiet) : []
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
