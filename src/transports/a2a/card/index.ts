import type { AgentPort } from '../../../core/ports/agent.ts'
import type { Call, Host, KnownCall } from '../../../core/ports/transport.ts'
import { UampError } from '../../../protocol/errors.ts'
import { namesTag } from '../../../wire/json-document.ts'
import { a2aError } from '../errors.ts'
import { agentOf, versionSaid } from '../request.ts'
import { buildCard, hybrid, seedCard } from './build.ts'
import type { AgentCard, AgentProvider } from './model.ts'
import { cardSigner, type SigningKey } from './sign.ts'

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
  /** The keys that cards are signed with. Without keys, or without the server's `publicUrl`, cards are not signed. */
  readonly signingKeys?: readonly SigningKey[]
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
  const signer = signingKeys.length > 0 ? cardSigner(signingKeys) : undefined
  // Without its own address the server would sign a card for whatever `Host` a request names.
  const sign = host.ownUrl === undefined ? undefined : signer
  if (signer && !sign) host.log('warn', 'Agent cards are not signed: set publicUrl')
  const served = new ServedCards(host.now)

  async function publicCard(call: Call, agent: AgentPort): Promise<AgentCard> {
    const base = host.publicUrl(call.request) + (call.root ? '' : `/agents/${agent.name}`)
    // An agent elsewhere may repeat a secret in what it says of itself.
    return host.secrets.value(
      buildCard(agent, { base, pushNotifications: host.outbound !== undefined, bearer: await bearerOf(call), options }),
    )
  }

  const signed = async (card: AgentCard): Promise<AgentCard> => (sign ? { ...card, signatures: await sign(card) } : card)
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
      const sent = await served.of(shape(card), async () => shape(await signed(card)))
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
      if (await isAnybody(call)) throw new UampError('unauthorized', 'The extended card is for callers with credentials')
      const card = await publicCard(call, agent)
      const added = typeof extendedCard === 'function' ? await extendedCard(call, card) : extendedCard
      if (!added) throw a2aError('EXTENDED_AGENT_CARD_NOT_CONFIGURED', 'There is no extended card for this caller')
      const { supportedInterfaces } = card
      const whole = await signed({ ...card, ...added, supportedInterfaces, skills: [...card.skills, ...(added.skills ?? [])] })
      return pure ? whole : hybrid(whole)
    },
  }
}

/** Whether the client says in the header or the query (A2A 1.0 §3.6) that it speaks 1.x. Undefined: it does not say. */
function asksForOne({ request }: Call): boolean | undefined {
  const asked = versionSaid(request)
  return asked ? /^1(?:\.|$)/.test(asked) : undefined
}

async function bearerOf({ access }: Call): Promise<'none' | 'optional' | 'required'> {
  if (!access.schemes || access.schemes.length === 0) return 'none'
  return (await access.authenticate({ headers: new Headers() })) === undefined ? 'required' : 'optional'
}

/** Whether a caller without any credentials would be the same. */
async function isAnybody({ access, principal }: KnownCall): Promise<boolean> {
  const anybody = await access.authenticate({ headers: new Headers() })
  return anybody !== undefined && anybody.tenant === principal.tenant && anybody.id === principal.id
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

  /** `finish` makes the card that is sent; it is called once. */
  of(unsigned: object, finish: () => Promise<object>): Promise<Served> {
    const text = JSON.stringify(unsigned)
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
