/** The agent card of any generation, as far as we need it. */
import type { Ability } from '../../core/ports/agent.ts'
import { UampError } from '../../protocol/errors.ts'
import { isRecord, recordsIn } from '../../protocol/json.ts'
import type { Interface, Version } from './dialect.ts'
import { struct, text, texts } from '../../wire/fields.ts'
import type { Struct } from './model.ts'

export interface Card {
  readonly description: string | undefined
  readonly version: string | undefined
  /** Those that we can talk to, the one that the agent likes best first. */
  readonly interfaces: readonly Interface[]
  readonly streaming: boolean
  readonly inputModes: readonly string[]
  readonly outputModes: readonly string[]
  /** URIs. */
  readonly extensions: readonly string[]
  readonly abilities: readonly Ability[]
  /** The header that wants an API key, where no bearer token would do. */
  readonly keyHeader: string | undefined
}

const DEFAULT_MODES = ['text/plain']
/** Skills that are passed on. */
const SKILLS = 128

export function readCard(value: unknown, { name, from }: { readonly name: string; readonly from: string }): Card {
  if (!isRecord(value)) throw new UampError('provider_error', `The card of ${name} at ${from} is none: it is no object`)
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
 * A2A 1.0 §8.3.2: `supportedInterfaces` in their order. Without it, as 0.3 §5.6 has it: the URL with its transport, then the others.
 * Behind those stand the older ways to speak at the same address, for cards that promise more than their server keeps.
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

/** Undefined: a major version that did not exist yet. */
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

/** With its address made whole. A card must not send what we say over an open line; whether it may be called at all is the guard's to say. */
function reachable(one: Interface, from: string): Interface | undefined {
  const card = new URL(from)
  const url = URL.canParse(one.url, from) ? new URL(one.url, from) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) return undefined
  if (card.protocol === 'https:' && url.protocol === 'http:') return undefined
  return { ...one, url: url.href }
}

/** In 1.0 a scheme is named by its member, before by `type`. */
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
