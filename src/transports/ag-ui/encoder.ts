import type { Batch } from '../../core/ports/session.ts'
import { isWaiting, stopReason, ResponseFold, type Question } from '../../core/reading/response-fold.ts'
import { ABOUT_OTHERS, ABOUT_PAYMENTS, alike, tellBy, type Mapping } from '../../core/reading/mapping.ts'
import type { ContentItem } from '../../protocol/content.ts'
import type { EventOf, ServerEvent } from '../../protocol/events.ts'
import { fieldsOf } from '../../protocol/json.ts'
import type { Delta } from '../../protocol/server-events.ts'
import { wholeInput } from '../../protocol/usage.ts'
import { paidIn } from '../../wire/payment.ts'
import { Answer } from './answer.ts'
import type { AgUiEvent, Out } from './events.ts'
import { idIn } from './ids.ts'
import { interruptOf } from './interrupts.ts'
import { CONTENT_ACTIVITY, toWireMessages } from '../../wire/ag-ui/messages.ts'

/** What an encoder needs to know of a run, live or replayed. */
export interface RunPlan {
  readonly threadId: string
  readonly runId: string
  readonly parentRunId?: string | undefined
  readonly session: string
  readonly response: string
  /** Clients answer while the response runs: a question ends the run, but not the response. */
  readonly duplex: boolean
  /** The question of an earlier run that this one answers, if both share a response. */
  readonly resumes?: string | undefined
  /** The tools that the client runs. */
  readonly tools: ReadonlySet<string>
  /** The state of the thread, for a client that joins it. */
  readonly state?: unknown
  /** `input` of `RUN_STARTED`. */
  readonly input?: Readonly<Record<string, unknown>>
  /** Calls whose results the client brought, and which it therefore has. */
  readonly brought: ReadonlySet<string>
}

/** A place in a run: an event of the log, and how many of the AG-UI events made from it. */
export interface Place {
  readonly seq: number
  readonly part: number
}

export interface EncoderOptions {
  /** The last event that the client has. */
  readonly known?: Place
  /** The conversation, for a client that joins it. */
  readonly snapshots?: readonly (readonly object[])[]
}

interface Finish {
  readonly questions?: readonly Question[]
  readonly uamp?: object
  readonly result?: unknown
}

const OTHER_ROLES: ReadonlySet<unknown> = new Set(['user', 'system', 'developer'])

const NOWHERE: Out = { text: () => undefined, event: () => undefined }

/**
 * Encodes one run as events of AG-UI 1.0. It uses no clock and no I/O, so that the same events of the log always give the same run.
 */
export class RunEncoder extends ResponseFold {
  static readonly mapping: Mapping<RunEncoder> = {
    'response.created': ['`RUN_STARTED`'],
    'response.delta': [
      'text: `TEXT_MESSAGE_…`; thoughts: `REASONING_…`; calls and results: `TOOL_CALL_…`; media: `ACTIVITY_SNAPSHOT`',
      (run, { delta }) => run.item(delta),
    ],
    thinking: [
      '`REASONING_…`',
      (run, { content, signature, is_delta }) => run.#answer.think(content, { signature, whole: is_delta === false }),
    ],
    ...alike(['tool.call', 'x.approval.request', 'payment.required'], [
      'the end of the run: `pendingToolCallIds` for calls, else an interrupt; before the first word a payment is a 402',
      (run: RunEncoder, event: Question) => run.#question(event),
    ] as const),
    'tool.call_done': ['`TOOL_CALL_END`', (run, { call_id }) => run.#answer.endCall(call_id)],
    'transcript.delta': [
      '`TEXT_MESSAGE_CONTENT`',
      (run, { transcript }) => {
        run.#transcript += transcript
        run.#say(transcript)
      },
    ],
    'transcript.done': [
      'what of the words did not come before',
      (run, { transcript }) => {
        // Some words may not have been streamed.
        if (transcript?.startsWith(run.#transcript)) run.#say(transcript.slice(run.#transcript.length))
        run.#transcript = ''
      },
    ],
    'usage.delta': ['added up: `usage` of the end'],
    progress: [
      '`ACTIVITY_SNAPSHOT`, `uamp.progress`',
      (run, { target, target_id, stage, message, percent, step, total_steps }) =>
        run.#activity(idIn(run.id, `progress.${target}`), 'uamp.progress', {
          target,
          target_id,
          stage,
          message,
          percent,
          step,
          total_steps,
        }),
    ],
    'x.plan': ['`ACTIVITY_SNAPSHOT`, `PLAN`', (run, { entries }) => run.#activity(idIn(run.id, 'plan'), 'PLAN', { entries })],
    'x.state.snapshot': ['`STATE_SNAPSHOT`', (run, { snapshot }) => run.#emit({ type: 'STATE_SNAPSHOT', snapshot: snapshot ?? null })],
    'x.state.delta': ['`STATE_DELTA`', (run, { delta }) => run.#emit({ type: 'STATE_DELTA', delta })],
    'x.messages.snapshot': [
      '`MESSAGES_SNAPSHOT`',
      (run, { messages }) => {
        run.#answer.settle()
        run.#emit({ type: 'MESSAGES_SNAPSHOT', messages: toWireMessages(messages, () => run.#answer.next()) })
      },
    ],
    'x.activity.snapshot': ['`ACTIVITY_SNAPSHOT`', (run, event) => run.#ownActivity(event)],
    'x.activity.delta': ['`ACTIVITY_DELTA`', (run, event) => run.#ownActivity(event)],
    'x.step.started': ['`STEP_STARTED`', (run, { name }) => run.#answer.stepStarted(name)],
    'x.step.finished': ['`STEP_FINISHED`', (run, { name }) => run.#answer.stepFinished(name)],
    'x.subagent.started': ['`SUBAGENT_STARTED`', (run, event) => run.#answer.subagentStarted(event)],
    'x.subagent.finished': ['`SUBAGENT_FINISHED`, `SUBAGENT_ERROR`', (run, event) => run.#answer.subagentFinished(event)],
    'x.reasoning.encrypted': ['`REASONING_ENCRYPTED_VALUE`', (run, event) => run.#answer.encrypted(event)],
    'x.custom': ['`CUSTOM`', (run, { name, value }) => run.#emit({ type: 'CUSTOM', name, value: value ?? null })],
    'x.raw': ['`RAW`', (run, { event, source }) => run.#raw(event, source)],
    'response.done': ['`RUN_FINISHED`', (run, event) => run.#done(event)],
    'response.cancelled': ['`RUN_FINISHED`, outcome `cancelled`', (run) => run.#finish({ type: 'cancelled' })],
    'response.error': ['`RUN_ERROR`', (run, { error }) => run.#fail(error)],
    'session.error': ['`RUN_ERROR`', (run, { error }) => run.#fail(error)],
    'session.end': ['`RUN_ERROR`', (run) => run.#fail({ code: 'interrupted', message: 'The session was ended' })],
    ...alike(['session.created', 'session.updated', 'pong', 'x.ack'], ['not told: a run is no session']),
    ...alike(['capabilities', 'rate_limit', 'audio.delta', 'audio.done', ...ABOUT_OTHERS, ...ABOUT_PAYMENTS], [
      '`CUSTOM`, named `uamp.…`',
      (run: RunEncoder, event: ServerEvent) => run.#other(event),
    ] as const),
  }

  readonly #plan: RunPlan
  readonly #snapshots: readonly (readonly object[])[]
  readonly #known: Place
  readonly #answer: Answer
  #pending: AgUiEvent[] = []
  #transcript = ''
  #out: Out = NOWHERE
  /** True until the question that this run answers: an earlier run has told the events before it. */
  #muted: boolean

  constructor(plan: RunPlan, { snapshots = [], known = { seq: 0, part: Infinity } }: EncoderOptions = {}) {
    super(plan.response)
    this.#plan = plan
    this.#snapshots = snapshots
    this.#known = known
    this.#muted = plan.resumes !== undefined
    this.#answer = new Answer(plan.response, (event) => this.#pending.push(event))
  }

  read(batch: Batch, out: Out): void {
    this.#out = out
    this.take(batch)
  }

  text(text: string, seq = 0): void {
    if (!this.running || text === '') return
    const { text: open } = this.#answer
    const messageId = open ?? this.#answer.speak()
    if (this.#pending.length > 0) this.#flush(seq, true)
    if (this.#isNew(seq, Infinity)) this.#out.text(messageId, text, seq)
  }

  override event(event: ServerEvent, seq = 0): void {
    super.event(event, seq)
    this.#flush(seq)
  }

  /** Of several events only the last has the bare number as id, so that a client can resume between them. */
  #flush(seq: number, goesOn = false): void {
    const events = this.#pending
    if (events.length === 0) return
    this.#pending = []
    const last = goesOn ? events.length : events.length - 1
    events.forEach((event, index) => {
      const part = index === last ? Infinity : index + 1
      if (this.#isNew(seq, part)) this.#out.event(event, index === last ? seq : `${seq}.${part}`)
    })
  }

  #isNew(seq: number, part: number): boolean {
    const { seq: known, part: parts } = this.#known
    return !this.#muted && (seq > known || (seq === known && part > parts))
  }

  protected get silent(): boolean {
    return !this.#answer.spoke
  }

  protected begin(): void {
    const { threadId, runId, parentRunId, session, response, input, state } = this.#plan
    const uamp = { session_id: session, response_id: response }
    const parent = parentRunId !== undefined && { parentRunId }
    this.#emit({ type: 'RUN_STARTED', threadId, runId, protocolVersion: '1.0', ...parent, ...(input && { input }), metadata: { uamp } })
    if (state !== undefined) this.#emit({ type: 'STATE_SNAPSHOT', snapshot: state })
    for (const messages of this.#snapshots) this.#emit({ type: 'MESSAGES_SNAPSHOT', messages })
  }

  protected tell(event: ServerEvent): void {
    tellBy(RunEncoder.mapping, this, event)
  }

  protected item(delta: Delta | ContentItem): void {
    const answer = this.#answer
    switch (delta.type) {
      case 'text':
        return this.#say(delta.text, delta.refusal)
      case 'thinking':
        return answer.think(delta.thinking, { signature: delta.signature, whole: true })
      case 'tool_call':
        return answer.call(delta.tool_call)
      case 'tool_result':
        return this.#plan.brought.has(delta.tool_result.call_id) ? undefined : answer.result(delta.tool_result)
      case 'tool_progress': {
        const { call_id, text, data } = delta.tool_progress
        return this.#activity(idIn(this.#plan.response, `progress.${call_id}`), 'uamp.tool_progress', { call_id, text, data })
      }
      case 'image':
      case 'audio':
      case 'video':
      case 'file':
        answer.settle()
        // A chunk of a stream has no content id; the complete item has one.
        if (delta.content_id !== undefined) this.#activity(answer.next(), CONTENT_ACTIVITY, { item: delta })
        else this.#emit({ type: 'CUSTOM', name: 'uamp.response.delta', value: { delta } })
    }
  }

  #say(text: string, refuses?: boolean): void {
    if (text === '') return
    const messageId = this.#answer.speak(refuses)
    this.#emit({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta: text })
  }

  #activity(messageId: string, activityType: string, content: object): void {
    this.#answer.interject()
    this.#emit({ type: 'ACTIVITY_SNAPSHOT', messageId, activityType, content })
  }

  #ownActivity(event: EventOf<'x.activity.snapshot' | 'x.activity.delta'>): void {
    const { activity_id: messageId, activity_type: activityType } = event
    if (event.type === 'x.activity.delta') return this.#emit({ type: 'ACTIVITY_DELTA', messageId, activityType, patch: event.patch })
    const { content, replace } = event
    this.#answer.interject()
    this.#emit({ type: 'ACTIVITY_SNAPSHOT', messageId, activityType, content, ...(replace !== undefined && { replace }) })
  }

  /** What a remote agent of AG-UI said in the name of another is a message of that role. */
  #raw(event: unknown, source: string | undefined): void {
    const { type, role, delta } = source === 'ag-ui' ? fieldsOf(event) : {}
    if (type !== 'TEXT_MESSAGE_CHUNK' || !OTHER_ROLES.has(role) || typeof delta !== 'string') {
      return this.#emit({ type: 'RAW', event: event ?? null, ...(source !== undefined && { source }) })
    }
    this.#answer.settle()
    const messageId = this.#answer.next()
    this.#emit({ type: 'TEXT_MESSAGE_START', messageId, role })
    this.#emit({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta })
    this.#emit({ type: 'TEXT_MESSAGE_END', messageId })
  }

  #other(event: ServerEvent): void {
    const { type, event_id: _, session_id: __, seq: ___, timestamp: ____, ...rest } = event
    const { response_id: _____, ...value } = rest as typeof rest & { response_id?: string }
    this.#emit({ type: 'CUSTOM', name: `uamp.${type}`, value })
  }

  /** On a one-way session a question ends the response; on a duplex one, only the run. */
  #question(question: Question): void {
    const { duplex, tools, resumes } = this.#plan
    if (question.type === 'tool.call') this.#answer.ask({ id: question.call_id, name: question.name, arguments: question.arguments })
    else if (question.type === 'x.approval.request' && question.tool_call) this.#answer.endCall(question.tool_call.id)
    const { id } = interruptOf(question, this.#plan.response)
    if (!duplex) return
    if (this.#muted) {
      this.#answer.close('completed')
      this.#pending = []
      if (id !== resumes) return
      this.#muted = false
      this.begin()
    } else if (question.type !== 'tool.call' || tools.has(question.name)) this.#finish({ type: 'success' }, { questions: [question] })
  }

  #done(event: EventOf<'response.done'>): void {
    const { response, signature } = event
    const stop_reason = stopReason(event)
    const known = {
      ...(signature !== undefined && { signature }),
      ...(stop_reason !== undefined && { stop_reason }),
      ...paidIn(response.extensions),
    }
    // The result of a remote agent's run.
    const { result } = fieldsOf(response.extensions?.['ag-ui'])
    this.#finish({ type: 'success' }, { questions: isWaiting(event) ? this.questions : [], uamp: known, result })
  }

  #finish(outcome: { type: string }, { questions = [], uamp = {}, result }: Finish = {}): void {
    this.ended = true
    this.running = false
    this.#answer.close(outcome.type === 'cancelled' ? 'cancelled' : 'completed')
    const { threadId, runId, response } = this.#plan
    const calls = questions.flatMap((question) => (question.type === 'tool.call' ? [question.call_id] : []))
    const interrupts = questions.flatMap((question) => (question.type === 'tool.call' ? [] : [interruptOf(question, response)]))
    const how =
      interrupts.length > 0 ? { type: 'interrupt', interrupts } : { ...outcome, ...(calls.length > 0 && { pendingToolCallIds: calls }) }
    const metadata = Object.keys(uamp).length > 0 && { metadata: { uamp } }
    const gave = result !== undefined && { result }
    this.#emit({ type: 'RUN_FINISHED', threadId, runId, outcome: how, ...gave, ...this.#used(), ...metadata })
  }

  #fail({ code, message, details }: EventOf<'response.error'>['error']): void {
    this.ended = true
    this.running = false
    this.#answer.close('failed')
    const metadata = details && { metadata: { uamp: { details } } }
    this.#emit({ type: 'RUN_ERROR', message, code, ...this.#used(), ...metadata })
  }

  /** In AG-UI cached tokens are part of the input, however the provider counts them. */
  #used(): object {
    const { usage } = this
    if (!usage) return {}
    const { output_tokens: outputTokens = 0, cached_tokens, cache_read, cache_write, reasoning } = usage
    const inputTokens = wholeInput(usage)
    const cached = cached_tokens ?? cache_read
    const parts = {
      ...(reasoning !== undefined && { reasoningTokens: reasoning }),
      ...(cached !== undefined && { cachedInputTokens: cached }),
      ...(cache_write !== undefined && { cacheWriteInputTokens: cache_write }),
    }
    return { usage: [{ inputTokens, outputTokens, totalTokens: inputTokens + outputTokens, ...parts }] }
  }

  #emit(event: AgUiEvent): void {
    this.#pending.push(event)
  }
}
