import { withHops } from '../../../core/basics/hops.ts'
import type { Reader, Session } from '../../../core/ports/session.ts'
import type { Trace } from '../../../core/ports/trace.ts'
import type { KnownCall } from '../../../core/ports/transport.ts'
import { UampError } from '../../../protocol/errors.ts'
import type { ClientEvent } from '../../../protocol/events.ts'
import { isRecord, uampIn } from '../../../protocol/json.ts'
import { textOf, type Message as Input } from '../../../protocol/message.ts'
import type { Payment } from '../../../protocol/payment.ts'
import type { SessionConfig } from '../../../protocol/session-config.ts'
import { paymentFrom } from '../../../wire/payment.ts'
import { checkParts } from '../card/modes.ts'
import { a2aError } from '../errors.ts'
import { TERMINAL, type Message, type Part, type SendRequest, type Struct } from '../model.ts'
import { agentOf } from '../request.ts'
import { answersIn } from './answers.ts'
import { cancelWaiting } from './cancel.ts'
import { toItem } from './content.ts'
import { Live, type Before, type TaskNote } from './live.ts'
import { findOwn, type Found, idsOf, isRunning, notFound, type Shared, statusOf, type Step, type TaskRecord } from './records.ts'
import { toolsIn, type Declared } from './tools.ts'
import { paymentIn, rejectsPayment } from './x402.ts'

/** What a message led to: a task that runs, a task that it ended, or an answer that is no task. */
export type Begun = Started | { readonly ended: TaskRecord } | { readonly message: Message; readonly taskId: string }

export interface Started {
  readonly live: Live
  readonly isNew: boolean
  /** Stands before the first event, for a client that streams. */
  readonly reader: Reader | undefined
}

export interface Asked {
  readonly request: SendRequest
  readonly streaming: boolean
}

/** A response that is about to begin. */
interface Beginning {
  readonly session: Session
  /** To the questions that the task waits for. */
  readonly answers?: readonly ClientEvent[]
  readonly before: Before
  /** For what is asked after that. */
  readonly payment?: Payment | undefined
}

const ID_LENGTH = 256

/** Takes a message: it begins a task, or goes on with the one that it names. */
export async function begin(shared: Shared, call: KnownCall, asked: Asked): Promise<Begun> {
  const { message, chosenId, push } = asked.request
  const agent = agentOf(shared.host, call).name
  const named = message.taskId ?? chosenId
  checkId('contextId', message.contextId)
  if (chosenId !== undefined) checkId('taskId', chosenId)
  if (push) shared.push.check(push)
  const before = named === undefined ? undefined : await findOwn(shared, call, named)
  if (named !== undefined && !before && message.taskId !== undefined) throw notFound(named)
  if (!before) return beginNew(shared, call, { asked, agent })
  if (message.contextId !== undefined && message.contextId !== before.record.contextId) {
    throw a2aError('INVALID_PARAMS', `Task "${before.record.id}" belongs to another context`, { field: 'message.contextId' })
  }
  return goOn(shared, call, { asked, before })
}

async function beginNew(shared: Shared, call: KnownCall, { asked, agent }: { asked: Asked; agent: string }): Promise<Begun> {
  const { host, records } = shared
  const { request } = asked
  const { message, chosenId, metadata, generation } = request
  const { principal } = call
  checkContent(shared, agent, message)
  const contextId = message.contextId ?? host.newId()
  const parent = message.contextId === undefined ? undefined : await records.context(principal, agent, contextId)
  const ids = { id: chosenId ?? host.newId(), contextId, agent }
  const session = await openSession(shared, call, { request, record: ids, parent, silent: isSilent(shared, asked, agent) })
  const now = host.now()
  const record: TaskRecord = {
    tenant: principal.tenant,
    owner: principal.id,
    generation,
    createdAt: now,
    updatedAt: now,
    status: statusOf('TASK_STATE_SUBMITTED', now),
    steps: [],
    messages: 0,
    ...ids,
    ...(metadata && { metadata: records.settledMetadata(metadata) }),
  }
  return start(shared, call, { asked, beginning: { session, before: { record } } })
}

/** The next message of a task: an answer to its questions, or what the client says after its last response. */
async function goOn(shared: Shared, call: KnownCall, { asked, before }: { asked: Asked; before: Found }): Promise<Begun> {
  const { host } = shared
  const { request } = asked
  const { record } = before
  const { id, status, steps } = record
  if (TERMINAL.has(status.state)) {
    throw a2aError('UNSUPPORTED_OPERATION', `Task "${id}" has ended: send the message without its id`, { taskId: id })
  }
  if (isRunning(record)) throw busy(id)
  const last = steps.at(-1) as Step
  if (!last.waits) {
    checkContent(shared, record.agent, request.message)
    const session = await openSession(shared, call, { request, record, parent: last.turn })
    return start(shared, call, { asked, beginning: { session, before } })
  }
  if (rejectsPayment(request.message)) return { ended: await cancelWaiting(shared, before, request.message) }
  const session = await host.gateway.attach(last.session, call.principal)
  if (session?.waiting?.response !== last.turn) {
    session?.leave()
    throw a2aError('UNSUPPORTED_OPERATION', `Task "${id}" can no longer be answered: begin another one`, { taskId: id })
  }
  const payment = paymentOf(request.message, call.request)
  const answers = answersIn(request.message, { questions: session.waiting.questions, payment, newId: host.newId })
  const isUsed = answers.some(({ type }) => type === 'payment.submit')
  return start(shared, call, { asked, beginning: { session, answers, before, payment: isUsed ? undefined : payment } })
}

/** Begins the response, and with it the task. */
async function start(shared: Shared, call: KnownCall, { asked, beginning }: { asked: Asked; beginning: Beginning }): Promise<Begun> {
  const { request, streaming } = asked
  const { lives, records, push, host } = shared
  const { session, answers = [], before, payment } = beginning
  const { id, agent } = before.record
  const isNew = before.version === undefined
  const message: Message = { ...records.settled(request.message), ...idsOf(before.record) }
  const live = new Live(shared, { session, before, message, mayBeMessage: isNew && mayAnswerDirectly(host, agent) })
  const leave = (): void => void session.release().catch(() => undefined)
  // Another message to this task, or another task of this id, came first.
  if (lives.get(live.key)) {
    leave()
    throw busy(id)
  }
  lives.add(live)
  // Opened before the agent says anything: events that no reader waits for leave the memory.
  const reader = streaming ? session.read({ after: session.lastSeq, extensions: 'all', signal: call.signal }) : undefined
  try {
    if (request.push) await push.attach(call.principal, { ...request.push, taskId: id, generation: request.generation })
    const note: TaskNote = { task: id }
    const accepted = answers.map((event) => session.send(event))
    accepted.push(
      session.say(
        [],
        { type: 'response.create', event_id: host.newId() },
        { keeper: live, note: { ...note }, principal: call.principal, trace: traceOf(call, request), payment },
      ),
    )
    await Promise.all(accepted)
  } catch (thrown) {
    reader?.close()
    live.refused(thrown)
    throw UampError.from(thrown).code === 'conflict' ? busy(id) : thrown
  } finally {
    // The session stays until its response has ended.
    leave()
  }
  const said = await live.direct?.decided
  if (said) {
    reader?.close()
    return { message: said, taskId: id }
  }
  if (live.direct) await live.write()
  // An id that a client chose may have been used before.
  if (isNew && !request.push && request.chosenId === undefined) push.none(call.principal, id)
  live.begun(request.push !== undefined)
  return { live, isNew, reader }
}

/** Refuses what the agent does not take. */
function checkContent({ host }: Shared, agent: string, { parts }: Message): void {
  const { capabilities } = host.agents.get(agent) ?? {}
  // Most messages are text alone.
  if (capabilities && parts.some(({ text }) => text === undefined)) checkParts(capabilities, parts)
}

/** Whether nobody hears of a task before its end. */
function isSilent({ host }: Shared, { request, streaming }: Asked, agent: string): boolean {
  const isAwaited = !streaming && !request.returnImmediately && !request.push && request.chosenId === undefined
  return isAwaited && !mayAnswerDirectly(host, agent)
}

function busy(taskId: string): Error {
  return a2aError('UNSUPPORTED_OPERATION', `Task "${taskId}" is being worked on: wait for it, or cancel it`, { taskId })
}

/** Ids are parts of keys. */
function checkId(name: string, id: string | undefined): void {
  if (id === undefined || (id.isWellFormed() && id !== '' && id.length <= ID_LENGTH)) return
  throw a2aError('INVALID_PARAMS', `"${name}" must have 1 to ${ID_LENGTH} characters`, { field: `message.${name}` })
}

function mayAnswerDirectly({ agents }: Shared['host'], agent: string): boolean {
  const a2a = agents.get(agent)?.capabilities.extensions?.['a2a']
  return isRecord(a2a) && a2a['messages'] === true
}

interface Opening {
  readonly request: SendRequest
  readonly record: Pick<TaskRecord, 'id' | 'contextId' | 'agent'>
  /** The response that it goes on from. */
  readonly parent: string | undefined
  /** Nobody hears of it before its response has ended. */
  readonly silent?: boolean
}

/** The message may say how often it was passed on: a gateway in between may have dropped the header. */
function traceOf({ trace }: KnownCall, { message }: SendRequest): Trace {
  return withHops(trace, uampIn(message.metadata)['hops'])
}

/** A session for a message, which goes on from what was said before. */
async function openSession(
  { host }: Shared,
  call: KnownCall,
  { request: asked, record, parent, silent = false }: Opening,
): Promise<Session> {
  const { principal, request } = call
  const payment = paymentOf(asked.message, request)
  const init = {
    transport: 'a2a',
    agent: record.agent,
    principal,
    trace: traceOf(call, asked),
    config: configOf(asked, record, asked.message.metadata && toolsIn(asked.message.metadata, request.headers)),
    duplex: false,
    persist: true,
    onDetach: 'finish',
    silent,
    // `/tasks` has no way back to a task that was not paid for.
    paysAnew: asked.generation === 'tasks',
    input: [toInput(asked.message)],
    ...(payment && { payment }),
  } as const
  if (parent === undefined) return host.gateway.open(init)
  try {
    return await host.gateway.open({ ...init, parent })
  } catch (thrown) {
    // The earlier conversation has expired or was deleted, so a new one begins.
    if (thrown instanceof UampError && thrown.code === 'not_found') return host.gateway.open(init)
    throw thrown
  }
}

/** What a message brings before anything is asked for. */
function paymentOf(message: Message, { headers }: Request): Payment | undefined {
  return paymentIn(message) ?? paymentFrom(headers)
}

/** What an agent may want to know of the request beside the message itself. */
function configOf(
  { message, acceptedOutputModes, metadata }: SendRequest,
  { id, contextId }: Opening['record'],
  tools: Declared | undefined,
): SessionConfig {
  const said = tools ? tools.metadata : message.metadata
  const a2a = {
    messageId: message.messageId,
    contextId,
    taskId: id,
    ...(said && { metadata: said }),
    ...(message.extensions && { extensions: message.extensions }),
    ...(message.referenceTaskIds && { referenceTaskIds: message.referenceTaskIds }),
    ...(acceptedOutputModes && { acceptedOutputModes }),
    ...(metadata && { requestMetadata: metadata }),
  }
  return { modalities: ['text'], extensions: { a2a }, ...(tools && { tools: tools.tools }) }
}

/** What a client said, as a message of the conversation. */
function toInput({ parts }: Message): Input {
  const items = parts.map((part) => toItem(unpaid(part)))
  return { role: 'user', content: textOf(items), content_items: items }
}

/** A conversation is stored and told to models, so what proves a payment is no part of it. */
function unpaid(part: Part): Part {
  const { data } = part
  if (!isRecord(data) || data['type'] !== 'payment.submit' || !isRecord(data['payment'])) return part
  const { scheme, network, amount } = data['payment']
  return { ...part, data: { type: 'payment.submit', payment: { scheme, network, amount } } as Struct }
}
