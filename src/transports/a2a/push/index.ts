import type { Principal } from '../../../core/ports/access.ts'
import type { Host, KnownCall } from '../../../core/ports/transport.ts'
import { a2aError } from '../errors.ts'
import type { Generation, PushConfig, PushConfigs, StreamEvent, Task } from '../model.ts'
import { configChecker, type NewConfig } from './check.ts'
import { ConfigRecords } from './configs.ts'
import { PUSH_LIMITS, type PushLimits } from './limits.ts'
import { Notifier } from './notifier.ts'

export type { PushLimits } from './limits.ts'

/** Webhooks: where each task's updates are posted to, and the posting. */
export interface Push extends PushConfigs {
  /** False: there is nothing to call out with. Then everything but `notify` throws `PUSH_NOTIFICATION_NOT_SUPPORTED`. */
  readonly supported: boolean
  /** Throws what is wrong with a config, before anything is done for the request that brings it. */
  check(config: Omit<NewConfig, 'taskId'>): void
  /** As `set`, for a task that its owner has just made. To be awaited before the first event, so that none is missed. */
  attach(owner: Principal, config: NewConfig): Promise<PushConfig>
  /** Tells the task's webhooks. Returns at once, and never throws; a task without configs costs a look into a map. */
  notify(owner: Principal, of: Notified, event: StreamEvent): void
}

/** The task that an event is of. */
export interface Notified {
  readonly taskId: string
  readonly generation: Generation
  /** The task as it is when this is called; the event is already part of it. */
  readonly task: () => Promise<Task>
}

export interface PushOptions {
  /** Rejects with `TASK_NOT_FOUND` unless the task is the caller's. */
  readonly owned: (call: KnownCall, taskId: string) => Promise<unknown>
  /** How a generation before 1.0 writes a task. */
  readonly shape: (task: Task, generation: Generation) => object
  readonly limits?: Partial<PushLimits>
  readonly random?: () => number
}

export function createPush(host: Host, { owned, shape, random = Math.random, ...options }: PushOptions): Push {
  const limits = { ...PUSH_LIMITS, ...options.limits }
  const { outbound, keys } = host
  // Without a key their credentials could not be kept.
  if (!outbound || !keys) return unsupported
  const check = configChecker(outbound, limits)
  const records = new ConfigRecords({ store: host.store, keys }, limits)
  const notifier = new Notifier({ host, outbound, limits, shape, random, load: (owner, taskId) => records.all(owner, taskId) })

  async function attach(owner: Principal, config: NewConfig): Promise<PushConfig> {
    const checked = check(config)
    const stored = await records.set(owner, { ...checked, id: checked.id ?? host.newId(), taskId: config.taskId })
    notifier.changed(owner, stored.config.taskId, stored.all)
    return stored.config
  }

  return {
    supported: true,
    check: (config) => void check(config),
    attach,
    notify: (owner, of, event) => notifier.notify(owner, of, event),
    async set(call, config) {
      await owned(call, config.taskId)
      return attach(call.principal, config)
    },
    async get(call, { taskId, id }) {
      await owned(call, taskId)
      const all = await records.all(call.principal, taskId)
      // Generations before 1.0 may ask for "the" config; theirs has the task's id unless they gave it one.
      const found = id === undefined ? (all.find((config) => config.id === taskId) ?? all[0]) : all.find((config) => config.id === id)
      if (!found) throw a2aError('TASK_NOT_FOUND', `This task has no push notification config${id === undefined ? '' : ` "${id}"`}`)
      return found
    },
    async list(call, request) {
      await owned(call, request.taskId)
      return records.page(call.principal, request)
    },
    async delete(call, { taskId, id }) {
      await owned(call, taskId)
      notifier.changed(call.principal, taskId, await records.delete(call.principal, { taskId, id }))
    },
  }
}

function refuse(): never {
  throw a2aError('PUSH_NOTIFICATION_NOT_SUPPORTED', 'This server cannot call webhooks')
}

const refuseLater = async (): Promise<never> => refuse()

const unsupported: Push = {
  supported: false,
  check: refuse,
  attach: refuseLater,
  notify: () => undefined,
  set: refuseLater,
  get: refuseLater,
  list: refuseLater,
  delete: refuseLater,
}
