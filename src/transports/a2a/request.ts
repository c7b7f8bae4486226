/** What every binding reads from a request: its JSON, its version, the agent it is for, the extensions it activates. */
import type * as z from 'zod/mini'
import type { AgentPort } from '../../core/ports/agent.ts'
import type { Call, Host, KnownCall } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { JsonBoundError, parseJson } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import { parseValue } from '../../wire/parse.ts'
import { extensionsOf } from './card/build.ts'
import { a2aError } from './errors.ts'
import type { Parts, RpcContext } from './operations.ts'

/** A body as JSON. `types`: what the refusal of another content type says. */
export function bodyIn({ headers }: Request, text: string, types = 'application/json'): unknown {
  if (!isJsonType(headers.get('content-type'))) throw a2aError('CONTENT_TYPE_NOT_SUPPORTED', `A request is sent as ${types}`)
  try {
    return parseJson(text, limits.depth)
  } catch (cause) {
    if (!(cause instanceof JsonBoundError)) throw a2aError('PARSE_ERROR', 'The body of this request is not JSON')
    if (cause.bound === 'members') throw new UampError('too_large', `The body ${cause.message}`)
    throw a2aError('INVALID_REQUEST', `The body ${cause.message}`)
  }
}

/** A body without a content type counts as JSON. */
function isJsonType(type: string | null): boolean {
  return type === null || /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(type.trim())
}

/** Parameters by their schema. Throws `INVALID_PARAMS`, and says in `details.field` which one is wrong. */
export function parseParams<T extends z.ZodMiniType>(schema: T, value: unknown): z.output<T> {
  try {
    return parseValue(schema, value)
  } catch (thrown) {
    // Anything else is a fault of this server, not of the client.
    if (!(thrown instanceof UampError)) throw thrown
    const { message, details } = thrown
    const field = details?.['param']
    if (typeof field === 'string') throw a2aError('INVALID_PARAMS', message, { field })
    throw a2aError('INVALID_PARAMS', message.replace(/^The body( of this request)?/, 'The parameters'))
  }
}

/** Every version that this server speaks, the newest first. */
const VERSIONS = ['1.0', '0.3', '0.2', '0.1'] as const
export type Version = (typeof VERSIONS)[number]

/**
 * The version that a request names in a header or the query (A2A 1.0 §3.6); undefined where it names none. An empty value means 0.3.
 * Patch numbers do not count.
 */
export function versionOf(request: Request): Version | undefined {
  const said = versionSaid(request)
  if (said === undefined) return undefined
  const short = said.trim() === '' ? '0.3' : said.trim().replace(/^(\d+\.\d+)\.\d+$/, '$1')
  const known = VERSIONS.find((version) => version === short)
  if (known === undefined) throw versionNotSupported(VERSIONS)
  return known
}

export function versionNotSupported(supported: readonly Version[]): Error {
  return a2aError('VERSION_NOT_SUPPORTED', `This version of A2A is not spoken here: ask for ${supported.join(', ')}`, {
    supportedVersions: supported.join(','),
  })
}

/** What a request names as its version, in whatever form. */
export function versionSaid({ headers, url }: Request): string | undefined {
  const said = headers.get('a2a-version')
  if (said !== null) return said
  const start = url.indexOf('?')
  if (start < 0) return undefined
  for (const [name, value] of new URLSearchParams(url.slice(start))) if (name.toLowerCase() === 'a2a-version') return value
  return undefined
}

/** What the methods of a request get. `tenant` is the field of that name; one that is no text is left for the schema to refuse. */
export function contextOf(parts: Parts, call: KnownCall, tenant?: unknown): RpcContext {
  const meant = typeof tenant === 'string' && tenant !== '' ? ofTenant(parts, call, tenant) : call
  return { call: meant, extensions: activated(parts, meant), ...parts }
}

/** The agent that a call is for. */
export function agentOf({ agents }: Host, { agent: name }: Call): AgentPort {
  const agent = name === undefined ? undefined : agents.get(name)
  if (agent) return agent
  throw new UampError('agent_offline', 'Say which agent: its card is at /agents/{name}/.well-known/agent-card.json', {
    details: { agents: agents.names() },
  })
}

/** A tenant is an opaque way to say whom a request is for (A2A 1.0, `AgentInterface.tenant`): here it is the name of an agent. */
function ofTenant({ host }: Parts, call: KnownCall, tenant: string): KnownCall {
  if (tenant === call.agent) return call
  if (!call.root || !host.agents.get(tenant)) throw a2aError('INVALID_PARAMS', 'There is no such tenant here', { field: 'tenant' })
  const { root, request, trace, params, principal, access, address } = call
  host.gateway.authorize(principal, 'read', tenant)
  return {
    agent: tenant,
    root,
    request,
    trace,
    params,
    principal,
    access,
    address,
    get signal() {
      return call.signal
    },
    get payment() {
      return call.payment
    },
    get quota() {
      return call.quota
    },
    text: () => call.text(),
    countWrong: () => call.countWrong(),
    whenGone: (leave) => call.whenGone(leave),
  }
}

/** The extensions that the client names and the agent has. A server ignores the others (A2A 1.0 §4.6.3). */
function activated(parts: Parts, call: KnownCall): readonly string[] {
  const uris = extensionsIn(call.request.headers)
  return uris.size === 0 ? [] : extensionsOf(agentOf(parts.host, call), parts).flatMap(({ uri }) => (uris.has(uri) ? [uri] : []))
}

/** The extensions that a client names. 0.2 and 0.3 have the second header. */
export function extensionsIn(headers: Headers): ReadonlySet<string> {
  const named = ['a2a-extensions', 'x-a2a-extensions'].flatMap((name) => headers.get(name)?.split(',') ?? [])
  return new Set(named.map((uri) => uri.trim()))
}

/** A2A 1.0 §3.3.4: a client that does not activate an extension which the card requires is refused. */
export function requireExtensions({ host, call, extensions, x402 }: RpcContext): void {
  const missing = extensionsOf(agentOf(host, call), { x402 }).find(({ uri, required }) => required === true && !extensions.includes(uri))
  if (!missing) return
  throw a2aError('EXTENSION_SUPPORT_REQUIRED', 'This agent needs an extension: name it in the A2A-Extensions header', {
    extension: missing.uri,
  })
}
