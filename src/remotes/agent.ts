import { checkPrice } from '../core/basics/price.ts'
import type { AgentPrice } from '../core/ports/payments.ts'
import { agentCapabilities, learnt } from '../core/agent-kit/define-agent.ts'
import { unlessAborted } from '../core/basics/time.ts'
import type { Ability, AgentPort, Said, ServerFacts, Turn } from '../core/ports/agent.ts'
import { secretsOf } from '../core/secrets/secrets.ts'
import type { Capabilities } from '../protocol/capabilities.ts'
import { UampError } from '../protocol/errors.ts'
import { outboundAuth, type OutboundAuth } from '../upstream/outbound-auth.ts'
import { bearer, type RemoteOptions } from '../upstream/upstream.ts'
import { present } from '../wire/fields.ts'
import { discover, type Spoken } from './discover.ts'

export interface RemoteAgentOptions extends RemoteOptions {
  /** The other server, or one agent of it: `https://host`, `https://host/agents/name`. */
  readonly url: string
  /** The name of the agent there. Default: the agent that the URL leads to. */
  readonly agent?: string
  /** The model to ask for, where the other side has several and speaks Chat Completions only. */
  readonly model?: string
}

/** How long the protocol is taken for known. The other side may learn a better one. */
const KNOWN_MS = 60 * 60_000
const SEARCH_MS = 30_000
/** A server that has changed answers with one of these where it spoke before. */
const CHANGED: ReadonlySet<unknown> = new Set([404, 405, 406, 410, 415, 501])

/**
 * An agent elsewhere, in the best protocol that both sides speak. It finds that with the first turn, and again when the other side no
 * longer understands it.
 */
export function remoteAgent(options: RemoteAgentOptions): AgentPort {
  return new RemoteAgent(options)
}

interface Found {
  readonly spoken: Spoken
  readonly agent: AgentPort
  readonly until: number
}

class RemoteAgent implements AgentPort {
  readonly name: string
  readonly secrets: readonly string[]
  readonly price?: AgentPrice
  /** What the agent said last; until then, what every agent can do. */
  capabilities: Capabilities
  readonly #options: RemoteAgentOptions
  readonly #auth: OutboundAuth | undefined
  #facts: ServerFacts = {}
  #found: Found | undefined
  #searching: Promise<Found> | undefined

  constructor(options: RemoteAgentOptions) {
    const { name, url, token, headers } = options
    if (!URL.canParse(url)) throw new UampError('invalid_request', `The URL of "${name}" is none: write it as in "https://agents.example"`)
    this.name = name
    this.#options = options
    this.#auth = outboundAuth(options)
    if (options.price) this.price = checkPrice(options.price)
    this.secrets = secretsOf({ values: [token, ...(this.#auth?.secrets ?? [])], headers, urls: [url] })
    this.capabilities = agentCapabilities(name, { modalities: ['text', 'image', 'audio', 'video', 'file'] })
  }

  get description(): string {
    return this.#options.description ?? this.#found?.agent.description ?? ''
  }

  get abilities(): readonly Ability[] {
    return this.#found?.agent.abilities ?? []
  }

  prepare(server: ServerFacts): void {
    this.#facts = server
    this.#auth?.prepare(server)
    this.#found?.agent.prepare?.(server)
  }

  async *run(turn: Turn): AsyncGenerator<Said, void> {
    const found = await this.#find(turn)
    let spoke = false
    try {
      for await (const said of this.#through(found, turn)) {
        spoke = true
        yield said
      }
      return
    } catch (thrown) {
      const other = spoke || !isOther(thrown) ? undefined : await this.#otherThan(found, turn)
      if (!other) throw thrown
      yield* this.#through(other, turn)
    }
  }

  async *#through({ agent }: Found, turn: Turn): AsyncGenerator<Said, void> {
    let isFirst = true
    for await (const said of agent.run(turn)) {
      // With the first word, because a protocol that fails before it may be replaced by another.
      const change = isFirst ? learnt(this, agent.capabilities) : undefined
      isFirst = false
      if (change) yield change
      if (typeof said !== 'string' && said.type === 'capabilities') this.capabilities = said.capabilities
      yield said
    }
  }

  /** What the other side speaks now, if that is something else. */
  async #otherThan(found: Found, turn: Turn): Promise<Found | undefined> {
    if (this.#found === found) this.#found = undefined
    const other = await this.#find(turn).catch(() => undefined)
    return other && JSON.stringify(other.spoken) !== JSON.stringify(found.spoken) ? other : undefined
  }

  async #find(turn: Turn): Promise<Found> {
    if (this.#found && performance.now() < this.#found.until) return this.#found
    this.#searching ??= this.#search(turn).finally(() => (this.#searching = undefined))
    this.#found = await unlessAborted(this.#searching, turn.signal)
    return this.#found
  }

  /** Not cancelled with the turn that asks first: others wait for it, too. */
  async #search(turn: Turn): Promise<Found> {
    const { name, url, agent, model, token, headers } = this.#options
    const http = this.#auth?.http(turn) ?? turn.http
    const isSocket = /^wss?:/i.test(url)
    const by = { http, signal: AbortSignal.timeout(SEARCH_MS) }
    const spoken: Spoken = isSocket
      ? { protocol: 'events', url }
      : await discover({ name, url, agent, model, headers: { ...bearer(token), ...headers } }, by)
    const until = performance.now() + KNOWN_MS
    // The same agent goes on, with the conversations that it remembers.
    if (this.#found && JSON.stringify(this.#found.spoken) === JSON.stringify(spoken)) return { ...this.#found, until }
    const made = await this.#make(spoken)
    made.prepare?.(this.#facts)
    return { spoken, agent: made, until }
  }

  async #make(spoken: Spoken): Promise<AgentPort> {
    const { name, token, headers, description, newId, agent, wallet } = this.#options
    const auth = this.#auth
    const common = { name, url: spoken.url, ...present({ description, token, auth, headers, newId, wallet }) }
    switch (spoken.protocol) {
      case 'events':
        // A URL that leads to the agent needs no name.
        return (await import('./events/index.ts')).remoteEvents({
          ...common,
          ...(agent !== undefined && !spoken.url.endsWith(`/${encodeURIComponent(agent)}`) && { agent }),
        })
      case 'a2a':
        return (await import('./a2a/index.ts')).remoteA2a({ ...common, sameOrigin: true })
      case 'ag-ui':
        return (await import('./ag-ui/index.ts')).remoteAgUi(common)
      case 'completions': {
        const { token: apiKey, ...rest } = common
        return (await import('./completions/index.ts')).remoteCompletions({ ...rest, model: spoken.model, ...present({ apiKey }) })
      }
    }
  }
}

/** Whether the other side no longer speaks what it spoke. */
function isOther(thrown: unknown): boolean {
  const { code, details } = UampError.from(thrown)
  return CHANGED.has(details?.['status']) || code === 'not_supported'
}
