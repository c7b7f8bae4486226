import { nextTurn } from '../basics/defer.ts'
import type { Principal } from '../ports/access.ts'
import type { Gateway, StoredResponse } from '../ports/session.ts'

/** As many responses of a conversation are looked at. */
const TURNS = 512

/** A response and those before it, the newest first, up to one whose input is the whole conversation. */
export async function* turnsBackFrom(
  gateway: Pick<Gateway, 'response'>,
  newest: StoredResponse | undefined,
  principal: Principal,
): AsyncGenerator<StoredResponse, void> {
  let turn = newest
  for (let count = 0; turn && count < TURNS; count++) {
    yield turn
    // A large one took its time to be read: whoever else has something to do comes next.
    await nextTurn()
    turn = turn.whole || turn.parent === null ? undefined : await gateway.response(turn.parent, principal)
  }
}

/** The responses of a conversation up to this one, the oldest first. */
export async function turnsUpTo(gateway: Gateway, last: string | null, principal: Principal): Promise<StoredResponse[]> {
  const turns: StoredResponse[] = []
  const newest = last === null ? undefined : await gateway.response(last, principal)
  for await (const turn of turnsBackFrom(gateway, newest, principal)) turns.unshift(turn)
  return turns
}
