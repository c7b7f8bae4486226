import type { Principal } from '../../../core/ports/access.ts'
import type { Batch, Reader, Session } from '../../../core/ports/session.ts'
import type { KnownCall } from '../../../core/ports/transport.ts'
import { RESPONSE_ENDS } from '../../../core/reading/ends.ts'
import { EVENTS_EXTENSION } from '../../../wire/a2a/extensions.ts'
import type { StreamBatch, StreamEvent, Task } from '../model.ts'
import { Gathering } from './artifacts.ts'
import type { Live } from './live.ts'
import { Narration } from './narration.ts'
import { ownerOf, type Step, type TaskRecord } from './records.ts'
import type { Shared } from './shared.ts'
import { taskOf } from './views.ts'

type Batches = AsyncGenerator<StreamBatch, StreamBatch | undefined>

/** Where a stream begins. */
export interface From {
  /** The response, by its place among those of the task. */
  readonly index: number
  /** Events of it up to this number of its log are left out. */
  readonly known: number
  /** The task is told first: as it was when the stream was asked for, or as it is, with everything before. */
  readonly opening?: Task | 'now'
  /** It also waits with a task that waits for its client. */
  readonly stays?: boolean
  /** Stands before the response that it begins with, where somebody has opened one. */
  readonly reader?: Reader | undefined
}

/** One client that follows one task, with a reader of its own. */
export class Following {
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
    this.#extras = wantsEvents(request.headers)
    this.#record = record
    this.#owner = ownerOf(record)
    this.#key = shared.records.keyOf(this.#owner, record.id)
  }

  /** From response to response, until the task has ended or waits for its client. What is returned belongs to the end. */
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

  /** Another response follows, or something that was none. */
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

  /** What ended the task when no response ran: a cancel. */
  #outside(index: number): StreamBatch | undefined {
    const { id: taskId, contextId, status, steps } = this.#record
    const isKnown = index >= steps.length || steps.at(-1)?.end?.state === status.state
    return isKnown ? undefined : single({ statusUpdate: { taskId, contextId, status } }, `${steps.length}.0`)
  }

  /** The rest of a response. */
  async *#tell(at: number, known: number): Batches {
    const step = this.#record.steps[at] as Step
    const live = this.#live(at)
    const open = await this.#open(step, live)
    if (!open) return this.#end(at)
    const narration = this.#narration(at, step, known)
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
    const step = this.#record.steps[at] as Step
    const live = this.#live(at)
    if (!live) {
      await this.#refresh()
      return single({ task: await views.stored(this.#record) })
    }
    const [before, history] = await Promise.all([views.before(this.#record, at), views.history(this.#record)])
    const until = live.session.lastSeq
    const reader = live.session.read({ after: step.after, extensions: 'all', signal: this.#signal })
    const narration = this.#narration(at, step, 0)
    const gathering = new Gathering()
    const task = (): StreamBatch => {
      const seq = Math.max(step.after, narration.seq)
      return single({ task: taskOf(this.#record, [...before, ...gathering.artifacts()], history) }, `${at}.${seq}`)
    }
    let told = until <= step.after
    if (told) yield task()
    try {
      for await (const batch of reader) {
        const ends = batch.has(RESPONSE_ENDS)
        if (told && ends) return await this.#last(at, { narration, batch, live })
        if (told) yield { visit: (visitor) => narration.read(batch, visitor) }
        else if (ends) {
          await live.ended.catch(() => undefined)
          this.#record = live.record
          return single({ task: await views.live(live) })
        } else {
          narration.read(batch, gathering)
          told = narration.seq >= until
          if (told) yield task()
        }
      }
      return undefined
    } finally {
      reader.close()
    }
  }

  /** The end of a response is told once the task's record has it: whoever then asks for the task gets the same. */
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

  /** Its log is gone: only how it ended is known. */
  #end(at: number): StreamBatch | undefined {
    const { id: taskId, contextId, steps } = this.#record
    const status = steps[at]?.end
    return status && single({ statusUpdate: { taskId, contextId, status } })
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
    const attached = live ? undefined : await this.#shared.host.gateway.attach(session, this.#owner)
    const reader = (live?.session ?? attached)?.read({ after, extensions: 'all', signal: this.#signal })
    return reader && { reader, attached }
  }

  #close({ reader, attached }: Opened): void {
    reader.close()
    const failed = (error: unknown): void =>
      this.#shared.host.log('error', 'A session could not be let go', { session: attached?.id, error })
    attached?.release().catch(failed)
  }

  #narration(index: number, step: Step, known: number): Narration {
    const { id: taskId, contextId } = this.#record
    return new Narration({ taskId, contextId, index, step, known, extras: this.#extras, now: this.#shared.host.now })
  }
}

interface Opened {
  readonly reader: Reader
  /** Found again for this reader alone. */
  readonly attached: Session | undefined
}

/** A batch of one event. */
export function single(event: StreamEvent, seq?: string): StreamBatch {
  return { visit: (visitor) => visitor.event(event, seq) }
}

/** Whether a client activated the extension: by today's header, or the one before 1.0. */
function wantsEvents(headers: Headers): boolean {
  const given = `${headers.get('a2a-extensions') ?? ''},${headers.get('x-a2a-extensions') ?? ''}`
  return given.split(',').some((uri) => uri.trim() === EVENTS_EXTENSION)
}
