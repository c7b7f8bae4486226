import { wrap } from '../core/agent-kit/wrap.ts'
import type { AgentPort } from '../core/ports/agent.ts'
import type { Logger } from '../core/ports/transport.ts'
import type { CheckedConfig, Entry } from './check.ts'
import type { Variables } from './environment.ts'
import type { Models } from './models.ts'
import type { Modules } from './modules.ts'
import type { Problems } from './problems.ts'
import type { Source } from './source.ts'

/** What one entry of a config became. */
export interface Built {
  readonly agents: readonly AgentPort[]
  /** Releases what the agents hold, once no turn needs it. */
  close(): Promise<void>
}

/** What an entry will become. Plans with the same print give the same agents, so that a reload makes only what has changed. */
export interface Plan {
  readonly entry: Entry
  readonly print: string
  /** The modules that it depends on. */
  readonly files: readonly string[]
  /** Agents that it hands over to. They are made first. */
  readonly needs: readonly string[]
  /** Agents of a module, which has no name for them in the config. */
  readonly brings?: readonly string[]
  /** Undefined if it cannot be built; the reasons are then among the problems. */
  build(others: ReadonlyMap<string, AgentPort>): Promise<Built | undefined>
}

export interface PlanContext {
  readonly source: Source
  readonly config: CheckedConfig
  readonly variables: Variables
  readonly models: Models
  readonly modules: Modules
  readonly log: Logger
  readonly problems: Problems
}

/** Agents that need no release. */
export function held(agents: readonly AgentPort[]): Built {
  return { agents, close: async () => undefined }
}

/** An agent that holds something. Closing waits for its last turn, because an agent that was replaced may still be at work. */
export function closing(agent: AgentPort, release: () => Promise<void>): Built {
  let running = 0
  let idle: () => void = () => undefined
  const counted = wrap(agent, async function* (_turn, next) {
    running++
    try {
      yield* next()
    } finally {
      if (--running === 0) idle()
    }
  })
  const close = async (): Promise<void> => {
    if (running > 0) await new Promise<void>((resolve) => (idle = resolve))
    await release()
  }
  return { agents: [counted], close }
}
