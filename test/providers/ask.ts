import { onTestFinished } from 'vitest'
import { Output, outputMessages } from '../../src/core/reading/output.ts'
import type { ModelRequest, Provider } from '../../src/core/ports/provider.ts'
import type { ContentItem, ToolResult } from '../../src/protocol/content.ts'
import type { UampError } from '../../src/protocol/errors.ts'
import type { Draft } from '../../src/protocol/events.ts'
import type { Message } from '../../src/protocol/message.ts'
import type { Usage } from '../../src/protocol/usage.ts'
import { nodeHttp } from '../../src/server/node/http-client.ts'

export interface Answered {
  readonly drafts: readonly Draft[]
  readonly items: readonly ContentItem[]
  readonly text: string
  readonly usage: Usage | undefined
  /** Why it stopped, where it said so. */
  readonly stop: unknown
  readonly error: UampError | undefined
}

/** What is asked: a model, and a text or a conversation. */
export type Asked = { readonly model: string; readonly messages: string | readonly Message[] } & Partial<Pick<ModelRequest, 'config'>>

/** Asks a provider over real connections, and gathers what it yields as a session would. */
export async function ask(
  provider: Provider,
  asked: Asked,
  { signal = new AbortController().signal, silent }: { readonly signal?: AbortSignal; readonly silent?: boolean } = {},
): Promise<Answered> {
  const http = nodeHttp()
  onTestFinished(() => http.close())
  const output = new Output()
  const drafts: Draft[] = []
  let error: UampError | undefined
  try {
    for await (const draft of provider.generate(toRequest(asked), { http, signal, sessionId: 'sess_1', silent })) {
      drafts.push(draft)
      output.add(draft)
    }
  } catch (thrown) {
    error = thrown as UampError
  }
  const items = output.items()
  const text = items.map((item) => (item.type === 'text' ? item.text : '')).join('')
  const end = drafts.at(-1)
  const uamp = end?.type === 'response.done' ? end.response.extensions?.['uamp'] : undefined
  return { drafts, items, text, usage: output.usage, stop: (uamp as { stop_reason?: unknown } | undefined)?.stop_reason, error }
}

export function toRequest({ model, messages, config = { modalities: ['text'] } }: Asked): ModelRequest {
  return { model, config, messages: typeof messages === 'string' ? [{ role: 'user', content: messages }] : messages }
}

/** The conversation after an answer whose calls got these results, as a session keeps it. */
export function after(asked: string, { items }: Answered, results: readonly ToolResult[]): Message[] {
  const answers = results.map((tool_result): ContentItem => ({ type: 'tool_result', tool_result }))
  return [{ role: 'user', content: asked }, ...outputMessages([...items, ...answers])]
}

export const WEATHER = {
  type: 'function' as const,
  function: {
    name: 'weather',
    description: 'The weather in a city',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
}

export const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
