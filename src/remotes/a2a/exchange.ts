import { ClientAnswers } from '../../upstream/client-answers.ts'
import { done } from '../../core/agent-kit/done.ts'
import type { Conversation } from '../../upstream/places.ts'
import type { Turn } from '../../core/ports/agent.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import { isRecord } from '../../protocol/json.ts'
import type { Usage } from '../../protocol/usage.ts'
import { isOtherTongue, reasonOf } from './errors.ts'
import type { Follow } from './follow.ts'
import { toParts } from './input.ts'
import { ENDED, type Message, type Outgoing, type Status, type Struct, type Told } from './model.ts'
import { answersTo, questionsIn } from './questions.ts'
import { Said, textIn } from './said.ts'
import { usageIn } from './usage.ts'

/** How often a task may ask before it is given up. */
const ROUNDS = 64

/** Where a conversation goes on (A2A 1.0 §3.4.1: it is the agent that names its context). */
export interface Place {
  readonly contextId: string
  /** A task that asked something: the next message answers it. */
  readonly taskId?: string | undefined
}

export interface ExchangeOptions {
  readonly name: string
  readonly turn: Turn
  readonly talk: Conversation
  /** Where the conversation goes on; undefined where the agent there has not heard of it. */
  readonly place: Place | undefined
  /** A way to ask the agent; undefined when there is no other. */
  readonly next: () => Follow | undefined
  readonly newId: () => string
}

/** One turn: our message, all that the agent makes of it, and its questions in between. */
export class Exchange {
  readonly #options: ExchangeOptions
  readonly #said: Said
  #follow: Follow
  #status: Status | undefined
  #history: readonly Message[] = []
  #metadata: Struct | undefined
  #usage: Usage | undefined
  /** It was told as it was used. */
  #counted = false
  #over = false

  constructor(options: ExchangeOptions) {
    this.#options = options
    this.#said = new Said(options.newId)
    this.#follow = this.#next()
  }

  /** The text that was said. */
  get text(): string {
    return this.#said.text
  }

  /** Where the next message goes. */
  get place(): Place | undefined {
    const { contextId, taskId, state } = this.#follow
    if (contextId === undefined) return undefined
    return { contextId, ...(this.#over && (state === 'input-required' || state === 'auth-required') && { taskId }) }
  }

  /** All that is said, but for the end. */
  async *run(): AsyncGenerator<Draft, void> {
    const client = new ClientAnswers(this.#options.turn, { numbered: true })
    let message = await this.#opening()
    for (let round = 0; round < ROUNDS; round++) {
      for (let next: Outgoing | undefined = message; next; next = yield* this.#say(next));
      const { state } = this.#follow
      const questions = state === 'input-required' || state === 'auth-required' ? questionsIn(this.#status?.message) : []
      if (questions.length === 0) {
        this.#over = true
        return yield* this.#last()
      }
      const { taskId, contextId } = this.#follow
      message = { messageId: this.#options.newId(), taskId, contextId, ...(await answersTo(questions, client)) }
    }
    throw new UampError('tool_budget_exceeded', `"${this.#options.name}" asked ${ROUNDS} times in one task`)
  }

  /** How it ended. */
  end(): Draft {
    const { state, taskId, contextId } = this.#follow
    const message = this.#status?.message
    const words = message ? textIn(message.parts).trim() : ''
    switch (state) {
      case 'canceled':
        return { type: 'response.cancelled' }
      case 'failed':
        return { type: 'response.error', error: failure(message, words || `"${this.#options.name}" failed`) }
      case 'rejected':
        return {
          type: 'response.error',
          error: { code: 'forbidden', message: words || `"${this.#options.name}" declined`, details: { state } },
        }
      default: {
        const stop = state === 'input-required' ? 'input_required' : state === 'auth-required' ? 'auth_required' : undefined
        const a2a = { ...(taskId !== undefined && { taskId }), ...(contextId !== undefined && { contextId }) }
        const metadata = this.#metadata && { metadata: this.#metadata }
        return done({ stop, extensions: { a2a: { ...a2a, ...metadata } } })
      }
    }
  }

  /** Nobody waits for this. */
  leave(): void {
    this.#follow.leave({ abandon: !this.#over })
  }

  #next(): Follow {
    const follow = this.#options.next()
    if (!follow) throw new UampError('not_supported', `"${this.#options.name}" speaks no A2A that is known here`)
    return follow
  }

  async #opening(): Promise<Outgoing> {
    const { turn, talk, place, newId } = this.#options
    const metadata = metadataOf(turn)
    const parts = toParts(talk, { known: place !== undefined })
    const message = { messageId: newId(), parts, contextId: place?.contextId, ...(metadata && { metadata }) }
    return place?.taskId !== undefined && (await this.#waits(place.taskId)) ? { ...message, taskId: place.taskId } : message
  }

  /** Whether a task that asked something still waits. What it said before is not told again. */
  async #waits(taskId: string): Promise<boolean> {
    try {
      const task = await this.#follow.get(taskId)
      if (ENDED.has(task.status.state)) return false
      this.#said.skip(task)
      return true
    } catch (thrown) {
      if (reasonOf(thrown) === undefined && !isOtherTongue(thrown)) throw thrown
      return false
    }
  }

  /** Sends a message and tells what comes of it. Where it was refused, and another may pass, that is returned. */
  async *#say(message: Outgoing): AsyncGenerator<Draft, Outgoing | undefined> {
    const drafts: Draft[] = []
    try {
      for await (const batch of this.#follow.send(message)) {
        for (const told of batch) this.#hear(told, drafts)
        for (const draft of drafts) yield draft
        drafts.length = 0
      }
      return undefined
    } catch (thrown) {
      this.#options.turn.signal.throwIfAborted()
      const other = this.#follow.state === undefined ? this.#otherwise(message, thrown) : undefined
      if (!other) throw thrown
      return other
    }
  }

  #otherwise(message: Outgoing, thrown: unknown): Outgoing | undefined {
    const { talk, next } = this.#options
    if (isOtherTongue(thrown)) {
      const follow = next()
      if (!follow) return undefined
      this.#follow.leave({ abandon: false })
      this.#follow = follow
      return message
    }
    const reason = reasonOf(thrown)
    const { taskId, contextId, ...rest } = message
    // The task has ended meanwhile, or the agent has forgotten it, or the whole conversation.
    if (taskId !== undefined && (reason === 'TASK_NOT_FOUND' || reason === 'UNSUPPORTED_OPERATION')) return { ...rest, contextId }
    if (contextId === undefined || (reason !== 'TASK_NOT_FOUND' && reason !== 'INVALID_PARAMS')) return undefined
    return { ...rest, parts: toParts(talk, { known: false }) }
  }

  #hear(told: Told, out: Draft[]): void {
    this.#said.take(told, out)
    if (told.kind === 'message') {
      this.#metadata = { ...this.#metadata, ...told.message.metadata }
      return
    }
    if (told.kind !== 'artifact') this.#status = told.status
    if (told.kind === 'task') this.#history = told.history
    const of = told.kind === 'artifact' ? told.artifact.metadata : told.status.message?.metadata
    this.#metadata = told.metadata ? { ...this.#metadata, ...told.metadata } : this.#metadata
    this.#usage = usageIn(told.metadata) ?? usageIn(of) ?? this.#usage
    this.#counted ||= out.some(({ type }) => type === 'usage.delta')
  }

  /** What is left to be told when nothing more comes. */
  *#last(): Generator<Draft, void> {
    const out: Draft[] = []
    const { state } = this.#follow
    const message = this.#status?.message
    if (message && (state === 'completed' || state === 'input-required' || state === 'auth-required')) this.#said.message(message, out)
    if (state === 'completed') this.#said.end(this.#history, out)
    if (this.#usage && !this.#counted) out.push({ type: 'usage.delta', delta: this.#usage })
    yield* out
  }
}

/** Another uamp server says which of its errors it was. */
function failure(message: Message | undefined, words: string): { code: string; message: string } {
  const code = message?.metadata?.['code']
  return { code: typeof code === 'string' && code !== '' ? code : 'provider_error', message: words }
}

/** What the client's own message carries, where it came over A2A. What pays us does not pay others. */
function metadataOf({ config }: Turn): Struct | undefined {
  const a2a = config.extensions?.['a2a']
  const metadata = isRecord(a2a) ? a2a['metadata'] : undefined
  const kept = isRecord(metadata) ? Object.entries(metadata).filter(([key]) => !key.startsWith('x402.')) : []
  return kept.length > 0 ? Object.fromEntries(kept) : undefined
}
