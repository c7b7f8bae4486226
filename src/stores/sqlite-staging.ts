import type { Bound, Connection, Statement } from './sqlite-schema.ts'

/** Most rows that one statement writes. */
const MOST_ROWS = 32

/**
 * Lets the jobs of one transaction stage their operations, which are checked at once and written together before the commit. A
 * refused job has then written nothing, and needs no savepoint.
 */
export class Staging {
  #steps: (() => void)[] | undefined
  /** True: look up keys even if the caller says that they are new. */
  careful = false

  /** Registers how to take back what was just staged, in case a later operation of the same batch is refused. */
  onUndo(step: () => void): void {
    this.#steps?.push(step)
  }

  /** Stages all operations or none. */
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

/** A key that the caller called new exists: the transaction has to run again with `careful`. */
export class Surprise extends Error {}

/** An `INSERT` or `DELETE` of many rows. The statement for each number of rows is prepared when first needed. */
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

  /** `values` holds the columns of all rows in sequence. Returns how many rows were changed. */
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
