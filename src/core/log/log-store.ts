import type { Committer } from './committer.ts'
import { encodeSlice, type StoredLog } from './log-format.ts'
import type { Group, Operation, Store } from '../ports/store.ts'
import type { Slice } from './entry.ts'

/** This many events are committed without waiting for the next round. */
const GROUP_EVENTS = 512

/** The part of the log that its store uses. */
export interface CommittedLog {
  /** The events after `seq` that memory still holds. Unless `all`, it leaves out an end that is being committed. */
  since(seq: number, all: boolean): Slice
  /** Called when more is committed. */
  progress(): void
}

/** Commits a log to the store in groups, one row each. It acts as a reader that is always attached. */
export class LogStore implements StoredLog {
  readonly sessionId: string
  readonly outputOf: StoredLog['outputOf']
  readonly #store: Store
  readonly #stream: string
  readonly #committer: Committer
  #log: CommittedLog | undefined
  #committing: Promise<void> | undefined
  /** The stream's last position, which each append expects: of two writers of one session, one then fails. */
  #position: number
  #waiting = 0
  /** Events that the log has dropped, encoded for the next commit. */
  #encoded: string[] = []
  #encodedTo: number
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

  /** Counts a new event, which is committed in the next round or as soon as a group is full. */
  note(size: number): void {
    this.uncommittedBytes += size
    const waiting = ++this.#waiting
    if (waiting === 1) this.#committer.later(this)
    else if (waiting === GROUP_EVENTS) this.#committer.now(this)
  }

  /**
   * Takes over events that the log drops. It encodes them at once, because the garbage collector handles one long text more easily
   * than hundreds of short ones.
   */
  absorb(slice: Slice): void {
    if (slice.last <= this.#encodedTo) return
    this.#encoded.push(encodeSlice(slice.after(this.#encodedTo)))
    this.#encodedTo = slice.last
  }

  /** Adds operations to the next commit, whatever starts it. */
  withNext(operations: () => readonly Operation[]): void {
    this.#next = operations
    this.#committer.later(this)
  }

  /** Takes the operations of the next commit; the caller must commit them. */
  takeNext(): (() => readonly Operation[]) | undefined {
    const next = this.#next
    this.#next = undefined
    return next
  }

  /**
   * Commits all new events together with `given`, all or nothing. Without `given`, it leaves out an end that is being committed: the
   * end and the response's record need one transaction, or a crash between them would make recovery end the response again.
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

  /** The groups after a number, including events that were not committed yet. */
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
