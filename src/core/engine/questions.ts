import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent, Draft, EventOf } from '../../protocol/events.ts'
import type { Slot } from '../../protocol/json.ts'
import { DECLINED, type Payment } from '../../protocol/payment.ts'
import type { Message } from '../../protocol/message.ts'
import { AnsweredCalls } from './answered-calls.ts'
import type { AskOptions, QuestionDraft, Questions } from '../ports/agent.ts'

/** How long a question waits for its answer. */
const TIMEOUT_MS = { 'tool.call': 60_000, 'payment.required': 300_000, 'x.approval.request': 600_000 } satisfies Record<
  keyof Questions,
  number
>

export type Answer = Questions[keyof Questions]

/** The part of a turn that its questions use. */
export interface Asker {
  readonly id: string
  /** When the turn began, on the clock of `performance`. */
  readonly begun: number
  readonly signal: AbortSignal
  readonly messages: readonly Message[]
  /** Puts the question into the log. */
  emit(draft: Draft): void
  /** True if an answer can come while the response runs. */
  readonly duplex: boolean
  /** True if a reader is there who can answer this type of question. */
  understood(type: string): boolean
  /** One-way only: ends the response; the next request brings the answer. */
  park(): void
  /** One-way only: resolves when the next response begins. Undefined while a response runs. */
  readonly parked: Promise<void> | undefined
}

/** A question that waits for its answer. */
export interface Question {
  readonly id: string
  readonly key: string
  readonly type: keyof Questions
  readonly extensions?: Readonly<Slot> | undefined
}

interface Open extends Question {
  readonly resolve: (answer: Answer) => void
  readonly reject: (reason: Error) => void
}

/** The question that an event answers. A payment has no id, so it answers any question for a payment. */
export function answered<Q extends Pick<Question, 'id' | 'type'>>(questions: Iterable<Q>, event: ClientEvent): Q | undefined {
  for (const question of questions) {
    const { type, id } = question
    if (event.type === 'tool.result' && type === 'tool.call' && id === event.call_id) return question
    if (event.type === 'x.approval.response' && type === 'x.approval.request' && id === event.approval_id) return question
    if (event.type === 'payment.submit' && type === 'payment.required') return question
  }
  return undefined
}

function paid<A extends Answer>(answer: A): A {
  if (answer.type === 'payment.submit' && answer.payment.scheme === DECLINED.scheme) {
    throw new UampError('payment_required', 'The client declined to pay')
  }
  return answer
}

/** The questions of one turn and their answers. */
export class QuestionBook {
  readonly #asker: Asker
  readonly #open = new Map<string, Open>()
  readonly #asked = new Map<string, number>()
  /** The ids of those that nobody answered in time. */
  readonly #missed = new Set<string>()
  /** For how much the turn waits, since when it does, and how long it has waited before. */
  #waits = 0
  #waitsSince = 0
  #waitedMs = 0
  /** The time of the turn was over while it waited for its client, or after it had waited for most of it. */
  #isHeldUp = false
  #history: AnsweredCalls | undefined
  #listens = false
  /** Answers by key; on a one-way transport the agent gets them when the next response begins. */
  readonly #answers: Map<string, Answer>

  /** A payment that the client sent in advance. */
  #payment: Payment | undefined

  constructor(
    asker: Asker,
    { answers, payment }: { readonly answers?: Readonly<Record<string, Answer>> | undefined; readonly payment?: Payment | undefined } = {},
  ) {
    this.#asker = asker
    this.#answers = new Map(answers && Object.entries(answers))
    this.#payment = payment
  }

  get unanswered(): readonly Question[] {
    return [...this.#open.values()].filter(({ key }) => !this.#answers.has(key)).map(({ resolve: _, reject: __, ...question }) => question)
  }

  /** The answer under this key, if there is one already. */
  known(key: string): Answer | undefined {
    return this.#answers.get(key)
  }

  /** A payment that the client sent in advance, and that no question has used. */
  get payment(): Payment | undefined {
    return this.#payment
  }

  /** A newer one takes its place, and answers a question that waits for one. */
  set payment(payment: Payment | undefined) {
    this.#payment = payment
  }

  /** True if an error says that nobody answered one of these questions, or that the turn had no time left because of its client. */
  hasMissed({ code, details }: EventOf<'response.error'>['error']): boolean {
    return code === 'timeout' && (this.#isHeldUp || this.#missed.has(String(details?.['id'])))
  }

  get answers(): Readonly<Record<string, Answer>> {
    return Object.fromEntries(this.#answers)
  }

  async ask<Q extends keyof Questions>(
    type: Q,
    question: QuestionDraft<Q>,
    { key, timeoutMs, anew = false }: AskOptions = {},
  ): Promise<Questions[Q]> {
    if (!Object.hasOwn(TIMEOUT_MS, type)) throw new TypeError(`An agent can ask ${Object.keys(TIMEOUT_MS).join(', ')}, but not "${type}"`)
    const number = (this.#asked.get(type) ?? 0) + 1
    this.#asked.set(type, number)
    const name = key ?? `${type}#${number}`
    const known = this.#answers.get(name) ?? this.#brought(type, anew ? undefined : question)
    if (known) return paid(known) as Questions[Q]
    if (this.#asker.parked) await this.#asker.parked
    this.#asker.signal.throwIfAborted()
    const given = question as { call_id?: string; approval_id?: string; extensions?: Slot }
    const id = given.call_id ?? given.approval_id ?? `${type === 'tool.call' ? 'call' : 'ask'}_${this.#asker.id}_${number}`
    if (type === 'x.approval.request' && !this.#asker.understood(type)) {
      return { type: 'x.approval.response', event_id: id, approval_id: id, approved: false, reason: 'approval_unavailable' } as Questions[Q]
    }
    this.#asker.emit({
      type,
      ...question,
      ...(type === 'tool.call' && { call_id: id }),
      ...(type === 'x.approval.request' && { approval_id: id }),
    } as unknown as Draft)
    const answer = this.#wait<Q>(
      { id, key: name, type, ...(given.extensions && { extensions: given.extensions }) },
      timeoutMs ?? TIMEOUT_MS[type],
    )
    if (!this.#asker.duplex) this.#asker.park()
    return paid(await answer)
  }

  /** Takes an answer. False when no question waits for it; if several readers answer, the first one wins. */
  take(event: ClientEvent): boolean {
    const open = answered(this.#open.values(), event)
    if (!open || this.#answers.has(open.key)) return false
    this.#answers.set(open.key, event as Answer)
    if (this.#asker.duplex) this.release()
    return true
  }

  /** Resolves the questions whose answers have come. */
  release(): void {
    for (const open of this.#open.values()) {
      const answer = this.#answers.get(open.key)
      if (answer) open.resolve(answer)
    }
  }

  #wait<Q extends keyof Questions>(question: Question, timeoutMs: number): Promise<Questions[Q]> {
    const { signal } = this.#asker
    return new Promise<Questions[Q]>((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(timer)
        if (this.#open.delete(question.id)) this.#waited()
      }
      const late = (): void => {
        settle()
        this.#missed.add(question.id)
        reject(new UampError('timeout', `Nobody answered ${question.type} within ${timeoutMs} ms`, { details: { id: question.id } }))
      }
      // A parked turn has a time limit of its own.
      const timer = this.#asker.duplex ? setTimeout(late, timeoutMs) : undefined
      this.#listen(signal)
      this.#waiting()
      this.#open.set(question.id, {
        ...question,
        reject: (reason) => {
          settle()
          reject(reason)
        },
        resolve: (answer) => {
          settle()
          resolve(answer as Questions[Q])
        },
      })
    })
  }

  /** Waits until its client has read what was said. */
  async unread(read: Promise<void>): Promise<void> {
    this.#listen(this.#asker.signal)
    this.#waiting()
    await read.finally(() => this.#waited())
  }

  #waiting(): void {
    if (this.#waits++ === 0) this.#waitsSince = performance.now()
  }

  #waited(): void {
    if (--this.#waits === 0) this.#waitedMs += performance.now() - this.#waitsSince
  }

  /** Adds one listener for all questions, because Node warns at the eleventh. */
  #listen(signal: AbortSignal): void {
    if (this.#listens) return
    this.#listens = true
    const aborted = (): void => {
      const isLate = UampError.from(signal.reason).code === 'timeout'
      this.#isHeldUp = isLate && (this.#waits > 0 || this.#waitedMs * 2 >= performance.now() - this.#asker.begun)
      for (const open of [...this.#open.values()]) open.reject(signal.reason as Error)
    }
    signal.addEventListener('abort', aborted, { once: true })
  }

  #brought(type: keyof Questions, question: unknown): Answer | undefined {
    if (type === 'tool.call') return question ? this.#inHistory(question as QuestionDraft<'tool.call'>) : undefined
    if (type !== 'payment.required' || !this.#payment || !question) return undefined
    const payment = this.#payment
    this.#payment = undefined
    return { type: 'payment.submit', event_id: `pay_${this.#asker.id}`, payment }
  }

  #inHistory(question: QuestionDraft<'tool.call'>): Questions['tool.call'] | undefined {
    this.#history ??= new AnsweredCalls(this.#asker.messages)
    const found = this.#history.take(question)
    return (
      found && {
        type: 'tool.result',
        event_id: found.id,
        call_id: found.id,
        result: found.result.content ?? '',
        ...(found.result.content_items && { content_items: found.result.content_items }),
      }
    )
  }
}
