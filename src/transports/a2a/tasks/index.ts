import { CORE_LIMITS } from '../../../core/basics/limits.ts'
import type { Host, KnownCall } from '../../../core/ports/transport.ts'
import { UampError } from '../../../protocol/errors.ts'
import type { SendRequest, SendResult, Task, Tasks, TaskStream } from '../model.ts'
import { begin, type Started } from './begin.ts'
import { cancel } from './cancel.ts'
import { recoverTask } from './closing.ts'
import { list } from './list.ts'
import { Lives } from './lives.ts'
import { mustFindOwn } from './own.ts'
import { reconcile } from './reconcile.ts'
import { TaskRecords } from './records.ts'
import { KEEPER, statusOf, type Shared, type TaskPush } from './shared.ts'
import { answered, begun, ended, joined } from './streams.ts'
import { Views } from './views.ts'

export type { TaskPush } from './shared.ts'

export interface TasksOptions {
  /** How long a task is kept after its last change. Default: as long as a session. */
  readonly ttlMs?: number
}

/** The tasks of one server: one for all agents, as it knows what runs. */
export function createTasks(host: Host, { ttlMs = CORE_LIMITS.sessionTtlMs }: TasksOptions, push: TaskPush): Tasks {
  const lives = new Lives()
  const records = new TaskRecords(host.store, ttlMs, host.keys)
  const shared: Shared = { host, lives, records, push, views: new Views(host, records, lives) }
  host.gateway.recoverWith(KEEPER, recoverTask(shared))
  let ready: Promise<void> | undefined
  // Also where nobody calls: webhooks wait for it.
  host.started.then(afterStart).catch((error: unknown) => {
    if (!host.closing.aborted) host.log('error', 'Tasks that the last run left open could not be closed', { error })
  })

  /** What a crash left is put in order before anybody is told about it. */
  async function afterStart(): Promise<void> {
    ready ??= reconcile(shared).catch((thrown: unknown) => {
      ready = undefined
      throw thrown
    })
    return ready
  }

  return {
    async send(call, request) {
      await afterStart()
      return send(shared, call, request)
    },
    async stream(call, request) {
      await afterStart()
      return stream(shared, call, request)
    },
    async get(call, { id, historyLength }) {
      await afterStart()
      return shared.views.stored((await mustFindOwn(shared, call, id)).record, { historyLength })
    },
    async generationOf(call, id) {
      await afterStart()
      return (await mustFindOwn(shared, call, id)).record.generation
    },
    async stateOf(call, id) {
      await afterStart()
      return (await mustFindOwn(shared, call, id)).record.status.state
    },
    async list(call, request) {
      await afterStart()
      return list(shared, call, request)
    },
    async cancel(call, { id }) {
      await afterStart()
      return cancel(shared, call, id)
    },
    async subscribe(call, { id, after, stays = false }) {
      await afterStart()
      const { record } = await mustFindOwn(shared, call, id)
      return joined(shared, call, { record, after, stays })
    },
  }
}

async function send(shared: Shared, call: KnownCall, request: SendRequest): Promise<SendResult> {
  shared.host.gateway.checkSlots(request)
  const set = await begin(shared, call, { request, streaming: false })
  if ('message' in set) return { message: set.message }
  const { historyLength } = request
  if ('ended' in set) return { task: await shared.views.stored(set.ended, { historyLength }) }
  if (!request.returnImmediately) await orGone(set.live.ended, call.signal)
  return { task: await shared.views.live(set.live, { historyLength }) }
}

async function stream(shared: Shared, call: KnownCall, request: SendRequest): Promise<TaskStream> {
  shared.host.gateway.checkSlots(request)
  const set = await begin(shared, call, { request, streaming: true })
  if ('message' in set) return answered(set.taskId, set.message)
  const { historyLength } = request
  if ('ended' in set) return ended(await shared.views.stored(set.ended, { historyLength }))
  return begun(shared, call, { started: set, opening: await opening(shared, set, historyLength) })
}

/** The task before its response has said anything. */
async function opening({ views }: Shared, { live, isNew }: Started, historyLength: number | undefined): Promise<Task> {
  const { record, index, step } = live
  const { id, contextId, metadata } = record
  const [artifacts, history] = await Promise.all([views.before(record, index), views.history(record, historyLength)])
  return {
    id,
    contextId,
    status: isNew ? statusOf('TASK_STATE_SUBMITTED', step.startedAt) : statusOf('TASK_STATE_WORKING', step.startedAt),
    ...(artifacts.length > 0 && { artifacts }),
    ...(history && { history }),
    ...(metadata && { metadata }),
  }
}

/** Waits for a task, but not for a client that has left. The task goes on. */
async function orGone(done: Promise<void>, signal: AbortSignal): Promise<void> {
  let leave: () => void = () => undefined
  const gone = new Promise<never>((_, reject) => {
    leave = () => reject(new UampError('cancelled', 'The client has left'))
  })
  signal.addEventListener('abort', leave)
  if (signal.aborted) leave()
  try {
    await Promise.race([done, gone])
  } finally {
    signal.removeEventListener('abort', leave)
  }
}
