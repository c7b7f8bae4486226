import type { Group, Operation, Store } from '../ports/store.ts'
import { Entry, Slice, Stamp, type Item } from './entry.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Logger } from '../ports/transport.ts'
import type { ContentItem } from '../../protocol/content.ts'
import type { Draft, ServerEvent } from '../../protocol/events.ts'

/** This many events are committed without waiting for the next round. */
const GROUP_EVENTS = 512
/** How long a delta waits to be committed together with others. Inputs of clients never wait. */
const ROUND_MS = 40
/** Pause after a failed commit. */
const RETRY_MS = 1000
/** How often a failing store is logged. Groups fail by the thousand, and the log file may be on the same full disk. */
const TELL_MS = 60_000
/** Above this size the end of a response is stored without its output, which the response's record holds anyway. */
const LARGE_END = 64 * 1024

/** The part of the log that its store uses. */
export interface CommittedLog {
  /** The events after `seq` that memory still holds. Unless `all`, it leaves out an end that is being committed. */
  since(seq: number, all: boolean): Slice
  /** Called when more is committed. */
  wasCommitted(): void
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

  /** True if events wait for the next commit. */
  get waiting(): boolean {
    return this.#waiting > 0
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
    this.#log?.wasCommitted()
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

/** A log with events to commit. */
interface Committable {
  commit(): Promise<void>
}

/** Commits the logs of a gateway in rounds: one timer for all of them, none per event. */
export class Committer {
  readonly #log: Logger
  #due = new Set<Committable>()
  #timer: ReturnType<typeof setTimeout> | undefined
  /** Logs whose commit failed: new events do not start another one before the pause is over. */
  readonly #failed = new Set<Committable>()
  #toldAt = -Infinity

  constructor(log: Logger) {
    this.#log = log
  }

  later(store: Committable): void {
    this.#due.add(store)
    this.#timer ??= setTimeout(() => this.#round(), ROUND_MS)
  }

  now(store: Committable): void {
    this.#due.delete(store)
    this.#commit(store)
  }

  #round(): void {
    this.#timer = undefined
    const due = this.#due
    this.#due = new Set()
    for (const store of due) this.#commit(store)
  }

  #commit(store: Committable): void {
    if (this.#failed.has(store)) return
    store.commit().catch((error: unknown) => {
      // The session was removed, or something else has written it: these events can never be stored.
      const isLost = error instanceof UampError && error.code === 'conflict'
      if (!isLost) this.#retry(store)
      const now = performance.now()
      if (now - this.#toldAt < TELL_MS) return
      this.#toldAt = now
      this.#log('error', `A group of events could not be stored${isLost ? '' : '; trying again'}`, { error })
    })
  }

  #retry(store: Committable): void {
    this.#failed.add(store)
    setTimeout(() => {
      this.#failed.delete(store)
      this.later(store)
    }, RETRY_MS)
  }
}

/** A session's log in the store. */
export interface StoredLog {
  readonly sessionId: string
  /** The output in a response's record. */
  outputOf(responseId: string): Promise<readonly ContentItem[]>
}

/**
 * Encodes a slice of the log as lines. `>` begins events with the same stamp: the id of their response, empty outside one, a space and
 * their time. Every other line is the JSON of an event without its stamp, or an array with the texts of consecutive text deltas.
 */
export function encodeSlice({ items, stamps }: Slice): string {
  const lines: string[] = []
  let stamp: Stamp | undefined
  for (let index = 0; index < items.length;) {
    if (stamps[index] !== stamp) lines.push(stampLine((stamp = stamps[index] as Stamp)))
    const item = items[index] as Item
    if (typeof item !== 'string') {
      lines.push(lineOf(item))
      index++
      continue
    }
    const from = index
    while (index < items.length && typeof items[index] === 'string' && stamps[index] === stamp) index++
    lines.push(JSON.stringify(items.slice(from, index)))
  }
  return lines.join('\n')
}

/** The events of a stored group after `after`. */
export async function decodeGroup({ sessionId, outputOf }: StoredLog, group: Group, after: number): Promise<Slice> {
  const items: Item[] = []
  const stamps: Stamp[] = []
  let stamp: Stamp | undefined
  for (const line of group.text.split('\n')) {
    if (line.startsWith('>')) {
      stamp = stampIn(line, sessionId)
    } else if (line.startsWith('[')) {
      const texts = JSON.parse(line) as string[]
      // Version 0.1 wrote the response id into each line.
      const said = stamp ?? new Stamp(sessionId, texts.shift())
      for (const text of texts) {
        items.push(text)
        stamps.push(said)
      }
    } else {
      const seq = group.first + items.length
      const { session_id: _, event_id: __, seq: ___, response_id, output_of, ...stored } = JSON.parse(line) as StoredEvent
      const told = stamp ?? new Stamp(sessionId, response_id)
      const draft = withId(stored as Draft, told.responseId)
      items.push(new Entry(told, seq, output_of === undefined || seq <= after ? draft : withOutput(draft, await outputOf(output_of))))
      stamps.push(told)
    }
  }
  return new Slice(group.first, items, stamps).after(after)
}

function stampLine({ responseId = '', time }: Stamp): string {
  return time === undefined ? `>${responseId}` : `>${responseId} ${time}`
}

/** The opposite of `stampLine`. */
function stampIn(line: string, sessionId: string): Stamp {
  const [, id, time] = /^>(.*?)(?: (\d+))?$/.exec(line) ?? []
  return new Stamp(sessionId, id === '' ? undefined : id, { time: time === undefined ? undefined : Number(time) })
}

type StoredEvent = ServerEvent & { response_id?: string; output_of?: string }

function lineOf(entry: Entry): string {
  const { responseId } = entry.stamp
  if (responseId === undefined) return entry.body
  if (entry.size <= LARGE_END) return withoutId(entry.body, responseId)
  const short = withOutput(entry.draft, [])
  return short === entry.draft ? entry.body : JSON.stringify({ ...short, output_of: responseId })
}

const DONE = '{"type":"response.done","response":{'

/** The end of a response without its id, which the line that begins its events has. Returns other events unchanged. */
function withoutId(body: string, responseId: string): string {
  if (!body.startsWith(DONE)) return body
  const id = `"id":${JSON.stringify(responseId)},`
  return body.startsWith(id, DONE.length) ? DONE + body.slice(DONE.length + id.length) : body
}

/** The opposite of `withoutId`. */
function withId(draft: Draft, id: string | undefined): Draft {
  if (draft.type !== 'response.done' || id === undefined) return draft
  return { ...draft, response: { id, ...(draft.response as Omit<typeof draft.response, 'id'>) } }
}

/** Replaces the output in the end of a response. Returns other events unchanged. */
function withOutput(draft: Draft, output: readonly ContentItem[]): Draft {
  if (draft.type === 'response.done') return { ...draft, response: { ...draft.response, output: [...output] } }
  return draft.type === 'response.cancelled' ? { ...draft, partial_output: [...output] } : draft
}
