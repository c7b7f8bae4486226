import { answerDrafts } from '../../upstream/answer-drafts.ts'
import type { Provider } from '../../core/ports/provider.ts'
import { secretsOf } from '../../core/secrets/secrets.ts'
import { upstreamEvents } from '../../upstream/upstream-events.ts'
import { callUpstream, streamBounds, type Timeouts } from '../../upstream/upstream.ts'
import { UampError } from '../../protocol/errors.ts'
import { explainError, isStream, wholeAnswer } from '../../wire/upstream.ts'
import { sseParser } from '../../wire/sse-parse.ts'
import { capabilitiesOf } from './models.ts'
import { toRequest } from './request.ts'
import { AnswerStream } from './stream.ts'

export interface AnthropicOptions {
  readonly apiKey: string
  /** With or without `/v1` at its end. */
  readonly baseUrl?: string
  /** The `anthropic-version` to stay with. By default the newest, and an older one for a model and a request that need it. */
  readonly version?: string
  /** Sent with every request: `anthropic-beta`, what a proxy wants. */
  readonly headers?: Readonly<Record<string, string>>
  readonly timeouts?: Partial<Timeouts>
  readonly retries?: number
}

/** Claude, by the Messages API. */
export function anthropic({
  apiKey,
  baseUrl = 'https://api.anthropic.com',
  version: pinned,
  headers,
  timeouts,
  retries,
}: AnthropicOptions): Provider {
  const url = `${baseUrl.replace(/(\/v1)?\/*$/, '')}/v1/messages`
  return {
    name: 'anthropic',
    secrets: secretsOf({ values: [apiKey], headers, urls: [baseUrl] }),
    capabilities: async (model) => capabilitiesOf(model),

    generate: (request, { http, signal }) =>
      answerDrafts(async () => {
        const { version, body } = toRequest(request, pinned)
        const answer = await callUpstream({
          name: 'anthropic',
          http,
          signal,
          explain: explainError,
          ...streamBounds(timeouts),
          retries,
          request: {
            url,
            method: 'POST',
            headers: { 'content-type': 'application/json', 'anthropic-version': version, 'x-api-key': apiKey, ...headers },
            body: JSON.stringify(body),
          },
        })
        if (!isStream(answer.headers))
          throw new UampError('provider_error', 'anthropic did not answer with a stream', {
            cause: await wholeAnswer('anthropic', answer.body),
          })
        return upstreamEvents(answer.body, { name: 'anthropic', parse: sseParser() })
      }, new AnswerStream()),
  }
}
