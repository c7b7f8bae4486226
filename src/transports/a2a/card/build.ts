import * as z from 'zod/mini'
import type { AgentPort } from '../../../core/ports/agent.ts'
import { list, Slot } from '../../../protocol/json.ts'
import type { Struct } from '../model.ts'
import { EXTENSIONS } from './extensions.ts'
import type { AgentCard, AgentExtension, AgentInterface } from './model.ts'
import { modesOf } from './modes.ts'
import type { CardOptions } from './options.ts'
import { descriptionOf, skillsOf } from './skills.ts'

/** What an agent may say of itself for its card, in `capabilities.extensions.a2a`. What is not as it should be does not count. */
const Told = z.object({
  version: z.optional(z.string()),
  provider: z.optional(z.object({ organization: z.string(), url: z.string() })),
  documentationUrl: z.optional(z.string()),
  iconUrl: z.optional(z.string()),
  extensions: z.optional(
    list(
      z.object({ uri: z.string(), description: z.optional(z.string()), required: z.optional(z.boolean()), params: z.optional(Slot) }),
      64,
    ),
  ),
})

export interface Surroundings {
  /** Where the agent is: `https://example.com/agents/bob`. */
  readonly base: string
  readonly pushNotifications: boolean
  /** Whether callers can show who they are, and whether they must. */
  readonly bearer: 'none' | 'optional' | 'required'
  readonly options: CardOptions
}

/** What a token must be good for; of a scheme without scopes that is a list of roles (OpenAPI 3.2). Empty, signatures would not cover it. */
const ROLES = ['call']

/** The card of A2A 1.0: every required field, no required array empty (§5.7), no field at its default (§8.4.1). */
export function buildCard(agent: AgentPort, { base, pushNotifications, bearer, options }: Surroundings): AgentCard {
  const { version = options.version ?? '1.0.0', provider = options.provider, documentationUrl, iconUrl } = toldBy(agent)
  const { input, output } = modesOf(agent.capabilities)
  return {
    name: agent.name,
    description: descriptionOf(agent),
    supportedInterfaces: interfacesAt(base),
    ...(provider && { provider }),
    version,
    ...(documentationUrl !== undefined && { documentationUrl }),
    ...(iconUrl !== undefined && { iconUrl }),
    capabilities: {
      streaming: true,
      pushNotifications,
      extendedAgentCard: options.extendedCard !== undefined,
      extensions: extensionsOf(agent),
    },
    ...(bearer !== 'none' && { securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: 'Bearer' } } } }),
    ...(bearer === 'required' && { securityRequirements: [{ schemes: { bearer: { list: ROLES } } }] }),
    defaultInputModes: input,
    defaultOutputModes: output,
    skills: skillsOf(agent),
  }
}

/** The preferred one first. Of each major version the newest minor one: what 0.2 speaks, it speaks where 0.3 does. */
function interfacesAt(base: string): readonly AgentInterface[] {
  const rpc = `${base}/a2a`
  const rest = `${base}/a2a/rest`
  return [
    { url: rpc, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    { url: rest, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
    { url: rpc, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
    { url: rest, protocolBinding: 'HTTP+JSON', protocolVersion: '0.3' },
  ]
}

export function extensionsOf(agent: AgentPort): readonly AgentExtension[] {
  const own = (toldBy(agent).extensions ?? []).map(({ uri, description, required, params }): AgentExtension => ({
    uri,
    ...(description !== undefined && { description }),
    ...(required === true && { required }),
    ...(params && { params: params as Struct }),
  }))
  return [...new Map([...EXTENSIONS, ...own].map((extension) => [extension.uri, extension])).values()]
}

function toldBy({ capabilities }: AgentPort): z.infer<typeof Told> {
  const told = z.safeParse(Told, capabilities.extensions?.['a2a'] ?? {})
  return told.success ? told.data : {}
}
