// @ts-check
import { defineAgent, text } from '../../../dist/index.js'

/** Puts every kind of question, and shows what the demo does not: steps, plans, activities, other agents. Echoes everything else. */
export const asker = defineAgent('asker', answer, {
  description: 'Asks, calls and charges whoever talks to it',
  capabilities: { modalities: ['text'], tools: { supports_tools: true } },
})

/** @param {import('../../../dist/index.js').Turn} turn @returns {AsyncGenerator<import('../../../dist/index.js').Draft, void>} */
async function* answer(turn) {
  const last = turn.messages.findLast(({ role }) => role === 'user')
  const items = last?.content_items?.flatMap((/** @type {any} */ item) => (item.type === 'text' ? [item.text] : [])) ?? []
  const said = items.at(-1) ?? last?.content ?? ''
  switch (said) {
    case 'ask': {
      const { approved } = await turn.ask('x.approval.request', {
        message: 'May I?',
        options: [{ id: 'a', label: 'Yes', kind: 'allow_once' }],
      })
      return yield text(approved ? 'yes' : 'no')
    }
    case 'call': {
      const { result } = await turn.ask('tool.call', { name: 'mine', arguments: '{"a":1}' })
      return yield text(`called: ${String(result).slice(0, 1000)}`)
    }
    case 'pay': {
      const requirements = { amount: '1', currency: 'EUR', schemes: [{ scheme: 'token' }], reason: 'because' }
      const { payment } = await turn.ask('payment.required', { requirements })
      return yield text(`paid with ${payment.scheme.slice(0, 100)}`)
    }
    case 'plan':
      yield { type: 'x.step.started', name: 'one' }
      yield { type: 'x.plan', entries: [{ content: 'a', status: 'pending' }] }
      yield { type: 'x.activity.snapshot', activity_id: 'a', activity_type: 't', content: { a: 1 } }
      yield { type: 'x.subagent.started', subagent_id: 's', name: 'sub' }
      yield { type: 'x.subagent.finished', subagent_id: 's', status: 'completed', result: {} }
      yield { type: 'x.reasoning.encrypted', value: 'x' }
      yield { type: 'x.custom', name: 'n', value: null }
      yield { type: 'x.raw', event: { a: 1 } }
      yield { type: 'x.step.finished', name: 'one' }
      return yield text('planned')
    default:
      yield text(`You said: ${said.slice(0, 10_000)}`)
  }
}
