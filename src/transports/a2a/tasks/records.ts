import { onBehalfOf } from '../../../core/basics/principal.ts'
import type { Principal } from '../../../core/ports/access.ts'
import type { Keys } from '../../../core/ports/keys.ts'
import type { Operation, Page, Place, SetOperation, Store } from '../../../core/ports/store.ts'
import type { Host, KnownCall } from '../../../core/ports/transport.ts'
import { Sealing } from '../../../core/secrets/sealing.ts'
import { goesWith, storeKey } from '../../../core/basics/store-key.ts'
import { weigh } from '../../../core/basics/weight.ts'
import { isRecord, type Json } from '../../../protocol/json.ts'
import { a2aError } from '../errors.ts'
import type { Generation, Message, StreamEvent, Struct, TaskState, TaskStatus } from '../model.ts'
import type { Push } from '../push/index.ts'
import { agentOf } from '../request.ts'
import type { Lives } from './live.ts'
import type { Views } from './views.ts'

/** One response of a task. Each message to the task adds one. */
export interface Step {
  readonly session: string
  readonly turn: string
  /** Its events are those of the session's log after this number, up to its end. */
  readonly after: number
  readonly startedAt: number
  /** The status that it left the task in; undefined while it runs. */
  readonly end?: TaskStatus
  /** It ended with questions that have no answers yet. */
  readonly waits?: true
  /** Its text is the message of its status, and was not streamed. */
  readonly quiet?: true
}

export interface TaskRecord {
  readonly id: string
  readonly contextId: string
  readonly agent: string
  readonly tenant: string
  readonly owner: string
  readonly generation: Generation
  readonly createdAt: number
  /** When the status changed. Lists are in this order. */
  readonly updatedAt: number
  readonly status: TaskStatus
  readonly steps: readonly Step[]
  /** The number of messages in its history. */
  readonly messages: number
  /** The first messages, as long as they are small. Later ones have records of their own. */
  readonly history?: readonly Message[]
  readonly metadata?: Struct
}

export interface Found {
  readonly record: TaskRecord
  readonly version: number
}

/** Selects tasks of a caller. */
export interface Filter {
  readonly agent: string
  readonly contextId?: string | undefined
  readonly state?: TaskState | undefined
}

/** The index in which version 0.1 listed running tasks. */
const LIVE_BEFORE = 'a2a-live'

/** Bytes of messages that stand in the record of their task. */
const INLINE_BYTES = 8 * 1024

/** A search for the last ended task of a context reads so many tasks at once, so often. If it finds none, the conversation begins anew. */
const FEW = 4
const PAGES = 25

interface ContextRecord {
  readonly turn: string
  readonly at: number
}

/** Messages of a task that are shown at most. */
const HISTORY = 1000

/** A text that sorts as the number does. */
const sortable = (number: number, digits = 15): string => String(number).padStart(digits, '0')

export const isRunning = ({ status }: TaskRecord): boolean =>
  status.state === 'TASK_STATE_WORKING' || status.state === 'TASK_STATE_SUBMITTED'

export const ownerOf = ({ tenant, owner }: Pick<TaskRecord, 'tenant' | 'owner'>): Principal => onBehalfOf(tenant, owner)

/** The keys and shapes under which tasks, their messages and their contexts are stored. Every key begins with the tenant and the owner. */
export class TaskRecords {
  readonly store: Store
  readonly #ttlMs: number
  readonly #sealing: Sealing

  constructor(store: Store, ttlMs: number, keys: Keys | undefined) {
    this.store = store
    this.#sealing = new Sealing(keys)
    this.#ttlMs = ttlMs
  }

  /** The key of a task in the store and in memory. */
  keyOf({ tenant, id: owner }: Principal, task: string): string {
    return storeKey(tenant, 'a2a-task', owner, task)
  }

  async find(owner: Principal, task: string): Promise<Found | undefined> {
    const stored = await this.store.get(this.keyOf(owner, task))
    return stored && { record: stored.value as unknown as TaskRecord, version: stored.version }
  }

  set(record: TaskRecord, ifVersion?: number): SetOperation {
    const { agent, contextId, status, updatedAt } = record
    const { state } = status
    const sort = sortable(updatedAt)
    const all = indexOf(record, { agent })
    const ofContext = all + inContext(contextId)
    const lists = [all, ofContext, all + inState(state), ofContext + inState(state)]
    const index = [...lists.map((name): Place => [name, sort]), ...withSession(record)]
    return {
      op: 'set',
      key: this.keyOf(ownerOf(record), record.id),
      value: record as unknown as Json,
      options: { ttlMs: this.#ttlMs, index, ...(ifVersion !== undefined && { ifVersion }) },
    }
  }

  /** The message as it is kept and shown, with a digest in place of a payment. The session has the payment as long as it needs it. */
  settled(message: Message): Message {
    const { metadata, parts } = message
    return {
      ...message,
      ...(metadata && { metadata: this.#sealing.digest(metadata) }),
      parts: parts.map((part) => ({
        ...part,
        ...(isPayment(part.data) && { data: this.#sealing.digest(part.data) }),
        ...(part.metadata && { metadata: this.#sealing.digest(part.metadata) }),
      })),
    }
  }

  /** The same for the metadata of a request. */
  settledMetadata(metadata: Struct): Struct {
    return this.#sealing.digest(metadata)
  }

  /** The task with more messages in its history, and the operations for those that have records of their own. */
  withMessages(record: TaskRecord, added: readonly Message[]): { record: TaskRecord; operations: Operation[] } {
    const { messages: count, history = [] } = record
    if (added.length === 0) return { record, operations: [] }
    const messages = count + added.length
    const all = [...history, ...added]
    if (history.length === count && weigh(all, INLINE_BYTES) <= INLINE_BYTES) {
      return { record: { ...record, messages, history: all }, operations: [] }
    }
    return { record: { ...record, messages }, operations: added.map((each, index) => this.#setMessage(record, count + 1 + index, each)) }
  }

  /** A message of a task's history, the `number`th. */
  #setMessage(record: TaskRecord, number: number, message: Message): Operation {
    const { tenant, owner, id } = record
    return {
      op: 'set',
      key: storeKey(tenant, 'a2a-message', owner, id, String(number)),
      value: message as unknown as Json,
      options: { ttlMs: this.#ttlMs, index: [[this.#history(record), sortable(number, 9)], ...withSession(record)] },
    }
  }

  /** The last messages of a task, oldest first. */
  async history(record: TaskRecord, length = HISTORY): Promise<readonly Message[]> {
    const { history = [], messages } = record
    if (length <= 0) return []
    if (history.length === messages) return history.slice(-length)
    const { items } = await this.store.list(this.#history(record), { limit: Math.min(length, HISTORY), descending: true })
    return [...history, ...items.map(({ value }) => value as unknown as Message).reverse()].slice(-length)
  }

  /** Keeps a response that was no task, so that the next task of its context goes on from it. */
  setContext({ tenant, owner, agent, contextId }: TaskRecord, turn: string, at: number): Operation {
    const key = storeKey(tenant, 'a2a-context', owner, agent, contextId)
    return { op: 'set', key, value: { turn, at }, options: { ttlMs: this.#ttlMs } }
  }

  /** The response that the next task of a context goes on from: the last one that ended and does not wait for answers. */
  async context(owner: Principal, agent: string, contextId: string): Promise<string | undefined> {
    const [stored, task] = await Promise.all([
      this.store.get(storeKey(owner.tenant, 'a2a-context', owner.id, agent, contextId)),
      this.#lastEnded(owner, { agent, contextId }),
    ])
    // Version 0.1 also wrote such a record for each task, without a time.
    const direct = typeof stored?.value === 'string' ? { turn: stored.value, at: 0 } : (stored?.value as ContextRecord | undefined)
    return direct && (!task || direct.at > task.updatedAt) ? direct.turn : task?.steps.at(-1)?.turn
  }

  async #lastEnded(owner: Principal, filter: Filter): Promise<TaskRecord | undefined> {
    let after: string | undefined
    for (let pages = 0; pages < PAGES; pages++) {
      const page = await this.list(owner, filter, { limit: FEW, ...(after !== undefined && { after }) })
      const found = page.items.find(({ steps }) => steps.at(-1)?.end && !steps.at(-1)?.waits)
      if (found || (after = page.next) === undefined) return found
    }
    return undefined
  }

  /** The newest status first. */
  async list(owner: Principal, filter: Filter, page: { readonly after?: string; readonly limit: number }): Promise<Page<TaskRecord>> {
    const found = await this.store.list(indexOf({ tenant: owner.tenant, owner: owner.id }, filter), { ...page, descending: true })
    return { items: found.items.map(({ value }) => value as unknown as TaskRecord), next: found.next }
  }

  /** The number of tasks; with `since`, of those whose status is as new or newer. */
  count(owner: Principal, filter: Filter, since: number | undefined): Promise<number> {
    const from = since === undefined ? undefined : sortable(Math.max(0, since))
    return this.store.count(indexOf({ tenant: owner.tenant, owner: owner.id }, filter), from === undefined ? {} : { from })
  }

  /** Every task that version 0.1 left running. */
  async *leftRunning(): AsyncGenerator<TaskRecord, void> {
    for (let after: string | undefined; ;) {
      const page = await this.store.list(LIVE_BEFORE, after === undefined ? {} : { after })
      for (const { value } of page.items) yield value as unknown as TaskRecord
      if ((after = page.next) === undefined) return
    }
  }

  #history({ tenant, owner, id }: TaskRecord): string {
    return storeKey(tenant, 'a2a-history', owner, id)
  }
}

/** A record is deleted with the newest session of its task, which has what came of it. */
function withSession({ tenant, steps }: TaskRecord): Place[] {
  const last = steps.at(-1)
  return last ? [[goesWith(tenant, last.session), '']] : []
}

/** Other data belongs to the client, whatever its fields are called. */
function isPayment(data: Json | undefined): data is Struct {
  return isRecord(data) && data['type'] === 'payment.submit'
}

/** The words keep filters apart: a context may have the name of a state. */
const inContext = (contextId: string): string => `/context/${storeKey(contextId)}`
const inState = (state: TaskState): string => `/state/${state}`

function indexOf({ tenant, owner }: Pick<TaskRecord, 'tenant' | 'owner'>, { agent, contextId, state }: Filter): string {
  const context = contextId === undefined ? '' : inContext(contextId)
  return storeKey(tenant, 'a2a-tasks', owner, agent) + context + (state === undefined ? '' : inState(state))
}

/** What tasks need of push notifications. */
export type TaskPush = Omit<Push, 'set' | 'get' | 'list' | 'delete'>

/** What the parts of the engine share. */
export interface Shared {
  readonly host: Host
  readonly records: TaskRecords
  readonly lives: Lives
  readonly views: Views
  readonly push: TaskPush
}

/** A task of the caller and of the agent that the call is for. Others are not found, so that nobody learns whether they exist. */
export async function findOwn(shared: Shared, call: KnownCall, id: string): Promise<Found | undefined> {
  const { records, lives, host } = shared
  if (!id.isWellFormed()) return undefined
  const agent = agentOf(host, call).name
  const live = lives.get(records.keyOf(call.principal, id))
  // Only the live task itself writes its record, so nobody else needs the version.
  const found = live ? { record: live.record, version: 0 } : await records.find(call.principal, id)
  // A task that is about to begin has no response yet.
  if (found?.record.steps.length === 0) return undefined
  return found?.record.agent === agent ? found : undefined
}

export async function mustFindOwn(shared: Shared, call: KnownCall, id: string): Promise<Found> {
  const found = await findOwn(shared, call, id)
  if (!found) throw notFound(id)
  return found
}

export function notFound(id: string): Error {
  return a2aError('TASK_NOT_FOUND', `Task "${id.slice(0, 256)}" was not found`, { taskId: id.slice(0, 256) })
}

export function statusOf(state: TaskState, now: number, message?: Message): TaskStatus {
  return { state, timestamp: new Date(now).toISOString(), ...(message && { message }) }
}

/** The ids that every update of a task has. */
export function idsOf({ id: taskId, contextId }: TaskRecord): { readonly taskId: string; readonly contextId: string } {
  return { taskId, contextId }
}

/** Tells the webhooks of a task. */
export function notify({ push, views }: Shared, record: TaskRecord, event: StreamEvent): void {
  const owner = ownerOf(record)
  push.notify(owner, { taskId: record.id, generation: record.generation, task: () => views.now(owner, record.id) }, event)
}
