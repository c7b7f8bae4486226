import type { Span, Trace } from '../ports/trace.ts'
import type { ContentItem } from '../../protocol/content.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent, Draft, EventOf } from '../../protocol/events.ts'
import { isRecord } from '../../protocol/json.ts'
import type { Message } from '../../protocol/message.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import type { Usage } from '../../protocol/usage.ts'
import { withoutHops } from '../basics/hops.ts'
import { checkDraft } from './check-draft.ts'
import { outputMessages } from '../reading/output.ts'
import type { AgentPort, Said, Turn } from '../ports/agent.ts'
import type { ResponseOptions, Session } from '../ports/session.ts'
import { answered, type Answer, type Question } from './questions.ts'
import type { TurnRecord } from '../durable/records.ts'
import type { ActiveTurn } from './turn.ts'
import type { TurnStart } from './turn-parts.ts'
import type { EndDraft } from '../ports/keeper.ts'
import type { SessionHost } from './session-parts.ts'
import type { SessionSecrets } from '../secrets/session-secrets.ts'

/**
 * What a turn begins with. A turn is one response or several: on a one-way transport each question ends one, and its answer opens
 * the next. Each response has its own record; `parent` chains them, and `run` names the first.
 */
export interface RunStart {
  /** The id of the turn, which is that of its first response. */
  readonly id: string
  readonly messages: readonly Message[]
  readonly config: SessionConfig | undefined
  readonly asked: Turn['asked']
  /** What the turn's earlier responses said. */
  readonly said?: readonly Message[]
}

/** What a client asks of a new response. */
export interface AskedTurn extends Pick<TurnRecord, 'input' | 'stateless' | 'eventIds'> {
  readonly options: ResponseOptions
}

type Begun = Pick<TurnRecord, 'id' | 'parent' | 'from' | 'after' | 'createdAt' | 'config' | 'asked'>

/** The record of a response that begins. It has every field, because one that is added to a copy later costs a microsecond. */
export function openedRecord(session: Pick<Session, 'id' | 'agent' | 'owner'>, begun: Begun, asked: AskedTurn): TurnRecord {
  return {
    id: begun.id,
    run: begun.id,
    session: session.id,
    agent: session.agent,
    tenant: session.owner.tenant,
    owner: session.owner.id,
    parent: begun.parent,
    input: asked.input,
    stateless: asked.stateless,
    output: [],
    status: 'open',
    error: undefined,
    usage: undefined,
    config: begun.config,
    asked: begun.asked,
    answers: undefined,
    given: undefined,
    questions: undefined,
    paid: undefined,
    eventIds: asked.eventIds,
    createdAt: begun.createdAt,
    endedAt: undefined,
    from: begun.from,
    after: begun.after,
    alias: asked.options.alias,
    note: asked.options.note,
    keeper: asked.options.keeper?.name,
  }
}

/** The slots of a `response.create`; undefined if it has none. */
export function slotsIn({ extensions, metadata }: EventOf<'response.create'>): Turn['asked'] {
  return extensions || metadata ? { ...(extensions && { extensions }), ...(metadata && { metadata }) } : undefined
}

/** The record of a response that has ended. */
export function closedRecord(
  record: TurnRecord,
  end: End,
  { endedAt, turn }: { readonly endedAt: number; readonly turn: Pick<ActiveTurn, 'output' | 'questions' | 'bill'> },
): TurnRecord {
  const waiting = end.kind === 'done' ? end.waiting : undefined
  return {
    ...record,
    output: end.output,
    status: waiting ? 'waiting' : end.kind === 'done' ? 'completed' : end.kind,
    error: end.kind === 'failed' ? end.error : undefined,
    usage: turn.output.usage,
    answers: waiting ? turn.questions.answers : record.answers,
    questions: waiting,
    paid: waiting && turn.bill?.paid,
    endedAt,
  }
}

/** How the turn of the last of these responses began. */
export function startOf(turns: readonly TurnRecord[]): RunStart | undefined {
  const last = turns.at(-1)
  const index = turns.findIndex(({ id }) => id === last?.run)
  const first = turns[index] ?? last
  if (!first) return undefined
  const before = first.stateless ? [] : turns.slice(0, Math.max(0, index)).flatMap(messagesOf)
  const said = turns.slice(Math.max(0, index)).flatMap(({ output }) => outputMessages(output))
  return { id: first.id, messages: [...before, ...first.input], config: first.config, asked: first.asked, said }
}

/** The messages that a response adds to the conversation. */
export function messagesOf({ input, output }: TurnRecord): Message[] {
  return [...input, ...outputMessages(output)]
}

export function turnStart(
  session: Pick<Session, 'duplex' | 'config'>,
  {
    record,
    run,
    ...given
  }: Pick<TurnStart, 'limits' | 'held' | 'payment' | 'paysAnew' | 'keeper' | 'methods' | 'requestHash' | 'principal' | 'trace'> & TurnRun,
): TurnStart {
  return {
    id: run.id,
    responseId: record.id,
    request: session.duplex ? record.eventIds.at(-1) : undefined,
    messages: run.messages,
    said: run.said && [...run.said, ...outputMessages(record.output)],
    config: run.config ?? session.config,
    asked: run.asked,
    answers: record.answers,
    paid: record.paid,
    ...given,
  }
}

interface TurnRun {
  readonly record: TurnRecord
  readonly run: RunStart
}

/** The record of a response that continues `before` with the answers to its questions. */
export function continued(blank: TurnRecord, before: TurnRecord, answers: Readonly<Record<string, Answer>>): TurnRecord {
  const given = answersTo(before, answers)
  const eventIds = [...given.map(({ event_id }) => event_id), ...blank.eventIds]
  return { ...blank, run: before.run, given, answers, paid: before.paid, output: resultsIn(given), eventIds }
}

/** The answers that belong to the questions of this response. */
function answersTo({ questions }: TurnRecord, answers: Readonly<Record<string, Answer>>): Answer[] {
  return (questions ?? []).flatMap(({ key }) => answers[key] ?? [])
}

/** The tool results among the answers, as content items. */
export function resultsIn(answers: readonly Answer[]): Extract<ContentItem, { type: 'tool_result' }>[] {
  return answers.flatMap((answer) => {
    if (answer.type !== 'tool.result') return []
    const { call_id, result, is_error = false, content_items } = answer
    const status = is_error ? ('failed' as const) : ('completed' as const)
    return [{ type: 'tool_result', tool_result: { call_id, result, status, is_error, ...(content_items && { content_items }) } }]
  })
}

/** An agent for a turn that is run again: calls that were answered before are in the conversation already, so it leaves them out. */
export function runAgain(agent: AgentPort, answers: Readonly<Record<string, Answer>>): AgentPort {
  const known = new Set(Object.values(answers).flatMap((answer) => (answer.type === 'tool.result' ? [answer.call_id] : [])))
  return { name: agent.name, capabilities: agent.capabilities, price: agent.price, run: (turn) => withoutCalls(agent.run(turn), known) }
}

async function* withoutCalls(drafts: AsyncIterable<Said>, known: ReadonlySet<string>): AsyncGenerator<Said, void> {
  for await (const draft of drafts) {
    const delta = typeof draft !== 'string' && draft.type === 'response.delta' && draft.delta
    if (delta && delta.type === 'tool_call' && known.has(delta.tool_call.id)) continue
    if (delta && delta.type === 'tool_result' && known.has(delta.tool_result.call_id)) continue
    yield draft
  }
}

/** The record of a waiting response, with the answers that came since. */
export function withAnswers(record: TurnRecord, events: readonly ClientEvent[]): TurnRecord {
  const answers: Record<string, Answer> = { ...record.answers }
  for (const event of events) {
    const question = answered(record.questions ?? [], event)
    if (question) answers[question.key] ??= event as Answer
  }
  return { ...record, answers }
}

/** How a response ends. `waiting`: the questions that it ends with, which the next request answers. */
export type End =
  | {
      readonly kind: 'done'
      readonly output: readonly ContentItem[]
      readonly waiting?: readonly Question[]
      /** The agent's own `extensions` of the end, such as its stop reason. */
      readonly extensions?: Readonly<Record<string, unknown>>
      readonly signature?: string
    }
  | { readonly kind: 'cancelled'; readonly output: readonly ContentItem[] }
  | {
      readonly kind: 'failed'
      readonly output: readonly ContentItem[]
      readonly error: EventOf<'response.error'>['error']
      readonly cause?: unknown
    }

/** How the agent's own `response.done` ends the response. */
export function endOf(draft: Extract<Draft, { type: 'response.done' }>, output: readonly ContentItem[]): End {
  const { signature, response } = draft
  const { status, extensions } = response
  if (status === 'failed') return { kind: 'failed', output, error: { code: 'provider_error', message: 'The agent failed' } }
  if (status === 'cancelled') return { kind: 'cancelled', output }
  return { kind: 'done', output, ...(extensions && { extensions }), ...(signature !== undefined && { signature }) }
}

/** How a response ends that was cancelled, or whose agent threw. */
export function failure(thrown: unknown, output: readonly ContentItem[]): End {
  const error = UampError.from(thrown)
  if (error.code === 'cancelled') return { kind: 'cancelled', output }
  const body = error.toBody()
  try {
    checkDraft({ type: 'response.error', error: body })
  } catch (mistake) {
    return failure(mistake, output)
  }
  return { kind: 'failed', output, error: body, cause: error.cause }
}

/** The event that begins a response. `request`: the event that asked for it, which tells the clients of a shared session whose it is. */
export function responseCreated(request: string | undefined): Draft {
  return { type: 'response.created', ...(request !== undefined && { extensions: { uamp: { request } } }) }
}

/** The event that ends a response. */
export function terminalEvent(responseId: string, end: End, usage: Usage | undefined): EndDraft {
  switch (end.kind) {
    case 'done':
      return {
        type: 'response.done',
        response: {
          id: responseId,
          status: 'completed',
          output: [...end.output],
          ...(usage && { usage }),
          ...extensionsOf(end),
        },
        ...(end.signature !== undefined && { signature: end.signature }),
      }
    case 'cancelled':
      return { type: 'response.cancelled', partial_output: [...end.output] }
    case 'failed':
      return { type: 'response.error', error: end.error }
  }
}

function extensionsOf({ waiting, extensions }: Extract<End, { kind: 'done' }>): { extensions?: Record<string, unknown> } {
  if (!waiting) return extensions ? { extensions } : {}
  const uamp = extensions?.['uamp']
  return { extensions: { ...extensions, uamp: { ...(isRecord(uamp) && uamp), waiting: waiting.map(({ id }) => id) } } }
}

interface Ended {
  readonly host: Pick<SessionHost, 'log' | 'meter'>
  readonly turn: { readonly firstDeltaMs: number | undefined; readonly trace?: Trace | undefined }
  readonly end: End
  readonly events: number
}

/** The end without secrets. Also counts the response, and logs a failure. */
export function reported(session: Reporting, { host, turn, end, events }: Ended): End {
  const { transport, agent, id } = session
  host.meter?.countEvents(transport, events)
  if (turn.firstDeltaMs !== undefined) host.meter?.observeFirstDelta(transport, turn.firstDeltaMs)
  if (end.kind !== 'failed') return end
  const told = withoutHops(end.error)
  host.meter?.countError(transport, told.code)
  // A circle fails on each server that it goes through, and only the last one has something to say about it.
  if (told !== end.error) return { ...end, error: told, cause: undefined }
  const error = session.secrets.value(end.error)
  if (end.cause === undefined) return { ...end, error }
  const { trace } = turn
  host.log('error', 'The agent failed', { agent, session: id, error: session.secrets.error(end.cause), ...trace?.fields })
  // Only the log has the cause: this finds the line.
  return { ...end, error: trace ? { ...error, details: { ...error.details, request_id: trace.requestId } } : error }
}

interface Reporting {
  readonly transport: string
  readonly agent: string
  readonly id: string
  readonly secrets: Pick<SessionSecrets, 'value' | 'error'>
}

/** Begins the part of a request in which its agent works. */
export function beginSpan(
  request: Trace | undefined,
  agent: string,
  { sessionId, transport }: { readonly sessionId: string; readonly transport: string },
): Span | undefined {
  return request?.begin('invoke_agent', `invoke_agent ${agent}`, {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': agent,
    'gen_ai.conversation.id': sessionId,
    'uamp.transport': transport,
  })
}
