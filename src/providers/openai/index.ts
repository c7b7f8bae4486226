import { answerDrafts, inOnePiece, type EventBatch } from '../../upstream/answer-drafts.ts'
import type { ModelContext, ModelRequest, Provider } from '../../core/ports/provider.ts'
import { secretsOf } from '../../core/secrets/secrets.ts'
import { upstreamEvents } from '../../upstream/upstream-events.ts'
import { callUpstream, streamBounds, type Timeouts } from '../../upstream/upstream.ts'
import { modelFor } from '../../wire/openai/settings.ts'
import { explainError, isStream, wholeAnswer } from '../../wire/upstream.ts'
import { sseParser } from '../../wire/sse-parse.ts'
import { factsOf, toCapabilities, type ModelFacts } from './models.ts'
import { toBody } from './request.ts'
import { ResponseStream } from './stream.ts'

export type { ModelFacts } from './models.ts'

export interface OpenAiOptions {
  /** What it is called in settings, capabilities and messages. Default `openai`. */
  readonly name?: string
  readonly apiKey: string
  /** Default `https://api.openai.com/v1`. */
  readonly baseUrl?: string
  readonly organization?: string
  readonly project?: string
  readonly headers?: Readonly<Record<string, string>>
  /** What thoughts are told in: OpenAI shows a summary of them, or nothing. Default `auto`. */
  readonly summary?: 'auto' | 'concise' | 'detailed' | false
  /** What is not known yet, or otherwise, of models. */
  readonly models?: Readonly<Record<string, ModelFacts>>
  /** Fields of every request, as they are. */
  readonly defaults?: Readonly<Record<string, unknown>>
  readonly timeouts?: Partial<Timeouts>
  readonly retries?: number
}

const BASE_URL = 'https://api.openai.com/v1'

/** OpenAI, through its Responses API. */
export function openai(options: OpenAiOptions): Provider {
  const {
    name = 'openai',
    apiKey,
    baseUrl = BASE_URL,
    organization,
    project,
    summary = 'auto',
    models,
    defaults = {},
    timeouts,
    retries,
  } = options
  const url = `${baseUrl.replace(/\/+$/, '')}/responses`
  const headers = {
    'content-type': 'application/json',
    authorization: `Bearer ${apiKey}`,
    ...(organization !== undefined && { 'openai-organization': organization }),
    ...(project !== undefined && { 'openai-project': project }),
    ...options.headers,
  }

  async function open(request: ModelRequest, { http, signal }: ModelContext): Promise<AsyncIterable<EventBatch>> {
    const model = modelFor(request.config, name) ?? request.model
    const body = JSON.stringify(toBody({ ...request, model }, { name, facts: factsOf(model, models), summary, defaults }))
    const answer = await callUpstream({
      name,
      http,
      request: { url, method: 'POST', headers, body },
      signal,
      explain: explainError,
      ...streamBounds(timeouts),
      retries,
    })
    if (isStream(answer.headers)) return upstreamEvents(answer.body, { name, parse: sseParser() })
    return inOnePiece(JSON.stringify(await wholeAnswer(name, answer.body)))
  }

  return {
    name,
    secrets: secretsOf({ values: [apiKey], headers: options.headers, urls: [baseUrl] }),
    capabilities: async (model) => ({ ...toCapabilities(model, factsOf(model, models)), provider: name }),
    generate: (request, context) => answerDrafts(() => open(request, context), new ResponseStream(name)),
  }
}
