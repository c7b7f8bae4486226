import { understoodEvents, type ClientProfile } from '../../protocol/capabilities.ts'
import { withContentId, type ContentItem, type ToolResult } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent, Draft } from '../../protocol/events.ts'
import type { Message } from '../../protocol/message.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import { checkDraft, checkEvent, checkGenerator, drafted, plainText } from './check-draft.ts'
import { defer } from '../basics/time.ts'
import { Stamp } from '../log/entry.ts'
import { Output } from '../reading/output.ts'
import type { Principal } from '../ports/access.ts'
import type { HttpClient } from '../ports/http.ts'
import type { TurnKeeper } from '../ports/keeper.ts'
import type { Charged, ChargeRequest, FreeQuota, Payments } from '../ports/payments.ts'
import type { AgentPort, AskOptions, ClientMethods, QuestionDraft, Questions, Said, Turn } from '../ports/agent.ts'
import type { Span, Trace } from '../ports/trace.ts'
import type { TurnStore } from '../ports/turn-store.ts'
import { withHandle } from './input.ts'
import { QuestionBook, type Answer, type Asker } from './questions.ts'
import { endOf, failure, responseCreated, resultsIn, type End } from './run.ts'
import type { TurnHost, TurnStart } from './turn-parts.ts'
import { isReason, restOf, toDraft } from './unsaid.ts'
import { usageAttributes } from '../basics/work.ts'
import { weigh } from '../basics/weight.ts'
import { Bill } from './bill.ts'
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
/** How long a stopped agent may clean up before its response is closed without waiting for it. */
const STOP_MS = 50
/** How often an agent is run again that asks for money by an error. */
const RERUNS = 5

/** A running turn: pulls the agent's generator into the log, puts its questions, and stops it. */
export class ActiveTurn implements Turn, Asker {
  readonly id: string
  readonly sessionId: string
  readonly messages: readonly Message[]
  readonly said: readonly Message[] | undefined
  readonly config: SessionConfig
  readonly asked: Turn['asked']
  readonly transport: string
  readonly chat: string | undefined
  readonly principal: Principal
  readonly client: ClientProfile | undefined
  readonly methods: ClientMethods | undefined
  readonly silent: boolean
  readonly handoff: string | undefined
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
  readonly #begun = performance.now()
  #timer: ReturnType<typeof setTimeout> | undefined
  #stamp: Stamp
  #iterator: AsyncIterator<Said> | undefined
  #finish: () => void = () => undefined
  #agent = ''
  #bill: Bill | undefined
  /** How often the agent asked for money by an error. */
  #reruns = 0
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
    this.id = start.id
    this.responseId = start.responseId ?? start.id
    this.sessionId = host.id
    this.messages = start.messages
    this.said = start.said
    this.config = start.config
    this.asked = start.asked
    this.methods = start.methods
    this.transport = host.transport
    this.chat = host.chat
    this.principal = start.principal ?? host.owner
    this.client = host.client
    this.silent = host.opening?.silent ?? false
    this.handoff = host.opening?.handoff
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

  get store(): TurnStore {
    return this.#host.store
  }

  get redact(): (text: string) => string {
    return (text) => this.#host.secrets.text(text)
  }

  get duplex(): boolean {
    return this.#host.duplex
  }

  understood(type: string): boolean {
    return this.#host.log.understood(type, understoodEvents(this.#host.client))
  }

  get stamp(): Stamp {
    return this.#stamp
  }

  /** What the turn costs. Undefined: it has charged nothing, or this server takes no payments. */
  get bill(): Bill | undefined {
    return this.#bill
  }

  get hasSpoken(): boolean {
    return this.output.size > 0 || this.#before.length > 0
  }

  ask<Q extends keyof Questions>(type: Q, question: QuestionDraft<Q>, options?: AskOptions): Promise<Questions[Q]> {
    return watched(type === 'payment.required' ? this.#askToPay(question, options) : this.questions.ask(type, question, options))
  }

  async #askToPay<Q extends keyof Questions>(question: QuestionDraft<Q>, options?: AskOptions): Promise<Questions[Q]> {
    const { payments } = this.#host
    const asked = question as QuestionDraft<'payment.required'>
    if (payments && !options?.relay) this.#checkOpen()
    if (payments && !options?.relay) return (await this.#openBill(payments).ask(asked, options)) as Questions[Q]
    const brought = this.questions.payment
    // A token of this server is money here, and must not reach others.
    const anew = payments !== undefined && brought !== undefined && (await payments.isOwn(brought))
    return (await this.questions.ask('payment.required', asked, anew ? { ...options, anew } : options)) as Questions[Q]
  }

  charge(request: ChargeRequest): Promise<Charged> {
    return watched(this.#charge(request))
  }

  async #charge(request: ChargeRequest): Promise<Charged> {
    const { payments } = this.#host
    if (!payments) throw new UampError('not_supported', 'This server takes no payments')
    this.#checkOpen()
    return this.#openBill(payments).charge(request)
  }

  /** Nothing settles what is charged after the end. */
  #checkOpen(): void {
    if (this.#stopped) throw this.#stopped
    if (this.#closed && !this.parked) throw new UampError('cancelled', 'The turn has ended')
  }

  /** Takes a call that is free for whoever asks. */
  takeFree(free: FreeQuota): Promise<boolean> {
    const { payments } = this.#host
    return payments ? this.#openBill(payments).takeFree(free) : Promise.resolve(false)
  }

  #openBill(payments: Payments): Bill {
    return (this.#bill ??= new Bill(this, { payments, agent: this.#agent, now: this.#host.now, paid: this.#start.paid }))
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

  async #runOnce(agent: AgentPort): Promise<End> {
    const iterator = checkGenerator(agent.run(this))[Symbol.asyncIterator]()
    this.#iterator = iterator
    try {
      return await (this.#span ? this.#span.run(() => this.#pump(iterator)) : this.#pump(iterator))
    } catch (thrown) {
      const asked = this.#stopped || this.hasSpoken ? undefined : wantsPayment(thrown)
      if (!asked || ++this.#reruns > RERUNS) throw thrown
      await this.charge({ ...asked, key: `error#${this.#reruns}` })
      this.#bill?.again()
      return this.#runOnce(agent)
    }
  }

  #begin(): void {
    const { transport, sessionId } = this
    this.#span = this.#request?.begin('invoke_agent', `invoke_agent ${this.#agent}`, {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': this.#agent,
      'gen_ai.conversation.id': sessionId,
      'uamp.transport': transport,
    })
  }

  /** Continues a parked turn with a new response. */
  resume(responseId: string, { keeper, trace, requestHash }: Pick<TurnStart, 'keeper' | 'trace' | 'requestHash'>): void {
    this.responseId = responseId
    this.keeper = keeper
    this.requestHash = requestHash
    this.#request = trace ?? this.#request
    this.#begin()
    this.#stamp = new Stamp(this.sessionId, responseId, { shown: this.#host.shownId })
    this.#before.push(...this.output.items())
    this.output = new Output()
    for (const result of this.#parkedResults.splice(0)) this.output.addResult(result)
    this.#closed = this.#announced = this.#spoke = false
    this.#announce()
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
    await this.#leave().catch(() => undefined)
    await this.#close(failure(reason, this.output.items()))
  }

  /** Runs the generator's `finally`, but waits no longer than `STOP_MS` for an agent that ignores the signal. */
  async #leave(): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise((resolve) => (timer = setTimeout(resolve, STOP_MS)))
    await Promise.race([this.#iterator?.return?.(), late]).finally(() => clearTimeout(timer))
  }

  async #pump(iterator: AsyncIterator<Said>): Promise<End> {
    const { log } = this.#host
    const { turnstile } = this.#host
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
        await this.#leave()
        return end
      }
      left--
      if ((left & 15) !== 0 && text !== undefined && text.length < SHORT) continue
      this.#checkSize(this.output.size)
      if (log.full) await log.room(this.signal)
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
    this.firstDeltaMs ??= performance.now() - this.#begun
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
        this.#bill?.drop()
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

/** A stopped agent may never await this promise: its rejection must not count as unhandled. */
function watched<T>(answer: Promise<T>): Promise<T> {
  answer.catch(() => undefined)
  return answer
}
