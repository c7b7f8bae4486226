import { llmAgent } from '../../agents/llm/index.ts'
import { done } from '../../core/agent-kit/done.ts'
import { wrap } from '../../core/agent-kit/wrap.ts'
import type { AgentPort, Said } from '../../core/ports/agent.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { openaiCompatible } from '../../providers/openai-compatible/index.ts'
import { outboundAuth, type OutboundAuth } from '../../upstream/outbound-auth.ts'
import { paidHttp } from '../../upstream/paid-http.ts'
import { Payer } from '../../upstream/payer.ts'
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
  return paid(auth ? withAuth(agent, auth) : agent, given)
}

/** The same agent, which pays where the other server wants money before the first byte. */
function paid(agent: AgentPort, { name, url, model, wallet }: RemoteCompletionsOptions): AgentPort {
  return wrap(agent, (turn, next) => {
    const payer = new Payer(turn, { name, url, agent: model, wallet })
    const said = next({ http: paidHttp(turn.http, payer) })
    return wallet ? settled(said, payer) : said
  })
}

async function* settled(answer: AsyncIterable<Said>, payer: Payer): AsyncGenerator<Said, void> {
  try {
    for await (const said of answer) {
      const told = typeof said === 'string' ? said : payer.told(said)
      if (told !== undefined) yield told
    }
    const { paid } = payer
    if (paid) yield done({ extensions: paid })
  } finally {
    await payer.end()
  }
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
