import type { Capabilities } from '../../protocol/capabilities.ts'
import type { Draft } from '../../protocol/events.ts'
import type { Turn } from './agent.ts'

/** What a model is asked: the conversation, and a configuration whose `tools` are all that it may call. */
export type ModelRequest = { readonly model: string } & Pick<Turn, 'messages' | 'config'>

/** What a provider needs of the turn it works for. A turn is one. */
export type ModelContext = Pick<Turn, 'signal' | 'http' | 'sessionId' | 'redact' | 'silent'>

/**
 * An LLM behind an API. Yields what agents yield: text, tool calls with their arguments as they come, thinking, media, usage,
 * and in the end `response.done` if it has to say why it stopped. What fails is thrown as a `UampError`.
 */
export interface Provider {
  readonly name: string
  /** What it shows to the vendor: kept out of errors and logs. */
  readonly secrets?: readonly string[]
  capabilities(model: string): Promise<Capabilities>
  generate(request: ModelRequest, context: ModelContext): AsyncIterable<Draft>
}
