import { agentCapabilities, learnt } from '../../core/agent-kit/define-agent.ts'
import { Places } from '../../upstream/places.ts'
import type { Ability, AgentPort, Turn } from '../../core/ports/agent.ts'
import { secretsOf } from '../../core/secrets/secrets.ts'
import { bearer } from '../../upstream/upstream.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import type { Draft } from '../../protocol/events.ts'
import type { Card } from './card.ts'
import { Cards } from './cards.ts'
import { dialectOf, type Interface } from './dialect.ts'
import { Endpoint } from './endpoint.ts'
import { Exchange, type Place } from './exchange.ts'
import { EVENTS_EXTENSION } from '../../wire/a2a/extensions.ts'
import { Follow } from './follow.ts'
import { waysTo, type Way } from './ways.ts'

export interface RemoteA2aOptions {
  /** What it is called here. */
  readonly name: string
  /** Where it is found: the address below which its card is (`https://host`, `https://host/agents/name`), or the card's own. */
  readonly url: string
  /** Shown as the bearer token, or as the API key where the card wants that in a header; at the origin of `url` alone. */
  readonly token?: string
  /** Sent with every request to the origin of `url`. */
  readonly headers?: Readonly<Record<string, string>>
  /** Default: what its card says. */
  readonly description?: string
  readonly newId?: () => string
  /** Milliseconds of a clock that does not step: how long a card is fresh is measured with it. */
  readonly now?: () => number
}

/**
 * An A2A agent of any generation, as an agent here: 1.0 and 0.3 over JSON-RPC and REST, 0.2, and 0.1. What it asks is put to the
 * client, a cancel cancels its task, and a conversation goes on in the context that it named.
 */
export function remoteA2a(options: RemoteA2aOptions): AgentPort {
  return new RemoteAgent(options)
}

class RemoteAgent implements AgentPort {
  readonly name: string
  readonly secrets: readonly string[]
  /** What its card said last; until then what every agent can do. */
  capabilities: Capabilities
  readonly #options: RemoteA2aOptions
  readonly #cards: Cards
  readonly #places = new Places<Place>()
  readonly #newId: () => string
  #card: Card | undefined
  /** The address that last understood us, of this card. */
  #spoken: { readonly card: Card; readonly interface: Interface } | undefined

  constructor(options: RemoteA2aOptions) {
    const { name, url, token, headers, newId = () => crypto.randomUUID(), now = () => performance.now() } = options
    this.name = name
    this.secrets = secretsOf({ values: [token], headers, urls: [url] })
    this.#options = options
    this.#newId = newId
    this.capabilities = agentCapabilities(name, { modalities: ['text', 'image', 'audio', 'video', 'file'] })
    this.#cards = new Cards({ name: `"${name}"`, url, headers: { ...bearer(token), ...headers }, now })
  }

  get description(): string {
    return this.#options.description ?? this.#card?.description ?? ''
  }

  get abilities(): readonly Ability[] {
    return this.#card?.abilities ?? []
  }

  async *run(turn: Turn): AsyncGenerator<Draft, void> {
    const card = await this.#cards.get(turn)
    this.#card = card
    const change = learnt(this, capabilitiesOf(this.name, card))
    if (change) yield change
    const { place, ...talk } = await this.#places.find(turn)
    const ways = this.#ways(turn, card)
    const exchange = new Exchange({ name: this.name, turn, talk, place, next: () => ways.next().value, newId: this.#newId })
    let kept = false
    const keep = (): Promise<void> => {
      kept = true
      const { place: next, text: said } = exchange
      // Nothing was heard there: the conversation is where it was.
      return this.#places.keep(turn, next ? { place: next, said } : { place, heard: talk.before, said: '' })
    }
    try {
      yield* exchange.run()
      await keep()
      yield exchange.end()
    } finally {
      exchange.leave()
      // What was cut short was heard there all the same.
      if (!kept) void keep()
    }
  }

  /** One after the other, as each is not understood. */
  *#ways(turn: Turn, card: Card): Generator<Follow, undefined> {
    const { url, token, headers } = this.#options
    const name = `"${this.name}"`
    const ways = waysTo(card.interfaces, { name, url, http: turn.http, homeFirst: token !== undefined || headers !== undefined })
    const last = this.#spoken?.card === card ? this.#spoken.interface : undefined
    const known = ways.filter((way) => way.interface === last)
    for (const way of [...known, ...ways.filter((each) => !known.includes(each))]) {
      const { http, interface: one } = way
      this.#spoken = { card, interface: one }
      const endpoint = new Endpoint({ name, http, dialect: dialectOf(one), headers: this.#headers(card, way) })
      yield new Follow({ endpoint, signal: turn.signal, streaming: card.streaming, outputModes: card.outputModes })
    }
    this.#spoken = undefined
    return undefined
  }

  #headers(card: Card, { home, interface: { version } }: Way): Record<string, string> {
    const { token, headers } = home ? this.#options : {}
    const key = token !== undefined && card.keyHeader !== undefined ? { [card.keyHeader]: token } : bearer(token)
    const extensions = card.extensions.includes(EVENTS_EXTENSION)
      ? { [version === '1.0' ? 'a2a-extensions' : 'x-a2a-extensions']: EVENTS_EXTENSION }
      : {}
    return { ...key, ...extensions, ...headers }
  }
}

function capabilitiesOf(name: string, card: Card): Capabilities {
  const kinds = [...card.inputModes, ...card.outputModes].flatMap((mode) => KINDS[mode.split('/')[0] ?? ''] ?? ['file'])
  const { version } = card
  return agentCapabilities(name, {
    modalities: [...new Set(['text', ...kinds])],
    supports_streaming: card.streaming,
    supports_thinking: card.extensions.includes(EVENTS_EXTENSION),
    ...(version !== undefined && { extensions: { a2a: { version } } }),
  })
}

/** 0.x has modes without a slash, too. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  text: ['text'],
  image: ['image'],
  audio: ['audio'],
  video: ['video'],
  '*': ['image', 'audio', 'video', 'file'],
}
