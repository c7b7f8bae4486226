import { onTestFinished } from 'vitest'
import { Upstream } from './server.ts'

export { Upstream } from './server.ts'
export { BAD_KEY } from './vendor.ts'

/**
 * A server that speaks every vendor's wire, gone when the test is.
 *
 * | base URL | paths |
 * |---|---|
 * | `${url}/openai/v1` | `/chat/completions`, `/responses`, `/models` |
 * | `${url}/compatible/v1` (also `/deepseek/v1`, `/fireworks/v1`, `/ollama/v1`) | `/chat/completions`, `/models` |
 * | `${url}/anthropic` | `/v1/messages`, `/v1/models` |
 * | `${url}/google` | `/v1beta/models/{m}:streamGenerateContent`, `:generateContent`, `/v1beta/models` |
 *
 * The scenario is what `script` queued, else the header `x-upstream`, else the model's name (`tools`, `gpt-5@tools+cut`), else
 * `echo`. Scenarios are the files in `fixtures`, and `error-<status>`, `html`, `html-200`, `error-in-200`, `empty`, `not-json`,
 * `silent`, `comments-only`; behind a `+` stands how they are sent (`Delivery`). Tools are called by the name `weather`.
 */
export async function startUpstream(): Promise<Upstream> {
  const upstream = await new Upstream().listen()
  onTestFinished(() => upstream.close())
  return upstream
}
