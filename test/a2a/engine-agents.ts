import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { AgentPort, Turn } from '../../src/core/ports/agent.ts'
import type { Draft } from '../../src/protocol/events.ts'

/** The end that an agent names itself. `said`: with it, and not before. */
export function stop(stop_reason: string, said = ''): Draft {
  return {
    type: 'response.done',
    response: {
      id: '',
      status: 'completed',
      output: said === '' ? [] : [{ type: 'text', text: said }],
      extensions: { uamp: { stop_reason } },
    },
  }
}

/** An agent that does what a function says, with what the last message says. */
export function answering(run: (said: string, turn: Turn) => AsyncIterable<Draft>, name = 'worker'): AgentPort {
  return defineAgent(name, (turn) => run(turn.messages.findLast(({ role }) => role === 'user')?.content ?? '', turn))
}

/** An agent that says its pieces one by one, each when it is let go on. */
export function stepwise(pieces: readonly string[]) {
  let go: (() => void)[] = []
  const doors = pieces.map(() => new Promise<void>((resolve) => go.push(resolve)))
  const agent = answering(async function* (_, { signal }) {
    const gone = new Promise<never>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
    gone.catch(() => undefined)
    for (const [index, piece] of pieces.entries()) {
      await Promise.race([doors[index], gone])
      yield text(piece)
    }
  })
  return {
    agent,
    /** Lets the next `count` pieces out. */
    let(count = 1): void {
      for (const open of go.slice(0, count)) open()
      go = go.slice(count)
    },
  }
}
