import type { ModelContext, ModelRequest, Provider } from '../core/ports/provider.ts'
import type { Capabilities } from '../protocol/capabilities.ts'
import { UampError } from '../protocol/errors.ts'
import type { Draft } from '../protocol/events.ts'

/** The model's answer to one request: fixed, or made from the request. A function may throw, as a provider does. */
export type ScriptedTurn =
  | readonly Draft[]
  | ((
      request: ModelRequest,
      context: ModelContext,
    ) => Iterable<Draft> | AsyncIterable<Draft> | Promise<Iterable<Draft> | AsyncIterable<Draft>>)

export interface ScriptedOptions {
  readonly name?: string
  readonly capabilities?: Partial<Omit<Capabilities, 'id' | 'provider'>>
}

export interface ScriptedProvider extends Provider {
  /** The requests so far, oldest first; never more than the script has turns. */
  readonly requests: readonly ModelRequest[]
}

/** A model that follows a script: the first request gets the first turn, and so on. A request after the last turn fails. */
export function scriptedProvider(turns: readonly ScriptedTurn[], options: ScriptedOptions = {}): ScriptedProvider {
  const { name = 'scripted', capabilities } = options
  const requests: ModelRequest[] = []

  return {
    name,
    requests,
    capabilities: async (model) => ({
      modalities: ['text'],
      supports_streaming: true,
      supports_thinking: true,
      supports_caching: false,
      tools: { supports_tools: true, supports_parallel_tools: true, supports_streaming_tools: true },
      ...capabilities,
      id: model,
      provider: name,
    }),
    async *generate(request, context) {
      const turn = turns[requests.length]
      if (!turn) throw new UampError('provider_error', `The script of '${name}' has ${turns.length} turns, and one more was asked for`)
      // A copy, because the caller changes its own list.
      requests.push({ ...request, messages: [...request.messages] })
      context.signal.throwIfAborted()
      for await (const draft of typeof turn === 'function' ? await turn(request, context) : turn) {
        yield draft
        context.signal.throwIfAborted()
      }
    },
  }
}
