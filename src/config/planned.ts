import type { AgentPort } from '../core/ports/agent.ts'
import type { Logger } from '../core/ports/transport.ts'
import type { CheckedConfig, Entry } from './check.ts'
import type { Variables } from './environment.ts'
import type { Models } from './models.ts'
import type { Modules } from './modules.ts'
import type { Source } from './source.ts'

/** What one entry of a config became. */
export interface Built {
  readonly agents: readonly AgentPort[]
  /** Lets go of what they hold, once nobody needs it. */
  close(): Promise<void>
}

/** What an entry will become. Those of the same print become the same, so that what is unchanged need not be made again. */
export interface Plan {
  readonly entry: Entry
  readonly print: string
  /** Modules that it is made of. */
  readonly files: readonly string[]
  /** Agents that it hands over to, which must be there before it. */
  readonly needs: readonly string[]
  build(others: ReadonlyMap<string, AgentPort>): Promise<Built>
}

export interface PlanContext {
  readonly source: Source
  readonly config: CheckedConfig
  readonly variables: Variables
  readonly models: Models
  readonly modules: Modules
  readonly log: Logger
}

/** Agents that hold nothing. */
export function held(agents: readonly AgentPort[]): Built {
  return { agents, close: async () => undefined }
}
