import type { ClientProfile } from '../../protocol/capabilities.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent, EventOf } from '../../protocol/events.ts'
import type { Message } from '../../protocol/message.ts'
import { tokenPayment, type Payment } from '../../protocol/payment.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import { Stamp } from '../log/entry.ts'
import { isInput } from '../../protocol/gather-input.ts'
import { PendingInputs, tidyResult } from './input.ts'
import type { Journal } from '../durable/journal.ts'
import type { Log } from '../log/log.ts'
import { outputMessages } from '../reading/output.ts'
import { tellEnd } from './ending.ts'
import { Parked } from './parking.ts'
import { checkClientTools, responseConfig, withOverrides } from '../edge/asked.ts'
import type { AgentPort } from '../ports/agent.ts'
import type { InputEvent, Reader, ReadOptions, ResponseOptions, Sender, Session, Waiting } from '../ports/session.ts'
import type { Answer } from './questions.ts'
import type { TurnRecord } from '../durable/records.ts'
import { continued, openedRecord, resultsIn, runAgain, slotsIn, turnStart } from './run.ts'
import type { AskedTurn, End, RunStart } from './run.ts'
import { modelCapabilities, pong, SessionFacts } from './session-facts.ts'
import { notAwaited, notInProgress, responseInProgress, Seen, Unread } from './session-parts.ts'
import type { SessionHost, SessionParts, SessionState } from './session-parts.ts'
import { ActiveTurn } from './turn.ts'
import type { TurnHost } from './turn-parts.ts'
import { toldCapabilities } from '../basics/shown-price.ts'
import { weigh, weighMessages } from '../basics/weight.ts'

/** One conversation in progress. */
export class AgentSession extends SessionFacts implements Session, TurnHost {
  readonly log: Log
  readonly seen = new Seen()
  config: SessionConfig
  client: ClientProfile | undefined
  /** When the last response ended or the last reader left. */
  idleSince: number
  readonly #host: SessionHost
  readonly #journal: Journal | undefined
  readonly #stamp: Stamp
  #messages: readonly Message[]
  lastResponse: string | null
  readonly #pending: PendingInputs
  /** A payment that the client sent in advance: it answers the first `payment.required` of a turn. It is not stored. */
  #payment: Payment | undefined
  #turn: ActiveTurn | undefined
  #record: TurnRecord | undefined
  /** What the turn's earlier responses said, in case the turn has to be run again. */
  #said: readonly Message[] = []
  #parked: Parked | undefined
  readonly #unread: Unread

  constructor(host: SessionHost, state: SessionState, parts: SessionParts) {
    super(host, state, parts)
    this.config = state.config
    this.client = state.client
    this.idleSince = host.monotonic()
    this.#host = host
    this.#journal = parts.journal
    const stop = (): void => this.interrupt(new UampError('cancelled', 'Nobody is reading the answer'))
    this.#unread = new Unread(host.limits.resumeWindowMs, stop)
    this.#messages = state.messages
    this.lastResponse = state.head
    this.#payment = state.opening?.payment
    this.#pending = new PendingInputs(host.limits, parts.held, { messages: state.input ?? [], events: state.pending })
    this.#stamp = new Stamp(state.id, undefined, { shown: this.shownId })
    this.#parked = state.waiting && new Parked(state.waiting)
    this.log = parts.log(() => this.#readersChanged())
  }

  get lastSeq(): number {
    return this.log.visible
  }

  /** True if the session must stay in memory. */
  get busy(): boolean {
    return this.#turn !== undefined || this.#parked?.turn !== undefined || this.log.readers > 0 || this.stay.isUsed
  }

  /** True if the session should leave memory as soon as it is not busy. */
  get unwanted(): boolean {
    return this.stored && (this.held.isLarge || this.stay.isReleased)
  }

  get responding(): boolean {
    return this.#turn !== undefined
  }

  get waiting(): Waiting | undefined {
    return this.#parked?.waiting
  }

  get asking(): Waiting['questions'] {
    return this.#turn?.questions.unanswered ?? this.waiting?.questions ?? []
  }

  announceCapabilities(): void {
    const agent = this.#host.findAgent(this.agent)
    if (agent) this.log.append(this.#stamp, { type: 'capabilities', capabilities: toldCapabilities(agent) })
  }

  read(options?: ReadOptions): Reader {
    return this.log.read(options)
  }

  async send(event: ClientEvent, by?: Sender): Promise<void> {
    this.stay.check()
    if (event.type === 'ping') this.log.tell(pong(this, this.#host.now()))
    else await this.seen.once(event, () => this.#accept(event, by))
  }

  async say(inputs: readonly InputEvent[], create: EventOf<'response.create'>, options?: ResponseOptions): Promise<void> {
    this.stay.check()
    const takeBack = this.#pending.addAll(inputs)
    try {
      await this.seen.once(create, () => this.#respond(create, options))
    } catch (error) {
      takeBack()
      throw error
    }
  }

  end(reason?: string, error?: EventOf<'session.error'>['error']): Promise<void> {
    return this.stay.end(async () => {
      if (error) this.log.append(this.#stamp, { type: 'session.error', error })
      this.#abandon('The session has ended')
      const turn = this.#turn
      turn?.cancel(new UampError('cancelled', 'The session has ended'))
      await turn?.finished
      this.#unread.clear()
      this.log.append(this.#stamp, { type: 'session.end', ...(reason !== undefined && { reason }) })
      this.log.end()
      await (this.#journal?.close(this) ?? Promise.resolve()).finally(() => this.#host.ended(this))
    })
  }

  leave(): void {
    this.stay.left()
    void this.#letGoIfUnwanted()
  }

  async release(): Promise<void> {
    this.stay.release()
    await (this.stored ? this.#host.letGo(this) : this.end())
  }

  /** Stops a response that is about to be deleted, whether it runs or is parked. */
  async forget(responseId: string): Promise<void> {
    if (this.#parked?.record.id === responseId) this.#abandon('The response was deleted')
    const turn = this.#turn
    if (turn?.responseId !== responseId) return
    turn.cancel(new UampError('cancelled', 'The response was deleted'))
    await turn.finished
  }

  /** The server closes. A parked turn stays in the store, where the next start finds it. */
  close(): void {
    this.#parked?.giveUp('The server is shutting down')
    this.log.end()
  }

  /** Stops the running response for the server's own reason. */
  interrupt(reason: UampError): void {
    this.#turn?.cancel(reason)
  }

  /** Resolves when everything so far is committed; to false if more came meanwhile. */
  async flush(): Promise<boolean> {
    return this.#journal?.flush() ?? true
  }

  #accept(event: ClientEvent, by: Sender | undefined): Promise<void> {
    if (isInput(event)) return this.#input(event)
    const { config, client } = this
    switch (event.type) {
      case 'response.create':
        return this.#respond(event, by)
      case 'response.cancel':
        this.#cancel(event)
        break
      case 'tool.result':
      case 'x.approval.response':
      case 'payment.submit':
        return this.#answer(tidyResult(event, this.newId))
      case 'session.update':
        checkClientTools(this.#host.findAgent(this.agent), event.session?.tools)
        this.log.checkStore()
        return this.#configure({ config: event.session ? withOverrides(config, event.session) : config, client }, () => {
          this.#bring(tokenPayment(event.payment_token), event.event_id)
          this.log.append(this.#stamp, { type: 'session.updated' })
        })
      case 'session.end':
        return this.end(event.reason)
      case 'capabilities.query':
        this.log.checkStore()
        if (event.model !== undefined) return this.#describeModel(event.model)
        this.announceCapabilities()
        break
      case 'voice.invite':
        this.log.append(this.#stamp, { type: 'voice.decline', reason: 'unsupported' })
        break
      case 'session.create':
        throw new UampError('invalid_request', 'session.create opens a session; this one is open')
      case 'client.capabilities':
        return this.#configure({ config, client: event.capabilities })
      // These are for other members of a session, and a session has only one client so far.
      case 'input.typing':
      case 'message.read':
      case 'voice.accept':
      case 'voice.decline':
      case 'voice.end':
      case 'ping':
    }
    return Promise.resolve()
  }

  /** UAMP events §5.4: the capabilities with one model of the agent. */
  async #describeModel(model: string): Promise<void> {
    const capabilities = await modelCapabilities(this.agent, this.#host.findAgent(this.agent), model)
    this.log.append(this.#stamp, { type: 'capabilities', capabilities })
  }

  #configure({ config, client }: Pick<SessionState, 'config' | 'client'>, told?: () => void): Promise<void> {
    this.held.grow('config', weigh(config) + weigh(client))
    this.config = config
    this.client = client
    told?.()
    return this.#journal?.describe(this) ?? Promise.resolve()
  }

  #input(event: InputEvent): Promise<void> {
    this.#pending.add(event)
    if (!this.#journal) return Promise.resolve()
    // The client is told that its input was not stored, and may send it again: so it must not count twice.
    return this.#journal.input(event).catch((error: unknown) => {
      this.#pending.remove(event)
      throw error
    })
  }

  #answer(event: Answer): Promise<void> {
    const isTaken = this.held.takes('answers', weigh(event), () => (this.#turn ?? this.#parked)?.answer(event) ?? false)
    if (isTaken) return this.#journal?.input(event) ?? Promise.resolve()
    throw notAwaited(event)
  }

  /** A token in an update pays for what follows, and for what waits for a payment. */
  #bring(payment: Payment | undefined, event_id: string): void {
    if (!payment) return
    this.#payment = payment
    const turn = this.#turn
    if (!turn) return
    if (turn.questions.unanswered.some(({ type }) => type === 'payment.required')) {
      turn.answer({ type: 'payment.submit', event_id, payment })
    } else turn.questions.payment = payment
  }

  #cancel({ response_id: id }: EventOf<'response.cancel'>): void {
    const turn = this.#turn
    if (!turn || (id !== undefined && id !== turn.responseId)) throw notInProgress(id)
    turn.cancel(new UampError('cancelled', 'Cancelled by the client'))
  }

  #respond(event: EventOf<'response.create'>, options: ResponseOptions = {}): Promise<void> {
    if (this.#turn) throw responseInProgress(this.#turn.responseId)
    const agent = this.#host.admit(this.agent, this.traceOf(options))
    this.held.check()
    checkClientTools(agent, event.response?.tools)
    if (this.#parked && this.#pending.empty) return this.#goOn(this.#parked, event, options)
    this.#abandon('New input came instead of an answer')
    const { messages: input, stateless } = this.#pending.gather(this.newId)
    const record = this.#opened(event, { input, stateless, eventIds: [...this.#pending.eventIds, event.event_id], options })
    const messages = stateless ? input : [...this.#messages, ...input]
    return this.#start(agent, record, { id: record.id, messages, config: record.config, asked: record.asked, options })
  }

  #opened(event: EventOf<'response.create'>, asked: AskedTurn): TurnRecord {
    const [id, from, after] = [`resp_${this.newId()}`, this.#journal?.inputs ?? 0, this.log.head]
    const config = responseConfig(this.config, event)
    const slots = slotsIn(event)
    if (config || slots) this.held.grow('config', weigh(this.config) + weigh(this.client) + weigh(config) + weigh(slots))
    return openedRecord(this, { id, parent: this.lastResponse, from, after, createdAt: this.#host.now(), config, asked: slots }, asked)
  }

  async #start(agent: AgentPort, record: TurnRecord, run: RunStart & { readonly options: ResponseOptions }): Promise<void> {
    const before = { messages: this.#messages, head: this.lastResponse, bytes: this.held.get('messages') }
    const trace = this.traceOf(run.options)
    const payment = run.options.payment ?? tokenPayment(this.#pending.paymentToken) ?? this.#payment
    const given = { ...run.options, record, run, limits: this.#host.limits, held: this.held, payment, trace }
    const turn = new ActiveTurn(this, turnStart(this, given))
    for (const { tool_result } of resultsIn(record.given ?? [])) turn.output.addResult(tool_result)
    this.#turn = turn
    this.#record = record
    this.#said = run.said ?? []
    const putBack = this.#pending.take()
    this.held.set('messages', (record.stateless ? 0 : before.bytes) + weighMessages(record.input))
    this.#messages = record.run === record.id ? run.messages : this.#messages
    this.lastResponse = record.id
    this.log.onDetach = this.onDetach
    try {
      await this.#journal?.open(this, record, run.options.keeper?.opened(record))
    } catch (error) {
      this.#turn = this.#record = undefined
      putBack()
      this.held.set('messages', before.bytes)
      this.#messages = before.messages
      this.lastResponse = before.head
      throw error
    }
    this.#watch()
    const failed = (error: unknown): void => this.#host.log('error', 'A turn failed to end', { session: this.id, error, ...trace?.fields })
    turn.run(agent).catch(failed)
  }

  /** Continues a parked turn with its answers: in the same generator, or, if that is gone, by running the agent again. */
  async #goOn(parked: Parked, event: EventOf<'response.create'>, options: ResponseOptions): Promise<void> {
    const { record: before, start, answers, turn } = parked
    const waiting = turn?.questions.unanswered.map(({ id }) => id) ?? []
    if (waiting.length > 0) throw new UampError('invalid_request', 'The turn still waits for answers', { details: { waiting } })
    const blank = this.#opened(event, { input: [], stateless: false, eventIds: [event.event_id], options })
    const record = continued(blank, before, answers)
    this.#parked = undefined
    parked.release()
    if (!turn) {
      return this.#start(runAgain(this.#host.admit(this.agent), answers), record, { ...start, options }).catch((error: unknown) => {
        this.#parked = parked
        throw error
      })
    }
    this.#turn = turn
    this.#record = record
    this.lastResponse = record.id
    this.log.onDetach = this.onDetach
    turn.resume(record.id, { ...options, trace: this.traceOf(options) })
    this.#watch()
    try {
      await this.#journal?.open(this, record, options.keeper?.opened(record))
    } catch (error) {
      turn.keeper = undefined
      turn.cancel(UampError.from(error))
      throw error
    }
  }

  /** Gives up the parked turn, because new input came instead of an answer, or the session ends. */
  #abandon(reason: string): void {
    this.#parked?.giveUp(reason)
    this.#parked = undefined
  }

  /** Called by the turn when its response is over. */
  async ended(turn: ActiveTurn, ended: End): Promise<void> {
    const before = this.#record as TurnRecord
    const closing = turn.bill?.close(ended)
    const given = closing ? await closing.end(ended) : ended
    const parts = { host: this.#host, turn, end: given, before, journal: this.#journal, closing }
    const telling = tellEnd(this, parts)
    if (closing) telling.catch((failure: unknown) => closing.done(failure))
    const { record, end } = await telling
    // Of one request and its reply, nobody is there any more to hear it.
    const balance = this.duplex && record.status !== 'waiting' ? closing?.balance() : undefined
    if (balance) this.log.append(turn.stamp, balance)
    this.held.keepOutput(turn.output.size, record.status === 'waiting')
    if (before.config || before.asked) this.held.set('config', weigh(this.config) + weigh(this.client))
    this.#messages = [...this.#messages, ...outputMessages(end.output)]
    this.#turn = this.#record = undefined
    this.idleSince = this.#host.monotonic()
    this.#unread.clear()
    if (record.status !== 'waiting') return this.#letGoIfUnwanted()
    this.#said = [...this.#said, ...outputMessages(end.output)]
    this.#parked = new Parked({
      record,
      start: { id: before.run, messages: turn.messages, config: turn.config, asked: turn.asked, said: this.#said },
      turn,
    })
    this.#parked.hold(this.#host.limits.parkMs, (giveUp) => this.#host.parked(this.owner, giveUp))
  }

  #readersChanged(): void {
    this.idleSince = this.#host.monotonic()
    this.#watch()
    if (this.log.readers === 0) void this.#letGoIfUnwanted()
  }

  async #letGoIfUnwanted(): Promise<void> {
    if (!this.unwanted || this.busy) return
    const failed = (error: unknown): void => this.#host.log('error', 'A session could not be stored', { session: this.id, error })
    await this.#host.letGo(this).catch(failed)
  }

  #watch(): void {
    this.#unread.check(this.#turn && this.log.readers === 0 ? this.log.onDetach : undefined)
  }

  finish(): void {
    this.log.onDetach = 'finish'
    this.#watch()
  }
}
