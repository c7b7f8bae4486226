import { turnsUpTo } from '../../core/reading/conversation.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { Gateway, Session, StoredResponse } from '../../core/ports/session.ts'
import { newIn } from './begun.ts'
import type { AcpSession } from './session.ts'

/** ACP, Loading Sessions: the whole conversation as updates. Gives the place in the log from which it goes on. */
export async function replay(gateway: Gateway, shown: AcpSession, principal: Principal): Promise<number> {
  const { turns, after } = await turnsOf(gateway, shown.session, principal)
  shown.retell()
  const { updates } = shown
  for (const { id, input, output, status } of turns) {
    const isOpen = status === 'open'
    // What is answered right now is told with its answer, from the log.
    updates.heard(isOpen ? input.slice(0, input.length - newIn(input).length) : input)
    if (!isOpen) {
      updates.begin(id)
      for (const item of output) updates.item(item)
      updates.calls.end(true)
    }
    await shown.flush()
  }
  return after
}

/** Where the response began that runs now. */
export async function openFrom(gateway: Gateway, { lastResponse: turn }: Session, principal: Principal): Promise<number | undefined> {
  const running = turn === null ? undefined : await gateway.response(turn, principal)
  return running?.status === 'open' ? running.after : undefined
}

/** Oldest first. Read again if another response began meanwhile, so that nothing is shown twice or left out. */
async function turnsOf(gateway: Gateway, session: Session, principal: Principal): Promise<{ turns: StoredResponse[]; after: number }> {
  for (;;) {
    const newest = session.lastResponse
    const turns = await turnsUpTo(gateway, newest, principal)
    if (session.lastResponse !== newest) continue
    const last = turns.at(-1)
    // What it says is in the log until it has ended.
    return { turns, after: last?.status === 'open' ? last.after : session.lastSeq }
  }
}
