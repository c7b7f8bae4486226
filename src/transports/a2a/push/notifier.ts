import type { Principal } from '../../../core/ports/access.ts'
import { TERMINAL, type StreamEvent, type TaskState, type TaskStatus } from '../model.ts'
import type { ConfigRecords, KeptConfig } from './configs.ts'
import type { Debts } from './debts.ts'
import { Gates } from './gate.ts'
import type { Notified } from './index.ts'
import { Outbox, type Post } from './outbox.ts'

export interface NotifierOptions extends Omit<Post, 'gates' | 'waiting'> {
  readonly records: ConfigRecords
  readonly debts: Debts
}

/** How many tasks a search for one that can be forgotten looks at. */
const LOOKS = 32

/** Knows which tasks have webhooks, and which events are on their way to them. */
export class Notifier {
  readonly #records: ConfigRecords
  readonly #debts: Debts
  readonly #post: Post
  readonly #tasks = new Map<string, Webhooks>()

  constructor({ records, debts, ...post }: NotifierOptions) {
    this.#records = records
    this.#debts = debts
    this.#post = { ...post, gates: new Gates(post.limits), waiting: { length: 0 } }
    post.host.closing.addEventListener('abort', () => this.#close(), { once: true })
  }

  readonly notify = (owner: Principal, of: Notified, event: StreamEvent): void => {
    if (this.#post.host.closing.aborted) return
    const known = this.#tasks.get(keyOf(owner, of.taskId))
    if (known) return known.push(of, event)
    const webhooks = this.#remember(owner, of.taskId)
    webhooks.push(of, event)
    this.#records.all(owner, of.taskId).then(
      (configs) => webhooks.loaded(configs),
      (error: unknown) => {
        this.#post.host.log('error', 'The push notification configs of a task could not be read', { task: of.taskId, error })
        webhooks.forget()
      },
    )
  }

  /** The task has just begun, and no client has set a config for it. */
  readonly none = (owner: Principal, taskId: string): void => {
    if (!this.#tasks.has(keyOf(owner, taskId))) this.#remember(owner, taskId).change([])
  }

  /** These are the task's configs from now on. */
  changed(owner: Principal, taskId: string, configs: readonly KeptConfig[]): void {
    const webhooks = this.#tasks.get(keyOf(owner, taskId)) ?? this.#remember(owner, taskId)
    webhooks.change(configs)
  }

  #remember(owner: Principal, taskId: string): Webhooks {
    const key = keyOf(owner, taskId)
    const webhooks: Webhooks = new Webhooks(this.#post, {
      owner,
      forget: () => {
        if (this.#tasks.get(key) === webhooks) this.#tasks.delete(key)
      },
      onRest: (status) => this.#rests(owner, taskId, status),
    })
    this.#tasks.set(key, webhooks)
    if (this.#tasks.size > this.#post.limits.tasks) this.#makeRoom(webhooks)
    return webhooks
  }

  #rests(owner: Principal, taskId: string, status: TaskStatus): void {
    const { host } = this.#post
    // What is left when the server shuts down is sent after the next start.
    if (host.closing.aborted) return
    const failed = (error: unknown): void =>
      host.log('error', 'The note that webhooks were told could not be stored', { task: taskId, error })
    this.#debts.settle(owner, taskId, status).catch(failed)
  }

  /** Tasks that run are bounded by the number of sessions; the configs of others are found again in the store. */
  #makeRoom(newest: Webhooks): void {
    let looks = 0
    for (const webhooks of this.#tasks.values()) {
      if (++looks > LOOKS) return
      if (webhooks !== newest && webhooks.idle) return webhooks.forget()
    }
  }

  #close(): void {
    let lost = 0
    for (const webhooks of this.#tasks.values()) lost += webhooks.close()
    this.#tasks.clear()
    if (lost > 0) this.#post.host.log('warn', 'Push notifications were dropped, as the server shuts down', { lost })
  }
}

interface OfTask {
  readonly owner: Principal
  readonly forget: () => void
  /** All webhooks know this status, or were given up, and nothing more is to be sent now. */
  readonly onRest: (status: TaskStatus) => void
}

/** States after which another status follows without the client. */
const BUSY: ReadonlySet<TaskState> = new Set(['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING'])

/** The webhooks of one task. */
class Webhooks {
  readonly #post: Post
  readonly #owner: Principal
  /** Undefined until the configs are known. */
  #outboxes: Map<string, Outbox> | undefined
  /** Events from before that: as many as one webhook may have waiting, then only the newest. */
  #early: { readonly of: Notified; readonly event: StreamEvent }[] = []
  #ended = false
  /** The newest status at which the task rests, until all webhooks know it. */
  #resting: TaskStatus | undefined
  readonly #onRest: (status: TaskStatus) => void
  readonly forget: () => void

  constructor(post: Post, { owner, forget, onRest }: OfTask) {
    this.#post = post
    this.#owner = owner
    this.forget = forget
    this.#onRest = onRest
  }

  get idle(): boolean {
    return this.#outboxes !== undefined && [...this.#outboxes.values()].every((outbox) => outbox.idle)
  }

  push(of: Notified, event: StreamEvent): void {
    const told = 'statusUpdate' in event ? event.statusUpdate : 'task' in event ? event.task : undefined
    if (told && TERMINAL.has(told.status.state)) this.#ended = true
    if (told) this.#resting = BUSY.has(told.status.state) ? undefined : told.status
    if (!this.#outboxes) {
      if (this.#early.length >= this.#post.limits.queuedEvents) this.#early.length = 0
      this.#early.push({ of, event })
      return
    }
    for (const outbox of this.#outboxes.values()) outbox.push(of, event)
    this.#rest()
  }

  loaded(configs: readonly KeptConfig[]): void {
    // A client has changed them while they were read, so these are old.
    if (!this.#outboxes) this.change(configs)
  }

  change(configs: readonly KeptConfig[]): void {
    const before = this.#outboxes ?? new Map<string, Outbox>()
    const ids = new Set(configs.map(({ id }) => id))
    for (const [id, outbox] of before) if (!ids.has(id)) outbox.close()
    this.#outboxes = new Map(
      configs.map((config) => {
        const outbox = before.get(config.id)
        outbox?.replace(config)
        return [
          config.id,
          outbox ?? new Outbox(config, this.#post, { owner: this.#owner, key: keyOf(this.#owner, ''), onIdle: () => this.#rest() }),
        ]
      }),
    )
    for (const { of, event } of this.#early.splice(0)) this.push(of, event)
    this.#rest()
  }

  close(): number {
    let lost = 0
    for (const outbox of this.#outboxes?.values() ?? []) lost += outbox.close()
    return lost
  }

  #rest(): void {
    if (!this.idle) return
    const status = this.#resting
    this.#resting = undefined
    // A task without webhooks has nobody to tell.
    if (status && this.#outboxes?.size) this.#onRest(status)
    if (this.#ended) this.forget()
  }
}

/** Looked up for every event, also of tasks without webhooks. The lengths keep the parts apart. */
function keyOf({ tenant, id }: Principal, taskId: string): string {
  return `${tenant.length}:${tenant}${id.length}:${id}${taskId}`
}
