import type { Batch, StoredResponse } from '../../core/ports/session.ts'
import { fieldsOf } from '../../protocol/json.ts'
import type { Message } from '../../protocol/message.ts'

const CREATED = new Set(['response.created'])

/** Responses that somebody else asked for: what with, and over which protocol. */
export class Begun {
  readonly #turns = new Map<string, StoredResponse>()

  /** Undefined: none began. */
  static async in(batch: Batch, find: (id: string) => Promise<StoredResponse | undefined> | undefined): Promise<Begun | undefined> {
    if (!batch.has(CREATED)) return undefined
    const begun = new Begun()
    for (const { event } of batch) {
      const turn = event.type === 'response.created' && (await find(event.response_id)?.catch(() => undefined))
      if (turn) begun.#turns.set(turn.id, turn)
    }
    return begun
  }

  input(id: string): readonly Message[] {
    return newIn(this.#turns.get(id)?.input)
  }

  /** Whether it was asked over ACP, by who was here before: what came over another protocol is decided there. */
  isPrompt(id: string | undefined): boolean {
    const { config } = (id !== undefined && this.#turns.get(id)) || {}
    return fieldsOf(config?.extensions?.['acp'])['prompt'] === true
  }
}

/** What of it is new: some bring the whole conversation along. */
export function newIn(input: readonly Message[] = []): readonly Message[] {
  return input.slice(input.findLastIndex(({ role }) => role === 'assistant') + 1)
}
