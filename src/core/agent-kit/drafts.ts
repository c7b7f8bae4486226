import jsonPatch from 'fast-json-patch'
import type * as z from 'zod/mini'
import type { Draft } from '../../protocol/events.ts'
import { uampIn, type Slot } from '../../protocol/json.ts'
import type { PatchOperation } from '../../protocol/extension-events.ts'
import type { Turn } from '../ports/agent.ts'

type Patch = readonly z.infer<typeof PatchOperation>[]

/** A piece of the answer's text: `yield text('Hello')`. */
export function text(piece: string): Draft {
  return { type: 'response.delta', delta: { type: 'text', text: piece } }
}

/** State that an agent shares with its front end. */
export const state = {
  /** The state that the front end sent with this turn; undefined if it sent none. */
  given: (turn: Pick<Turn, 'config'>): unknown => uampIn(turn.config.extensions)['state'],
  /** Sends the whole state: `yield state.snapshot({ count: 0 })`. */
  snapshot: (snapshot: unknown): Draft => ({ type: 'x.state.snapshot', snapshot }),
  /** Sends changes of the state as a JSON Patch (RFC 6902). */
  patch: (delta: Patch): Draft => ({ type: 'x.state.delta', delta: [...delta] }),
  /** Sends the difference between two states as a JSON Patch. */
  change: (before: object, after: object): Draft => state.patch(difference(before, after)),
}

/** Something in progress that a front end shows beside the answer, such as a plan or a search. `type` says how to draw it. */
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

/** Yields what `work` yields as a named step: `yield* step('search', search(turn))`. */
export async function* step<T = void>(name: string, work: AsyncGenerator<Draft, T>): AsyncGenerator<Draft, T> {
  yield { type: 'x.step.started', name }
  const result = yield* work
  yield { type: 'x.step.finished', name }
  return result
}

function difference(before: object, after: object): Patch {
  return jsonPatch.compare(before, after) as Patch
}
