import type { JsonAnswerOptions } from '../../core/edge/json-answer.ts'
import type { KnownCall } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Parts, RpcContext } from './binding.ts'
import { a2aError } from './errors.ts'

/** What a request's methods get. `tenant`: what the request names as such; anything but a text is left to who parses it. */
export function contextOf(parts: Parts, call: KnownCall, tenant?: unknown): RpcContext {
  const meant = typeof tenant === 'string' && tenant !== '' ? ofTenant(parts, call, tenant) : call
  if (meant.agent === undefined) {
    throw new UampError('agent_offline', 'Say which agent: its address is /agents/{name}/a2a', {
      details: { agents: parts.host.agents.names() },
    })
  }
  return { ...parts, call: meant, extensions: activated(parts, meant) }
}

/** A tenant is an opaque way to say whom a request is for (A2A 1.0, `AgentInterface.tenant`): here it is the name of an agent. */
function ofTenant({ host }: Parts, call: KnownCall, tenant: string): KnownCall {
  if (tenant === call.agent) return call
  if (!call.root || !host.agents.get(tenant)) throw a2aError('INVALID_PARAMS', 'There is no such tenant here', { field: 'tenant' })
  const { root, request, params, principal, access, address } = call
  if (!access.authorize(principal, 'call', tenant)) throw new UampError('forbidden', `This token may not call ${tenant}`)
  return {
    agent: tenant,
    root,
    request,
    params,
    principal,
    access,
    address,
    get signal() {
      return call.signal
    },
    get quota() {
      return call.quota
    },
  }
}

/** The newer name first; 0.2 and 0.3 have the older one. */
const EXTENSIONS = ['a2a-extensions', 'x-a2a-extensions']

/** What the client asks for and the agent has. The rest is ignored (A2A 1.0 §4.6.3). */
function activated({ card }: Parts, call: KnownCall): readonly string[] {
  const asked = EXTENSIONS.flatMap((name) => call.request.headers.get(name)?.split(',') ?? [])
  if (asked.length === 0) return asked
  const uris = new Set(asked.map((uri) => uri.trim()))
  return card.extensions(call).flatMap(({ uri }) => (uris.has(uri) ? [uri] : []))
}

/** A2A 1.0 §3.3.4: whoever does not declare an extension that the card requires is refused. */
export function requireExtensions({ card, call, extensions }: RpcContext): void {
  const missing = card.extensions(call).find(({ uri, required }) => required === true && !extensions.includes(uri))
  if (!missing) return
  throw a2aError('EXTENSION_SUPPORT_REQUIRED', 'This agent needs an extension: name it in the A2A-Extensions header', {
    extension: missing.uri,
  })
}

/** What the answer says of the extensions that are in use. */
export function extensionHeaders({ extensions }: RpcContext): Readonly<Record<string, string>> {
  return extensions.length === 0 ? {} : { 'a2a-extensions': extensions.join(', ') }
}

/** Whose an answer is, for what counts it while it is written. */
export function heldBy({ host, call }: RpcContext): Pick<JsonAnswerOptions, 'gateway' | 'principal'> {
  return { gateway: host.gateway, principal: call.principal }
}
