import type { AgentPort } from '../../../core/ports/agent.ts'
import type { AgentCard } from './model.ts'

/**
 * One card that every generation can read: the fields of 1.0, and beside them those that 0.2 and 0.3 look for. Where both have a
 * field of the same name, what stands in it has the members of both.
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
    // OpenAPI 3.0, which these follow: of a scheme without scopes the list is empty.
    ...(securityRequirements && { security: securityRequirements.map(({ schemes }) => mapValues(schemes, () => [])) }),
  }
}

/** `agent.json`, where clients up to 0.2.6 look, and what UAMP transports and UAMP events §9.2 want there. */
export function seedCard(card: AgentCard, { capabilities }: AgentPort): object {
  const schemes = Object.keys(card.securitySchemes ?? {})
  return {
    ...hybrid(card),
    protocolVersion: '0.2.1',
    ...(schemes.length > 0 && { authentication: { schemes } }),
    modelCapabilities: capabilities,
  }
}

function mapValues<T, U>(values: Readonly<Record<string, T>>, map: (value: T) => U): Readonly<Record<string, U>> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, map(value)]))
}
