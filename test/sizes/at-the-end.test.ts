/** What an agent says only with its end, after something that is no answer or only a part of it. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import type { ContentItem } from '../../src/protocol/content.ts'
import type { Draft } from '../../src/protocol/events.ts'
import { startServer } from '../support/server.ts'
import { nameOf, type Cell } from './cells.ts'
import { DRIVERS } from './drivers/index.ts'
import { Pace } from './pace.ts'

const ANSWER: ContentItem = { type: 'text', text: 'The answer' }
const THOUGHT: ContentItem = { type: 'thinking', thinking: 'Hm' }
const piece = (text: string): Draft => ({ type: 'response.delta', delta: { type: 'text', text } })

/** What comes before, and what is given with the end. */
const CASES: Readonly<Record<string, { before: readonly Draft[]; output: readonly ContentItem[] }>> = {
  'a thought': { before: [{ type: 'thinking', content: 'Hm' }], output: [ANSWER] },
  'a thought that is given again': { before: [{ type: 'thinking', content: 'Hm' }], output: [THOUGHT, ANSWER] },
  'an empty thought': { before: [{ type: 'thinking', content: '' }], output: [ANSWER] },
  'a call of its own': {
    before: [
      { type: 'response.delta', delta: { type: 'tool_call', tool_call: { id: 'c', name: 'look', arguments: '{}' } } },
      { type: 'response.delta', delta: { type: 'tool_result', tool_result: { call_id: 'c', result: 'seen' } } },
    ],
    output: [ANSWER],
  },
  progress: { before: [{ type: 'progress', target: 'response' }], output: [ANSWER] },
  'an extension': { before: [{ type: 'x.plan', entries: [] }], output: [ANSWER] },
  'progress of a tool': {
    before: [{ type: 'response.delta', delta: { type: 'tool_progress', tool_progress: { call_id: 'c', text: 'half' } } }],
    output: [ANSWER],
  },
  'an empty text': { before: [piece('')], output: [ANSWER] },
  'its beginning': { before: [piece('The ')], output: [ANSWER] },
  'all of it': { before: [piece('The '), piece('answer')], output: [ANSWER] },
  'its parts': {
    before: [piece('The answer')],
    output: [
      { type: 'text', text: 'The ' },
      { type: 'text', text: 'answer' },
    ],
  },
}

const agent = defineAgent('sayer', async function* (turn) {
  const { before = [], output = [] } = CASES[turn.messages.at(-1)?.content ?? ''] ?? {}
  yield* before
  yield { type: 'response.done', response: { id: '', status: 'completed', output: [...output] } }
})

const WRITTEN = DRIVERS.filter(({ sound, name }) => !sound && !name.includes('stdio'))

describe.each(WRITTEN.map((driver) => [driver.name, driver] as const))('%s', (transport, driver) => {
  test.each(Object.keys(CASES))('the answer comes with the end, after %s', async (prompt) => {
    const { url } = await startServer(agent)
    for (const choice of driver.choices) {
      const cell: Cell = { transport, size: '1', shape: 'only at the end', reader: 'fast', sound: false, ...choice }
      const after = (task: () => void | Promise<void>): void => onTestFinished(task)
      const said = await driver.ask({ cell, prompt, pace: new Pace(cell), url: async () => url, after })
      expect(said.text, nameOf(cell)).toBe('The answer')
    }
  })
})
