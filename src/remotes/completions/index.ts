import { answerDrafts } from '../../core/answer-drafts.ts'
import { ClientAnswers, offeredBy } from '../../core/client-answers.ts'
import { defineAgent } from '../../core/define-agent.ts'
import { outputMessages } from '../../core/output.ts'
import type { AgentPort, Turn } from '../../core/ports/agent.ts'
import type { HttpAnswer } from '../../core/ports/http.ts'
import { secretsOf } from '../../core/secrets.ts'
import { upstreamEvents } from '../../core/upstream-events.ts'
import { postUpstream, streamBounds } from '../../core/upstream.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import type { Message } from '../../protocol/message.ts'
import { sseParser } from '../../wire/sse-parse.ts'
import { callIds } from '../../wire/openai/steps.ts'
import { explainOpenAi, isStream, wholeAnswer } from '../../wire/openai/upstream.ts'
import { Answer } from './answer.ts'
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
  const { name, description, url, apiKey, headers } = options
  const secrets = secretsOf({ values: [apiKey], headers, urls: [url] })
  const tools = { supports_tools: true, supports_parallel_tools: true }
  const capabilities = { modalities: ['text', 'image'], tools, ...options.capabilities }
  return defineAgent(name, (turn) => run(turn, options), { description, capabilities, secrets })
}

async function* run(turn: Turn, options: RemoteCompletionsOptions): AsyncGenerator<Draft, void> {
  const { name, newId = () => crypto.randomUUID() } = options
  let messages: readonly Message[] = [...turn.messages, ...(turn.said ?? [])]
  const taken = callIds(messages)
  // It has no other tools than those that the client brought.
  const client = new ClientAnswers(turn, { offered: offeredBy(turn) })
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
    const results = await Promise.all(answer.calls.map((call) => client.result(call)))
    const items = results.map((tool_result) => ({ type: 'tool_result' as const, tool_result }))
    for (const delta of items) yield { type: 'response.delta', delta }
    messages = [...messages, answer.message(), ...outputMessages(items)]
  }
  throw new UampError('tool_budget_exceeded', `"${name}" asked for tools in ${ROUNDS} answers one after the other`)
}

function request(turn: Turn, options: RemoteCompletionsOptions, asked: Asked): Promise<HttpAnswer> {
  const { name, url, apiKey: token, headers } = options
  const post = { url: `${url.replace(/\/+$/, '')}/chat/completions`, headers: { accept: 'text/event-stream', ...headers } }
  return postUpstream(
    { name, token, once: true, ...streamBounds(), explain: explainOpenAi, body: toRequest(asked, options), ...post },
    turn,
  )
}
