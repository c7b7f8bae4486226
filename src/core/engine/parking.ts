import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent } from '../../protocol/events.ts'
import { principalKey } from '../basics/principal.ts'
import type { Principal } from '../ports/access.ts'
import type { Waiting } from '../ports/session.ts'
import { answered, type Answer } from './questions.ts'
import type { TurnRecord } from '../durable/records.ts'
import type { RunStart } from './run.ts'
import type { ActiveTurn } from './turn.ts'

/** A turn whose questions the next request answers, with its generator if that is still there. */
export class Parked {
  /** The response that ended with the questions. */
  readonly record: TurnRecord
  /** How the turn began, to run it again when the generator is gone. */
  readonly start: RunStart
  #turn: ActiveTurn | undefined
  #answers: Readonly<Record<string, Answer>>
  #leave: () => void = () => undefined

  constructor(parts: { record: TurnRecord; start: RunStart; turn?: ActiveTurn }) {
    this.record = parts.record
    this.start = parts.start
    this.#turn = parts.turn
    this.#answers = parts.record.answers ?? {}
  }

  /** The running turn, unless it was given up or timed out. */
  get turn(): ActiveTurn | undefined {
    return this.#turn?.signal.aborted ? undefined : this.#turn
  }

  get waiting(): Waiting {
    const questions = this.record.questions?.filter(({ key }) => !this.answers[key]) ?? []
    return { response: this.record.id, questions: questions.map(({ key: _, ...question }) => question) }
  }

  get answers(): Readonly<Record<string, Answer>> {
    return this.turn?.questions.answers ?? this.#answers
  }

  /** Takes an answer. False when no question waits for it. */
  answer(event: ClientEvent): boolean {
    if (this.turn) return this.turn.answer(event)
    const question = answered(this.record.questions ?? [], event)
    if (!question || this.#answers[question.key]) return false
    this.#answers = { ...this.#answers, [question.key]: event as Answer }
    return true
  }

  /** Keeps the generator for `ms`, or until the principal has too many parked turns. */
  hold(ms: number, enter: (giveUp: () => void) => () => void): void {
    const timer = setTimeout(() => this.giveUp('The question was not answered in time'), ms)
    const leave = enter(() => this.giveUp('Too many questions wait for an answer'))
    this.#leave = () => {
      clearTimeout(timer)
      leave()
    }
  }

  /** The turn is no longer parked: stops the timer and the count. */
  release(): void {
    this.#leave()
    this.#leave = () => undefined
  }

  /** Ends the generator. Answers are still accepted; the turn is then run again. */
  giveUp(reason: string): void {
    this.release()
    const turn = this.turn
    if (!turn) return
    this.#answers = turn.questions.answers
    this.#turn = undefined
    turn.cancel(new UampError('cancelled', reason))
  }
}

/** Counts parked turns by principal; beyond the bound it gives up the oldest. */
export class Parking {
  readonly #bound: number
  readonly #waiting = new Map<string, Set<() => void>>()

  constructor(bound: number) {
    this.#bound = bound
  }

  /** Call the returned function when the turn is no longer parked. */
  enter(principal: Principal, abandon: () => void): () => void {
    const key = principalKey(principal)
    const waiting = this.#waiting.get(key) ?? new Set()
    this.#waiting.set(key, waiting.add(abandon))
    if (waiting.size > this.#bound) for (const oldest of [...waiting].slice(0, waiting.size - this.#bound)) oldest()
    return () => {
      waiting.delete(abandon)
      if (waiting.size === 0) this.#waiting.delete(key)
    }
  }
}
