import { UampError } from '../protocol/errors.ts'
import { type Connection, errorCode, type Statement } from './sqlite-schema.ts'

/** Bytes that a transaction adds to the log besides its texts: the pages around them. */
const TRANSACTION_BYTES = 8192
/** Most jobs in one transaction; more wait for the next turn, so that the event loop is not blocked for long. */
const MOST_JOBS = 256

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

interface Job {
  readonly run: () => unknown
  readonly sync: boolean
  readonly resolve: (value: never) => void
  readonly reject: (reason: unknown) => void
}

/** The outcome of a job, which its caller gets after the commit. */
interface Outcome {
  readonly job: Job
  readonly value?: unknown
  readonly refusal?: UampError
}

export interface QueueOptions {
  /** Resolves when everything committed before the call would survive a loss of power. */
  readonly durable: () => Promise<void>
  readonly staging: Staging
  /** Writes the staged operations of a transaction. */
  readonly flush: () => void
  /** Throws if nothing may be written any more. */
  readonly assertSound: () => void
  /** Called after a rollback, when memory no longer agrees with the tables. */
  readonly onRollback: (thrown: unknown) => void
  /** Called after each commit; the next one waits until its promise settles. */
  readonly upkeep: () => Promise<void> | undefined
}

/** Group commit: the writes of one turn of the event loop share a transaction. */
export class CommitQueue {
  readonly #db: Connection
  readonly #options: QueueOptions
  readonly #begin: Statement
  readonly #commit: Statement
  readonly #rollback: Statement
  #jobs: Job[] = []
  #held = false

  constructor(db: Connection, options: QueueOptions) {
    this.#db = db
    this.#options = options
    this.#begin = db.command('BEGIN IMMEDIATE')
    this.#commit = db.command('COMMIT')
    this.#rollback = db.command('ROLLBACK')
  }

  get idle(): boolean {
    return this.#jobs.length === 0
  }

  /**
   * A `UampError` of `run` concerns only its caller, so `run` must throw it before it stages anything, or take that back. After any
   * other error the transaction is undone and each job runs again alone, so `run` may be called several times.
   */
  write<T>(run: () => T, sync = false): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#jobs.push({ run, sync, resolve, reject }) === 1) setImmediate(this.#flush)
    })
  }

  readonly #flush = (): void => {
    if (this.#held || this.idle) return
    const jobs = this.#jobs.splice(0, MOST_JOBS)
    if (!this.idle) setImmediate(this.#flush)
    try {
      this.#settle(this.#transact(jobs))
    } catch (thrown) {
      if (jobs.length === 1) jobs[0]?.reject(failure(thrown))
      else for (const job of jobs) this.#alone(job)
    }
    const upkeep = this.#options.upkeep()
    if (upkeep) void this.#hold(upkeep)
  }

  async #hold(upkeep: Promise<void>): Promise<void> {
    this.#held = true
    try {
      await upkeep
    } finally {
      this.#held = false
      if (!this.idle) setImmediate(this.#flush)
    }
  }

  #alone(job: Job): void {
    try {
      this.#settle(this.#transact([job]))
    } catch (thrown) {
      job.reject(failure(thrown))
    }
  }

  #transact(jobs: readonly Job[], careful = false): Outcome[] {
    this.#options.assertSound()
    this.#options.staging.careful = careful
    try {
      this.#begin.run([])
      const outcomes = jobs.map(attempt)
      this.#options.flush()
      this.#commit.run([])
      this.#db.written += TRANSACTION_BYTES
      return outcomes
    } catch (thrown) {
      // After some errors, such as a full disk, SQLite has already rolled back.
      if (this.#db.inTransaction) this.#rollback.run([])
      this.#options.onRollback(thrown)
      if (thrown instanceof Surprise) return this.#transact(jobs, true)
      throw thrown
    }
  }

  #settle(outcomes: readonly Outcome[]): void {
    const waiting: Outcome[] = []
    for (const outcome of outcomes) {
      if (outcome.refusal) outcome.job.reject(outcome.refusal)
      else if (outcome.job.sync) waiting.push(outcome)
      else outcome.job.resolve(outcome.value as never)
    }
    if (waiting.length === 0) return
    this.#options.durable().then(
      () => waiting.forEach(({ job, value }) => job.resolve(value as never)),
      (thrown: unknown) => waiting.forEach(({ job }) => job.reject(failure(thrown))),
    )
  }
}

function attempt(job: Job): Outcome {
  try {
    return { job, value: job.run() }
  } catch (thrown) {
    if (thrown instanceof UampError) return { job, refusal: thrown }
    throw thrown
  }
}

function failure(thrown: unknown): UampError {
  if (thrown instanceof UampError) return thrown
  if (errorCode(thrown) === 'SQLITE_FULL') return new UampError('overloaded', 'The store is full', { cause: thrown })
  return new UampError('internal', 'The store could not write', { cause: thrown })
}
