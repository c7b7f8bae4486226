import { goesWith, storeKey } from '../../core/basics/store-key.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { KeptResponse, TurnKeeper } from '../../core/ports/keeper.ts'
import type { Place, SetOperation } from '../../core/ports/store.ts'
import type { EventOf } from '../../protocol/events.ts'
import type { Json } from '../../protocol/json.ts'
import type { ChunkHead } from './chunks.ts'
import type { Shape } from './request.ts'
import { unpaid } from '../../core/secrets/sealing.ts'

/** The name of the keeper, for recovery: a completion that a crash cut off was never told, and is not kept. */
export const KEEPER = 'completion'

export type Metadata = Readonly<Record<string, string>>

/** What is kept of a choice beside its response. */
interface KeptChoice {
  readonly session: string
  readonly response: string
  readonly end: Pick<EventOf<'response.done'>, 'signature'> & Pick<EventOf<'response.done'>['response'], 'status' | 'extensions'>
}

/** What is kept of a completion, with its first choice. */
export interface KeptCompletion extends KeptChoice {
  readonly head: ChunkHead
  readonly shape: Pick<Shape, 'legacy' | 'audio'>
  readonly choices: number
  readonly metadata: Metadata
}

export interface Keeping extends Pick<KeptCompletion, 'head' | 'shape' | 'choices' | 'metadata'> {
  readonly index: number
}

type Owner = Pick<KeptResponse, 'tenant' | 'owner'>

export function ownerOf({ tenant, id }: Principal): Owner {
  return { tenant, owner: id }
}

export function choiceKey({ tenant, owner }: Owner, id: string, index: number): string {
  return storeKey(tenant, 'completion', owner, id, String(index))
}

/** The index of a principal's completions. Their ids sort by time. */
export function listOf({ tenant, owner }: Owner): string {
  return storeKey(tenant, 'completions', owner)
}

/** The record of a completion. It goes with the session of its first choice, as retention and deletion remove that. */
export function setCompletion(owner: Owner, kept: KeptCompletion): SetOperation {
  const index: Place[] = [
    [goesWith(owner.tenant, kept.session), ''],
    [listOf(owner), kept.head.id],
  ]
  // Metadata is given back to whoever asks for it; a payment in it must not lie in the store.
  const value = { ...kept, metadata: unpaid(kept.metadata) } as unknown as Json
  return { op: 'set', key: choiceKey(owner, kept.head.id, 0), value, options: { index } }
}

/** Keeps one choice, in the transaction that ends its response. */
export function completionKeeper({ index, head, shape: { legacy, audio }, choices, metadata }: Keeping): TurnKeeper {
  // What ends with a question for money has no answer to look up.
  let isRefused = false
  return {
    name: KEEPER,
    opened: () => () => [],
    see: ({ type }) => void (isRefused ||= type === 'payment.required'),
    closed: (turn, end) => {
      if (end.type !== 'response.done' || isRefused) return []
      const { status, extensions } = end.response
      const choice: KeptChoice = { session: turn.session, response: turn.id, end: { status, extensions, signature: end.signature } }
      if (index === 0) return [setCompletion(turn, { ...choice, head, shape: { legacy, audio }, choices, metadata })]
      const places: Place[] = [[goesWith(turn.tenant, turn.session), '']]
      return [{ op: 'set', key: choiceKey(turn, head.id, index), value: choice as unknown as Json, options: { index: places } }]
    },
  }
}
