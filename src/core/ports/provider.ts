import type { Capabilities } from '../../protocol/capabilities.ts'
import type { Draft } from '../../protocol/events.ts'
import type { Turn } from './agent.ts'

/** A request to a model: the conversation, and a configuration whose `tools` are all that the model may call. */
export type ModelRequest = { readonly model: string } & Pick<Turn, 'messages' | 'config'>

/** The part of a turn that a provider needs. */
export type ModelContext = Pick<Turn, 'signal' | 'http' | 'sessionId' | 'redact' | 'silent' | 'trace'>

/**
 * An LLM behind an API. It yields what agents yield: text, tool calls with their arguments as they come, thinking, media, usage,
 * and at the end `response.done` if it has a stop reason to tell. It throws failures as `UampError`.
 */
export interface Provider {
  readonly name: string
  /** The keys that it sends to the vendor: they are kept out of errors and logs. */
  readonly secrets?: readonly string[]
  /** The request that lists its models: a cheap way to see whether it can be reached, and takes the key. */
  readonly listing?: { readonly url: string; readonly headers: Readonly<Record<string, string>> }
  /** Throws if it cannot be asked at all, because its key is missing. Servers call it when they start. */
  check?(): void
  capabilities(model: string): Promise<Capabilities>
  generate(request: ModelRequest, context: ModelContext): AsyncIterable<Draft>
}
