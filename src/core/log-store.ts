import type { Committer } from './committer.ts'
import { encodeGroup } from './log-format.ts'
import type { Group, Operation, Store } from './ports/store.ts'
import type { Slice } from './slice.ts'

/** So many events are committed without waiting for the next round. */
const GROUP_EVENTS = 256

/** The log as the store sees it. */
export interface CommittedLog {
  /** Everything after `seq`; memory holds it until it is committed. */
  since(seq: number): Slice
  /** The store got further. */
  progress(): void
}

/** The store as a reader of the log that is always attached: it commits in groups, one row a group. */
export class LogStore {
  readonly sessionId: string
  readonly #store: Store
  readonly #stream: string
  readonly #committer: Committer
  #log: CommittedLog | undefined
  #committing: Promise<void> | undefined
  /** The stream's last position, which each append expects: two writers of one session cannot both go on. */
  #position: number
  #waiting = 0
  /** Everything up to here is committed. */
  committed: number

  constructor(options: { store: Store; committer: Committer; sessionId: string; stream: string; position: number; committed: number }) {
    this.#store = options.store
    this.#committer = options.committer
    this.sessionId = options.sessionId
    this.#stream = options.stream
    this.#position = options.position
    this.committed = options.committed
  }

  follow(log: CommittedLog): void {
    this.#log = log
  }

  /** There is one more event; it is committed in the next round, or as soon as there is a group of them. */
  note(): void {
    const waiting = ++this.#waiting
    if (waiting === 1) this.#committer.later(this)
    else if (waiting === GROUP_EVENTS) this.#committer.now(this)
  }

  /** Commits what is there, and `operations` with it, all or nothing. */
  async commit(operations: readonly Operation[] = [], options?: { readonly sync?: boolean }): Promise<void> {
    while (this.#committing) await this.#committing.catch(() => undefined)
    const slice = this.#log?.since(this.committed)
    const group = slice && slice.items.length > 0 ? encodeGroup(slice) : undefined
    this.#waiting = 0
    if (!group && operations.length === 0) return
    this.#committing = this.#write(group, operations, options)
    try {
      await this.#committing
    } finally {
      this.#committing = undefined
    }
    if (group) this.committed = this.#position = group.last
    this.#log?.progress()
  }

  read(after: number): AsyncIterable<Group> {
    return this.#store.read(this.#stream, { after })
  }

  #write(group: Group | undefined, operations: readonly Operation[], options?: { readonly sync?: boolean }): Promise<void> {
    if (group && operations.length === 0) return this.#store.append(this.#stream, group, { expected: this.#position, ...options })
    const append: Operation[] = group ? [{ op: 'append', stream: this.#stream, group, expected: this.#position }] : []
    return this.#store.batch([...append, ...operations], options)
  }
}
