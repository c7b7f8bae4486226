import type { Principal } from './ports/access.ts'
import type { Gateway, StoredTurn } from './ports/session.ts'

/** As many responses of a conversation are looked at. */
const TURNS = 512

/** The responses of a conversation up to this one, oldest first, from the first that counts. */
export async function turnsUpTo(gateway: Gateway, last: string | null, principal: Principal): Promise<StoredTurn[]> {
  const turns: StoredTurn[] = []
  for (let id = last; id !== null && turns.length < TURNS;) {
    const turn: StoredTurn | undefined = await gateway.turn(id, principal)
    if (!turn) break
    turns.unshift(turn)
    id = turn.whole ? null : turn.parent
  }
  return turns
}
