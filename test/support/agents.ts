import { defineAgent } from '../../src/core/define-agent.ts'
import { text } from '../../src/core/drafts.ts'
import type { AgentPort, Turn } from '../../src/core/ports/agent.ts'
import type { Draft } from '../../src/protocol/events.ts'

/** Answers with what it was given, as JSON: the whole of the turn that a client can see. */
export const mirror: AgentPort = defineAgent('mirror', async function* (turn) {
  const { messages, config, client, principal } = turn
  yield text(JSON.stringify({ messages, config, client, principal }))
})

export interface Mirrored {
  readonly messages: Turn['messages']
  readonly config: Turn['config']
  readonly client: Turn['client']
  readonly principal: Turn['principal']
}

/** An agent that yields just these. */
export function scripted(drafts: readonly Draft[]): AgentPort {
  return defineAgent('scripted', async function* () {
    yield* drafts
  })
}

/** Speaks for ever and never waits. `stopped` resolves when its `finally` has run. */
export function endless(): { agent: AgentPort; stopped: Promise<void> } {
  let stop: () => void = () => undefined
  const stopped = new Promise<void>((resolve) => (stop = resolve))
  const agent = defineAgent('endless', async function* () {
    try {
      for (let n = 1; ; n++) yield text(`${n} `)
    } finally {
      stop()
    }
  })
  return { agent, stopped }
}
