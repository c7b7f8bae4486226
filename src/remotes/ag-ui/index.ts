import { answerDrafts } from '../../upstream/answer-drafts.ts'
import { ClientAnswers, offeredBy } from '../../upstream/client-answers.ts'
import { nextHops } from '../../core/basics/hops.ts'
import { defineAgent } from '../../core/agent-kit/define-agent.ts'
import { done } from '../../core/agent-kit/done.ts'
import { state, text } from '../../core/agent-kit/drafts.ts'
import { outputMessages } from '../../core/reading/output.ts'
import type { AgentPort, Turn } from '../../core/ports/agent.ts'
import type { HttpAnswer } from '../../core/ports/http.ts'
import { secretsOf } from '../../core/secrets/secrets.ts'
import { outboundAuth } from '../../upstream/outbound-auth.ts'
import { paidHttp } from '../../upstream/paid-http.ts'
import { Payer } from '../../upstream/payer.ts'
import { upstreamEvents } from '../../upstream/upstream-events.ts'
import { postUpstream, streamBounds, type UpstreamPost, type RemoteOptions } from '../../upstream/upstream.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import { fieldsOf, recordsIn, type Slot } from '../../protocol/json.ts'
import { contextText, toWireMessages } from '../../wire/ag-ui/messages.ts'
import { callIds } from '../../wire/steps.ts'
import { explainError } from '../../wire/upstream.ts'
import { sseParser } from '../../wire/sse-parse.ts'
import { Heard } from './heard.ts'
import { isAgUi, isOpenQuestion, resumed, type ResumeEntry } from './questions.ts'

/** Runs of the other side that one turn may take. Each run after the first brings results or decisions. */
const ROUNDS = 64

/** `url`: where its runs are posted to. */
export type RemoteAgUiOptions = RemoteOptions

/**
 * An AG-UI agent of any version, as an agent here. Its pending tool calls and interrupts are put to the client, and a cancel closes the
 * request. The other side remembers nothing: each turn is a new thread with the whole conversation.
 */
export function remoteAgUi(options: RemoteAgUiOptions): AgentPort {
  const { name, description, url, token, headers, price } = options
  const auth = outboundAuth(options)
  const secrets = secretsOf({ values: [token, ...(auth?.secrets ?? [])], headers, urls: [url] })
  const capabilities = { modalities: ['text', 'image', 'audio', 'video', 'file'], supports_thinking: true }
  const agent = defineAgent(name, (turn) => paidRun(turn, { ...options, http: auth?.http(turn) ?? turn.http }), {
    description,
    capabilities,
    secrets,
    ...(price && { price }),
  })
  return auth ? { ...agent, prepare: (server) => auth.prepare(server) } : agent
}

async function* paidRun(turn: Turn, options: RemoteAgUiOptions & Pick<Turn, 'http'>): AsyncGenerator<Draft, void> {
  const payer = new Payer(turn, options)
  try {
    for await (const draft of run(turn, { ...options, http: paidHttp(options.http, payer), payer })) {
      const told = payer.told(draft)
      if (told) yield told
    }
  } finally {
    await payer.end()
  }
}

type RunOptions = RemoteAgUiOptions & Pick<Turn, 'http'> & { readonly payer: Payer }

async function* run(turn: Turn, options: RunOptions): AsyncGenerator<Draft, void> {
  const { url, token, headers, payer, newId = () => crypto.randomUUID() } = options
  const name = `"${options.name}"`
  const to = { name, url, token, explain: explainError, ...streamBounds(), headers: { accept: 'text/event-stream', ...headers } }
  const thread = { ...common(turn), threadId: newId() }
  const offered = offeredBy(turn)
  const client = new ClientAnswers(turn, { offered })
  const content = withoutContext(turn.config.instructions, thread.context)
  const instructing = content === undefined ? [] : [{ role: 'system' as const, content }]
  const conversation = [...turn.messages, ...(turn.said ?? [])]
  const taken = callIds(conversation)
  let messages = toWireMessages([...instructing, ...conversation], newId, { signed: true })
  let resume: readonly ResumeEntry[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const heard = new Heard({ name, messages, taken, newId })
    const body = await stream(
      { ...to, body: { ...thread, runId: newId(), messages, ...(resume.length > 0 && { resume }) } },
      { http: options.http, signal: turn.signal },
    )
    yield* answerDrafts(() => upstreamEvents(body, { name: options.name, parse: sseParser() }), heard)
    const { interrupts, calls } = heard
    const open = heard.open(offered)
    if (!isAgUi(turn) && interrupts.some(isOpenQuestion)) {
      // Approval cannot answer an open question, so it becomes text, and the user's next message answers it.
      yield text(interrupts.map(({ message, reason }) => String(message ?? reason)).join('\n'))
      return yield done({ stop: 'input_required' })
    }
    if (open.length === 0 && interrupts.length === 0) return yield heard.done
    // All questions are put at once, as on a one-way transport the first of them ends the response.
    const [results, entries] = await Promise.all([
      Promise.all(open.map(({ call }) => client.result(call))),
      Promise.all(interrupts.map((interrupt) => resumed(interrupt, { turn, client, calls, payer }))),
    ])
    for (const tool_result of results) yield { type: 'response.delta', delta: { type: 'tool_result', tool_result } }
    const theirs = results.map((result, index) => ({ ...result, call_id: open[index]?.theirs ?? result.call_id }))
    const items = theirs.map((tool_result) => ({ type: 'tool_result' as const, tool_result }))
    messages = [...heard.messages, ...toWireMessages(outputMessages(items), newId)]
    resume = entries
  }
  throw new UampError('tool_budget_exceeded', `${name} asked something in each of ${ROUNDS} runs in a row`)
}

/** Content types that are certainly no stream of events. Servers give their streams many types. */
const OTHER = /\b(json|html|xml|proto)\b/i

async function stream(post: UpstreamPost, by: Pick<Turn, 'http' | 'signal'>): Promise<HttpAnswer['body']> {
  const { headers, body } = await postUpstream({ ...post, once: true }, by)
  const type = headers.get('content-type') ?? ''
  if (!OTHER.test(type)) return body
  await body[Symbol.asyncIterator]().return?.()
  throw new UampError('provider_error', `${post.name} answered with ${type}, which is no stream of events: is the address right?`)
}

/** The fields that all runs of a turn share. What a client of AG-UI sent us goes on, except its payment. */
function common(turn: Turn) {
  const { context, forwardedProps } = fieldsOf(turn.config.extensions?.['ag-ui'])
  const { uamp: _, ...given } = fieldsOf(forwardedProps)
  const props = { ...given, uamp: { hops: nextHops(turn.trace) } }
  const tools = turn.config.tools?.map(({ function: made }) => {
    const { name, description = '', parameters = { type: 'object', properties: {} } } = made
    return { name, description, parameters }
  })
  const told = recordsIn(context)
  return { protocolVersion: '1.0', state: state.given(turn) ?? {}, tools: tools ?? [], context: told, forwardedProps: props }
}

/** Our instructions end with the context, which the run has as a field of its own. */
function withoutContext(instructions: string | undefined, context: readonly Slot[]): string | undefined {
  const told = contextText(context)
  if (told === undefined || !instructions?.endsWith(told)) return instructions
  return instructions.slice(0, -told.length).trimEnd() || undefined
}
