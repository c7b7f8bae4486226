import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { activity, state, step, text } from '../../src/core/agent-kit/drafts.ts'
import type { Draft } from '../../src/protocol/events.ts'

/** Says what AG-UI has a name for, and more. */
export const everything = defineAgent('everything', async function* () {
  yield* step('think', thoughts())
  yield state.snapshot({ count: 0 })
  yield state.change({ count: 0 }, { count: 1, items: [] })
  yield activity.snapshot('search-1', 'SEARCH', { query: 'x' })
  yield activity.patch('search-1', 'SEARCH', [{ op: 'add', path: '/found', value: 2 }])
  yield { type: 'x.plan', entries: [{ content: 'one', status: 'pending' }] }
  yield { type: 'x.subagent.started', subagent_id: 'sub-1', name: 'helper' }
  yield { type: 'x.subagent.finished', subagent_id: 'sub-1', status: 'completed', result: { ok: true } }
  yield { type: 'x.custom', name: 'mine', value: { a: null } }
  yield { type: 'x.raw', event: { from: 'elsewhere' }, source: 'other' }
  yield {
    type: 'x.messages.snapshot',
    messages: [
      { role: 'user', content: 'earlier' },
      { role: 'assistant', content: 'answered' },
    ],
  }
  yield { type: 'response.delta', delta: { type: 'tool_call', tool_call: { id: 'c1', name: 'look', arguments: '{"a":' } } }
  yield { type: 'response.delta', delta: { type: 'tool_call', tool_call: { id: 'c1', name: 'look', arguments: '1}' } } }
  yield { type: 'response.delta', delta: { type: 'tool_progress', tool_progress: { call_id: 'c1', text: 'half' } } }
  yield {
    type: 'response.delta',
    delta: {
      type: 'tool_result',
      tool_result: { call_id: 'c1', result: 'seen', content_items: [{ type: 'image', image: 'aGk=', format: 'png' }] },
    },
  }
  yield text('Done.')
  yield { type: 'response.delta', delta: { type: 'text', text: ' But not that.', refusal: true } }
  yield { type: 'usage.delta', delta: { input_tokens: 10, output_tokens: 5, input_uncached: 10, cache_read: 100, reasoning: 2 } }
})

async function* thoughts(): AsyncGenerator<Draft, void> {
  yield { type: 'thinking', content: 'Let me see', is_delta: true }
  yield { type: 'thinking', content: '', signature: 'signed', is_delta: true }
}

/** Wants money before it says anything, or in the middle of it. */
export const paid = defineAgent('paid', async function* (turn) {
  if (turn.messages.at(-1)?.content === 'later') yield text('Until here for free. ')
  const { payment } = await turn.ask('payment.required', { requirements: { amount: '0.01', currency: 'USD' } })
  yield text(`Paid with a ${payment.scheme}.`)
})

/** Asks for several tools of the page at once. */
export const twice = defineAgent('twice', async function* (turn) {
  const answers = await Promise.all(['a', 'b'].map((id) => turn.ask('tool.call', { call_id: `call-${id}`, name: 'pick', arguments: '{}' })))
  yield text(answers.map(({ result, is_error }) => `${result}${is_error ? '!' : ''}`).join(', '))
})
