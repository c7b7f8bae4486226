import { turnsUpTo } from '../../core/conversation.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { Gateway, Session, StoredTurn } from '../../core/ports/session.ts'
import { itemsOf } from '../../protocol/message.ts'
import type { AcpSession } from './session.ts'

/** ACP, Loading Sessions: the whole conversation as updates. Gives the place in the log from which it goes on. */
export async function replay(gateway: Gateway, shown: AcpSession, principal: Principal): Promise<number> {
  const { turns, after } = await turnsOf(gateway, shown.session, principal)
  shown.retell()
  const { updates } = shown
  for (const { id, input, output, status } of turns) {
    for (const message of input) {
      if (message.role === 'user') for (const item of itemsOf(message)) updates.said(item)
      if (message.role === 'assistant') for (const item of itemsOf(message)) updates.item(item)
    }
    updates.begin(id)
    for (const item of output) updates.item(item)
    if (status !== 'open') updates.calls.end(true)
    await shown.flush()
  }
  return after
}

/** Oldest first. Read again if another response began meanwhile, so that nothing is shown twice or left out. */
async function turnsOf(gateway: Gateway, session: Session, principal: Principal): Promise<{ turns: StoredTurn[]; after: number }> {
  for (;;) {
    const newest = session.turn
    const turns = await turnsUpTo(gateway, newest, principal)
    if (session.turn !== newest) continue
    const last = turns.at(-1)
    // What it says is in the log until it has ended.
    return { turns, after: last?.status === 'open' ? last.after : session.head }
  }
}
