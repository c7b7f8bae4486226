import { withContentId, type ContentItem, type ToolResult } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent, Draft } from '../../protocol/events.ts'
import { checkDraft, checkEvent, checkGenerator, drafted, plainText } from './check-draft.ts'
import { defer } from '../basics/time.ts'
import { Stamp } from '../log/entry.ts'
import { Output } from '../reading/output.ts'
import type { HttpClient } from '../ports/http.ts'
import type { TurnKeeper } from '../ports/keeper.ts'
import type { Charged, ChargeRequest, FreeQuota, HandedOn, HandOnRequest } from '../ports/payments.ts'
import type { AgentPort, AskOptions, QuestionDraft, Questions, Said, Turn } from '../ports/agent.ts'
import type { Span, Trace } from '../ports/trace.ts'
import { withHandle } from './input.ts'
import { QuestionBook, type Answer, type Asker } from './questions.ts'
import { beginSpan, endOf, failure, responseCreated, resultsIn, type End } from './run.ts'
import { leave, type TurnHost, type TurnResume, type TurnStart } from './turn-parts.ts'
import { isReason, restOf, toDraft } from './unsaid.ts'
import { usageAttributes } from '../basics/work.ts'
import { weigh } from '../basics/weight.ts'
import type { Bill } from './bill.ts'
import type { PaymentQuestion } from './payment-words.ts'
import { TurnFacts } from './turn-facts.ts'
import { TurnMoney, watched } from './turn-money.ts'
import { priced, wantsPayment } from './priced.ts'

/** The pump yields to the event loop after this many events or milliseconds, so that a cancel always gets through. */
const SLICE_EVENTS = 256
const SLICE_MS = 4
/** The first slice where many agents begin at once: enough to see whether the agent waits for something. */
const FIRST_EVENTS = 4
/** For deltas shorter than this, the size is checked only at every sixteenth. */
const SHORT = 4096
/** A pump gets this many slices in a row before it queues behind others. */
const SLICES = 4
/** How often an agent is run again that throws its price. */
const RERUNS = 5

/** A running turn: pulls the agent's generator into the log, puts its questions, and stops it. */
export class ActiveTurn extends TurnFacts implements Turn, Asker {
  /** Resolves when the turn's last response has ended. */
  readonly finished: Promise<void>
  responseId: string
  /** How long the first event took; undefined until it comes. */
  firstDeltaMs: number | undefined
  output = new Output()
  /** The keeper of the running response. */
  keeper: TurnKeeper | undefined
  /** The hash of the messages that the running response answers, as their client wrote them. */
  requestHash: string | undefined
  /** What the turn's earlier responses said. */
  readonly #before: ContentItem[] = []
  readonly #host: TurnHost
  readonly #start: TurnStart
  /** The request that the running response answers, and the work on it. */
  #request: Trace | undefined
  #span: Span | undefined
  /** Made for the first question: most turns ask nothing. */
  #questions: QuestionBook | undefined
  /** Made when `signal` is first read: most short responses end before that. */
  #controller: AbortController | undefined
  readonly begun = performance.now()
  #timer: ReturnType<typeof setTimeout> | undefined
  #stamp: Stamp
  #iterator: AsyncIterator<Said> | undefined
  #finish: () => void = () => undefined
  #agent = ''
  #money: TurnMoney | undefined
  /** Why the turn was cancelled. */
  #stopped: UampError | undefined
  /** Tool results that came between two responses: they belong to the second one's output. */
  #parkedResults: ToolResult[] = []
  #announced = false
  /** True once the response has a plain text delta. */
  #spoke = false
  #closed = false
  /** Resolves when readers see the end of the response. */
  #ending: Promise<void> | undefined
  #parking = false
  /** Resolves when the next response begins or the turn is given up. Undefined while a response runs. */
  parked: Promise<void> | undefined
  #goOn: () => void = () => undefined

  constructor(host: TurnHost, start: TurnStart) {
    super(host, start)
    this.responseId = start.responseId ?? start.id
    this.#host = host
    this.#start = start
    this.finished = new Promise((resolve) => (this.#finish = resolve))
    this.#stamp = new Stamp(host.id, this.responseId, { shown: host.shownId })
    this.keeper = start.keeper
    this.requestHash = start.requestHash
    this.#request = start.trace
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.#stopped) this.#controller.abort(this.#stopped)
    }
    return this.#controller.signal
  }

  get questions(): QuestionBook {
    return (this.#questions ??= new QuestionBook(this, this.#start))
  }

  get http(): HttpClient {
    const { http } = this.#host.secrets
    return this.trace ? { ...http, trace: this.trace } : http
  }

  get trace(): Trace | undefined {
    return this.#span ?? this.#request
  }

  get stamp(): Stamp {
    return this.#stamp
  }

  /** What the turn costs. Undefined: it has charged nothing, or this server takes no payments. */
  get bill(): Bill | undefined {
    return this.#money?.bill
  }

  due(currency: string): bigint {
    return this.#money?.due(currency) ?? 0n
  }

  get hasSpoken(): boolean {
    return this.output.size > 0 || this.#before.length > 0
  }

  get over(): UampError | undefined {
    return this.#stopped ?? (this.#closed && !this.parked ? new UampError('cancelled', 'The response is over') : undefined)
  }

  /** Made when money is first spoken of. */
  get #cost(): TurnMoney {
    const { payments, now, opening } = this.#host
    const isThere = opening?.paidThere === true
    return (this.#money ??= new TurnMoney(this, { payments, isThere, now, agent: () => this.#agent, paid: this.#start.paid }))
  }

  ask<Q extends keyof Questions>(type: Q, question: QuestionDraft<Q>, options?: AskOptions): Promise<Questions[Q]> {
    const money = type === 'payment.required' && (this.#cost.ask(question as PaymentQuestion, options) as Promise<Questions[Q]>)
    return watched(money || this.questions.ask(type, question, options))
  }

  charge(request: ChargeRequest): Promise<Charged> {
    return this.#cost.charge(request)
  }

  handOn(request: HandOnRequest): Promise<HandedOn> {
    return this.#cost.handOn(request)
  }

  takeFree(free: FreeQuota): Promise<boolean> {
    return this.#cost.takeFree(free)
  }

  answer(event: ClientEvent): boolean {
    if (!this.questions.take(event)) return false
    for (const { tool_result } of resultsIn([event as Answer])) {
      if (this.#closed) this.#parkedResults.push(tool_result)
      else this.output.addResult(tool_result)
    }
    return true
  }

  async run(agent: AgentPort): Promise<void> {
    if (this.#stopped) return
    const { turnTimeoutMs } = this.#start.limits
    const late = (): void => this.cancel(new UampError('timeout', `The response took longer than ${turnTimeoutMs} ms`))
    this.#timer = setTimeout(late, turnTimeoutMs)
    this.#announce()
    this.#agent = agent.name
    this.#begin()
    let end: End
    try {
      end = await this.#runOnce(agent.price ? priced(agent, agent.price) : agent)
    } catch (thrown) {
      if (this.parked) await this.parked
      // If the pump threw, and not the agent, the generator still has to run its `finally`.
      void Promise.resolve(this.#iterator?.return?.()).catch(() => undefined)
      end = failure(thrown, this.output.items())
    }
    // `#stop` closes a cancelled response.
    if (!this.#stopped) await this.#close(end)
  }

  /** An agent that throws a price instead of an answer is paid, and run again. */
  async #runOnce(agent: AgentPort, run = 1): Promise<End> {
    const iterator = checkGenerator(agent.run(this))[Symbol.asyncIterator]()
    this.#iterator = iterator
    try {
      return await (this.#span ? this.#span.run(() => this.#pump(iterator)) : this.#pump(iterator))
    } catch (thrown) {
      const asked = this.#stopped || this.hasSpoken ? undefined : wantsPayment(thrown)
      if (!asked || run > RERUNS) throw thrown
      await this.charge({ ...asked, key: `thrown#${run}` })
      this.bill?.restart()
      return this.#runOnce(agent, run + 1)
    }
  }

  #begin(): void {
    this.#span = beginSpan(this.#request, this.#agent, this)
  }

  /** Continues a parked turn with a new response. */
  resume(responseId: string, { keeper, trace, requestHash, payment, paysAnew }: TurnResume): void {
    this.responseId = responseId
    this.keeper = keeper
    this.requestHash = requestHash
    this.paysAnew = paysAnew ?? this.paysAnew
    this.#request = trace ?? this.#request
    this.#begin()
    this.#stamp = new Stamp(this.sessionId, responseId, { shown: this.#host.shownId })
    this.#before.push(...this.output.items())
    this.output = new Output()
    for (const result of this.#parkedResults.splice(0)) this.output.addResult(result)
    this.#closed = this.#announced = this.#spoke = false
    this.#announce()
    if (payment) this.#cost.bring(payment)
    this.questions.release()
    this.parked = undefined
    this.#goOn()
  }

  /** The only way to stop a turn: aborts the signal, runs the generator's `finally`, and closes the response with the reason. */
  cancel(reason: UampError): void {
    if (this.#stopped) return
    this.#stopped = reason
    clearTimeout(this.#timer)
    this.#controller?.abort(reason)
    this.#goOn()
    void this.#stop(reason)
  }

  async #stop(reason: UampError): Promise<void> {
    // From here on `emit` drops what the agent still yields.
    await leave(this.#iterator).catch(() => undefined)
    await this.#close(failure(reason, this.output.items()))
  }

  async #pump(iterator: AsyncIterator<Said>): Promise<End> {
    const { log, turnstile } = this.#host
    const first = turnstile.hasRoom ? SLICE_EVENTS : FIRST_EVENTS
    await turnstile.enter(this.silent)
    let [slices, left, until] = [0, first, performance.now() + SLICE_MS]
    for (;;) {
      const step = await iterator.next()
      // Events that the agent yields while it is parked belong to the response that the answer opens.
      if (this.parked) await this.parked
      if (this.#stopped) {
        if (!step.done) void Promise.resolve(iterator.return?.()).catch(() => undefined)
        throw this.#stopped
      }
      if (step.done) return { kind: 'done', output: this.output.items() }
      const draft = drafted(step.value)
      const text = plainText(draft)
      const end = text === undefined ? this.#take(draft) : this.#say(draft)
      if (end) {
        await leave(this.#iterator)
        return end
      }
      left--
      if ((left & 15) !== 0 && text !== undefined && text.length < SHORT) continue
      this.#checkSize(this.output.size)
      if (log.full) await (log.isStoreLate ? log.room(this.signal) : this.questions.unread(log.room(this.signal)))
      else if (left <= 0 || performance.now() > until) await turnstile.pass(slices++ % SLICES !== 0)
      else continue
      left = SLICE_EVENTS
      until = performance.now() + SLICE_MS
    }
  }

  /** Throws when the response exceeds its bound, or memory has no room for it. */
  #checkSize(bytes: number): void {
    const { outputBytes } = this.#start.limits
    if (bytes > outputBytes) {
      throw new UampError('too_large', `The response is larger than ${outputBytes} bytes`, { details: { limit: outputBytes } })
    }
    this.#start.held.grow('output', bytes)
  }

  /** Emits a draft, or returns the end of the response if the draft is one. */
  #take(draft: Draft): End | undefined {
    checkEvent(draft as unknown)
    switch (draft.type) {
      case 'response.delta':
        this.emit(draft)
        return undefined
      // Only the session says these; a remote agent yields those of its own session.
      case 'response.created':
      case 'session.created':
      case 'session.updated':
      case 'session.end':
      case 'pong':
      case 'x.ack':
        return undefined
      case 'response.done': {
        checkDraft(draft as unknown)
        const { output: given, usage, extensions } = draft.response
        if (usage) this.output.usage = usage
        this.#sayRest(given, isReason(extensions))
        return endOf(draft, this.output.items())
      }
      case 'response.error':
        checkDraft(draft as unknown)
        return { kind: 'failed', output: this.output.items(), error: draft.error }
      case 'payment.error':
        this.emit({ ...draft, message: this.redact(draft.message) })
        return undefined
      case 'response.cancelled':
        return { kind: 'cancelled', output: this.output.items() }
      default:
        // UAMP events §11: events between the parts of an agent stay inside.
        if (!draft.type.startsWith('system.')) this.emit(draft)
        return undefined
    }
  }

  /** Streams the output that only `response.done` holds, so that no transport has to treat it specially. */
  #sayRest(given: readonly ContentItem[], isReason: boolean): void {
    if (given.length === 0) return
    const said = this.output.items()
    const { unsaid, spoken } = restOf(given, [...this.#before, ...this.output.written], this.output.spoken)
    this.#checkSize(this.output.size + weigh(unsaid))
    for (const each of unsaid) {
      const item = withContentId(each, this.#host.newId)
      if (isReason && said.length === 0) this.output.keep(item)
      else this.emit(toDraft(item))
    }
    for (const item of spoken) this.output.keep(withContentId(item, this.#host.newId))
  }

  #announce(): void {
    if (this.#announced) return
    this.#announced = true
    this.#host.log.append(this.#stamp, responseCreated(this.#start.request))
  }

  emit(given: Draft): void {
    if (this.#closed || this.#stopped) return
    checkDraft(given as unknown)
    const delta = given.type === 'response.delta' && withHandle(given.delta, this.#host.newId)
    const draft = delta && delta !== given.delta ? { type: given.type, delta } : given
    if (plainText(draft) === undefined) this.keeper?.see?.(draft)
    this.#say(draft)
  }

  #begins(draft: Draft): void {
    if (this.firstDeltaMs === undefined && !this.silent) void this.#host.log.hurry()
    this.firstDeltaMs ??= performance.now() - this.begun
    this.#spoke = plainText(draft) !== undefined
    if (this.#spoke) this.keeper?.see?.(draft)
  }

  /** The hot path. */
  #say(draft: Draft): undefined {
    if (this.#closed || this.#stopped) return
    if (!this.#spoke) this.#begins(draft)
    this.output.add(draft)
    this.#host.log.append(this.#stamp, draft)
  }

  /** Ends the response with all questions that were asked in this turn of the event loop; the generator keeps waiting. */
  park(): void {
    if (this.#parking) return
    this.#parking = true
    defer(() => {
      this.#parking = false
      if (!this.#stopped) void this.#close({ kind: 'done', output: this.output.items(), waiting: this.questions.unanswered })
    })
  }

  async #close(end: End): Promise<void> {
    if (this.#closed) {
      // Stopped after its end. The session may be about to close its log, which must have the end first.
      await this.#ending?.catch(() => undefined)
      if (this.#stopped) {
        await this.bill?.abandon(this.#stopped)
        this.#finish()
      }
      return
    }
    this.#announce()
    this.#closed = true
    const waiting = end.kind === 'done' && end.waiting !== undefined
    if (waiting) this.parked = new Promise((resolve) => (this.#goOn = resolve))
    else clearTimeout(this.#timer)
    this.#ending = this.#host.ended(this, end)
    await this.#ending
    if (this.output.usage) this.#span?.set(usageAttributes(this.output.usage))
    this.#span?.end(end.kind === 'failed' ? end.error.code : end.kind === 'cancelled' ? 'cancelled' : undefined)
    if (!waiting) this.#finish()
  }
}
