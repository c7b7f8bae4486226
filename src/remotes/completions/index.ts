import { answerDrafts } from '../../core/answer-drafts.ts'
import { agentCapabilities } from '../../core/define-agent.ts'
import type { AgentPort, Turn } from '../../core/ports/agent.ts'
import type { HttpAnswer } from '../../core/ports/http.ts'
import { upstreamEvents } from '../../core/upstream-events.ts'
import { callUpstream } from '../../core/upstream.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import type { Message } from '../../protocol/message.ts'
import { sseParser } from '../../wire/sse-parse.ts'
import { callIds } from '../../wire/openai/steps.ts'
import { explainOpenAi, isStream, wholeAnswer } from '../../wire/openai/upstream.ts'
import { Answer } from './answer.ts'
import { Calls } from './calls.ts'
import { toRequest, type Asked } from './request.ts'

/** Requests of one turn: each round of tool results is a new one. */
const ROUNDS = 64

export interface RemoteCompletionsOptions {
  /** What it is called here. */
  readonly name: string
  /** Up to and without `/chat/completions`: `https://host/v1`. */
  readonly url: string
  /** What it is called there. */
  readonly model: string
  readonly apiKey?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly description?: string
  readonly capabilities?: Partial<Capabilities>
  readonly newId?: () => string
}

/**
 * Whatever answers `POST /chat/completions`, as an agent. Calls of the client's tools are put to the client, and their results
 * sent in the next request. A cancel closes the connection.
 */
export function remoteCompletions(options: RemoteCompletionsOptions): AgentPort {
  const { name, description } = options
  const capabilities = agentCapabilities(name, {
    modalities: ['text', 'image'],
    tools: { supports_tools: true, supports_parallel_tools: true },
    ...options.capabilities,
  })
  return { name, ...(description !== undefined && { description }), capabilities, run: (turn) => run(turn, options) }
}

async function* run(turn: Turn, options: RemoteCompletionsOptions): AsyncGenerator<Draft, void> {
  const { name, newId = () => crypto.randomUUID() } = options
  let messages: readonly Message[] = [...turn.messages, ...(turn.said ?? [])]
  const taken = callIds(messages)
  const calls = new Calls(turn)
  for (let round = 0; round < ROUNDS; round++) {
    const answer = new Answer({ name, taken, newId })
    const response = await request(turn, options, { messages, config: turn.config })
    if (isStream(response.headers)) {
      yield* answerDrafts(() => upstreamEvents(response.body, { name, parse: sseParser() }), answer)
    } else {
      const drafts: Draft[] = []
      answer.take(await wholeAnswer(name, response.body), drafts)
      answer.end(drafts)
      for (const draft of drafts) yield draft
    }
    if (answer.calls.length === 0) {
      const done = answer.done()
      if (done) yield done
      return
    }
    const results = await calls.answered(answer.calls)
    for (const tool_result of results) yield { type: 'response.delta', delta: { type: 'tool_result', tool_result } }
    messages = [
      ...messages,
      answer.message(),
      ...results.map(({ call_id, result, content_items }) => ({
        role: 'tool' as const,
        tool_call_id: call_id,
        content: result,
        ...(content_items && { content_items }),
      })),
    ]
  }
  throw new UampError('tool_budget_exceeded', `"${name}" asked for tools in ${ROUNDS} answers one after the other`)
}

function request({ http, signal }: Turn, options: RemoteCompletionsOptions, asked: Asked): Promise<HttpAnswer> {
  const { name, url, apiKey, headers } = options
  return callUpstream({
    name,
    http,
    signal,
    explain: explainOpenAi,
    request: {
      url: `${url.replace(/\/+$/, '')}/chat/completions`,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'text/event-stream',
        ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
        ...headers,
      },
      body: JSON.stringify(toRequest(asked, options)),
    },
  })
}
