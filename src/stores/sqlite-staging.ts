import type { Bound, Connection, Statement } from './sqlite-schema.ts'

/** Rows that one statement writes; more take several. */
const MOST_ROWS = 32

/**
 * What the jobs of one transaction have asked for. Each is checked when it comes and written before the commit, together with the
 * others: a job that is refused has written nothing, and needs no savepoint.
 */
export class Staging {
  #steps: (() => void)[] | undefined
  /** Look up also what the caller says is new. */
  careful = false

  /** How to take back what has just been staged, in case that a later operation of the same batch is refused. */
  onUndo(step: () => void): void {
    this.#steps?.push(step)
  }

  /** All or nothing. */
  atomically(operations: readonly (() => unknown)[]): void {
    const steps: (() => void)[] = []
    this.#steps = steps
    try {
      for (const operation of operations) operation()
    } catch (thrown) {
      for (const undo of steps.reverse()) undo()
      throw thrown
    } finally {
      this.#steps = undefined
    }
  }
}

/** What the caller said was new is there: the transaction has to be done again, carefully. */
export class Surprise extends Error {}

/** An `INSERT` or `DELETE` of many rows. Its statement for each number of rows is prepared when it is first needed. */
export class Rows {
  readonly #db: Connection
  readonly #sql: (rows: string) => string
  readonly #width: number
  readonly #statements = new Map<number, Statement>()

  constructor(db: Connection, width: number, sql: (rows: string) => string) {
    this.#db = db
    this.#width = width
    this.#sql = sql
  }

  /** `values` has the columns of one row after the other. Returns how many rows were changed. */
  run(values: readonly Bound[]): number {
    const most = MOST_ROWS * this.#width
    if (values.length <= most) return values.length === 0 ? 0 : this.#write(values)
    let changes = 0
    for (let at = 0; at < values.length; at += most) changes += this.#write(values.slice(at, at + most))
    return changes
  }

  #write(values: readonly Bound[]): number {
    const rows = values.length / this.#width
    let statement = this.#statements.get(rows)
    if (!statement) {
      const row = `(${Array(this.#width).fill('?').join()})`
      statement = this.#db.command(this.#sql(Array(rows).fill(row).join()))
      this.#statements.set(rows, statement)
    }
    return statement.run(values).changes
  }
}
