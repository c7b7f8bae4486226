import { llmAgent } from '../../agents/llm/index.ts'
import { wrap } from '../../core/agent-kit/wrap.ts'
import type { AgentPort } from '../../core/ports/agent.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { openaiCompatible } from '../../providers/openai-compatible/index.ts'
import { outboundAuth, type OutboundAuth } from '../../upstream/outbound-auth.ts'
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
export function remoteCompletions(given: RemoteCompletionsOptions): AgentPort {
  const { url, model, description, capabilities, auth: how, price, ...options } = given
  const auth = outboundAuth({ name: options.name, url, token: options.apiKey, auth: how })
  const provider = openaiCompatible({
    ...options,
    baseUrl: url,
    // An agent may do more than answer, takes all media, and may say `<think>`.
    once: true,
    speech: true,
    input: ['image', 'image_url', 'audio', 'file', 'text_file'],
    thinkTags: false,
  })
  const agent = llmAgent({
    name: options.name,
    ...(description !== undefined && { description }),
    model: { provider, model },
    capabilities: { modalities: ['text', 'image'], ...capabilities },
    ...(price && { price }),
    checkOutput: false,
    maxSteps: ROUNDS,
    limits: { budget: Infinity },
  })
  return auth ? withAuth(agent, auth) : agent
}

/** The same agent, which sends the tokens of each turn. */
function withAuth(agent: AgentPort, auth: OutboundAuth): AgentPort {
  const known = agent.secrets ?? []
  const prepare = agent.prepare?.bind(agent)
  const own: Partial<AgentPort> = {
    prepare: (server) => {
      auth.prepare(server)
      prepare?.(server)
    },
  }
  Object.defineProperty(Object.assign(agent, own), 'secrets', { value: [...known, ...auth.secrets], configurable: true })
  return wrap(agent, (turn, next) => next({ http: auth.http(turn) }))
}
