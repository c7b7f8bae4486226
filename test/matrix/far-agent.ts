import { setImmediate as nextTurn } from 'node:timers/promises'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import { textOf } from '../../src/protocol/message.ts'

/** What can be said to the agent that is far away. `acp-agent.js` knows the same. */
export const SAY = {
  text: 'hello',
  tool: (name: string, args: object) => `use ${name} ${JSON.stringify(args)}`,
  cancel: (tag: string) => `endure ${tag}`,
  error: 'fail',
}

/** What it answers. */
export const HELLO = 'You said: hello'
export const FAILURE = 'I cannot do that'
export const RESULT = 'eight'

/** Who has come to an end, and who waits for that. */
export class Endings {
  readonly #ended = new Set<string>()
  readonly #waiting = new Map<string, () => void>()

  end(tag: string): void {
    this.#ended.add(tag)
    this.#waiting.get(tag)?.()
  }

  async of(tag: string): Promise<void> {
    if (!this.#ended.has(tag)) await new Promise<void>((resolve) => this.#waiting.set(tag, resolve))
  }
}

/** Speaks, calls a tool of the client's, goes on for ever, or fails: as it is told. */
export function farAgent(endings: Endings): AgentPort {
  return defineAgent('far', async function* (turn) {
    const last = turn.messages.findLast(({ role }) => role === 'user')
    const said = last?.content ?? textOf(last?.content_items ?? [])
    const [verb = '', name = '', args = ''] = said.split(' ')
    if (verb === 'use') {
      const { result } = await turn.ask('tool.call', { name, arguments: args })
      yield text(`${name} said ${result}`)
    } else if (verb === 'endure') {
      try {
        for (let n = 1; ; n++) {
          yield text(`${n} `)
          await nextTurn()
        }
      } finally {
        endings.end(name)
      }
    } else if (verb === 'fail') {
      // In the middle of an answer: before it, a refusal may be tried again.
      yield text('One moment. ')
      yield { type: 'response.error', error: { code: 'not_supported', message: FAILURE } }
    } else {
      for (const word of ['You ', 'said: ', said]) yield text(word)
    }
  })
}
