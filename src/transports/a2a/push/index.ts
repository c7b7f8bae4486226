import type { Principal } from '../../../core/ports/access.ts'
import type { Host, KnownCall } from '../../../core/ports/transport.ts'
import { a2aError } from '../errors.ts'
import { TERMINAL, type Generation, type NewPushConfig, type PushConfig, type StreamEvent, type Task, type TaskState } from '../model.ts'
import { checkConfig, ConfigRecords, shown, type ConfigPage, type KeptConfig, type ListRequest } from './configs.ts'
import { Debts, type Debt } from './debts.ts'
import { PUSH_LIMITS, type PushLimits } from './limits.ts'
import { Notifier } from './notifier.ts'

export type { ConfigPage } from './configs.ts'
export type { PushLimits } from './limits.ts'

/** Webhooks: where each task's updates are posted to, and the posting. The calls of clients check first that the task is the caller's. */
export interface Push {
  set(call: KnownCall, config: SetConfig): Promise<PushConfig>
  get(call: KnownCall, request: { readonly taskId: string; readonly id?: string | undefined }): Promise<PushConfig>
  list(call: KnownCall, request: ListRequest): Promise<ConfigPage>
  delete(call: KnownCall, request: Pick<PushConfig, 'taskId' | 'id'>): Promise<void>
  /** Throws what is wrong with a config, before anything is done for the request that brings it. */
  check(config: Omit<NewPushConfig, 'taskId'>): void
  /** As `set`, for a task that its owner has just made. Await it before the first event, so that none is missed. */
  attach(owner: Principal, config: SetConfig): Promise<PushConfig>
  /** Instead of `attach`, for a new task without a config: the store need not be asked for them. */
  none(owner: Principal, taskId: string): void
  /** Before a task is closed for a process that died: its webhooks, if it has any, are told, if need be after the next start. */
  owe(owner: Principal, taskId: string): Promise<void>
  /** Tasks whose webhooks may not know their newest status. */
  debts(): AsyncIterable<Debt>
  /** The task no longer exists. */
  forgive(owner: Principal, taskId: string): Promise<void>
  /**
   * Tells the task's webhooks of a change of its state, or of an artifact that is whole. Returns at once, and never throws; a task
   * without configs costs a look into a map.
   */
  notify(owner: Principal, of: Notified, event: StreamEvent): void
}

/** A config, and the generation whose method sets it. */
type SetConfig = NewPushConfig & Required<Pick<KeptConfig, 'generation'>>

/** The task that an event belongs to. */
export interface Notified {
  readonly taskId: string
  readonly generation: Generation
  /** The task as it is when this is called; the event is already part of it. */
  readonly task: () => Promise<Task>
}

export interface PushOptions {
  /** The state of the caller's task. Rejects with `TASK_NOT_FOUND` unless it is theirs. */
  readonly owned: (call: KnownCall, taskId: string) => Promise<TaskState>
  /** A task as its generation writes it. */
  readonly shape: (task: Task, generation: Generation) => object
  readonly limits: Partial<PushLimits> | undefined
}

export function createPush(host: Host, { owned, shape, ...options }: PushOptions): Push {
  const limits = { ...PUSH_LIMITS, ...options.limits }
  const { outbound, keys } = host
  // Credentials of webhooks are sealed before they are stored, which takes a key.
  if (!outbound || !keys) return unsupported
  const check = (config: Omit<NewPushConfig, 'taskId'>): void => checkConfig(config, outbound, limits)
  const records = new ConfigRecords({ store: host.store, keys, limits })
  const debts = new Debts(host.store, limits.ttlMs)
  const notifier = new Notifier({ host, outbound, limits, shape, records, debts })

  async function attach(owner: Principal, config: SetConfig): Promise<PushConfig> {
    check(config)
    // Before the config: a webhook that never hears of its task's end is worse than a debt to nobody.
    await debts.owe(owner, config.taskId)
    return store(owner, config)
  }

  async function store(owner: Principal, given: SetConfig): Promise<PushConfig> {
    const config = { ...given, id: given.id ?? host.newId() }
    notifier.changed(owner, config.taskId, await records.set(owner, config))
    return shown(config)
  }

  return {
    async set(call, config) {
      const state = await owned(call, config.taskId)
      if (!TERMINAL.has(state)) return attach(call.principal, config)
      // The task is over, and its webhooks are told nothing more.
      check(config)
      return store(call.principal, config)
    },
    async get(call, { taskId, id }) {
      await owned(call, taskId)
      const all = await records.all(call.principal, taskId)
      // Clients before 1.0 may ask for "the" config; it has the task's id unless they gave it another.
      const found = id === undefined ? (all.find((config) => config.id === taskId) ?? all[0]) : all.find((config) => config.id === id)
      if (!found) throw a2aError('TASK_NOT_FOUND', `This task has no push notification config${id === undefined ? '' : ` "${id}"`}`)
      return shown(found)
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
    check,
    attach,
    async owe(owner, taskId) {
      if ((await records.all(owner, taskId)).length > 0) await debts.owe(owner, taskId)
    },
    async *debts() {
      for await (const debt of debts.all()) {
        const { owner, taskId } = debt
        if ((await records.all(owner, taskId)).length > 0) yield debt
        else await debts.forgive(owner, taskId)
      }
    },
    forgive: (owner, taskId) => debts.forgive(owner, taskId),
    none: notifier.none,
    notify: notifier.notify,
  }
}

function refuse(): never {
  throw a2aError('PUSH_NOTIFICATION_NOT_SUPPORTED', 'This server cannot call webhooks')
}

const refuseLater = async (): Promise<never> => refuse()

const unsupported: Push = {
  set: refuseLater,
  get: refuseLater,
  list: refuseLater,
  delete: refuseLater,
  check: refuse,
  attach: refuseLater,
  owe: async () => undefined,
  debts: async function* () {},
  forgive: async () => undefined,
  none: () => undefined,
  notify: () => undefined,
}
