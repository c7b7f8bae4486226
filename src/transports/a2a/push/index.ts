import type { Principal } from '../../../core/ports/access.ts'
import type { Host, KnownCall } from '../../../core/ports/transport.ts'
import { a2aError } from '../errors.ts'
import { TERMINAL, type Generation, type PushConfig, type PushConfigs, type StreamEvent, type Task, type TaskState } from '../model.ts'
import { configChecker, type NewConfig } from './check.ts'
import { ConfigRecords } from './configs.ts'
import { Debts, type Debt } from './debts.ts'
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
  /** A task is about to be closed for a process that died: its webhooks, if it has any, are owed that. */
  owe(owner: Principal, taskId: string): Promise<void>
  /** Tasks whose webhooks may not have been told of the status that they have. */
  debts(): AsyncIterable<Debt>
  /** There is no such task any more. */
  forgive(owner: Principal, taskId: string): Promise<void>
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
  /** The state of the caller's task. Rejects with `TASK_NOT_FOUND` unless it is theirs. */
  readonly owned: (call: KnownCall, taskId: string) => Promise<TaskState>
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
  const debts = new Debts(host.store, limits.ttlMs)
  const load = (owner: Principal, taskId: string): Promise<readonly PushConfig[]> => records.all(owner, taskId)
  const notifier = new Notifier({ host, outbound, limits, shape, random, load, settle: (...told) => debts.settle(...told) })

  async function attach(owner: Principal, config: NewConfig): Promise<PushConfig> {
    const checked = check(config)
    // Before the config: one that is never told of its task's end is worse than a debt to nobody.
    await debts.owe(owner, config.taskId)
    return store(owner, config.taskId, checked)
  }

  async function store(owner: Principal, taskId: string, checked: Omit<NewConfig, 'taskId'>): Promise<PushConfig> {
    const stored = await records.set(owner, { ...checked, id: checked.id ?? host.newId(), taskId })
    notifier.changed(owner, taskId, stored.all)
    return stored.config
  }

  return {
    supported: true,
    check: (config) => void check(config),
    attach,
    notify: (owner, of, event) => notifier.notify(owner, of, event),
    async owe(owner, taskId) {
      if ((await load(owner, taskId)).length > 0) await debts.owe(owner, taskId)
    },
    async *debts() {
      for await (const debt of debts.all()) {
        const { owner, taskId } = debt
        if ((await load(owner, taskId)).length > 0) yield debt
        else await debts.forgive(owner, taskId)
      }
    },
    forgive: (owner, taskId) => debts.forgive(owner, taskId),
    async set(call, config) {
      const state = await owned(call, config.taskId)
      // Whoever asks after the end knows it.
      return TERMINAL.has(state) ? store(call.principal, config.taskId, check(config)) : attach(call.principal, config)
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
      const left = await records.delete(call.principal, { taskId, id })
      notifier.changed(call.principal, taskId, left)
      if (left.length === 0) await debts.forgive(call.principal, taskId)
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
  owe: async () => undefined,
  debts: async function* () {},
  forgive: async () => undefined,
  set: refuseLater,
  get: refuseLater,
  list: refuseLater,
  delete: refuseLater,
}
