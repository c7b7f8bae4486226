import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { AgentPort, Turn } from '../../src/core/ports/agent.ts'
import type { Draft } from '../../src/protocol/events.ts'

/** Answers with what it was given, as JSON: the whole of the turn that a client can see. */
export const mirror: AgentPort = defineAgent(
  'mirror',
  async function* (turn) {
    const { messages, config, asked, chat, client, principal } = turn
    yield text(JSON.stringify({ messages, config, asked, chat, client, principal }))
  },
  { capabilities: { modalities: ['text', 'image', 'audio', 'video', 'file'] } },
)

export interface Mirrored {
  readonly messages: Turn['messages']
  readonly config: Turn['config']
  readonly asked: Turn['asked']
  readonly chat: Turn['chat']
  readonly client: Turn['client']
  readonly principal: Turn['principal']
}

/** An agent that yields just these. */
export function scripted(drafts: readonly Draft[]): AgentPort {
  return defineAgent('scripted', async function* () {
    yield* drafts
  })
}

/** Counts up to its prompt, some numbers a millisecond: for so long that it can be cut, and soon over. */
export const counter: AgentPort = defineAgent('counter', async function* ({ messages }) {
  const last = Number(messages.at(-1)?.content)
  for (let n = 1; n <= last; n++) {
    if (n % 8 === 0) await sleep(1)
    yield text(n === 1 ? '1' : ` ${n}`)
  }
})

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
