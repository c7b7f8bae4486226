import { answerDrafts } from '../../upstream/answer-drafts.ts'
import { withHostedTools } from '../../core/agent-kit/hosted-tools.ts'
import type { Provider } from '../../core/ports/provider.ts'
import { secretsOf } from '../../core/secrets/secrets.ts'
import { askModel, type Timeouts } from '../../upstream/upstream.ts'
import { urlBelow } from '../../wire/url-below.ts'
import { HOSTED } from './hosted-tools.ts'
import { capabilitiesOf, traitsOf } from './models.ts'
import { toRequest } from './request.ts'
import { AnswerStream } from './stream.ts'

/** The `anthropic-version` that lists of models have. */
const LISTING_VERSION = '2023-06-01'

export interface AnthropicOptions {
  /** Its name in settings, capabilities and error messages. Default: `anthropic`. */
  readonly name?: string
  readonly apiKey: string
  /** With or without `/v1` at its end. */
  readonly baseUrl?: string
  /** A fixed `anthropic-version`. Default: the newest, or an older one if the model and the request need it. */
  readonly version?: string
  /** Sent with every request: `anthropic-beta`, or what a proxy wants. */
  readonly headers?: Readonly<Record<string, string>>
  readonly timeouts?: Partial<Timeouts>
  readonly retries?: number
}

/** Claude, through the Messages API. */
export function anthropic({
  name = 'anthropic',
  apiKey,
  baseUrl = 'https://api.anthropic.com',
  version: pinned,
  headers,
  timeouts,
  retries,
}: AnthropicOptions): Provider {
  const base = baseUrl.replace(/(\/v1)?\/*(\?.*)?$/s, '$2')
  const url = urlBelow(base, '/v1/messages')
  return {
    name,
    secrets: secretsOf({ values: [apiKey], headers, urls: [baseUrl] }),
    listing: {
      url: urlBelow(base, '/v1/models'),
      headers: { 'anthropic-version': pinned ?? LISTING_VERSION, 'x-api-key': apiKey, ...headers },
    },
    capabilities: async (model) => {
      const able = { ...capabilitiesOf(model), provider: name }
      // Servers that imitate the API have none.
      return traitsOf(model).claude ? withHostedTools(able, HOSTED) : able
    },

    generate: (request, context) =>
      answerDrafts(() => {
        const { version, body } = toRequest(request, { name, pinned })
        const sent = { 'anthropic-version': version, 'x-api-key': apiKey, ...headers }
        return askModel({ name, url, headers: sent, body, timeouts, retries }, context)
      }, new AnswerStream(name)),
  }
}
