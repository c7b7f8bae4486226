import type { KnownCall } from '../../../core/ports/transport.ts'
import type { AgentCard, AgentProvider } from './model.ts'
import type { SigningKey } from './sign.ts'

type MaybePromise<T> = T | Promise<T>

/** More of the agent for those who are known. Its skills come after those of the public card; other fields take their place. */
export type CardAddition = Partial<Omit<AgentCard, 'supportedInterfaces' | 'signatures'>>

/** What whoever runs a server may set for the agent card. */
export interface CardOptions {
  /** Which card is served to those who do not say which version they speak. Default: `hybrid`, which every generation can read. */
  readonly card?: 'hybrid' | '1.0'
  /** The version of agents that do not tell theirs. Default: 1.0.0. */
  readonly version?: string
  /** Who offers the agents that do not say it themselves. */
  readonly provider?: AgentProvider
  /** What callers who show who they are get beside the public card. Undefined, where it is a function: there is nothing for this one. */
  readonly extendedCard?: CardAddition | ((call: KnownCall, card: AgentCard) => MaybePromise<CardAddition | undefined>)
  /** The keys that cards are signed with. Default: they are not signed; nor are they where the server has no `publicUrl`. */
  readonly signingKeys?: readonly SigningKey[]
  /** How long clients and caches may keep a card. Default: 300. */
  readonly maxAgeSeconds?: number
}
