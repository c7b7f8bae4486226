import { llmAgent } from '../../agents/llm/index.ts'
import type { AgentPort } from '../../core/ports/agent.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { openaiCompatible } from '../../providers/openai-compatible/index.ts'
import type { RemoteOptions } from '../../upstream/upstream.ts'

/** The most requests of one turn. Each round of tool results needs another one. */
const ROUNDS = 64

export interface RemoteCompletionsOptions extends Omit<RemoteOptions, 'token'> {
  /** The address without `/chat/completions`: `https://host/v1`. */
  readonly url: string
  /** Its name on the other server. */
  readonly model: string
  readonly apiKey?: string
  readonly capabilities?: Partial<Capabilities>
}

/**
 * Any server that answers `POST /chat/completions`, as an agent. The client runs its own tools when they are called, and the next
 * request carries the results. A cancel closes the connection.
 */
export function remoteCompletions({ url, model, description, capabilities, ...options }: RemoteCompletionsOptions): AgentPort {
  const provider = openaiCompatible({
    ...options,
    baseUrl: url,
    // An agent may do more than answer, takes all media, and may say `<think>`.
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
