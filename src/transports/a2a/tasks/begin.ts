import type { Reader, Session } from '../../../core/ports/session.ts'
import type { KnownCall } from '../../../core/ports/transport.ts'
import { UampError } from '../../../protocol/errors.ts'
import type { ClientEvent } from '../../../protocol/events.ts'
import { isRecord } from '../../../protocol/json.ts'
import { paymentFrom } from '../../../wire/payment.ts'
import { a2aError } from '../errors.ts'
import { TERMINAL, type Message, type SendRequest } from '../model.ts'
import { answersIn } from './answers.ts'
import { cancelWaiting } from './cancel.ts'
import { directMessage } from './direct.ts'
import { Live } from './live.ts'
import { openSession } from './open.ts'
import { agentOf, findOwn } from './own.ts'
import { isRunning, ownerOf, type Found, type Step, type TaskRecord } from './records.ts'
import { notFound, notify, statusOf, type Shared } from './shared.ts'
import { rejectsPayment } from './x402.ts'

/** What a message set going: a task that runs, one that ended with it, or an answer that is no task. */
export type Begun = Started | { readonly ended: TaskRecord } | { readonly message: Message; readonly taskId: string }

export interface Started {
  readonly live: Live
  readonly isNew: boolean
  /** For a client that wants to see it happen: stands before its first event. */
  readonly reader: Reader | undefined
}

/** What a client asked for, and whether it wants to see it happen. */
export interface Asked {
  readonly request: SendRequest
  readonly streaming: boolean
}

/** A response that is about to begin. */
interface Beginning {
  readonly session: Session
  /** What is sent to the session to make it begin. */
  readonly sent: readonly ClientEvent[]
  /** The task as it was; undefined: it is new. */
  readonly before: Found | undefined
  readonly record: Pick<TaskRecord, 'id' | 'contextId' | 'agent'>
  /** The session's newest event before it. */
  readonly after: number
}

const ID_LENGTH = 256

/** Takes a message: it begins a task, or goes on with the one that it names. */
export async function begin(shared: Shared, call: KnownCall, asked: Asked): Promise<Begun> {
  const { message, chosenId, push } = asked.request
  const agent = agentOf(shared.host, call)
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
  const { message, chosenId } = request
  const contextId = message.contextId ?? host.newId()
  const parent = message.contextId === undefined ? undefined : await records.context(call.principal, agent, contextId)
  const record = { id: chosenId ?? host.newId(), contextId, agent }
  const silent = isSilent(asked, undefined) && !mayAnswerDirectly(host, agent)
  const session = await openSession(shared, call, { request, record, parent, silent })
  const create: ClientEvent = { type: 'response.create', event_id: host.newId() }
  const beginning: Beginning = { session, record, before: undefined, sent: [create], after: session.head }
  if (!mayAnswerDirectly(host, agent)) return start(shared, call, { asked, beginning })
  const said = await directMessage(shared, beginning, { ...record, principal: call.principal })
  if (said) return { message: said, taskId: record.id }
  return start(shared, call, { asked, beginning: { ...beginning, sent: [] } })
}

/** The next message of a task: the answer to what it waits for, or what is said after its last response. */
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
  const create: ClientEvent = { type: 'response.create', event_id: host.newId() }
  if (!last.waits) {
    const session = await openSession(shared, call, { request, record, parent: last.turn })
    const beginning: Beginning = { session, sent: [create], before, record, after: session.head }
    return start(shared, call, { asked, beginning })
  }
  if (rejectsPayment(request.message)) return { ended: await cancelWaiting(shared, before, request.message) }
  const session = await host.gateway.attach(last.session, call.principal)
  if (session?.waiting?.response !== last.turn) {
    throw a2aError('UNSUPPORTED_OPERATION', `Task "${id}" can no longer be answered: begin another one`, { taskId: id })
  }
  const payment = paymentFrom(call.request.headers)
  const answers = answersIn(request.message, { questions: session.waiting.questions, payment, newId: host.newId })
  const beginning: Beginning = { session, sent: [...answers, create], before, record, after: session.head }
  return start(shared, call, { asked, beginning })
}

/** Begins the response, and writes down that its task is being worked on. */
async function start(shared: Shared, call: KnownCall, { asked, beginning }: { asked: Asked; beginning: Beginning }): Promise<Started> {
  const { request, streaming } = asked
  const { lives, records, push, host } = shared
  const { session, sent, before, after, record: ids } = beginning
  const message: Message = { ...records.settled(request.message), taskId: ids.id, contextId: ids.contextId }
  const metadata = request.metadata && records.settledMetadata(request.metadata)
  const record = opened(beginning, { call, request: { ...request, metadata }, now: host.now() })
  const reader = session.read({ after, extensions: 'all' })
  const live = new Live(shared, { session, reader, record, history: before ? undefined : [message] })
  // Of two messages to one task, or two tasks that are to have one id, the first one wins.
  if (lives.get(live.key)) {
    live.refused(busy(ids.id))
    throw busy(ids.id)
  }
  lives.add(live)
  try {
    if (request.push) {
      await push.attach(call.principal, { ...request.push, taskId: ids.id })
    }
    const begun = sent.map((event) => session.send(event))
    live.asked(session.turn ?? '')
    const first = records.setMessage(record, record.messages, message)
    if (isSilent(asked, before)) live.writeLater(first)
    else begun.push(records.store.batch([records.set(live.record, before?.version ?? 0), first]))
    await settled(begun)
  } catch (thrown) {
    // Its response may have begun all the same.
    void session.send({ type: 'response.cancel', event_id: host.newId(), response_id: live.step.turn }).catch(() => undefined)
    await undo(shared, before?.record, live.record)
    live.refused(thrown)
    throw UampError.from(thrown).code === 'conflict' ? busy(ids.id) : thrown
  }
  // Not before the task is stored: after a crash nobody could tell the webhook how a task ended that was never there.
  if (request.push) {
    notify(shared, record, { task: { id: ids.id, contextId: ids.contextId, status: record.status, history: [message] } })
  }
  // Opened before anybody has read: what all have read is no longer in memory.
  const following = streaming ? session.read({ after, extensions: 'all', signal: call.signal }) : undefined
  live.follow()
  return { live, isNew: before === undefined, reader: following }
}

/** Whether nobody is told of a task before it has come to an end. */
function isSilent({ request, streaming }: Asked, before: Found | undefined): boolean {
  return !streaming && !request.returnImmediately && !request.push && !before && request.chosenId === undefined
}

function busy(taskId: string): Error {
  return a2aError('UNSUPPORTED_OPERATION', `Task "${taskId}" is being worked on: wait for it, or cancel it`, { taskId })
}

function opened(
  { session, before, record, after }: Beginning,
  { call, request, now }: { call: KnownCall; request: SendRequest; now: number },
): TaskRecord {
  const { principal } = call
  const step: Step = { session: session.id, turn: session.turn ?? '', after, startedAt: now }
  const status = statusOf('TASK_STATE_WORKING', now)
  if (before) {
    const { steps, messages } = before.record
    return { ...before.record, status, updatedAt: now, steps: [...steps, step], messages: messages + 1 }
  }
  return {
    ...record,
    tenant: principal.tenant,
    owner: principal.id,
    generation: request.generation,
    createdAt: now,
    updatedAt: now,
    status,
    steps: [step],
    messages: 1,
    ...(request.metadata && { metadata: request.metadata }),
  }
}

/** Waits for all, and then throws the first that failed: what is undone must be done before. */
async function settled(promises: readonly Promise<unknown>[]): Promise<void> {
  for (const outcome of await Promise.allSettled(promises)) if (outcome.status === 'rejected') throw outcome.reason
}

/** A task that could not begin was never there; one that could not go on is as it was. */
async function undo({ records, host }: Shared, before: TaskRecord | undefined, record: TaskRecord): Promise<void> {
  try {
    const stored = await records.find(ownerOf(record), record.id)
    // Somebody else's, if another one won.
    if (stored?.record.steps.at(-1)?.turn !== record.steps.at(-1)?.turn) return
    await records.store.batch([before ? records.set(before) : records.remove(record)])
  } catch (error) {
    host.log('error', 'A task that did not begin could not be removed', { task: record.id, error })
  }
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
