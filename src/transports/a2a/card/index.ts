import { anybody, isAnybody } from '../../../core/basics/principal.ts'
import type { AgentPort } from '../../../core/ports/agent.ts'
import type { Call, Host, KnownCall } from '../../../core/ports/transport.ts'
import { UampError } from '../../../protocol/errors.ts'
import { namesTag } from '../../../wire/json-document.ts'
import { a2aError } from '../errors.ts'
import { agentOf, versionSaid } from '../request.ts'
import { buildCard, hybrid, seedCard } from './build.ts'
import type { AgentCard, AgentProvider } from './model.ts'
import { cardSigner, signByServer, type SigningKey } from './sign.ts'

export type { AgentCard, AgentSkill } from './model.ts'
export type { SigningKey } from './sign.ts'

/** What the extended card adds. Its skills come after those of the public card; its other fields replace them. */
export type CardAddition = Partial<Omit<AgentCard, 'supportedInterfaces' | 'signatures'>>

/** What the operator of a server may set for the agent card. */
export interface CardOptions {
  /** The card for clients that do not say which version they speak. Default: `hybrid`, which every generation can read. */
  readonly card?: 'hybrid' | '1.0'
  /** The version of agents that do not name theirs. Default: 1.0.0. */
  readonly version?: string
  /** Who offers the agents that do not name their provider. */
  readonly provider?: AgentProvider
  /** What callers with credentials get beside the public card. A function may return undefined: this caller gets no extended card. */
  readonly extendedCard?:
    CardAddition | ((call: KnownCall, card: AgentCard) => CardAddition | undefined | Promise<CardAddition | undefined>)
  /** Signs cards with a key that the server makes and publishes. Only a server that knows its own address signs. Default: false. */
  readonly sign?: boolean
  /** Keys of your own to sign cards with, instead of the server's. */
  readonly signingKeys?: readonly SigningKey[]
  /** Announces that tasks are paid by x402. Default: whether the server has payments by x402. */
  readonly x402?: boolean
  /** How long clients and caches may keep a card. Default: 300. */
  readonly maxAgeSeconds?: number
}

/** The agents' cards. */
export interface Cards {
  /** The public card, at both well-known paths. */
  respond(call: Call): Promise<Response>
  /** The card for callers with credentials. Throws where there is none. */
  extended(call: KnownCall, version: string): Promise<object>
}

const MAX_AGE_SECONDS = 300

/** Cards tell a client that has only an agent's address who the agent is and how to talk to it. */
export function createCards(host: Host, options: CardOptions = {}): Cards {
  const { card: usual = 'hybrid', extendedCard, signingKeys = [], maxAgeSeconds = MAX_AGE_SECONDS } = options
  const byKeys = signingKeys.length > 0 ? cardSigner(signingKeys) : undefined
  const server = options.sign && !byKeys ? host.signer : undefined
  let warned = false
  const served = new ServedCards(host.now)

  async function publicCard(call: Call, agent: AgentPort): Promise<AgentCard> {
    const base = host.publicUrl(call.request) + (call.root ? '' : `/agents/${agent.name}`)
    // An agent elsewhere may repeat a secret in what it says of itself.
    return host.secrets.value(
      buildCard(agent, { base, pushNotifications: host.outbound !== undefined, bearer: await bearerOf(call), options }),
    )
  }

  /** What cards of this call are signed under. A request may name any `Host`, and a card with that name must not be signed. */
  const signedAs = ({ request }: Call): string | undefined => {
    if (!byKeys && !server) return undefined
    const own = host.ownUrl()
    if (own !== undefined && byNumber(host.publicUrl(request)) === byNumber(own)) return own
    if (!warned) host.log('warn', 'Agent cards are not signed: set publicUrl')
    warned = true
    return undefined
  }

  const signed = async (card: AgentCard, own: string | undefined): Promise<AgentCard> => {
    if (own === undefined) return card
    if (byKeys) return { ...card, signatures: await byKeys(card) }
    return server ? { ...card, signatures: [await signByServer(server, card, `${own}/.well-known/jwks.json`)] } : card
  }
  const isPure = (call: Call): boolean => asksForOne(call) ?? usual === '1.0'

  return {
    async respond(call) {
      const agent = agentOf(host, call)
      const card = await publicCard(call, agent)
      const old = new URL(call.request.url).pathname.endsWith('/agent.json')
      const shape = (of: AgentCard): object => {
        // A client that asks for `agent.json` does not speak 1.0, whatever the setting, unless it says so.
        if (old ? asksForOne(call) : isPure(call)) return of
        return old ? seedCard(of, agent) : hybrid(of)
      }
      const own = signedAs(call)
      const kid = own !== undefined && server ? (await server.key('cards')).kid : undefined
      const sent = await served.of(shape(card), async () => shape(await signed(card, own)), `${own ?? ''} ${kid ?? ''}`)
      const headers = {
        etag: sent.etag,
        'last-modified': sent.lastModified,
        'cache-control': `public, max-age=${maxAgeSeconds}`,
        vary: 'A2A-Version, Origin',
      }
      if (isUnchanged(call.request.headers, sent)) return new Response(null, { status: 304, headers })
      return new Response(sent.text, { headers: { 'content-type': 'application/json', ...headers } })
    },

    async extended(call, version) {
      const pure = version === '1.0' || isPure(call)
      const agent = agentOf(host, call)
      if (extendedCard === undefined) {
        // §3.3.4: the card does not offer it. 0.3 has a name of its own for that.
        const reason = pure ? 'UNSUPPORTED_OPERATION' : 'EXTENDED_AGENT_CARD_NOT_CONFIGURED'
        throw a2aError(reason, 'This agent has no extended card')
      }
      if (await isAnybody(call.access, call.principal))
        throw new UampError('unauthorized', 'The extended card is for callers with credentials')
      const card = await publicCard(call, agent)
      const added = typeof extendedCard === 'function' ? await extendedCard(call, card) : extendedCard
      if (!added) throw a2aError('EXTENDED_AGENT_CARD_NOT_CONFIGURED', 'There is no extended card for this caller')
      const { supportedInterfaces } = card
      const all = { ...card, ...added, supportedInterfaces, skills: [...card.skills, ...(added.skills ?? [])] }
      const whole = await signed(all, signedAs(call))
      return pure ? whole : hybrid(whole)
    },
  }
}

/** Whether the client says in the header or the query (A2A 1.0 §3.6) that it speaks 1.x. Undefined: it does not say. */
function asksForOne({ request }: Call): boolean | undefined {
  const asked = versionSaid(request)
  return asked ? /^1(?:\.|$)/.test(asked) : undefined
}

/** `localhost` is the name of the loopback address everywhere. */
function byNumber(url: string): string {
  return url.replace(/^(https?:\/\/)localhost(?=[:/]|$)/, '$1127.0.0.1')
}

async function bearerOf({ access }: Call): Promise<'none' | 'optional' | 'required'> {
  if (!access.schemes || access.schemes.length === 0) return 'none'
  return (await anybody(access)) === undefined ? 'required' : 'optional'
}

/** A card as it is sent: its text, and what caches have to know. */
interface Served {
  readonly text: string
  readonly etag: string
  readonly lastModified: string
}

/** Cards that are remembered: one for each agent, generation and name of the server. Of more, the oldest are forgotten. */
const REMEMBERED = 256

/** Cards by their text without signatures. A signature differs each time it is made, so a signed card is made once. */
class ServedCards {
  readonly #now: () => number
  readonly #served = new Map<string, Promise<Served>>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** `finish` makes the card that is sent; it is called once for each `by`, which is who signs it with which key. */
  of(unsigned: object, finish: () => Promise<object>, by: string): Promise<Served> {
    const text = JSON.stringify(unsigned) + by
    const known = this.#served.get(text)
    if (known) return known
    const made = this.#make(text, finish)
    this.#served.set(text, made)
    made.catch(() => this.#served.delete(text))
    if (this.#served.size > REMEMBERED) this.#served.delete(this.#served.keys().next().value ?? '')
    return made
  }

  /** The tag is of the unsigned text, so it is the same in every process that serves this card. */
  async #make(text: string, finish: () => Promise<object>): Promise<Served> {
    const lastModified = new Date(this.#now()).toUTCString()
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)))
    const tag = Array.from(digest.subarray(0, 16), (byte) => byte.toString(16).padStart(2, '0')).join('')
    return { text: JSON.stringify(await finish()), etag: `"${tag}"`, lastModified }
  }
}

/** RFC 9110 §13.1: `If-None-Match` decides; where it is missing, `If-Modified-Since`. */
function isUnchanged(headers: Headers, { etag, lastModified }: Served): boolean {
  const tags = headers.get('if-none-match')
  if (tags !== null) return namesTag(tags, etag)
  const since = headers.get('if-modified-since')
  return since !== null && Date.parse(since) >= Date.parse(lastModified)
}
