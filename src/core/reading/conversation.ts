import { nextTurn } from '../basics/defer.ts'
import type { Principal } from '../ports/access.ts'
import type { Gateway, StoredTurn } from '../ports/session.ts'

/** As many responses of a conversation are looked at. */
const TURNS = 512

/** A response and those before it, the newest first, up to one whose input is the whole conversation. */
export async function* turnsBackFrom(
  gateway: Pick<Gateway, 'turn'>,
  newest: StoredTurn | undefined,
  principal: Principal,
): AsyncGenerator<StoredTurn, void> {
  let turn = newest
  for (let count = 0; turn && count < TURNS; count++) {
    yield turn
    // A large one took its time to be read: whoever else has something to do comes next.
    await nextTurn()
    turn = turn.whole || turn.parent === null ? undefined : await gateway.turn(turn.parent, principal)
  }
}

/** The responses of a conversation up to this one, the oldest first. */
export async function turnsUpTo(gateway: Gateway, last: string | null, principal: Principal): Promise<StoredTurn[]> {
  const turns: StoredTurn[] = []
  const newest = last === null ? undefined : await gateway.turn(last, principal)
  for await (const turn of turnsBackFrom(gateway, newest, principal)) turns.unshift(turn)
  return turns
}
