import type { AgentPort, Turn } from '../core/ports/agent.ts'
import type { Draft } from '../protocol/events.ts'
import type { Built } from './planned.ts'

/** An agent with something to let go of, which is done when its last turn is over: one that is replaced may still be at work. */
export function closing(agent: AgentPort, release: () => Promise<void>): Built {
  let running = 0
  let idle: () => void = () => undefined
  async function* run(turn: Turn): AsyncGenerator<Draft, void> {
    running++
    try {
      yield* agent.run(turn)
    } finally {
      if (--running === 0) idle()
    }
  }
  const counted: AgentPort = {
    name: agent.name,
    ...(agent.description !== undefined && { description: agent.description }),
    get capabilities() {
      return agent.capabilities
    },
    get tools() {
      return agent.tools ?? []
    },
    ...(agent.transports && { transports: agent.transports }),
    run,
  }
  const close = async (): Promise<void> => {
    if (running > 0) await new Promise<void>((resolve) => (idle = resolve))
    await release()
  }
  return { agents: [counted], close }
}
