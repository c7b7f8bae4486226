import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { AgentPort, Turn } from '../../src/core/ports/agent.ts'
import type { Tool } from '../../src/core/ports/skill.ts'
import { toolRunner } from '../../src/core/tools/tool-loop.ts'

/** What the user said last. */
function said({ messages }: Turn): string {
  return messages.findLast(({ role }) => role === 'user')?.content ?? ''
}

/** Calls one tool, by name and arguments: `name {"a":1}`, and says what it gave. */
export function caller(tools: readonly Tool[] = []): AgentPort {
  return defineAgent(
    'caller',
    async function* (turn) {
      const [, name = '', args = '{}'] = /^(\S+)\s*([^]*)$/.exec(said(turn)) ?? []
      const [result] = yield* toolRunner(turn, { tools })([{ id: `call_${turn.id}`, name, arguments: args === '' ? '{}' : args }])
      yield text(`${result?.is_error ? 'failed' : 'gave'}: ${result?.result}`)
    },
    { tools },
  )
}

/** A tool that must be allowed, and counts how often it ran. */
export function careful(): { tool: Tool; runs: () => number } {
  let runs = 0
  return { tool: { name: 'delete_all', needsApproval: true, run: () => `run ${++runs}` }, runs: () => runs }
}

/** Asks for a payment before it says anything. */
export const paid: AgentPort = defineAgent('paid', async function* (turn) {
  const { payment } = await turn.ask('payment.required', { requirements: { amount: '0.01', currency: 'USD' } })
  yield text(`paid with a ${payment.scheme} for ${said(turn)}, message ${turn.messages.length}`)
})

/** Tells what it was asked with. */
export const chooser: AgentPort = defineAgent(
  'chooser',
  async function* ({ config, messages }) {
    yield text(
      JSON.stringify({
        uamp: config.extensions?.['uamp'],
        acp: config.extensions?.['acp'],
        tools: config.tools?.map((tool) => tool.function.name),
        messages,
      }),
    )
  },
  {
    capabilities: {
      modalities: ['text', 'image', 'audio', 'file'],
      context_window: 1000,
      extensions: {
        uamp: {
          models: [{ id: 'small', name: 'Small' }, { id: 'large' }],
          modes: [{ id: 'ask', name: 'Ask', description: 'Changes nothing' }, { id: 'code' }],
          commands: [{ name: 'fix', description: 'Repairs it', hint: 'what' }],
        },
      },
    },
  },
)

export { demo }
