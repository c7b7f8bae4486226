import { defineAgent } from '../../../src/core/agent-kit/define-agent.ts'
import { text } from '../../../src/core/agent-kit/drafts.ts'
import type { AgentPort } from '../../../src/core/ports/agent.ts'
import type { Draft } from '../../../src/protocol/events.ts'

/** Says `begin `, and `end` only once the test says so, or never, if it is cancelled before. */
export class Gated {
  readonly agent: AgentPort
  readonly #gates = new Map<string, Gate>()

  constructor() {
    const gateOf = (name: string) => this.#gateOf(name)
    this.agent = defineAgent('gated', async function* (turn) {
      const gate = gateOf(turn.messages.at(-1)?.content ?? '')
      yield text('begin ')
      const cancelled = new Promise<void>((resolve) => turn.signal.addEventListener('abort', () => resolve(), { once: true }))
      await Promise.race([gate.opened, cancelled])
      if (turn.signal.aborted) gate.stop()
      else yield text('end')
    })
  }

  /** Lets the turn go on whose message this was. */
  open(name: string): void {
    this.#gateOf(name).open()
  }

  /** Resolves when that turn has seen that it is cancelled. */
  stopped(name: string): Promise<void> {
    return this.#gateOf(name).stopped
  }

  #gateOf(name: string): Gate {
    const gate = this.#gates.get(name) ?? new Gate()
    this.#gates.set(name, gate)
    return gate
  }
}

class Gate {
  open: () => void = () => undefined
  stop: () => void = () => undefined
  readonly opened = new Promise<void>((resolve) => (this.open = resolve))
  readonly stopped = new Promise<void>((resolve) => (this.stop = resolve))
}

const ended = (stop_reason: string): Draft => ({
  type: 'response.done',
  response: { id: '', status: 'completed', output: [], extensions: { uamp: { stop_reason } } },
})

/** Wants to know more, in the course of a conversation; or turns down what it is asked for. */
export const clerk = defineAgent('clerk', async function* ({ messages }) {
  const said = messages.filter(({ role }) => role === 'user').map(({ content = '' }) => content)
  if (said[0] === 'refuse') {
    yield text('Not here.')
    yield ended('rejected')
  } else if (said[0] === 'log in') {
    yield text('Who are you?')
    yield ended('auth_required')
  } else if (said.length === 1) {
    yield text('Where to?')
    yield ended('input_required')
  } else {
    yield text(`Booked: ${said.join(', ')}`)
  }
})

/** Answers with every piece of content that it got. */
export const copier = defineAgent(
  'copier',
  async function* ({ messages }) {
    for (const item of messages.at(-1)?.content_items ?? []) {
      if (item.type === 'text') yield text(item.text)
      else if (item.type === 'image' || item.type === 'audio' || item.type === 'video' || item.type === 'file')
        yield { type: 'response.delta', delta: item }
    }
  },
  { capabilities: { modalities: ['text', 'image', 'audio', 'video', 'file'] } },
)

/** Is paid first. */
export const seller = defineAgent('seller', async function* (turn) {
  const { payment } = await turn.ask('payment.required', {
    requirements: { amount: '0.01', currency: 'USD', schemes: [{ scheme: 'exact', network: 'base' }] },
  })
  yield text(`Sold for ${payment.scheme}`)
})
