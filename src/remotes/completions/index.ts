import { llmAgent } from '../../agents/llm/index.ts'
import type { AgentPort } from '../../core/ports/agent.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { openaiCompatible } from '../../providers/openai-compatible/index.ts'

/** Requests of one turn: each round of tool results is a new one. */
const ROUNDS = 64

export interface RemoteCompletionsOptions {
  /** What it is called here. */
  readonly name: string
  /** Up to and without `/chat/completions`: `https://host/v1`. */
  readonly url: string
  /** What it is called there. */
  readonly model: string
  readonly apiKey?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly description?: string
  readonly capabilities?: Partial<Capabilities>
  readonly newId?: () => string
}

/**
 * Whatever answers `POST /chat/completions`, as an agent. Calls of the client's tools are put to the client, and their results
 * sent in the next request. A cancel closes the connection.
 */
export function remoteCompletions({ url, model, description, capabilities, ...options }: RemoteCompletionsOptions): AgentPort {
  const provider = openaiCompatible({
    ...options,
    baseUrl: url,
    // It is an agent: it may do more than answer, it hears and sees for itself, and `<think>` is something that it says.
    once: true,
    speech: true,
    input: ['image', 'image_url', 'audio', 'file', 'text_file'],
    thinkTags: false,
  })
  return llmAgent({
    name: options.name,
    ...(description !== undefined && { description }),
    model: { provider, model },
    capabilities: { modalities: ['text', 'image'], ...capabilities },
    checkOutput: false,
    maxSteps: ROUNDS,
    limits: { budget: Infinity },
  })
}
