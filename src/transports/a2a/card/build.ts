import * as z from 'zod/mini'
import { shownPrice, toldCapabilities } from '../../../core/basics/shown-price.ts'
import type { Ability, AgentPort } from '../../../core/ports/agent.ts'
import { list, Slot } from '../../../protocol/json.ts'
import { EVENTS_EXTENSION, PRICE_EXTENSION, TOOLS_EXTENSION } from '../../../wire/a2a/extensions.ts'
import type { Struct } from '../model.ts'
import type { CardOptions } from './index.ts'
import { modesOf } from './modes.ts'
import type { AgentCard, AgentExtension, AgentInterface, AgentSkill } from './model.ts'

/** What an agent may say of itself for its card, in `capabilities.extensions.a2a`. If any of it has another form, all of it is ignored. */
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
  /** Whether callers can have credentials, and whether they must. */
  readonly bearer: 'none' | 'optional' | 'required'
  readonly options: CardOptions
}

/** The roles that a token needs, as a scheme without scopes lists them (OpenAPI 3.2). A signature does not cover an empty list. */
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

/** The preferred one first. 0.2 is served at the addresses of 0.3, so only the newest minor version of each major one is listed. */
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

/** The extensions that the card of an agent lists. */
export function extensionsOf(agent: AgentPort): readonly AgentExtension[] {
  const own = (toldBy(agent).extensions ?? []).map(({ uri, description, required, params }): AgentExtension => ({
    uri,
    ...(description !== undefined && { description }),
    ...(required === true && { required }),
    ...(params && { params: params as Struct }),
  }))
  const price = shownPrice(agent)
  const costs: AgentExtension[] = price
    ? [{ uri: PRICE_EXTENSION, description: 'What the agent costs', params: price as unknown as Struct }]
    : []
  return [...new Map([...EXTENSIONS, ...costs, ...own].map((extension) => [extension.uri, extension])).values()]
}

function toldBy({ capabilities }: AgentPort): z.infer<typeof Told> {
  const told = z.safeParse(Told, capabilities.extensions?.['a2a'] ?? {})
  return told.success ? told.data : {}
}

/** What every agent here can do beyond the core of the protocol. Not a2a-x402: whoever announces it verifies payments, and we do not yet. */
const EXTENSIONS: readonly AgentExtension[] = [
  { uri: EVENTS_EXTENSION, description: 'Thoughts, tool calls and progress as messages of the stream' },
  { uri: TOOLS_EXTENSION, description: 'A client declares tools of its own; the task asks for their results' },
]

/** Skills that a card shows. Every client reads it before anything else, so it stays small. */
const SKILLS = 128

/** The abilities that the agent names, else its tools and what it provides, else that one can talk to it. Never empty: A2A 1.0 §5.7. */
function skillsOf(agent: AgentPort): readonly AgentSkill[] {
  const { abilities = [], capabilities } = agent
  const tools = (capabilities.tools?.built_in_tools ?? []).map((name) => named(name, `Uses the tool ${name}`, 'tool'))
  const provided = (capabilities.provides ?? []).map((name) => named(name, `Provides ${name}`, 'capability'))
  const known = abilities.length > 0 ? abilities : [...tools, ...provided]
  const skills = [...new Map(known.map((ability) => [ability.id, skill(ability)])).values()].slice(0, SKILLS)
  return skills.length > 0 ? skills : [{ ...named('chat', descriptionOf(agent), 'chat'), name: agent.name }]
}

function descriptionOf({ name, description }: AgentPort): string {
  return description || `The agent ${name}`
}

function named(name: string, description: string, tag: string): Ability {
  return { id: name, name, description, tags: [tag] }
}

function skill({ id, name, description, tags, examples = [] }: Ability): AgentSkill {
  const shown = tags.length > 0 ? tags : [id]
  return { id, name, description: description || name, tags: shown, ...(examples.length > 0 && { examples }) }
}

/**
 * One card that every generation can read: the fields of 1.0, and those that 0.2 and 0.3 look for. A field that both have has the
 * members of both.
 */
export function hybrid(card: AgentCard): object {
  const { supportedInterfaces, capabilities, securitySchemes, securityRequirements } = card
  const old = supportedInterfaces.filter(({ protocolVersion }) => protocolVersion === '0.3')
  return {
    ...card,
    protocolVersion: '0.3.0',
    url: old[0]?.url,
    preferredTransport: old[0]?.protocolBinding,
    additionalInterfaces: old.map(({ url, protocolBinding }) => ({ url, transport: protocolBinding })),
    capabilities: { ...capabilities, stateTransitionHistory: false },
    supportsAuthenticatedExtendedCard: capabilities.extendedAgentCard,
    ...(securitySchemes && { securitySchemes: mapValues(securitySchemes, (scheme) => ({ type: 'http', scheme: 'bearer', ...scheme })) }),
    // In OpenAPI 3.0, which 0.2 and 0.3 follow, the list of a scheme without scopes is empty.
    ...(securityRequirements && { security: securityRequirements.map(({ schemes }) => mapValues(schemes, () => [])) }),
  }
}

/** The card at `agent.json`, where clients up to 0.2.6 look, with what UAMP transports and UAMP events §9.2 want there. */
export function seedCard(card: AgentCard, agent: AgentPort): object {
  const schemes = Object.keys(card.securitySchemes ?? {})
  return {
    ...hybrid(card),
    protocolVersion: '0.2.1',
    ...(schemes.length > 0 && { authentication: { schemes } }),
    modelCapabilities: toldCapabilities(agent),
  }
}

function mapValues<T, U>(values: Readonly<Record<string, T>>, map: (value: T) => U): Readonly<Record<string, U>> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, map(value)]))
}
