import { answerDrafts } from '../../upstream/answer-drafts.ts'
import { withHostedTools } from '../../core/agent-kit/hosted-tools.ts'
import type { Provider } from '../../core/ports/provider.ts'
import { secretsOf } from '../../core/secrets/secrets.ts'
import { askModel, type Timeouts } from '../../upstream/upstream.ts'
import { UampError } from '../../protocol/errors.ts'
import { explainError } from '../../wire/upstream.ts'
import { urlBelow } from '../../wire/url-below.ts'
import { HOSTED } from './hosted-tools.ts'
import { capabilitiesOf } from './models.ts'
import { toRequest } from './request.ts'
import { AnswerStream } from './stream.ts'

export interface GoogleOptions {
  /** Its name in settings, capabilities and error messages. Default: `google`. */
  readonly name?: string
  readonly apiKey: string
  /** With or without `/v1beta` at its end. */
  readonly baseUrl?: string
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>
  readonly timeouts?: Partial<Timeouts>
  readonly retries?: number
  /** Makes ids for calls that Gemini gave none. */
  readonly newId?: () => string
}

const BASE = 'https://generativelanguage.googleapis.com'

/** Gemini, through `streamGenerateContent`. */
export function google(options: GoogleOptions): Provider {
  const { name = 'google', apiKey, baseUrl = BASE, headers, timeouts, retries, newId = () => crypto.randomUUID() } = options
  const version = /\/v\d+(alpha|beta)?\d*\/*(\?.*)?$/s.test(baseUrl) ? '' : '/v1beta'
  return {
    name,
    secrets: secretsOf({ values: [apiKey], headers, urls: [baseUrl] }),
    listing: { url: urlBelow(baseUrl, `${version}/models`), headers: { 'x-goog-api-key': apiKey, ...headers } },
    capabilities: async (model) => withHostedTools({ ...capabilitiesOf(model), provider: name }, HOSTED),

    generate: (request, context) =>
      answerDrafts(
        async () => {
          const { model, body } = toRequest(request, name)
          const path = model.includes('/') ? model : `models/${model}`
          const url = urlBelow(baseUrl, `${version}/${encodeURI(path)}:streamGenerateContent?alt=sse`)
          const post = { name, url, headers: { 'x-goog-api-key': apiKey, ...headers }, body, timeouts, retries, explain }
          return askModel(post, context).catch((error: unknown) => {
            throw blamed(error)
          })
        },
        new AnswerStream(newId, name),
      ),
  }
}

const KEY_REFUSED = 'the key was refused'

function explain(body: unknown): string | undefined {
  const words = explainError(body)
  return words?.startsWith('API key') ? KEY_REFUSED : words
}

/** Google answers a wrong key with 400, as if the client had made a mistake. The key is the operator's. */
function blamed(error: unknown): unknown {
  const isKey = error instanceof UampError && error.message.endsWith(KEY_REFUSED)
  return isKey ? new UampError('provider_error', error.message, { cause: error }) : error
}
