import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'

/** Says what it was given: the texts of the conversation, and the items of the last message. */
export const given: AgentPort = defineAgent(
  'given',
  async function* ({ messages }) {
    const last = messages.at(-1)
    yield text(JSON.stringify({ texts: messages.map(({ content }) => content), items: last?.content_items ?? [] }))
  },
  { capabilities: { modalities: ['text', 'image', 'audio', 'video', 'file'] } },
)

/** Says three words and is done. */
export const three: AgentPort = defineAgent('three', async function* () {
  for (const word of ['a ', '"b" ', 'c']) yield text(word)
})

/** Says that it works, and stops when it is told to. */
export const patient: AgentPort = defineAgent('patient', async function* ({ signal }) {
  yield text('working')
  await new Promise((resolve) => signal.addEventListener('abort', resolve))
})

/** Wants to know whether it may. */
export const shy: AgentPort = defineAgent('shy', async function* (turn) {
  const { approved } = await turn.ask('x.approval.request', { message: 'May I?' })
  yield text(approved ? 'I did' : 'I did not')
})

/** Wants money first. */
export const priced: AgentPort = defineAgent('priced', async function* (turn) {
  const { payment } = await turn.ask('payment.required', {
    requirements: { amount: '0.01', currency: 'USD', schemes: [{ scheme: 'token' }] },
  })
  yield text(`paid with a ${payment.scheme}`)
})

/** Gives one of each: text, a picture, data. */
export const generous: AgentPort = defineAgent('generous', async function* () {
  yield text('Look:')
  yield { type: 'response.delta', delta: { type: 'image', image: 'AAEC', format: 'png', content_id: 'dot', description: 'A dot' } }
  yield {
    type: 'response.delta',
    delta: { type: 'file', file: btoa('{"n":1}'), filename: 'n.json', mime_type: 'application/json', content_id: 'n' },
  }
})

/** Answers without a task. */
export const brief: AgentPort = defineAgent(
  'brief',
  async function* () {
    yield { type: 'x.custom', name: 'a2a.message', value: { parts: [{ text: 'Hi.' }] } }
  },
  { capabilities: { extensions: { a2a: { messages: true } } } },
)
