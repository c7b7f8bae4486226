import { demo } from '../../../src/agents/demo/index.ts'
import { defineAgent } from '../../../src/core/agent-kit/define-agent.ts'
import type { AgentPort, Said, Turn } from '../../../src/core/ports/agent.ts'

/** What the shop does beside the demo's commands. Each charges 0.03 USD at first. */
const GOODS: Readonly<Record<string, (turn: Turn, marks: Holds) => AsyncGenerator<Said, void>>> = {
  /** 0.08 together. */
  async *twice(turn) {
    await turn.charge({ amount: '0.03', key: 'first' })
    yield 'The first half'
    await turn.charge({ amount: '0.05', key: 'second' })
    yield ' and the second.'
  },
  async *fail(turn) {
    await turn.charge({ amount: '0.03' })
    yield 'Half of'
    throw new Error('It broke')
  },
  async *hold(turn, marks) {
    await turn.charge({ amount: '0.03' })
    yield 'Half of'
    await marks.hold(turn)
    yield ' it.'
  },
  async *hello() {
    yield 'Hello.'
  },
}

/** Where agents wait in the middle of their answers. */
export class Holds {
  readonly #held: (() => void)[] = []
  #waiting: (() => void) | undefined

  /** The agent waits until it is let go, or stopped. */
  async hold({ signal }: Turn): Promise<void> {
    this.#waiting?.()
    await new Promise<void>((resolve, reject) => {
      this.#held.push(resolve)
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
    })
  }

  /** Resolves when an agent waits. */
  held(): Promise<void> {
    return new Promise((resolve) => (this.#waiting = resolve))
  }

  letGo(): void {
    for (const go of this.#held.splice(0)) go()
  }
}

export function shop(marks: Holds): AgentPort {
  const plain = demo()
  return defineAgent('shop', (turn) => {
    const good = GOODS[turn.messages.findLast(({ role }) => role === 'user')?.content ?? '']
    return good ? good(turn, marks) : plain.run(turn)
  })
}
