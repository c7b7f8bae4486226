import { ClientAnswers } from '../../upstream/client-answers.ts'
import { nextHops } from '../../core/basics/hops.ts'
import { done } from '../../core/agent-kit/done.ts'
import type { Conversation } from '../../upstream/places.ts'
import type { Turn } from '../../core/ports/agent.ts'
import type { Payer } from '../../upstream/payer.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import { isRecord, uampIn } from '../../protocol/json.ts'
import type { Usage } from '../../protocol/usage.ts'
import { TOOLS_EXTENSION, X402 } from '../../wire/a2a/extensions.ts'
import { isOtherTongue, reasonOf } from './errors.ts'
import type { Follow } from './follow.ts'
import { toParts } from './input.ts'
import { ENDED, type Message, type Outgoing, type Status, type Struct, type Told } from './model.ts'
import { answersTo, questionsIn } from './questions.ts'
import { Said, textIn } from './said.ts'

/** How often a task may ask before we give it up. */
const ROUNDS = 64

/** Where a conversation goes on. The agent names its context (A2A 1.0 §3.4.1). */
export interface Place {
  readonly contextId: string
  /** A task that asked something: the next message answers it. */
  readonly taskId?: string | undefined
}

export interface ExchangeOptions {
  readonly name: string
  readonly turn: Turn
  readonly talk: Conversation
  /** Undefined: the agent there has not heard of the conversation. */
  readonly place: Place | undefined
  /** The next way to ask the agent; undefined when there is none left. */
  readonly next: () => Follow | undefined
  readonly newId: () => string
  /** The agent takes tools of a client, by our extension. */
  readonly takesTools: boolean
  readonly payer: Payer
}

/** One turn: our message, what the agent answers, and its questions in between. */
export class Exchange {
  readonly #options: ExchangeOptions
  readonly #said: Said
  #follow: Follow
  #status: Status | undefined
  #history: readonly Message[] = []
  #metadata: Struct | undefined
  #usage: Usage | undefined
  /** The agent told its usage while it worked. */
  #counted = false
  #over = false

  constructor(options: ExchangeOptions) {
    this.#options = options
    this.#said = new Said(options.newId)
    this.#follow = this.#next()
  }

  /** All text of the agent. */
  get text(): string {
    return this.#said.text
  }

  /** Where the next message goes. */
  get place(): Place | undefined {
    const { contextId, taskId, state } = this.#follow
    if (contextId === undefined) return undefined
    return { contextId, ...(this.#over && (state === 'input-required' || state === 'auth-required') && { taskId }) }
  }

  /** All events but the end. */
  async *run(): AsyncGenerator<Draft, void> {
    const client = new ClientAnswers(this.#options.turn, { numbered: true, payer: this.#options.payer })
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

  /** The event that ends the response. */
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

  /** Does not block: the rest happens in the background. */
  leave(): void {
    this.#follow.leave({ abandon: !this.#over })
  }

  #next(): Follow {
    const follow = this.#options.next()
    if (!follow) throw new UampError('not_supported', `"${this.#options.name}" speaks no A2A that is known here`)
    return follow
  }

  async #opening(): Promise<Outgoing> {
    const { turn, talk, place, newId, takesTools } = this.#options
    const { tools = [] } = turn.config
    const declared = takesTools && tools.length > 0
    const given = metadataOf(turn)
    const uamp = { ...uampIn(given), hops: nextHops(turn.trace) }
    const metadata = { ...given, uamp, ...(declared && { [TOOLS_EXTENSION]: { tools } }) }
    const parts = toParts(talk, { known: place !== undefined })
    const about = {
      metadata,
      ...(declared && { extensions: [TOOLS_EXTENSION] }),
    }
    const message = { messageId: newId(), parts, contextId: place?.contextId, ...about }
    return place?.taskId !== undefined && (await this.#waits(place.taskId)) ? { ...message, taskId: place.taskId } : message
  }

  /** Whether a task that asked something still waits. What it said before is not repeated. */
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

  /** Sends a message and tells what comes of it. Returns another message to try, if this one is refused and that one may pass. */
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
    // The task has ended meanwhile, or the agent has forgotten the task or the whole conversation.
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
    this.#options.payer.hearMetadata(told.metadata)
    this.#options.payer.hearMetadata(of)
    this.#usage = usageIn(told.metadata) ?? usageIn(of) ?? this.#usage
    this.#counted ||= out.some(({ type }) => type === 'usage.delta')
  }

  /** What is left to tell when nothing more comes. */
  *#last(): Generator<Draft, void> {
    const out: Draft[] = []
    const { state } = this.#follow
    const message = this.#status?.message
    if (message && !isReceipt(message) && (state === 'completed' || state === 'input-required' || state === 'auth-required'))
      this.#said.message(message, out)
    if (state === 'completed') this.#said.end(this.#history, out)
    if (this.#usage && !this.#counted) out.push({ type: 'usage.delta', delta: this.#usage })
    yield* out
  }
}

/** x402: what became of a payment stands in a message of its own, which is no part of the answer. */
function isReceipt({ metadata }: Message): boolean {
  return metadata?.[X402.status] === 'payment-completed'
}

/** Another uamp server names the code of its error. */
function failure(message: Message | undefined, words: string): { code: string; message: string } {
  const code = message?.metadata?.['code']
  return { code: typeof code === 'string' && code !== '' ? code : 'provider_error', message: words }
}

/** The metadata of the client's own message, if it came over A2A. Payments stay here: they are for us and not for others. */
function metadataOf({ config }: Turn): Struct {
  const a2a = config.extensions?.['a2a']
  const metadata = isRecord(a2a) ? a2a['metadata'] : undefined
  const kept = isRecord(metadata) ? Object.entries(metadata).filter(([key]) => !key.startsWith('x402.') && key !== TOOLS_EXTENSION) : []
  return Object.fromEntries(kept)
}

/** A2A has no field for usage. Agents put it into metadata, under the names that the vendor of their model has. */
const NAMES: Readonly<Record<'input_tokens' | 'output_tokens' | 'total_tokens', readonly string[]>> = {
  input_tokens: ['input_tokens', 'inputTokens', 'prompt_tokens', 'promptTokens', 'promptTokenCount'],
  output_tokens: ['output_tokens', 'outputTokens', 'completion_tokens', 'completionTokens', 'candidatesTokenCount'],
  total_tokens: ['total_tokens', 'totalTokens', 'totalTokenCount'],
}
const PLACES = ['usage', 'token_usage', 'tokenUsage', 'adk_usage_metadata']

function usageIn(metadata: Struct | undefined): Usage | undefined {
  const places = [uampIn(metadata)['usage'], ...PLACES.map((name) => metadata?.[name])]
  const given = places.find(isRecord)
  if (!given) return undefined
  const counts = Object.entries(NAMES).flatMap(([name, names]) => {
    const value = names.map((other) => given[other]).find((count) => typeof count === 'number' && count >= 0)
    return value === undefined ? [] : [[name, value]]
  })
  return counts.length > 0 ? (Object.fromEntries(counts) as Usage) : undefined
}
