/** The agent card of any generation, as far as we need it. */
import type { Ability, Turn } from '../../core/ports/agent.ts'
import type { HttpHeaders } from '../../core/ports/http.ts'
import { UampError } from '../../protocol/errors.ts'
import { isRecord, recordsIn } from '../../protocol/json.ts'
import { callUpstream, shortBounds } from '../../upstream/upstream.ts'
import { struct, text, texts } from '../../wire/fields.ts'
import { readJson } from '../../wire/upstream.ts'
import type { Interface, Version } from './dialect.ts'
import { statusOf } from './errors.ts'
import type { Struct } from './model.ts'

export interface Card {
  readonly description: string | undefined
  readonly version: string | undefined
  /** Those that we can talk to, the agent's preferred one first. */
  readonly interfaces: readonly Interface[]
  readonly streaming: boolean
  readonly inputModes: readonly string[]
  readonly outputModes: readonly string[]
  /** URIs. */
  readonly extensions: readonly string[]
  readonly abilities: readonly Ability[]
  /** The header for an API key, where the agent takes no bearer token. */
  readonly keyHeader: string | undefined
}

const DEFAULT_MODES = ['text/plain']
/** Skills that we pass on. */
const SKILLS = 128

export function readCard(value: unknown, { name, from }: { readonly name: string; readonly from: string }): Card {
  if (!isRecord(value)) throw new UampError('provider_error', `The card of ${name} at ${from} is no JSON object`)
  const interfaces = interfacesOf(value).flatMap((one) => reachable(one, from) ?? [])
  if (interfaces.length === 0) {
    throw new UampError('not_supported', `The card of ${name} at ${from} names no address where A2A over JSON-RPC or HTTP is spoken`)
  }
  const capabilities = struct(value['capabilities']) ?? {}
  return {
    description: text(value['description']),
    version: text(value['version']),
    interfaces,
    streaming: capabilities['streaming'] === true,
    inputModes: modes(value['defaultInputModes']),
    outputModes: modes(value['defaultOutputModes']),
    extensions: recordsIn(capabilities['extensions']).flatMap(({ uri }) => text(uri) ?? []),
    abilities: recordsIn(value['skills'])
      .slice(0, SKILLS)
      .flatMap((skill) => abilityOf(skill) ?? []),
    keyHeader: keyHeader(struct(value['securitySchemes'])),
  }
}

function abilityOf({ id, name, description, tags, examples }: Struct): Ability | undefined {
  const key = text(id) ?? text(name)
  if (key === undefined) return undefined
  return { id: key, name: text(name) ?? key, description: text(description) ?? '', tags: texts(tags), examples: texts(examples) }
}

function modes(given: unknown): readonly string[] {
  const found = texts(given)
  return found.length > 0 ? found : DEFAULT_MODES
}

/**
 * A2A 1.0 §8.3.2: `supportedInterfaces` in their order; then those of 0.3 (§5.6): the URL with its transport, and the others. Last come
 * older versions at the same addresses, for servers that do not speak what their card says.
 */
function interfacesOf(card: Struct): Interface[] {
  const named = recordsIn(card['supportedInterfaces']).flatMap(({ url, protocolBinding, protocolVersion, tenant }) =>
    interfaceOf({ url, binding: protocolBinding, version: protocolVersion, tenant: text(tenant) }),
  )
  const version = text(card['protocolVersion']) ?? '0.2'
  const first = { url: card['url'], binding: text(card['preferredTransport']) ?? 'JSONRPC', version }
  const others = recordsIn(card['additionalInterfaces']).map(({ url, transport }) => ({ url, binding: transport, version }))
  const found = [...named, ...[first, ...others].flatMap(interfaceOf)]
  const older = found.flatMap(({ url, binding, version: spoken }) =>
    binding === 'JSONRPC' ? OLDER[spoken].map((other): Interface => ({ url, binding, version: other })) : [],
  )
  return distinct([...found, ...older])
}

const OLDER: Readonly<Record<Version, readonly Version[]>> = { '1.0': ['0.3', '0.1'], '0.3': ['0.1'], '0.1': [] }

interface Named {
  readonly url: unknown
  readonly binding: unknown
  readonly version: unknown
  readonly tenant?: string | undefined
}

function interfaceOf({ url, binding, version, tenant }: Named): Interface[] {
  const spoken = versionOf(version)
  if (typeof url !== 'string' || url === '' || spoken === undefined) return []
  if (binding !== 'JSONRPC' && !(binding === 'HTTP+JSON' && spoken !== '0.1')) return []
  return [{ url, binding, version: spoken, ...(tenant !== undefined && { tenant }) }]
}

/** Undefined: a major version that we do not know. */
function versionOf(given: unknown): Version | undefined {
  const [major, minor] = typeof given === 'string' ? given.replace(/^v/, '').split('.') : []
  if (major === '1') return '1.0'
  if (major !== '0') return undefined
  return minor === '1' ? '0.1' : '0.3'
}

function distinct(interfaces: readonly Interface[]): Interface[] {
  const seen = new Map(interfaces.map((one) => [`${one.binding} ${one.version} ${one.tenant ?? ''} ${one.url}`, one]))
  return [...seen.values()]
}

/** Makes the address absolute. A card from HTTPS must not lead to plain HTTP; whether an address may be called at all, the guard decides. */
function reachable(one: Interface, from: string): Interface | undefined {
  const card = new URL(from)
  const url = URL.canParse(one.url, from) ? new URL(one.url, from) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) return undefined
  if (card.protocol === 'https:' && url.protocol === 'http:') return undefined
  return { ...one, url: url.href }
}

/** 1.0 names a scheme by its member, earlier generations by `type`. */
function keyHeader(schemes: Struct | undefined): string | undefined {
  const all = Object.values(schemes ?? {}).filter(isRecord)
  const isBearer = (scheme: Struct): boolean =>
    ['httpAuthSecurityScheme', 'oauth2SecurityScheme', 'openIdConnectSecurityScheme'].some((key) => key in scheme) ||
    ['http', 'oauth2', 'openIdConnect'].includes(String(scheme['type']))
  if (all.some(isBearer)) return undefined
  for (const scheme of all) {
    const key = scheme['type'] === 'apiKey' ? scheme : scheme['apiKeySecurityScheme']
    if (!isRecord(key) || (key['in'] ?? key['location']) !== 'header') continue
    if (typeof key['name'] === 'string' && /^[\w-]+$/.test(key['name'])) return key['name'].toLowerCase()
  }
  return undefined
}

const CARD_BYTES = 1024 * 1024
/** How long a card is fresh that does not say it, and at most. */
const FRESH_MS = 5 * 60_000
const FRESH_MAX_MS = 60 * 60_000
const CARD_MS = 15_000

export interface CardsOptions {
  readonly name: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly now: () => number
}

/** What a request for the card needs of a turn. */
type Calling = Pick<Turn, 'http' | 'signal'>

interface Kept {
  readonly card: Card
  readonly url: string
  readonly etag: string | null
  readonly until: number
}

/** The agent's card: fetched when it is first needed, and again when it is no longer fresh. */
export class Cards {
  readonly #options: CardsOptions
  #kept: Kept | undefined
  #fetching: Promise<Kept> | undefined

  constructor(options: CardsOptions) {
    this.#options = options
  }

  async get(turn: Calling): Promise<Card> {
    if (this.#kept && this.#options.now() < this.#kept.until) return this.#kept.card
    return (await this.#fresh(turn)).card
  }

  /** Turns that need the card at the same time share one request, unless the turn that made it is cancelled. */
  async #fresh(turn: Calling): Promise<Kept> {
    try {
      this.#fetching ??= this.#fetch(turn).finally(() => (this.#fetching = undefined))
      return (this.#kept = await this.#fetching)
    } catch (thrown) {
      turn.signal.throwIfAborted()
      if (UampError.from(thrown).code === 'cancelled') return this.#fresh(turn)
      // An old card is better than none.
      if (this.#kept) return this.#kept
      throw thrown
    }
  }

  async #fetch(turn: Calling): Promise<Kept> {
    const urls = cardUrls(this.#options.url)
    // The address that had it the last time comes first.
    const known = this.#kept?.url
    const order = known === undefined ? urls : [known, ...urls.filter((url) => url !== known)]
    let missing: unknown
    for (const url of order) {
      try {
        return await this.#from(url, turn)
      } catch (thrown) {
        if (statusOf(thrown) !== 404) throw thrown
        missing ??= thrown
      }
    }
    const { name, url } = this.#options
    throw new UampError('not_found', `${name} has no card at ${url}: neither ${urls.join(' nor ')}`, { cause: missing })
  }

  async #from(url: string, { http, signal }: Calling): Promise<Kept> {
    const { name, now, headers: given } = this.#options
    const before = this.#kept?.url === url ? this.#kept : undefined
    const headers = {
      accept: 'application/json',
      'a2a-version': '1.0',
      ...given,
      ...(before?.etag != null && { 'if-none-match': before.etag }),
    }
    try {
      const request = { url, method: 'GET' as const, headers }
      const answer = await callUpstream({
        name: `The card of ${name}`,
        http,
        signal,
        explain: () => undefined,
        request,
        ...shortBounds(CARD_BYTES, CARD_MS),
      })
      const card = readCard(await readJson(`The card of ${name}`, answer.body, CARD_BYTES), { name, from: url })
      return { card, url, etag: answer.headers.get('etag'), until: now() + freshFor(answer.headers) }
    } catch (thrown) {
      if (!before || statusOf(thrown) !== 304) throw thrown
      return { ...before, until: now() + FRESH_MS }
    }
  }
}

/** An address that ends with `.json` is the card's own. Since 0.3 the card is at `agent-card.json`, before at `agent.json`. */
export function cardUrls(url: string): readonly string[] {
  const { pathname } = new URL(url)
  if (pathname.endsWith('.json')) return [url]
  const base = url.replace(/[?#].*$/, '').replace(/\/+$/, '')
  return ['agent-card.json', 'agent.json'].map((file) => `${base}/.well-known/${file}`)
}

/** RFC 9111, as far as a card needs it. */
function freshFor(headers: HttpHeaders): number {
  const control = headers.get('cache-control') ?? ''
  if (/\b(no-store|no-cache)\b/.test(control)) return 0
  const seconds = /\bmax-age=(\d+)/.exec(control)?.[1]
  return seconds === undefined ? FRESH_MS : Math.min(FRESH_MAX_MS, Number(seconds) * 1000)
}
