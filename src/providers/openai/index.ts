import { answerDrafts, inOnePiece } from '../../upstream/answer-drafts.ts'
import type { Provider } from '../../core/ports/provider.ts'
import { secretsOf } from '../../core/secrets/secrets.ts'
import { askModel, type Timeouts } from '../../upstream/upstream.ts'
import { HOSTED_TOOLS, withHostedTools } from '../../core/agent-kit/hosted-tools.ts'
import { modelFor } from '../../wire/openai/settings.ts'
import { urlBelow } from '../../wire/url-below.ts'
import { factsOf, toCapabilities, type ModelFacts } from './models.ts'
import { toBody } from './request.ts'
import { ResponseStream } from './stream.ts'

export type { ModelFacts } from './models.ts'

export interface OpenAiOptions {
  /** Its name in settings, capabilities and error messages. Default: `openai`. */
  readonly name?: string
  readonly apiKey: string
  /** Default: `https://api.openai.com/v1`. */
  readonly baseUrl?: string
  readonly organization?: string
  readonly project?: string
  readonly headers?: Readonly<Record<string, string>>
  /** How OpenAI summarizes thoughts, which it does not show. Default: `auto`. */
  readonly summary?: 'auto' | 'concise' | 'detailed' | false
  /** Facts about models that the built-in table lacks or has wrong. */
  readonly models?: Readonly<Record<string, ModelFacts>>
  /** Fields that are added to every request. */
  readonly defaults?: Readonly<Record<string, unknown>>
  readonly timeouts?: Partial<Timeouts>
  readonly retries?: number
}

const BASE_URL = 'https://api.openai.com/v1'

/** OpenAI, through its Responses API. */
export function openai(options: OpenAiOptions): Provider {
  const { name = 'openai', apiKey, baseUrl = BASE_URL, organization, project, models, timeouts, retries } = options
  const { summary = 'auto', defaults = {} } = options
  const url = urlBelow(baseUrl, '/responses')
  const headers = {
    authorization: `Bearer ${apiKey}`,
    ...(organization !== undefined && { 'openai-organization': organization }),
    ...(project !== undefined && { 'openai-project': project }),
    ...options.headers,
  }
  return {
    name,
    secrets: secretsOf({ values: [apiKey], headers: options.headers, urls: [baseUrl] }),
    listing: { url: urlBelow(baseUrl, '/models'), headers },
    capabilities: async (model) => withHostedTools({ ...toCapabilities(model, factsOf(model, models)), provider: name }, HOSTED_TOOLS),
    generate: (request, context) =>
      answerDrafts(() => {
        const model = modelFor(request.config, name) ?? request.model
        const body = toBody({ ...request, model }, { name, facts: factsOf(model, models), summary, defaults })
        return askModel({ name, url, headers, body, timeouts, retries }, context, inOnePiece)
      }, new ResponseStream(name)),
  }
}
