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

export interface GoogleOptions {
  readonly apiKey: string
  /** With or without `/v1beta` at its end. */
  readonly baseUrl?: string
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>
  readonly timeouts?: Partial<Timeouts>
  readonly retries?: number
  /** Names calls to which Gemini gave no id. */
  readonly newId?: () => string
}

const BASE = 'https://generativelanguage.googleapis.com'

/** Gemini, by `streamGenerateContent`. */
export function google({ apiKey, baseUrl = BASE, headers, timeouts, retries, newId = () => crypto.randomUUID() }: GoogleOptions): Provider {
  const given = baseUrl.replace(/\/+$/, '')
  const base = /\/v\d+(alpha|beta)?\d*$/.test(given) ? given : `${given}/v1beta`
  return {
    name: 'google',
    secrets: secretsOf({ values: [apiKey], headers, urls: [baseUrl] }),
    capabilities: async (model) => capabilitiesOf(model),

    generate: (request, { http, signal }) =>
      answerDrafts(async () => {
        const { model, body } = toRequest(request)
        const path = model.includes('/') ? model : `models/${model}`
        const answer = await callUpstream({
          name: 'google',
          http,
          signal,
          explain,
          ...streamBounds(timeouts),
          retries,
          request: {
            url: `${base}/${encodeURI(path)}:streamGenerateContent?alt=sse`,
            method: 'POST',
            headers: { 'content-type': 'application/json', 'x-goog-api-key': apiKey, ...headers },
            body: JSON.stringify(body),
          },
        }).catch((error: unknown) => {
          throw blamed(error)
        })
        if (!isStream(answer.headers))
          throw new UampError('provider_error', 'google did not answer with a stream', { cause: await wholeAnswer('google', answer.body) })
        return upstreamEvents(answer.body, { name: 'google', parse: sseParser() })
      }, new AnswerStream(newId)),
  }
}

const KEY_REFUSED = 'the key was refused'

function explain(body: unknown): string | undefined {
  const words = explainError(body)
  return words?.startsWith('API key') ? KEY_REFUSED : words
}

/** A wrong key is a 400 here, as if the client had asked for something wrong; but it is the operator's. */
function blamed(error: unknown): unknown {
  const isKey = error instanceof UampError && error.message.endsWith(KEY_REFUSED)
  return isKey ? new UampError('provider_error', error.message, { cause: error }) : error
}
