import { answerDrafts } from '../../core/answer-drafts.ts'
import { agentCapabilities } from '../../core/define-agent.ts'
import { state } from '../../core/drafts.ts'
import type { AgentPort, Turn } from '../../core/ports/agent.ts'
import type { HttpAnswer } from '../../core/ports/http.ts'
import { upstreamEvents } from '../../core/upstream-events.ts'
import { callUpstream } from '../../core/upstream.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import { isRecord } from '../../protocol/json.ts'
import { toWireMessages, type WireMessage } from '../../wire/ag-ui/messages.ts'
import { sseParser } from '../../wire/sse-parse.ts'
import { Heard } from './heard.ts'
import { Asking, isOpenQuestion, type ResumeEntry } from './questions.ts'

/** Runs of the other side that one turn may take: each brings results or decisions. */
const ROUNDS = 64

export interface RemoteAgUiOptions {
  /** What it is called here. */
  readonly name: string
  /** Where its runs are posted to. */
  readonly url: string
  readonly token?: string
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>
  readonly description?: string
  readonly newId?: () => string
}

/**
 * An AG-UI agent of any generation, as an agent here. Its pending tool calls and interrupts are put to the client, and a cancel closes
 * the request. Nothing is remembered there: each turn is a thread of its own that brings the whole conversation.
 */
export function remoteAgUi(options: RemoteAgUiOptions): AgentPort {
  const { name, description } = options
  return {
    name,
    ...(description !== undefined && { description }),
    capabilities: agentCapabilities(name, { modalities: ['text', 'image', 'audio', 'video', 'file'], supports_thinking: true }),
    run: (turn) => run(turn, options),
  }
}

async function* run(turn: Turn, options: RemoteAgUiOptions): AsyncGenerator<Draft, void> {
  const { name, newId = () => crypto.randomUUID() } = options
  const threadId = newId()
  const offered = new Set(turn.config.tools?.map((tool) => tool.function.name))
  const asking = new Asking(turn, offered)
  let messages = [...instructing(turn, newId), ...toWireMessages([...turn.messages, ...(turn.said ?? [])], newId, { signed: true })]
  let resume: readonly ResumeEntry[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const heard = new Heard(name, messages)
    const { body } = await post(turn, options, {
      ...common(turn),
      threadId,
      runId: newId(),
      messages,
      ...(resume.length > 0 && { resume }),
    })
    yield* answerDrafts(() => upstreamEvents(body, { name, parse: sseParser() }), heard)
    const open = heard.open(offered)
    const { interrupts } = heard
    if (interrupts.some(isOpenQuestion)) return yield* wordsOf(interrupts)
    if (open.length === 0 && interrupts.length === 0) return yield heard.done()
    const [results, entries] = await Promise.all([
      Promise.all(open.map((call) => asking.result(call))),
      Promise.all(interrupts.map((interrupt) => asking.resume(interrupt, heard.calls))),
    ])
    for (const tool_result of results) yield { type: 'response.delta', delta: { type: 'tool_result', tool_result } }
    const answers = results.map(({ call_id, result, is_error, content_items }) => ({
      role: 'tool' as const,
      tool_call_id: call_id,
      content: result,
      ...(is_error && { is_error }),
      ...(content_items && { content_items }),
    }))
    messages = [...heard.messages, ...toWireMessages(answers, newId)]
    resume = entries
  }
  throw new UampError('tool_budget_exceeded', `"${name}" asked in ${ROUNDS} runs one after the other`)
}

function instructing({ config }: Turn, newId: () => string): WireMessage[] {
  return config.instructions === undefined ? [] : [{ id: newId(), role: 'system', content: config.instructions }]
}

/** What every run of a turn has in common. What a client of AG-UI sent us is passed on, but for what pays us. */
function common(turn: Turn): object {
  const given = turn.config.extensions?.['ag-ui']
  const { context, forwardedProps } = isRecord(given) ? given : {}
  const { uamp: _, ...props } = isRecord(forwardedProps) ? forwardedProps : {}
  const tools = (turn.config.tools ?? []).map(
    ({ function: { name, description = '', parameters = { type: 'object', properties: {} } } }) => {
      return { name, description, parameters }
    },
  )
  return { protocolVersion: '1.0', state: state.given(turn) ?? {}, tools, context: context ?? [], forwardedProps: props }
}

/** What the user has to say more than yes or no to is said, and the next message answers it. */
function* wordsOf(interrupts: readonly Readonly<Record<string, unknown>>[]): Generator<Draft, void> {
  const words = interrupts.map(({ message, reason }) => String(message ?? reason)).join('\n')
  yield { type: 'response.delta', delta: { type: 'text', text: words } }
  const extensions = { uamp: { stop_reason: 'input_required' } }
  yield { type: 'response.done', response: { id: '', status: 'completed', output: [], extensions } }
}

function post({ http, signal }: Turn, { name, url, token, headers }: RemoteAgUiOptions, body: object): Promise<HttpAnswer> {
  return callUpstream({
    name: `"${name}"`,
    http,
    signal,
    explain,
    request: {
      url,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'text/event-stream',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...headers,
      },
      body: JSON.stringify(body),
    },
  })
}

/** There is no form for it: most have an `error` or a `detail`. */
function explain(body: unknown): string | undefined {
  if (!isRecord(body)) return undefined
  const { error, detail, message } = body
  const said = isRecord(error) ? error['message'] : (error ?? detail ?? message)
  return typeof said === 'string' ? said : undefined
}
