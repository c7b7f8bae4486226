import type { ClientEvent } from '../protocol/events.ts'
import { defer } from './defer.ts'
import type { Numbering } from './epoch.ts'
import type { LogStore } from './log-store.ts'
import type { Group, Operation, SetOperation } from './ports/store.ts'
import type { HeadRecord, Records, SessionRecord, TurnRecord } from './records.ts'
import { pays } from './sealed-records.ts'
import { holdsPayment } from './sealing.ts'

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
  /** The session, where its configuration pays with something that no turn has used yet. */
  #unpaid: SessionRecord | undefined
  #unwritten: Unwritten[] = []
  /** A session that nobody knows of yet, with its alias. */
  #unwrittenSession: readonly Operation[] | undefined
  #silent = false
  #turn: string | null

  constructor(options: {
    records: Records
    logStore: LogStore
    now: () => number
    numbering: Numbering
    tenant: string
    session: string
    inputs: number
    unused: readonly ClientEvent[]
    turn: string | null
  }) {
    this.#records = options.records
    this.#logStore = options.logStore
    this.#now = options.now
    this.#numbering = options.numbering
    this.#tenant = options.tenant
    this.#id = options.session
    this.#unused = options.unused
    this.#log = options.records.logStream(options.tenant, options.session)
    this.#stream = options.records.inputStream(options.tenant, options.session)
    this.#inputs = options.inputs
    this.#turn = options.turn
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
  beginLater(session: SessionRecord, { alias, silent }: { readonly alias: readonly Operation[]; readonly silent: boolean }): void {
    this.#unwrittenSession = [fresh(this.#session(session)), ...alias]
    this.#silent = silent
  }

  /** A new session, with the first events of its log. */
  begin(session: SessionRecord, alias: readonly Operation[]): Promise<void> {
    return this.#logStore.commit([fresh(this.#session(session)), fresh(this.#head(session)), ...alias])
  }

  describe(session: SessionRecord): Promise<void> {
    return this.#records.store.batch([this.#session(session)], { sync: true })
  }

  /** A turn begins: its input is used up. */
  async open(session: SessionRecord, record: TurnRecord): Promise<void> {
    const before = this.#turn
    this.#turn = record.id
    const inputs = this.#unwritten
    this.#unwritten = []
    const turn = fresh(this.#records.setTurn(record))
    const head = this.#head(session)
    const unused = this.#unused
    this.#unused = []
    this.#running = true
    const used = unused.length > 0 ? [this.#records.sealed.dropInputs(this.#tenant, this.#id)] : []
    const written = this.#unwrittenSession ? [...this.#unwrittenSession, turn, fresh(head)] : [turn, head, ...used]
    if (this.#unwrittenSession && this.#silent) {
      this.#unwrittenSession = undefined
      this.#logStore.withNext(written)
      for (const { resolve } of inputs) resolve()
      return
    }
    try {
      await this.#records.store.batch(written, { sync: true })
      this.#unwrittenSession = undefined
      for (const { resolve } of inputs) resolve()
    } catch (error) {
      this.#turn = before
      this.#running = false
      this.#unused = unused
      // The turn is refused, but what was said before it may still be kept.
      this.#unwritten.unshift(...inputs)
      this.#writeInputs()
      throw error
    }
  }

  /** A turn has ended. Where its beginning is not in the store yet, the record of the beginning is left out. */
  async end(record: TurnRecord): Promise<void> {
    this.#running = false
    const turn = this.#records.setTurn(record)
    const isOver = record.status !== 'waiting'
    const paid = isOver && this.#unpaid ? [this.#records.setSession(this.#unpaid, true)] : []
    const beginning = this.#logStore.takeNext()
    if (beginning.length === 0) await this.#logStore.commit([turn, ...paid])
    else {
      const others = beginning.filter((operation) => operation.op !== 'set' || operation.key !== turn.key)
      // Until then the session is not there, and neither is a log of it.
      this.#unwrittenSession = beginning
      await this.#logStore.commit([...others, fresh(turn), ...paid], { sync: true })
      this.#unwrittenSession = undefined
    }
    this.#silent = false
    if (isOver) this.#unpaid = undefined
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
    return this.#logStore.commit([this.#head(session, true)])
  }

  async flush(): Promise<void> {
    await this.#logStore.commit()
    // It never came to a turn: what its log holds belongs to nothing.
    if (this.#unwrittenSession) await this.#records.store.drop(this.#log)
  }

  #session({ id, transport, agent, owner, config, duplex, onDetach, createdAt, client }: SessionRecord): SetOperation {
    const record = { id, transport, agent, owner, config, duplex, onDetach, createdAt, client }
    this.#unpaid = holdsPayment([config.extensions, client?.extensions]) ? record : undefined
    return this.#records.setSession(record)
  }

  #head({ id, agent, owner }: SessionRecord, closed = false): SetOperation {
    const record: HeadRecord = {
      id,
      agent,
      owner: owner.id,
      turn: this.#turn,
      consumed: this.#inputs,
      updatedAt: this.#now(),
      closed,
      ...this.#numbering,
    }
    return this.#records.setHead(this.#tenant, record)
  }
}

/** Of a record that is not there yet: it is not looked for. */
function fresh(operation: SetOperation): SetOperation {
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
