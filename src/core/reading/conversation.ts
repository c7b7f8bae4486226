import { nextTurn } from '../basics/time.ts'
import type { Principal } from '../ports/access.ts'
import type { Gateway, StoredResponse } from '../ports/session.ts'

/** The most responses of a conversation that are read. */
export const TURNS = 512

/** Yields a response and those before it, newest first, up to one whose input is the whole conversation. */
export async function* turnsBackFrom(
  gateway: Pick<Gateway, 'response'>,
  newest: StoredResponse | undefined,
  principal: Principal,
): AsyncGenerator<StoredResponse, void> {
  let turn = newest
  for (let count = 0; turn && count < TURNS; count++) {
    yield turn
    // Reading a large response blocks the event loop for a while, so let others run before the next one.
    await nextTurn()
    turn = turn.whole || turn.parent === null ? undefined : await gateway.response(turn.parent, principal)
  }
}

/** The responses of a conversation up to this one, oldest first. */
export async function turnsUpTo(gateway: Gateway, last: string | null, principal: Principal): Promise<StoredResponse[]> {
  const turns: StoredResponse[] = []
  const newest = last === null ? undefined : await gateway.response(last, principal)
  for await (const turn of turnsBackFrom(gateway, newest, principal)) turns.unshift(turn)
  return turns
}
