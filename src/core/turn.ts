import type { Capabilities } from '../protocol/capabilities.ts'
import { withContentId, type ToolResult } from '../protocol/content.ts'
import { UampError } from '../protocol/errors.ts'
import type { ClientEvent, Draft } from '../protocol/events.ts'
import type { Message } from '../protocol/message.ts'
import type { Delta } from '../protocol/server-events.ts'
import type { SessionConfig } from '../protocol/session-config.ts'
import { defer } from './defer.ts'
import { Stamp } from './entry.ts'
import type { Log } from './log.ts'
import { Output } from './output.ts'
import type { Principal } from './ports/access.ts'
import type { AgentPort, AskOptions, QuestionDraft, Questions, Turn } from './ports/agent.ts'
import { QuestionBook, type Answer } from './questions.ts'
import type { End } from './turn-end.ts'
import type { Turnstile } from './turnstile.ts'

/** The pump hands the event loop back after so many events or milliseconds, so that a cancel is always seen. */
const SLICE_EVENTS = 256
const SLICE_MS = 4
/** So many slices it gets one after the other before it queues again. */
const SLICES = 4
/** How long a cancelled agent may take to clean up before the response is closed without it. */
const STOP_MS = 50

/** What a turn needs of its session. */
export interface TurnHost {
  readonly sessionId: string
  readonly principal: Principal
  readonly client: Capabilities | undefined
  readonly duplex: boolean
  readonly log: Log
  readonly turnstile: Turnstile
  readonly newId: () => string
  /** Closes the response; resolves once readers were told. */
  ended(turn: ActiveTurn, end: End): Promise<void>
}

export interface TurnStart {
  readonly id: string
  readonly messages: readonly Message[]
  readonly config: SessionConfig
  readonly answers?: Readonly<Record<string, Answer>>
  readonly timeoutMs: number
}

/** One run of an agent: the pump that pulls its generator into the log, its questions, its one way to stop. */
export class ActiveTurn implements Turn {
  readonly id: string
  readonly sessionId: string
  readonly messages: readonly Message[]
  readonly config: SessionConfig
  readonly principal: Principal
  readonly client: Capabilities | undefined
  readonly signal: AbortSignal
  readonly questions: QuestionBook
  /** Resolves when its last response has ended. */
  readonly finished: Promise<void>
  responseId: string
  /** How long its first event took; undefined while there is none. */
  firstDeltaMs: number | undefined
  output = new Output()
  readonly #host: TurnHost
  readonly #controller = new AbortController()
  readonly #begun = performance.now()
  readonly #timeoutMs: number
  #timer: ReturnType<typeof setTimeout> | undefined
  #stamp: Stamp
  #iterator: AsyncIterator<Draft> | undefined
  #finish: () => void = () => undefined
  /** `signal.aborted`, without a getter of the platform's for every delta. */
  #cancelled = false
  /** Answers that came between two responses: they belong to the second. */
  #parkedResults: ToolResult[] = []
  #announced = false
  #closed = false
  #parking = false

  constructor(host: TurnHost, start: TurnStart) {
    this.id = this.responseId = start.id
    this.sessionId = host.sessionId
    this.messages = start.messages
    this.config = start.config
    this.principal = host.principal
    this.client = host.client
    this.signal = this.#controller.signal
    this.#host = host
    this.finished = new Promise((resolve) => (this.#finish = resolve))
    this.#stamp = new Stamp(host.sessionId, start.id)
    this.#timeoutMs = start.timeoutMs
    this.questions = new QuestionBook(
      {
        id: start.id,
        signal: this.signal,
        messages: start.messages,
        duplex: host.duplex,
        emit: (draft) => this.#emit(draft),
        understood: (type) => host.log.understood(type),
        park: () => this.#park(),
      },
      start.answers,
    )
  }

  get stamp(): Stamp {
    return this.#stamp
  }

  ask<Q extends keyof Questions>(type: Q, question: QuestionDraft<Q>, options?: AskOptions): Promise<Questions[Q]> {
    return this.questions.ask(type, question, options)
  }

  answer(event: ClientEvent): boolean {
    const taken = this.questions.take(event)
    if (taken && event.type === 'tool.result') {
      const { call_id, result, is_error = false, content_items } = event
      const status = is_error ? 'failed' : 'completed'
      const answer: ToolResult = { call_id, result, status, is_error, ...(content_items && { content_items }) }
      if (this.#closed) this.#parkedResults.push(answer)
      else this.output.addResult(answer)
    }
    return taken
  }

  async run(agent: AgentPort): Promise<void> {
    if (this.#cancelled) return
    const late = new UampError('timeout', `The response took longer than ${this.#timeoutMs} ms`)
    this.#timer = setTimeout(() => this.cancel(late), this.#timeoutMs)
    this.#announce()
    let end: End
    try {
      this.#iterator = agent.run(this)[Symbol.asyncIterator]()
      end = await this.#pump(this.#iterator)
    } catch (thrown) {
      end = this.#failure(thrown)
    }
    // Once it is cancelled, `#stop` closes it.
    if (!this.#cancelled) await this.#close(end)
  }

  /** A parked turn goes on: what follows is a new response. */
  resume(responseId: string): void {
    this.responseId = responseId
    this.#stamp = new Stamp(this.sessionId, responseId)
    this.output = new Output()
    for (const result of this.#parkedResults.splice(0)) this.output.addResult(result)
    this.#closed = this.#announced = false
    this.#announce()
    this.questions.release()
  }

  /** The one way to stop: aborts the signal, runs the generator's `finally`, and closes the response as the reason says. */
  cancel(reason: UampError): void {
    if (this.#cancelled) return
    this.#cancelled = true
    this.#controller.abort(reason)
    void this.#stop(reason)
  }

  async #stop(reason: UampError): Promise<void> {
    // Nothing that the agent still yields is emitted; a generator that does not listen to the signal is not waited for.
    const stopped = Promise.resolve(this.#iterator?.return?.()).catch(() => undefined)
    await Promise.race([stopped, new Promise((resolve) => setTimeout(resolve, STOP_MS))])
    await this.#close(this.#failure(reason))
  }

  async #pump(iterator: AsyncIterator<Draft>): Promise<End> {
    const { log } = this.#host
    await this.#host.turnstile.enter()
    let slices = 0
    let left = SLICE_EVENTS
    let until = performance.now() + SLICE_MS
    for (;;) {
      const step = await iterator.next()
      if (this.#cancelled) {
        if (!step.done) void Promise.resolve(iterator.return?.()).catch(() => undefined)
        throw this.signal.reason as Error
      }
      if (step.done) return { kind: 'done', output: this.output.items() }
      const end = this.#take(step.value)
      if (end) {
        await iterator.return?.()
        return end
      }
      left--
      if ((left & 15) !== 0 && step.value.type === 'response.delta' && step.value.delta.type === 'text') continue
      if (log.full) await log.room(this.signal)
      else if (left <= 0 || performance.now() > until) await this.#host.turnstile.pass(++slices % SLICES !== 0)
      else continue
      left = SLICE_EVENTS
      until = performance.now() + SLICE_MS
    }
  }

  /** Emits what the agent yielded, or gives the end of the response that it stands for. */
  #take(draft: Draft): End | undefined {
    switch (draft.type) {
      case 'response.delta':
        this.#emit(draft)
        return undefined
      // The session's own to say; a remote agent repeats them.
      case 'response.created':
      case 'session.created':
      case 'session.updated':
      case 'session.end':
      case 'pong':
      case 'x.ack':
        return undefined
      case 'response.done': {
        const { status, output: given, usage } = draft.response
        if (usage) this.output.usage = usage
        const gathered = this.output.items()
        const output = gathered.length > 0 ? gathered : given
        if (status === 'failed') return { kind: 'failed', output, error: { code: 'provider_error', message: 'The agent failed' } }
        return { kind: status === 'cancelled' ? 'cancelled' : 'done', output }
      }
      case 'response.error':
        return { kind: 'failed', output: this.output.items(), error: draft.error }
      case 'response.cancelled':
        return { kind: 'cancelled', output: this.output.items() }
      default:
        // UAMP events §11: what the parts of an agent tell each other stays inside.
        if (!draft.type.startsWith('system.')) this.#emit(draft)
        return undefined
    }
  }

  #announce(): void {
    if (this.#announced) return
    this.#announced = true
    this.#host.log.append(this.#stamp, { type: 'response.created' })
  }

  #emit(given: Draft): void {
    if (this.#closed || this.#cancelled) return
    this.firstDeltaMs ??= performance.now() - this.#begun
    let draft = given
    if (given.type === 'response.delta' && given.delta.type !== 'text') {
      const delta = withHandle(given.delta, this.#host.newId)
      if (delta !== given.delta) draft = { type: 'response.delta', delta }
    }
    this.output.add(draft)
    this.#host.log.append(this.#stamp, draft)
  }

  /** The response ends with the questions that were put in this turn of the event loop; the generator goes on waiting. */
  #park(): void {
    if (this.#parking) return
    this.#parking = true
    defer(() => {
      this.#parking = false
      if (!this.#cancelled) void this.#close({ kind: 'done', output: this.output.items(), waiting: this.questions.unanswered })
    })
  }

  async #close(end: End): Promise<void> {
    if (this.#closed) {
      if (this.#cancelled) this.#finish()
      return
    }
    this.#announce()
    this.#closed = true
    const waiting = end.kind === 'done' && end.waiting !== undefined
    if (!waiting) clearTimeout(this.#timer)
    await this.#host.ended(this, end)
    if (!waiting) this.#finish()
  }

  #failure(thrown: unknown): End {
    const error = UampError.from(thrown)
    const output = this.output.items()
    if (error.code === 'cancelled') return { kind: 'cancelled', output }
    return { kind: 'failed', output, error: error.toBody(), cause: error.cause }
  }
}

/** Media always has a content id. Not audio without one: that is a chunk of a stream, not the item. */
function withHandle(delta: Delta, newId: () => string): Delta {
  return delta.type === 'image' || delta.type === 'video' || delta.type === 'file' ? withContentId(delta, newId) : delta
}
