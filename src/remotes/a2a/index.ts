import { checkPrice } from '../../core/basics/price.ts'
import type { AgentPrice } from '../../core/ports/payments.ts'
import { agentCapabilities, learnt } from '../../core/agent-kit/define-agent.ts'
import { Places } from '../../upstream/places.ts'
import type { Ability, AgentPort, ServerFacts, Turn } from '../../core/ports/agent.ts'
import { secretsOf } from '../../core/secrets/secrets.ts'
import { outboundAuth, type OutboundAuth } from '../../upstream/outbound-auth.ts'
import { paidHttp } from '../../upstream/paid-http.ts'
import { Payer } from '../../upstream/payer.ts'
import { bearer, type RemoteOptions } from '../../upstream/upstream.ts'
import type { HttpClient } from '../../core/ports/http.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft } from '../../protocol/events.ts'
import { Cards, type Card } from './card.ts'
import { dialectOf, type Interface } from './dialect.ts'
import { Endpoint } from './endpoint.ts'
import { Exchange, type Place } from './exchange.ts'
import { EVENTS_EXTENSION, TOOLS_EXTENSION } from '../../wire/a2a/extensions.ts'
import { Follow } from './follow.ts'

export interface RemoteA2aOptions extends RemoteOptions {
  /** Where it is found: the address below which its card is (`https://host`, `https://host/agents/name`), or the card's own. */
  readonly url: string
  /** Sent as the bearer token, or as the API key where the card wants that in a header; only to the origin of `url`. */
  readonly token?: string
  /** Sent with every request to the origin of `url`. */
  readonly headers?: Readonly<Record<string, string>>
  /** Default: what its card says. */
  readonly description?: string
  /** Calls no addresses on other hosts that its card names. Default: they are called without credentials, if they are public. */
  readonly sameOrigin?: boolean
  /** Milliseconds of a clock that does not step. It measures how long a card is fresh. */
  readonly now?: () => number
}

/**
 * An A2A agent of any generation, as an agent here: 1.0 and 0.3 over JSON-RPC and REST, 0.2, and 0.1. Its questions go to the client,
 * a cancel cancels its task, and a conversation goes on in the context that the agent named.
 */
export function remoteA2a(options: RemoteA2aOptions): AgentPort {
  return new RemoteAgent(options)
}

class RemoteAgent implements AgentPort {
  readonly name: string
  readonly secrets: readonly string[]
  readonly price?: AgentPrice
  /** What the newest card says; before there is one, what every agent can do. */
  capabilities: Capabilities
  readonly #options: RemoteA2aOptions
  readonly #cards: Cards
  readonly #auth: OutboundAuth | undefined
  readonly #places = new Places<Place>()
  readonly #newId: () => string
  #card: Card | undefined
  /** The address of this card that last understood us. */
  #spoken: { readonly card: Card; readonly interface: Interface } | undefined

  constructor(options: RemoteA2aOptions) {
    const { name, url, token, headers, newId = () => crypto.randomUUID(), now = () => performance.now() } = options
    this.name = name
    this.#auth = outboundAuth(options)
    if (options.price) this.price = checkPrice(options.price)
    this.secrets = secretsOf({ values: [token, ...(this.#auth?.secrets ?? [])], headers, urls: [url] })
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

  prepare(server: ServerFacts): void {
    this.#auth?.prepare(server)
  }

  async *run(turn: Turn): AsyncGenerator<Draft, void> {
    const payer = new Payer(turn, this.#options)
    const http = this.#auth?.http(turn) ?? turn.http
    const card = await this.#cards.get({ http, signal: turn.signal })
    this.#card = card
    const change = learnt(this, capabilitiesOf(this.name, card))
    if (change) yield change
    const { place, ...talk } = await this.#places.find(turn)
    const ways = this.#ways({ http: paidHttp(http, payer), signal: turn.signal }, card)
    const exchange = new Exchange({
      name: this.name,
      turn,
      talk,
      place,
      next: () => ways.next().value,
      newId: this.#newId,
      takesTools: card.extensions.includes(TOOLS_EXTENSION),
      payer,
    })
    let kept = false
    const keep = (): Promise<void> => {
      kept = true
      const { place: next, text: said } = exchange
      // The agent heard nothing, so the conversation is where it was.
      return this.#places.keep(turn, next ? { place: next, said } : { place, heard: talk.before, said: '' })
    }
    try {
      for await (const draft of exchange.run()) {
        const told = payer.told(draft)
        if (told) yield told
      }
      await keep()
      yield payer.told(exchange.end()) as Draft
    } finally {
      exchange.leave()
      // The agent has heard what was said before the turn was cut short.
      if (!kept) void keep()
      await payer.end()
    }
  }

  /** The ways to ask the agent. The next one is taken when the agent does not understand the last one. */
  *#ways({ http: client, signal }: Pick<Turn, 'http' | 'signal'>, card: Card): Generator<Follow, undefined> {
    const name = `"${this.name}"`
    const ways = this.#waysTo(card, client)
    const last = this.#spoken?.card === card ? this.#spoken.interface : undefined
    const known = ways.filter((way) => way.interface === last)
    for (const way of [...known, ...ways.filter((each) => !known.includes(each))]) {
      const { http, interface: one } = way
      this.#spoken = { card, interface: one }
      const endpoint = new Endpoint({ name, http, dialect: dialectOf(one), headers: this.#headers(card, way) })
      yield new Follow({ endpoint, signal, streaming: card.streaming, outputModes: card.outputModes })
    }
    this.#spoken = undefined
    return undefined
  }

  /**
   * The addresses of a card in the order in which they are tried. A stranger wrote the card, so addresses of another origin (scheme, host
   * and port) than the configured one are called through the guard.
   */
  #waysTo({ interfaces }: Card, http: HttpClient): Way[] {
    const { url, token, auth, headers, sameOrigin = false } = this.#options
    const { origin } = new URL(url)
    const refused: string[] = []
    const ways = interfaces.flatMap((one): Way[] => {
      if (new URL(one.url).origin === origin) return [{ interface: one, http, home: true }]
      const guarded = sameOrigin ? undefined : http.guarded
      const unguarded = sameOrigin ? 'it is on another host' : 'this runtime calls no addresses that others name'
      const reason = guarded ? guarded.refuses(one.url) : unguarded
      if (guarded && reason === undefined) return [{ interface: one, http: guarded, home: false }]
      refused.push(`${one.url}: ${reason}`)
      return []
    })
    if (ways.length === 0) {
      throw new UampError(
        'provider_error',
        `The card of "${this.name}" names no address that may be called (${[...new Set(refused)].join('; ')})`,
      )
    }
    if (token === undefined && auth === undefined && headers === undefined) return ways
    // Addresses that get credentials come first.
    return [...ways.filter(({ home }) => home), ...ways.filter(({ home }) => !home)]
  }

  #headers(card: Card, { home, interface: { version } }: Way): Record<string, string> {
    const { token, headers } = home ? this.#options : {}
    const key = token !== undefined && card.keyHeader !== undefined ? { [card.keyHeader]: token } : bearer(token)
    const uris = [EVENTS_EXTENSION, TOOLS_EXTENSION].filter((uri) => card.extensions.includes(uri))
    const extensions = uris.length > 0 && { [version === '1.0' ? 'a2a-extensions' : 'x-a2a-extensions']: uris.join(', ') }
    return { ...key, ...extensions, ...headers }
  }
}

function capabilitiesOf(name: string, card: Card): Capabilities {
  const kinds = [...card.inputModes, ...card.outputModes].flatMap((mode) => KINDS[mode.split('/')[0] ?? ''] ?? ['file'])
  const { version } = card
  const provides = card.abilities.map(({ id }) => id)
  return agentCapabilities(name, {
    modalities: [...new Set(['text', ...kinds])],
    supports_streaming: card.streaming,
    supports_thinking: card.extensions.includes(EVENTS_EXTENSION),
    ...(provides.length > 0 && { provides }),
    ...(version !== undefined && { extensions: { a2a: { version } } }),
  })
}

/** By the first half of a media type. In 0.x a mode may have no slash. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  text: ['text'],
  image: ['image'],
  audio: ['audio'],
  video: ['video'],
  '*': ['image', 'audio', 'video', 'file'],
}

/** An address that may be called, and the client for it. */
interface Way {
  readonly interface: Interface
  readonly http: HttpClient
  /** It has the configured origin, the only one that gets credentials. */
  readonly home: boolean
}
