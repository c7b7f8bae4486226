import type { ClientEvent } from '../../protocol/events.ts'
import { defer } from '../basics/time.ts'
import type { Numbering } from './epoch.ts'
import type { LogStore } from '../log/log-store.ts'
import type { Group, Operation } from '../ports/store.ts'
import type { HeadRecord, Records, SessionRecord, TurnRecord } from './records.ts'
import { holdsPayment, pays } from '../secrets/sealing.ts'
import type { StoredAt } from '../engine/session-parts.ts'

interface JournalOptions {
  readonly records: Records
  readonly logStore: LogStore
  readonly now: () => number
  readonly session: SessionRecord
  readonly at: StoredAt
  readonly epoch: number
}

/** Makes the operations of a response's keeper at the moment they are written. */
type Kept = () => readonly Operation[]

/** Writes down the inputs of a stored session as they come, and its responses as they open and close. */
export class Journal {
  readonly #records: Records
  readonly #logStore: LogStore
  readonly #now: () => number
  readonly #numbering: Numbering
  readonly #stream: string
  readonly #log: string
  readonly #tenant: string
  readonly #id: string
  #inputs: number
  /** Inputs that carry a payment, and that no response has used yet. */
  #unused: readonly ClientEvent[]
  /** A response runs: it uses payments as soon as they come. */
  #running = false
  /** The session's configuration holds a payment that no response has used yet. */
  #unpaid = false
  /** The `SessionRecord` is a record of its own, not a part of the `HeadRecord`. */
  #apart: boolean
  #unwritten: Unwritten[] = []
  /** Set while the session itself is not in the store: the operation that sets its alias, if it has one. */
  #unwrittenSession: readonly Operation[] | undefined
  /** The same for a silent session whose response has opened. */
  #alias: readonly Operation[] = []
  #silent = false
  #turn: string | null
  /** How many inputs the responses have used up. */
  #consumed: number
  /** When the last response began. */
  #updatedAt: number

  constructor({ records, logStore, now, session, at, epoch }: JournalOptions) {
    const { tenant } = session.owner
    this.#records = records
    this.#logStore = logStore
    this.#now = now
    this.#numbering = { epoch, base: at.head }
    this.#tenant = tenant
    this.#id = session.id
    this.#log = records.logStream(tenant, session.id)
    this.#stream = records.inputStream(tenant, session.id)
    this.#unused = at.unused
    this.#inputs = at.inputs
    this.#turn = at.turn
    this.#consumed = at.consumed
    this.#updatedAt = at.updatedAt
    this.#apart = at.apart
    this.#settle(session)
  }

  /** True until the first response of a silent session has ended: until then no client knows of it. */
  get silent(): boolean {
    return this.#silent
  }

  /** How many inputs the session has had. */
  get inputs(): number {
    return this.#inputs
  }

  /**
   * Resolves once the input would survive a loss of power. It is written at the end of this turn of the event loop, unless a response
   * that opens before then takes it into its own record.
   */
  input(event: ClientEvent): Promise<void> {
    this.#inputs++
    return new Promise((resolve, reject) => {
      this.#unwritten.push({ event, used: this.#running, resolve, reject })
      if (this.#unwritten.length === 1) defer(() => this.#writeInputs())
    })
  }

  #writeInputs(): void {
    const inputs = this.#unwritten
    if (inputs.length === 0) return
    this.#unwritten = []
    const first = this.#inputs - inputs.length + 1
    const text = inputs.map(({ event }) => JSON.stringify(this.#records.sealed.input(event))).join('\n')
    this.#append({ first, last: this.#inputs, text }, inputs).then(
      () => inputs.forEach(({ resolve }) => resolve()),
      (error: unknown) => inputs.forEach(({ reject }) => reject(error)),
    )
  }

  #append(group: Group, inputs: readonly Unwritten[]): Promise<void> {
    const paid = inputs.flatMap(({ event, used }) => (!used && pays(event) ? [event] : []))
    if (paid.length === 0) return this.#records.store.append(this.#stream, group, { sync: true })
    this.#unused = [...this.#unused, ...paid]
    const kept = this.#records.sealed.setInputs(this.#tenant, this.#id, this.#unused)
    return this.#records.store.batch([{ op: 'append', stream: this.#stream, group }, kept], { sync: true })
  }

  /**
   * Defers the write of a new session to its first response, as no client knows of it before. In a silent session no client hears of
   * that response before its end, so its opening may be written with its first events, or with its end.
   */
  beginLater({ alias, silent }: { readonly alias: readonly Operation[]; readonly silent: boolean }): void {
    this.#unwrittenSession = alias
    this.#silent = silent
  }

  /** Writes a new session with the first events of its log. */
  begin(session: SessionRecord, alias: readonly Operation[]): Promise<void> {
    return this.#logStore.commit([...this.#session(session).map(fresh), ...alias])
  }

  describe(session: SessionRecord): Promise<void> {
    this.#settle(session)
    // A session that is not written yet is written later, with this configuration.
    if (this.#unwrittenSession) return Promise.resolve()
    return this.#records.store.batch(this.#session(session), { sync: true })
  }

  /** Writes a response that opens and uses up its inputs. `kept`: operations of its keeper. */
  async open(session: SessionRecord, record: TurnRecord, kept: Kept = () => []): Promise<void> {
    const before = { turn: this.#turn, consumed: this.#consumed, updatedAt: this.#updatedAt }
    this.#turn = record.id
    this.#consumed = this.#inputs
    this.#updatedAt = this.#now()
    const inputs = this.#unwritten
    this.#unwritten = []
    const unused = this.#unused
    this.#unused = []
    this.#running = true
    const alias = this.#unwrittenSession
    const turn = (): Operation => fresh(this.#records.setTurn(record))
    if (alias && this.#silent) {
      this.#unwrittenSession = undefined
      this.#logStore.withNext(() => [...alias, turn(), ...this.#session(session).map(fresh), ...kept()])
      this.#alias = alias
      for (const { resolve } of inputs) resolve()
      return
    }
    const used = unused.length > 0 ? [this.#records.sealed.dropInputs(this.#tenant, this.#id)] : []
    const where = this.#session(session)
    const written = alias ? [...alias, turn(), ...where.map(fresh), ...kept()] : [turn(), ...where, ...used, ...kept()]
    try {
      await this.#records.store.batch(written, { sync: true })
      this.#unwrittenSession = undefined
      for (const { resolve } of inputs) resolve()
    } catch (error) {
      this.#turn = before.turn
      this.#consumed = before.consumed
      this.#updatedAt = before.updatedAt
      this.#running = false
      this.#unused = unused
      // The response is refused, but its inputs are still to be stored.
      this.#unwritten.unshift(...inputs)
      this.#writeInputs()
      throw error
    }
  }

  /** Writes the end of a response. `kept`: operations of its keeper; `isFirst`: its opening is written only now. */
  async end(session: SessionRecord, record: TurnRecord, kept: (isFirst: boolean) => readonly Operation[]): Promise<void> {
    this.#running = false
    const isOver = record.status !== 'waiting'
    const isPaid = isOver && this.#unpaid
    if (isOver) this.#unpaid = false
    const isFirst = this.#logStore.takeNext() !== undefined
    const turn = this.#records.setTurn(record)
    if (!isFirst) await this.#logStore.commit([turn, ...(isPaid ? this.#session(session) : []), ...kept(false)])
    else {
      // Until this commit the store has neither the session nor its log.
      this.#unwrittenSession = this.#alias
      const written = [...this.#alias, fresh(turn), ...this.#session(session).map(fresh), ...kept(true)]
      await this.#logStore.commit(written, { sync: true })
      this.#unwrittenSession = undefined
    }
    this.#alias = []
    this.#silent = false
    if (isOver && record.run !== record.id) await this.#settleRun(record)
  }

  /** The turn is over: replaces payments in its earlier responses by their digests. A crash here leaves them sealed. */
  async #settleRun({ run, parent, answers }: TurnRecord): Promise<void> {
    if (!holdsPayment(answers)) return
    for (let id = parent; id !== null;) {
      const turn = await this.#records.turn(this.#tenant, id)
      if (turn?.run !== run) return
      if (holdsPayment([turn.answers, turn.given])) await this.#records.store.batch([this.#records.setTurn(turn, true)])
      id = turn.parent
    }
  }

  close(session: SessionRecord): Promise<void> {
    return this.#logStore.commit(this.#session(session, true))
  }

  /** Commits everything so far. False: more came meanwhile. */
  async flush(): Promise<boolean> {
    await this.#logStore.commit()
    // The session never had a response and was never written, so nobody needs its log.
    if (this.#unwrittenSession) await this.#records.store.drop(this.#log)
    return this.#logStore.uncommittedBytes === 0
  }

  /** Notes whether a new configuration holds a payment. */
  #settle({ config, client }: SessionRecord): void {
    this.#unpaid = holdsPayment([config.extensions, client?.extensions])
  }

  /** The operations that write the session and its head. */
  #session({ id, transport, agent, owner, config, duplex, onDetach, createdAt, client, chat }: SessionRecord, closed = false): Operation[] {
    const { tenant, id: name } = owner
    const kept = { tenant, id: name, scopes: [] }
    const session = { id, transport, agent, owner: kept, config, duplex, onDetach, createdAt, client, chat }
    const head: HeadRecord = {
      id,
      agent,
      owner: name,
      turn: this.#turn,
      consumed: this.#consumed,
      updatedAt: closed ? this.#now() : this.#updatedAt,
      closed,
      ...this.#numbering,
    }
    const { set, apart } = this.#records.setSession(session, head, !this.#unpaid)
    const late = this.#apart && !apart ? [this.#records.dropSession(session)] : []
    this.#apart = apart
    return [...set, ...late]
  }
}

/** Marks a new record, so that the store skips the lookup. */
function fresh(operation: Operation): Operation {
  if (operation.op !== 'set') return operation
  const { op, key, value, options } = operation
  return { op, key, value, options: { ifVersion: 0, ...options } }
}

/** An input that is not written yet, with the promise that waits for it. */
interface Unwritten {
  readonly event: ClientEvent
  /** A running response has used it already. */
  readonly used: boolean
  readonly resolve: () => void
  readonly reject: (reason: unknown) => void
}
