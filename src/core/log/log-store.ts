import type { Committer } from './committer.ts'
import { encodeSlice, type StoredLog } from './log-format.ts'
import type { Group, Operation, Store } from '../ports/store.ts'
import type { Slice } from './slice.ts'

/** So many events are committed without waiting for the next round. */
const GROUP_EVENTS = 512

/** The log as the store sees it. */
export interface CommittedLog {
  /** What memory still holds after `seq`. Unless `all`, without an end that is being committed. */
  since(seq: number, all: boolean): Slice
  /** The store got further. */
  progress(): void
}

/** The store as a reader of the log that is always attached: it commits in groups, one row a group. */
export class LogStore implements StoredLog {
  readonly sessionId: string
  readonly outputOf: StoredLog['outputOf']
  readonly #store: Store
  readonly #stream: string
  readonly #committer: Committer
  #log: CommittedLog | undefined
  #committing: Promise<void> | undefined
  /** The stream's last position, which each append expects: two writers of one session cannot both go on. */
  #position: number
  #waiting = 0
  /** What readers are done with and the log has let go of, as it will be stored. */
  #encoded: string[] = []
  #encodedTo: number
  /** To be written with the next commit, whatever that is for. */
  #next: (() => readonly Operation[]) | undefined
  /** Everything up to here is committed. */
  committed: number
  uncommittedBytes = 0

  constructor(options: StoredLog & { store: Store; committer: Committer; stream: string; position: number; committed: number }) {
    this.#store = options.store
    this.outputOf = options.outputOf
    this.#committer = options.committer
    this.sessionId = options.sessionId
    this.#stream = options.stream
    this.#position = options.position
    this.committed = this.#encodedTo = options.committed
  }

  follow(log: CommittedLog): void {
    this.#log = log
  }

  /** There is one more event; it is committed in the next round, or as soon as there is a group of them. */
  note(size: number): void {
    this.uncommittedBytes += size
    const waiting = ++this.#waiting
    if (waiting === 1) this.#committer.later(this)
    else if (waiting === GROUP_EVENTS) this.#committer.now(this)
  }

  /**
   * Takes over events that the log lets go of. They are encoded now: until the next commit one text is a smaller burden to the
   * collector than hundreds of small ones.
   */
  absorb(slice: Slice): void {
    if (slice.last <= this.#encodedTo) return
    this.#encoded.push(encodeSlice(slice.after(this.#encodedTo)))
    this.#encodedTo = slice.last
  }

  /** Operations that go with the next commit. */
  withNext(operations: () => readonly Operation[]): void {
    this.#next = operations
    this.#committer.later(this)
  }

  /** What would go with the next commit; whoever takes it commits it. */
  takeNext(): (() => readonly Operation[]) | undefined {
    const next = this.#next
    this.#next = undefined
    return next
  }

  /**
   * Commits what is there, and `given` with it, all or nothing. Without `given` the end of a response is left out while it is being
   * committed: it belongs into one transaction with the response's record, or a crash between the two would end it twice.
   */
  async commit(given: readonly Operation[] = [], options?: { readonly sync?: boolean }): Promise<void> {
    while (this.#committing) await this.#committing.catch(() => undefined)
    const next = this.takeNext()
    const operations = next ? [...next(), ...given] : given
    const rest = this.#log?.since(this.#encodedTo, given.length > 0)
    if (rest && rest.items.length > 0) this.absorb(rest)
    const texts = this.#encoded
    const last = this.#encodedTo
    const bytes = this.uncommittedBytes
    const group = texts.length > 0 ? { first: this.committed + 1, last, text: texts.join('\n') } : undefined
    this.#waiting = 0
    if (!group && operations.length === 0) return
    this.#encoded = []
    this.#committing = this.#write(group, operations, options)
    try {
      await this.#committing
    } catch (error) {
      this.#encoded = [...texts, ...this.#encoded]
      this.#next ??= next
      throw error
    } finally {
      this.#committing = undefined
    }
    this.committed = last
    this.uncommittedBytes -= bytes
    if (group) this.#position = last
    this.#log?.progress()
  }

  /** What is stored after a number, and what is still on its way there. */
  async *read(after: number): AsyncGenerator<Group, void> {
    await this.commit()
    yield* this.#store.read(this.#stream, { after })
  }

  #write(group: Group | undefined, operations: readonly Operation[], options?: { readonly sync?: boolean }): Promise<void> {
    if (group && operations.length === 0) return this.#store.append(this.#stream, group, { expected: this.#position, ...options })
    const append: Operation[] = group ? [{ op: 'append', stream: this.#stream, group, expected: this.#position }] : []
    return this.#store.batch([...append, ...operations], options)
  }
}
