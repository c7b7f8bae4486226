import { openaiCompatible, type OpenAiCompatibleOptions } from '../../src/providers/openai-compatible/index.ts'
import type { Provider } from '../../src/core/ports/provider.ts'
import type { ContentItem, ToolCall, ToolResult } from '../../src/protocol/content.ts'
import type { Message } from '../../src/protocol/message.ts'
import type { SessionConfig } from '../../src/protocol/session-config.ts'
import { ask, WEATHER } from './ask.ts'
import { startUpstream, type Upstream } from './upstream/index.ts'

export const TOOLS = { modalities: ['text'], tools: [WEATHER] }

/** One of the servers that speak Chat Completions, and ignore what they do not know. */
export function some({ url }: Upstream, options: Partial<OpenAiCompatibleOptions> = {}): Provider {
  return openaiCompatible({ name: 'some', baseUrl: `${url}/compatible/v1`, apiKey: 'key', retries: 0, ...options })
}

/** OpenAI's own, which refuses what is not as it should be. */
export function strict({ url }: Upstream, options: Partial<OpenAiCompatibleOptions> = {}): Provider {
  return openaiCompatible({ name: 'openai', baseUrl: `${url}/openai/v1`, apiKey: 'key', retries: 0, ...options })
}

export const ok = (call_id: string, result: string): ToolResult => ({ call_id, result, status: 'completed', is_error: false })

export function callsIn(items: readonly ContentItem[]): ToolCall[] {
  return items.flatMap((item) => (item.type === 'tool_call' ? [item.tool_call] : []))
}

export interface ChatBody {
  readonly messages: readonly Readonly<Record<string, unknown>>[]
  readonly [field: string]: unknown
}

/** What the server was sent last. */
export function sent({ requests }: Upstream): ChatBody {
  return requests.at(-1)?.body as unknown as ChatBody
}

/** What becomes of a conversation on its way to a server. */
export async function bodyOf(
  messages: readonly Message[],
  options: Partial<OpenAiCompatibleOptions> = {},
  config: SessionConfig = { modalities: ['text'] },
): Promise<ChatBody> {
  const upstream = await startUpstream()
  await ask(some(upstream, options), { model: 'text', messages, config })
  return sent(upstream)
}
