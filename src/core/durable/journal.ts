import type { ClientEvent } from '../../protocol/events.ts'
import { defer } from '../basics/defer.ts'
import type { Numbering } from './epoch.ts'
import type { LogStore } from '../log/log-store.ts'
import type { Group, Operation } from '../ports/store.ts'
import type { HeadRecord, Records, SessionRecord, TurnRecord } from './records.ts'
import { pays } from './sealed-records.ts'
import { holdsPayment } from '../secrets/sealing.ts'
import type { StoredAt } from '../engine/session-parts.ts'

interface JournalOptions {
  readonly records: Records
  readonly logStore: LogStore
  readonly now: () => number
  readonly session: SessionRecord
  readonly at: StoredAt
  readonly epoch: number
}

/** What is written with a turn, made when it is written. */
type Kept = () => readonly Operation[]

/** What a stored session writes down: its inputs as they come, its turns as they open and close. */
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
  /** Inputs that pay with something, and that no turn has used yet. */
  #unused: readonly ClientEvent[]
  /** A turn runs: what it is paid with, it uses at once. */
  #running = false
  /** The session's configuration pays with something that no turn has used yet. */
  #unpaid = false
  /** The session has a record of its own. */
  #apart: boolean
  #unwritten: Unwritten[] = []
  /** A session that nobody knows of yet, with its alias. */
  #unwrittenSession: readonly Operation[] | undefined
  /** The name of a silent one, until it is written. */
  #alias: readonly Operation[] = []
  #silent = false
  #turn: string | null
  /** How many inputs the turns have used up, and when the last of them began. */
  #consumed: number
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

  /** Nobody has been told of its first turn, which has not ended yet. */
  get silent(): boolean {
    return this.#silent
  }

  /** How many inputs were written down. */
  get inputs(): number {
    return this.#inputs
  }

  /**
   * Resolves once the input would survive anything. It is written at the end of this turn of the event loop; a turn that opens
   * before then has it in its own record.
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
   * A new session that is written with its first turn: nobody knows of it before. A silent one tells nobody of that turn before its
   * end, so it is enough that the beginning is in the store with the first events, or with the end.
   */
  beginLater({ alias, silent }: { readonly alias: readonly Operation[]; readonly silent: boolean }): void {
    this.#unwrittenSession = alias
    this.#silent = silent
  }

  /** A new session, with the first events of its log. */
  begin(session: SessionRecord, alias: readonly Operation[]): Promise<void> {
    return this.#logStore.commit([...this.#session(session).map(fresh), ...alias])
  }

  describe(session: SessionRecord): Promise<void> {
    this.#settle(session)
    // One that is not written yet is written as it is then.
    if (this.#unwrittenSession) return Promise.resolve()
    return this.#records.store.batch(this.#session(session), { sync: true })
  }

  /** A turn begins: its input is used up. `kept`: what is written with it. */
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
      // The turn is refused, but what was said before it may still be kept.
      this.#unwritten.unshift(...inputs)
      this.#writeInputs()
      throw error
    }
  }

  /** A turn has ended. `kept`: what is written with that; `isFirst`: and with its beginning. */
  async end(session: SessionRecord, record: TurnRecord, kept: (isFirst: boolean) => readonly Operation[]): Promise<void> {
    this.#running = false
    const isOver = record.status !== 'waiting'
    const isPaid = isOver && this.#unpaid
    if (isOver) this.#unpaid = false
    const isFirst = this.#logStore.takeNext() !== undefined
    const turn = this.#records.setTurn(record)
    if (!isFirst) await this.#logStore.commit([turn, ...(isPaid ? this.#session(session) : []), ...kept(false)])
    else {
      // Until then the session is not there, and neither is a log of it.
      this.#unwrittenSession = this.#alias
      const written = [...this.#alias, fresh(turn), ...this.#session(session).map(fresh), ...kept(true)]
      await this.#logStore.commit(written, { sync: true })
      this.#unwrittenSession = undefined
    }
    this.#alias = []
    this.#silent = false
    if (isOver && record.run !== record.id) await this.#settleRun(record)
  }

  /** The run is over: of what it was paid with in its earlier responses the digest is left, too. A crash here leaves it sealed. */
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

  async flush(): Promise<void> {
    await this.#logStore.commit()
    // It never came to a turn: what its log holds belongs to nothing.
    if (this.#unwrittenSession) await this.#records.store.drop(this.#log)
  }

  /** Its configuration is new. */
  #settle({ config, client }: SessionRecord): void {
    this.#unpaid = holdsPayment([config.extensions, client?.extensions])
  }

  /** What the session is and where it is, as it is written. */
  #session({ id, transport, agent, owner, config, duplex, onDetach, createdAt, client }: SessionRecord, closed = false): Operation[] {
    const session = { id, transport, agent, owner, config, duplex, onDetach, createdAt, client }
    const head: HeadRecord = {
      id,
      agent,
      owner: owner.id,
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

/** Of a record that is not there yet: it is not looked for. */
function fresh(operation: Operation): Operation {
  if (operation.op !== 'set') return operation
  return { ...operation, options: { ...operation.options, ifVersion: 0 } }
}

/** An input that is not on its way to the store yet, and who waits for that. */
interface Unwritten {
  readonly event: ClientEvent
  /** A running turn has it already. */
  readonly used: boolean
  readonly resolve: () => void
  readonly reject: (reason: unknown) => void
}
