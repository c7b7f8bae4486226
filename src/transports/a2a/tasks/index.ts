import { CORE_LIMITS } from '../../../core/basics/limits.ts'
import { unlessAborted } from '../../../core/basics/time.ts'
import { UampError } from '../../../protocol/errors.ts'
import type { Host, KnownCall } from '../../../core/ports/transport.ts'
import type { Generation, ListRequest, SendRequest, SendResult, SubscribeRequest, Task, TaskPage, TaskState, TaskStream } from '../model.ts'
import { begin } from './begin.ts'
import { cancel } from './cancel.ts'
import { begun, joined, only } from './following.ts'
import { list } from './list.ts'
import { KEEPER, Lives, recoverTask } from './live.ts'
import { reconcile } from './reconcile.ts'
import { idsOf, mustFindOwn, type Shared, type TaskPush, type TaskRecord, TaskRecords } from './records.ts'
import { Views } from './views.ts'

export type { TaskPush } from './records.ts'

export interface TasksOptions {
  /** How long a task is kept after its last change. Default: as long as a session. */
  readonly ttlMs?: number | undefined
}

/**
 * The tasks of one server, of all agents. Every binding of every generation calls these methods. A caller that does not own a task gets
 * `TASK_NOT_FOUND`.
 */
export class Tasks {
  readonly #shared: Shared
  #ready: Promise<void> | undefined

  constructor(host: Host, { ttlMs = CORE_LIMITS.sessionTtlMs }: TasksOptions, push: TaskPush) {
    const lives = new Lives()
    const records = new TaskRecords(host.store, ttlMs, host.keys)
    this.#shared = { host, lives, records, push, views: new Views(host, records, lives) }
    host.gateway.recoverWith(KEEPER, recoverTask(this.#shared))
    // Webhooks wait for it, also where nobody calls.
    const reconciled = host.started.then(() => this.#afterStart())
    reconciled.catch((error: unknown) => {
      if (!host.closing.aborted) host.log('error', 'Tasks that the last run left open could not be closed', { error })
    })
  }

  async send(call: KnownCall, request: SendRequest): Promise<SendResult> {
    await this.#afterStart()
    const { host, views } = this.#shared
    host.gateway.checkSlots(request)
    const set = await begin(this.#shared, call, { request, streaming: false })
    if ('message' in set) return { message: set.message }
    const { historyLength } = request
    if ('ended' in set) return { task: await views.stored(set.ended, { historyLength }) }
    // The task goes on without a client that has left.
    if (!request.returnImmediately) {
      await unlessAborted(set.live.ended, call.signal).catch((thrown: unknown) => {
        throw call.signal.aborted ? new UampError('cancelled', 'The client has left') : thrown
      })
    }
    return { task: await views.live(set.live, { historyLength }) }
  }

  async stream(call: KnownCall, request: SendRequest): Promise<TaskStream> {
    await this.#afterStart()
    const { host, views } = this.#shared
    host.gateway.checkSlots(request)
    const set = await begin(this.#shared, call, { request, streaming: true })
    if ('message' in set) return only({ taskId: set.taskId, contextId: set.message.contextId ?? '' }, { message: set.message })
    const { historyLength } = request
    if ('ended' in set) return only(idsOf(set.ended), { task: await views.stored(set.ended, { historyLength }) })
    return begun(this.#shared, call, { started: set, opening: await views.opening(set.live, { isNew: set.isNew, historyLength }) })
  }

  async get(call: KnownCall, { id, historyLength }: { readonly id: string; readonly historyLength?: number | undefined }): Promise<Task> {
    return this.#shared.views.stored(await this.#record(call, id), { historyLength })
  }

  /** The generation that made a task. */
  async generationOf(call: KnownCall, id: string): Promise<Generation> {
    return (await this.#record(call, id)).generation
  }

  async stateOf(call: KnownCall, id: string): Promise<TaskState> {
    return (await this.#record(call, id)).status.state
  }

  async list(call: KnownCall, request: ListRequest): Promise<TaskPage> {
    await this.#afterStart()
    return list(this.#shared, call, request)
  }

  async cancel(call: KnownCall, id: string): Promise<Task> {
    await this.#afterStart()
    return cancel(this.#shared, call, id)
  }

  async subscribe(call: KnownCall, { id, after, stays }: SubscribeRequest): Promise<TaskStream> {
    return joined(this.#shared, call, { record: await this.#record(call, id), after, stays })
  }

  async #record(call: KnownCall, id: string): Promise<TaskRecord> {
    await this.#afterStart()
    return (await mustFindOwn(this.#shared, call, id)).record
  }

  /** What a crash left open is closed before anybody is told about it. */
  #afterStart(): Promise<void> {
    this.#ready ??= reconcile(this.#shared).catch((thrown: unknown) => {
      this.#ready = undefined
      throw thrown
    })
    return this.#ready
  }
}
