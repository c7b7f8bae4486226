import { UampError } from '../protocol/errors.ts'
import { type Connection, errorCode, type Statement } from './sqlite-schema.ts'
import { type Staging, Surprise } from './sqlite-staging.ts'

/** What a transaction adds to the log besides its texts: the pages around them. */
const TRANSACTION_BYTES = 8192
/** Jobs in one transaction; more wait for the next turn, so that the loop is not held for long. */
const MOST_JOBS = 256

interface Job {
  readonly run: () => unknown
  readonly sync: boolean
  readonly resolve: (value: never) => void
  readonly reject: (reason: unknown) => void
}

/** What came of a job, to be told once the transaction stands. */
interface Outcome {
  readonly job: Job
  readonly value?: unknown
  readonly refusal?: UampError
}

export interface QueueOptions {
  /** Resolves when everything committed before the call would survive a loss of power. */
  readonly durable: () => Promise<void>
  readonly staging: Staging
  /** Writes what the jobs of a transaction have staged. */
  readonly flush: () => void
  /** Throws when nothing may be written any more. */
  readonly assertSound: () => void
  /** What is kept in memory of the tables is no longer true. */
  readonly onRollback: (thrown: unknown) => void
  /** Asked after each commit; the next waits until it has settled. */
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
   * A UampError thrown by `run` is an answer for its caller alone, so `run` throws it before it has staged anything, or takes that back.
   * After any other error the transaction is undone and each job is run again by itself, so `run` may be called several times.
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
      // Some errors, a full disk among them, have already undone it.
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
