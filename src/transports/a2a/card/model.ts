/** The agent card of A2A 1.0 (`lf.a2a.v1.AgentCard`), as far as this server fills it in. */
import type { Ability } from '../../../core/ports/agent.ts'
import type { Struct } from '../model.ts'

export interface AgentInterface {
  readonly url: string
  readonly protocolBinding: 'JSONRPC' | 'HTTP+JSON'
  readonly protocolVersion: '1.0' | '0.3'
}

export interface AgentExtension {
  readonly uri: string
  readonly description?: string
  /** Never false: ProtoJSON leaves out a false here, and a signature would cover it. */
  readonly required?: true
  readonly params?: Struct
}

export interface AgentSkill extends Ability {
  readonly inputModes?: readonly string[]
  readonly outputModes?: readonly string[]
}

export interface AgentProvider {
  readonly organization: string
  readonly url: string
}

export interface AgentCard {
  readonly name: string
  readonly description: string
  readonly supportedInterfaces: readonly AgentInterface[]
  readonly provider?: AgentProvider
  readonly version: string
  readonly documentationUrl?: string
  readonly iconUrl?: string
  readonly capabilities: {
    readonly streaming: boolean
    readonly pushNotifications: boolean
    readonly extendedAgentCard: boolean
    readonly extensions: readonly AgentExtension[]
  }
  readonly securitySchemes?: Readonly<Record<string, { readonly httpAuthSecurityScheme: { readonly scheme: string } }>>
  readonly securityRequirements?: readonly { readonly schemes: Readonly<Record<string, { readonly list: readonly string[] }>> }[]
  readonly defaultInputModes: readonly string[]
  readonly defaultOutputModes: readonly string[]
  readonly skills: readonly AgentSkill[]
  readonly signatures?: readonly CardSignature[]
}

export interface CardSignature {
  readonly protected: string
  readonly signature: string
}
