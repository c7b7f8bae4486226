import jsonPatch from 'fast-json-patch'
import type * as z from 'zod/mini'
import type { Draft } from '../../protocol/events.ts'
import { uampIn } from '../../protocol/extensions.ts'
import type { PatchOperation } from '../../protocol/extension-events.ts'
import type { Slot } from '../../protocol/json.ts'
import type { Turn } from '../ports/agent.ts'

type Patch = readonly z.infer<typeof PatchOperation>[]

/** A piece of the answer's text: `yield text('Hello')`. */
export function text(piece: string): Draft {
  return { type: 'response.delta', delta: { type: 'text', text: piece } }
}

/** What an agent and its front end both see. */
export const state = {
  /** As the front end sent it with this turn; undefined where it has none. */
  given: (turn: Pick<Turn, 'config'>): unknown => uampIn(turn.config.extensions)['state'],
  /** The whole of it: `yield state.snapshot({ count: 0 })`. */
  snapshot: (snapshot: unknown): Draft => ({ type: 'x.state.snapshot', snapshot }),
  /** Changes of it, by RFC 6902. */
  patch: (delta: Patch): Draft => ({ type: 'x.state.delta', delta: [...delta] }),
  /** The same, worked out from what it was and what it is. */
  change: (before: object, after: object): Draft => state.patch(difference(before, after)),
}

/** Something in progress that is shown beside the answer: a plan, a search. `type` says how it is drawn. */
export const activity = {
  snapshot: (id: string, type: string, content: Slot): Draft => ({
    type: 'x.activity.snapshot',
    activity_id: id,
    activity_type: type,
    content,
  }),
  patch: (id: string, type: string, patch: Patch): Draft => ({
    type: 'x.activity.delta',
    activity_id: id,
    activity_type: type,
    patch: [...patch],
  }),
}

/** What `work` yields, as a step with a name: `yield* step('search', search(turn))`. */
export async function* step<T = void>(name: string, work: AsyncGenerator<Draft, T>): AsyncGenerator<Draft, T> {
  yield { type: 'x.step.started', name }
  const result = yield* work
  yield { type: 'x.step.finished', name }
  return result
}

function difference(before: object, after: object): Patch {
  return jsonPatch.compare(before, after) as Patch
}
