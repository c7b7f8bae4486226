import { modelOf, type Model } from '../../src/agents/llm/index.ts'
import type { ModelContext, ModelRequest, Provider } from '../../src/core/ports/provider.ts'
import type { Capabilities } from '../../src/protocol/capabilities.ts'
import type { Draft } from '../../src/protocol/events.ts'
import type { Usage } from '../../src/protocol/usage.ts'

type Says = (
  request: ModelRequest,
  context: ModelContext,
) => Iterable<Draft> | AsyncIterable<Draft> | Promise<Iterable<Draft> | AsyncIterable<Draft>>

/** A model that says to every request what a function makes of it, and keeps no state: any number of turns may ask it at once. */
export function answering(says: Says, { name = 'scripted', able = {} }: { name?: string; able?: Partial<Capabilities> } = {}): Model {
  const provider: Provider = {
    name,
    capabilities: async (model) => ({
      id: model,
      provider: name,
      modalities: ['text'],
      supports_streaming: true,
      supports_thinking: true,
      supports_caching: false,
      ...able,
    }),
    async *generate(request, context) {
      yield* await says(request, context)
    },
  }
  return modelOf(provider, 'm')
}

export const said = (text: string): Draft => ({ type: 'response.delta', delta: { type: 'text', text } })

export const call = (id: string, name: string, args: unknown): Draft => ({
  type: 'response.delta',
  delta: { type: 'tool_call', tool_call: { id, name, arguments: typeof args === 'string' ? args : JSON.stringify(args) } },
})

export const used = (delta: Usage): Draft => ({ type: 'usage.delta', delta })

export const stopped = (stop_reason: string): Draft => ({
  type: 'response.done',
  response: { id: '', status: 'completed', output: [], extensions: { uamp: { stop_reason } } },
})
