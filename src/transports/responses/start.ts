import { chooseAgent, responseConfig } from '../../core/edge/asked.ts'
import { ofResponse } from '../../core/edge/report-error.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { Session, StoredResponse } from '../../core/ports/session.ts'
import type { Host, KnownCall } from '../../core/ports/transport.ts'
import { matchAnswers } from '../../core/reading/answers.ts'
import { ResponseRun } from '../../core/reading/response-run.ts'
import { ServerEvent, type ClientEvent, type EventOf } from '../../protocol/events.ts'
import type { Payment } from '../../protocol/payment.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import { toldError } from '../../wire/openai/errors.ts'
import { checkHostedTools } from '../../core/agent-kit/hosted-tools.ts'
import { invalid } from '../../wire/parse.ts'
import { BY_HEADER, paymentRefusal } from '../../protocol/payment-refusal.ts'
import { paymentFrom } from '../../wire/payment.ts'
import type { AnswerOptions } from './answer.ts'
import { placeOf } from './ids.ts'
import { toAnswer, toMessages, type Given } from './input.ts'
import type { Asked } from './request.ts'
import { withBegun } from './response.ts'
import type { InputItem } from './schema.ts'
import { withReferences } from './stored-items.ts'
import { join, takenBefore } from './taken.ts'

/** The caller, over HTTP or a socket. */
export type Caller = Pick<KnownCall, 'agent' | 'root' | 'principal' | 'access' | 'request' | 'trace' | 'signal' | 'whenGone'>

/** A response that has begun. */
export interface Begun {
  readonly run: ResponseRun
  readonly about: AnswerOptions
}

/** The extension events of a response that is not stored: all but questions for approval, which nobody could answer later. */
const UNSTORED = ServerEvent.def.options
  .map((schema): string => schema.shape.type.def.values[0] ?? '')
  .filter((type) => type.startsWith('x.') && type !== 'x.approval.request')

/** Begins a response: in a new session, or as the continuation of a run that waits for the answers in this request. */
export async function start(host: Host, caller: Caller, asked: Asked): Promise<Begun> {
  const { gateway } = host
  const { principal } = caller
  const agent = chooseAgent(host, caller, asked.model)
  checkHostedTools(asked.tools, { name: agent, capabilities: host.agents.get(agent)?.capabilities })
  const config = withBegun(asked.config, host.now())
  const previous = await previousOf(host, asked, principal)
  const input = await withReferences(gateway, asked.input, principal)
  const items = typeof input === 'string' ? [] : input
  const asking = asked.store ? await findAsking(host, caller, { previous, items, agent }) : undefined
  if (asking) {
    const begun = await answer(host, caller, { asking, items, config, asked })
    if (begun) return begun
    leave(asking.session)
  }
  checkCalls(items, previous)
  const payment = paymentFrom(caller.request.headers)
  const session = await gateway.open({
    transport: 'responses',
    agent,
    principal,
    trace: caller.trace,
    config,
    duplex: false,
    persist: asked.store,
    onDetach: asked.background ? 'finish' : 'cancel',
    input: toMessages(input),
    silent: !asked.stream && !asked.background,
    ...(previous && { parent: previous.id }),
    ...(payment && { payment }),
  })
  return begin(host, caller, { session, asked, config, sent: [{ type: 'response.create', event_id: host.newId() }], fresh: true })
}

/** The response that a request goes on from. */
export async function previousOf(
  { gateway }: Host,
  { previous: id }: Pick<Asked, 'previous'>,
  principal: Principal,
): Promise<StoredResponse | undefined> {
  if (id === undefined) return undefined
  const previous = await gateway.response(id, principal)
  if (!previous) throw invalid(`Previous response with id '${id}' not found.`, 'previous_response_id', 'previous_response_not_found')
  if (previous.status !== 'open') return previous
  throw invalid(`Response '${id}' is still in progress.`, 'previous_response_id', 'previous_response_in_progress')
}

/** Waits for the first word. Throws if the response is refused before it. */
export async function preflight({ run }: Begun): Promise<void> {
  const refused = await run.preflight()
  if (!refused) return
  await run.refuse(refused)
  throw refused.type === 'payment.required' ? paymentRefusal(refused, BY_HEADER) : ofResponse(toldError(refused.error))
}

interface Beginning {
  readonly session: Session
  readonly asked: Asked
  readonly config: SessionConfig
  readonly sent: readonly ClientEvent[]
  /** The session was opened for this response: nothing else is in it. */
  readonly fresh: boolean
  /** For a session that was there before. */
  readonly payment?: Payment | undefined
}

/** The response will not begin here. */
function leave(session: Session | undefined): void {
  session?.release().catch(() => undefined)
}

/** A response in the background goes on without its client. */
async function begin(host: Host, caller: Caller, { session, asked, config, sent, fresh, payment }: Beginning): Promise<Begun> {
  const { store, background } = asked
  const { principal, trace } = caller
  // The request that goes on with a run may be streamed where the first one was not, or come after a restart.
  const sender = { principal, trace, payment, paysAnew: { isHeard: asked.stream || background }, ...asked.signing }
  const reader = session.read({ extensions: store ? 'all' : UNSTORED })
  try {
    const accepted = sent.map((event) => session.send(event, sender))
    const response = session.lastResponse ?? ''
    if (background) session.finish()
    await Promise.all(accepted)
    const run = new ResponseRun(host, { session, reader, response, cancels: !background, fresh })
    if (!background) run.stopWith(caller)
    return { run, about: { id: response, agent: session.agent, config, endedAt: host.now } }
  } catch (thrown) {
    reader.close()
    if (fresh) leave(session)
    throw thrown
  }
}

/** Continues a run with answers. The run keeps the settings of its first request; the client is told those of this one. */
function goOn(
  host: Host,
  caller: Caller,
  { session, answers, config, asked }: Pick<Beginning, 'session' | 'config' | 'asked'> & { answers: readonly Given[] },
): Promise<Begun> {
  const { instructions, tools, extensions, response_format } = config
  const create: EventOf<'response.create'> = {
    type: 'response.create',
    event_id: host.newId(),
    response: { instructions, tools, extensions },
    response_format,
  }
  const merged = responseConfig(session.config, create) ?? session.config
  const payment = paymentFrom(caller.request.headers)
  return begin(host, caller, { session, asked, config: merged, sent: [...answers, create], fresh: false, payment })
}

/** A response that ended with questions. */
export interface Asking {
  readonly session: Session
  readonly turn: StoredResponse
  /** The client named the response. Otherwise it sent the whole conversation, and an approval in it tells which response it answers. */
  readonly named: boolean
}

/** What this request may answer: the previous response, or that of an approval in the input. */
async function findAsking(
  { gateway }: Host,
  { principal }: Caller,
  { previous, items, agent }: { previous: StoredResponse | undefined; items: readonly InputItem[]; agent: string },
): Promise<Asking | undefined> {
  const last = items.findLast((item) => item.type === 'mcp_approval_response')
  const approved = last?.type === 'mcp_approval_response' ? placeOf(last.approval_request_id) : undefined
  const turn = previous ?? (approved && (await gateway.response(approved.responseId, principal)))
  if (turn?.status !== 'waiting' || turn.agent !== agent) return undefined
  const session = await gateway.attach(turn.session, principal)
  return session && { session, turn, named: previous !== undefined }
}

interface Answering extends Pick<Beginning, 'config' | 'asked'> {
  readonly asking: Asking
  readonly items: readonly InputItem[]
}

/** The response that the answers in this request begin, or began before. Undefined: the request answers nothing. */
async function answer(host: Host, caller: Caller, { asking, items, config, asked }: Answering): Promise<Begun | undefined> {
  const { session, turn } = asking
  try {
    const given = givenIn(asking, items, host.newId)
    // Nothing is awaited between this and the answers: of two that come at once, the second finds the response of the first.
    if (session.waiting?.response === turn.id) {
      const answers = complete(asking, given)
      return answers && (await goOn(host, caller, { session, answers, config, asked }))
    }
    const taken = given.alone ? await takenBefore(host.gateway, { ...asking, principal: caller.principal }, given.answers) : undefined
    return taken && join(host, caller, { session, taken })
  } catch (thrown) {
    leave(session)
    throw thrown
  }
}

interface GivenAnswers {
  readonly answers: readonly Given[]
  /** The request has nothing else. */
  readonly alone: boolean
}

/** The answers in the input to what was asked. */
function givenIn({ turn, named }: Asking, items: readonly InputItem[], newId: () => string): GivenAnswers {
  const given = items.map((item, index) => toAnswer(item, newId(), `input[${index}]`))
  const all = given.filter((answer) => answer !== undefined)
  const { notAsked } = matchAnswers(turn.questions, all)
  const answers = all.filter((answer) => !notAsked.includes(answer))
  const last = answers.at(-1)
  return { answers, alone: last !== undefined && (named ? answers.length === items.length : last === given.at(-1)) }
}

/** The answers, if the run can go on with them. Throws if some are missing. */
function complete({ session }: Asking, { answers, alone }: GivenAnswers): readonly Given[] | undefined {
  if (answers.length === 0) return undefined
  if (!alone) {
    if (answers.every(({ type }) => type === 'tool.result')) return undefined
    throw invalid('Answer an approval request in a request of its own', 'input', 'invalid_value')
  }
  const [missing] = matchAnswers(session.waiting?.questions ?? [], answers).missing
  if (missing) {
    const what = missing.type === 'tool.call' ? 'tool output found for function call' : 'answer found for approval request'
    throw invalid(`No ${what} ${missing.id}.`, 'input', 'invalid_value')
  }
  return answers
}

/** Every output needs a call, and every call of the previous response an output: models refuse a conversation otherwise. */
function checkCalls(items: readonly InputItem[], previous: StoredResponse | undefined): void {
  const known = new Set(previous?.output.flatMap((item) => (item.type === 'tool_call' ? [item.tool_call.id] : [])))
  // The agent's own tools have given their results: the client must not replace them.
  for (const item of previous?.output ?? []) if (item.type === 'tool_result') known.delete(item.tool_result.call_id)
  const outputs = new Set<string>()
  for (const [index, item] of items.entries()) {
    if (item.type === 'function_call') known.add(item.call_id)
    if (item.type !== 'function_call_output') continue
    if (!known.has(item.call_id)) {
      throw invalid(`No tool call found for function call output with call_id ${item.call_id}.`, `input[${index}].call_id`, 'invalid_value')
    }
    outputs.add(item.call_id)
  }
  const open = previous?.questions.find(({ id, type }) => type === 'tool.call' && !outputs.has(id))
  if (open) throw invalid(`No tool output found for function call ${open.id}.`, 'input', 'invalid_value')
}
