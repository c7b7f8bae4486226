import type { Principal } from '../../../core/ports/access.ts'
import type { Batch, Reader, Session } from '../../../core/ports/session.ts'
import type { KnownCall } from '../../../core/ports/transport.ts'
import { RESPONSE_ENDS } from '../../../core/reading/response-fold.ts'
import { EVENTS_EXTENSION } from '../../../wire/a2a/extensions.ts'
import { a2aError } from '../errors.ts'
import { TERMINAL, type StreamBatch, type StreamEvent, type SubscribeRequest, type Task, type TaskStream } from '../model.ts'
import { extensionsIn } from '../request.ts'
import type { Started } from './begin.ts'
import type { Live } from './live.ts'
import { Narration } from './narration.ts'
import { idsOf, ownerOf, type Shared, type Step, type TaskRecord } from './records.ts'
import { taskOf } from './views.ts'

type Batches = AsyncGenerator<StreamBatch, StreamBatch | undefined>

/** The id of an event: the place of its response in the task, and its number in the log. */
const EVENT_ID = /^(\d{1,6})\.(\d{1,15})$/

/** The stream of a task that has just begun, or goes on. */
export function begun(shared: Shared, call: KnownCall, { started, opening }: { started: Started; opening: Task }): TaskStream {
  const { live, reader } = started
  return stream(shared, call, { record: live.record, from: { index: live.index, known: 0, opening, reader } })
}

type Joining = Omit<SubscribeRequest, 'id'> & { readonly record: TaskRecord }

/** The stream of a task from now on, which begins with the task itself; or from after an event that the client has. */
export async function joined(shared: Shared, call: KnownCall, { record, after, stays }: Joining): Promise<TaskStream> {
  const [, index, known] = EVENT_ID.exec(after ?? '') ?? []
  // An id that is no event of this task does not tell what the client has.
  if (index !== undefined && Number(index) <= record.steps.length) {
    return stream(shared, call, { record, from: { index: Number(index), known: Number(known), stays } })
  }
  if (TERMINAL.has(record.status.state)) {
    if (!stays) return only(idsOf(record), { task: await shared.views.stored(record) })
    throw a2aError('UNSUPPORTED_OPERATION', `Task "${record.id}" has ended: get it instead`, { taskId: record.id })
  }
  return stream(shared, call, { record, from: { index: record.steps.length - 1, known: 0, opening: 'now', stays } })
}

function stream(shared: Shared, call: KnownCall, { record, from }: { record: TaskRecord; from: From }): TaskStream {
  return { ...idsOf(record), batches: new Following(shared, call, record).batches(from) }
}

/** A stream of one event: a message, or a task that is over. */
export function only(ids: { readonly taskId: string; readonly contextId: string }, event: StreamEvent): TaskStream {
  return { ...ids, batches: { [Symbol.asyncIterator]: () => ({ next: async () => ({ done: true, value: single(event) }) }) } }
}

/** Where a stream begins. */
interface From {
  /** The response, by its place among those of the task. */
  readonly index: number
  /** Events up to this number of its log are left out. */
  readonly known: number
  /** The task comes first: as it was when the stream was asked for, or as it is now. */
  readonly opening?: Task | 'now'
  /** The stream stays open while the task waits for its client. */
  readonly stays?: boolean
  /** Stands before the first response, where one is open already. */
  readonly reader?: Reader | undefined
}

/** One client that follows one task, with a reader of its own. */
class Following {
  readonly #shared: Shared
  readonly #signal: AbortSignal
  readonly #extras: boolean
  readonly #key: string
  readonly #owner: Principal
  #stays = false
  #record: TaskRecord
  #opened: Reader | undefined

  constructor(shared: Shared, { signal, request }: KnownCall, record: TaskRecord) {
    this.#shared = shared
    this.#signal = signal
    this.#extras = extensionsIn(request.headers).has(EVENTS_EXTENSION)
    this.#record = record
    this.#owner = ownerOf(record)
    this.#key = shared.records.keyOf(this.#owner, record.id)
  }

  /** From response to response, until the task has ended or waits for its client. The batch that is returned belongs to the end. */
  async *batches({ index, known, opening, reader, stays = false }: From): Batches {
    this.#opened = reader
    this.#stays = stays
    if (opening !== undefined && opening !== 'now') yield single({ task: opening }, `${index}.${this.#record.steps[index]?.after}`)
    for (let at = index; at < this.#record.steps.length; at++) {
      const begins = at === index
      const last = begins && opening === 'now' ? yield* this.#join(at) : yield* this.#tell(at, begins ? known : 0)
      if (!this.#waits(at) && !this.#goesOn(at)) return last
      if (last) yield last
      for (await this.#refresh(); this.#waits(at) && !this.#signal.aborted; await this.#refresh()) {
        await this.#shared.lives.next(this.#key, this.#signal)
      }
      if (this.#signal.aborted) return undefined
    }
    return this.#outside(index)
  }

  /** Another response follows, or a cancel. */
  #goesOn(at: number): boolean {
    const { steps, status } = this.#record
    return at + 1 < steps.length || (steps[at]?.end !== undefined && steps[at].end.state !== status.state)
  }

  /** A2A §7.6.1: while somebody signs in elsewhere the stream stays open. */
  #waits(at: number): boolean {
    const { steps, status } = this.#record
    if (at + 1 !== steps.length) return false
    return status.state === 'TASK_STATE_AUTH_REQUIRED' || (this.#stays && status.state === 'TASK_STATE_INPUT_REQUIRED')
  }

  /** The cancel that ended the task when no response ran. */
  #outside(index: number): StreamBatch | undefined {
    const { status, steps } = this.#record
    const isKnown = index >= steps.length || steps.at(-1)?.end?.state === status.state
    return isKnown ? undefined : single({ statusUpdate: { ...idsOf(this.#record), status } }, `${steps.length}.0`)
  }

  /** The rest of a response. */
  async *#tell(at: number, known: number): Batches {
    const step = this.#record.steps[at] as Step
    const live = this.#live(at)
    const open = await this.#open(step, live)
    if (!open) return this.#end(at)
    const { now } = this.#shared.host
    const narration = new Narration({ ...idsOf(this.#record), index: at, step, known, extras: this.#extras, now })
    try {
      for await (const batch of open.reader) {
        if (batch.has(RESPONSE_ENDS)) return await this.#last(at, { narration, batch, live })
        yield { visit: (visitor) => narration.read(batch, visitor) }
      }
      return undefined
    } finally {
      this.#close(open)
    }
  }

  /** The task as it is, and then the rest of its response. */
  async *#join(at: number): Batches {
    const { views } = this.#shared
    const live = this.#live(at)
    if (!live) {
      await this.#refresh()
      return single({ task: await views.stored(this.#record) })
    }
    const record = this.#record
    const [before, history] = await Promise.all([views.before(record, at), views.history(record)])
    const { artifacts, seq, ended: isOver } = await views.soFar(live)
    if (isOver) {
      await live.ended.catch(() => undefined)
      this.#record = live.record
      return single({ task: await views.live(live) })
    }
    yield single({ task: taskOf(record, [...before, ...artifacts], history) }, `${at}.${seq}`)
    return yield* this.#tell(at, seq)
  }

  /** The end of a response is told once the task's record has it, so that a client which then asks for the task gets the same. */
  async #last(
    at: number,
    { narration, batch, live }: { narration: Narration; batch: Batch; live: Live | undefined },
  ): Promise<StreamBatch> {
    await live?.ended.catch(() => undefined)
    if (live) this.#record = live.record
    else await this.#refresh()
    narration.left = this.#record.steps[at]
    return { visit: (visitor) => narration.read(batch, visitor) }
  }

  /** The log is gone, so only how the response ended is known. */
  #end(at: number): StreamBatch | undefined {
    const status = this.#record.steps[at]?.end
    return status && single({ statusUpdate: { ...idsOf(this.#record), status } })
  }

  #live(at: number): Live | undefined {
    const live = this.#shared.lives.get(this.#key)
    return live?.index === at ? live : undefined
  }

  async #refresh(): Promise<void> {
    const { lives, records } = this.#shared
    const live = lives.get(this.#key)
    this.#record = live?.record ?? (await records.find(this.#owner, this.#record.id))?.record ?? this.#record
  }

  async #open({ session, after }: Step, live: Live | undefined): Promise<Opened | undefined> {
    const opened = this.#opened
    this.#opened = undefined
    if (opened) return { reader: opened, attached: undefined }
    const attached = live ? undefined : await this.#shared.host.gateway.attach(session, this.#owner, 'read')
    const reader = (live?.session ?? attached)?.read({ after, extensions: 'all', signal: this.#signal })
    return reader && { reader, attached }
  }

  #close({ reader, attached }: Opened): void {
    reader.close()
    const failed = (error: unknown): void =>
      this.#shared.host.log('error', 'A session could not be let go', { session: attached?.id, error })
    attached?.release().catch(failed)
  }
}

interface Opened {
  readonly reader: Reader
  /** Found again for this reader alone. */
  readonly attached: Session | undefined
}

/** A batch of one event. */
function single(event: StreamEvent, seq?: string): StreamBatch {
  return { visit: (visitor) => visitor.event(event, seq) }
}
