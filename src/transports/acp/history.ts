import { turnsUpTo } from '../../core/reading/conversation.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { Batch, Gateway, Session, StoredResponse } from '../../core/ports/session.ts'
import { fieldsOf } from '../../protocol/json.ts'
import type { Message } from '../../protocol/message.ts'
import { promptOf, type Prompting } from './prompt.ts'
import type { AcpSession } from './session.ts'

const CREATED = new Set(['response.created'])

/** ACP, Loading Sessions: tells the whole conversation as updates. Returns the place in the log where it goes on. */
export async function replay(gateway: Gateway, shown: AcpSession, principal: Principal): Promise<number> {
  const { turns, after } = await turnsOf(gateway, shown.session, principal)
  shown.retell()
  const { updates } = shown
  for (const { id, input, output, status } of turns) {
    const isOpen = status === 'open'
    // The prompt of a running response is told with its answer, from the log.
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

/** Where in the log the running response began. */
export async function openFrom(gateway: Gateway, { lastResponse: turn }: Session, principal: Principal): Promise<number | undefined> {
  const running = turn === null ? undefined : await gateway.response(turn, principal)
  return running?.status === 'open' ? running.after : undefined
}

/** The oldest first. Reads again if another response began meanwhile, so that nothing is shown twice or left out. */
async function turnsOf(gateway: Gateway, session: Session, principal: Principal): Promise<{ turns: StoredResponse[]; after: number }> {
  for (;;) {
    const newest = session.lastResponse
    const turns = await turnsUpTo(gateway, newest, principal)
    if (session.lastResponse !== newest) continue
    const last = turns.at(-1)
    // The output of an open response is only in the log.
    return { turns, after: last?.status === 'open' ? last.after : session.lastSeq }
  }
}

/** Responses that began in one batch and that another client asked for. */
export class Begun {
  readonly #turns = new Map<string, StoredResponse>()

  /** `undefined`: none began. */
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

  /** Whether it was asked over ACP. Questions of a response that another protocol asked for are answered there. */
  isPrompt(id: string | undefined): boolean {
    return isPrompt((id !== undefined && this.#turns.get(id)) || {})
  }
}

function isPrompt({ config }: Pick<Partial<StoredResponse>, 'config'>): boolean {
  return fieldsOf(config?.extensions?.['acp'])['prompt'] === true
}

/** True while the running response waits for money. */
export function isUnpaid({ asking }: Pick<Session, 'asking'>): boolean {
  return asking.some(({ type }) => type === 'payment.required')
}

/** The prompt of a connection that was lost, if its response waits for money: another connection may bring that. */
export async function unpaidPrompt(gateway: Gateway, session: Session): Promise<Prompting | undefined> {
  const { lastResponse: id, owner } = session
  if (id === null || !isUnpaid(session)) return undefined
  const turn = await gateway.response(id, owner)
  // Meanwhile somebody else may have paid, or the response is over.
  if (!turn || !isPrompt(turn) || session.lastResponse !== id || !isUnpaid(session)) return undefined
  return promptOf(id, newIn(turn.input))
}

/** The new part of an input: some clients send the whole conversation each time. */
function newIn(input: readonly Message[] = []): readonly Message[] {
  return input.slice(input.findLastIndex(({ role }) => role === 'assistant') + 1)
}
