import type { Principal } from '../../core/ports/access.ts'
import type { Gateway, StoredResponse } from '../../core/ports/session.ts'
import type { Host } from '../../core/ports/transport.ts'
import { ResponseRun } from '../../core/reading/response-run.ts'
import { invalid } from '../../wire/parse.ts'
import type { Given } from './input.ts'
import type { Asking, Begun, Caller } from './start.ts'

/** Responses of one turn that are looked through for the one that took an answer. */
const LOOKED_THROUGH = 512

/**
 * The response that these approvals began: a client that did not hear of it asks again, and two may answer at once. Undefined if there
 * is none, or if it came to nothing: then the question may be put and answered again. Throws if it took other answers, as what was
 * decided once must not be done a second time, or undone.
 */
export async function takenBefore(
  gateway: Pick<Gateway, 'response'>,
  asking: Asking & { readonly principal: Principal },
  answers: readonly Given[],
): Promise<StoredResponse | undefined> {
  if (!answers.some(({ type }) => type === 'x.approval.response')) return undefined
  const taken = await nextOf(gateway, asking)
  if (!taken || taken.status === 'failed' || taken.status === 'cancelled') return undefined
  if (answers.every((answer) => taken.given.some((before) => isSame(before, answer)))) return taken
  throw invalid(`The approval request was answered already, and otherwise, by response '${taken.id}'.`, 'input', 'invalid_value')
}

/** Gives the client the response that its answers began before. */
export function join(host: Host, caller: Caller, { session, taken }: Pick<Asking, 'session'> & { readonly taken: StoredResponse }): Begun {
  const { id, agent, config, after, endedAt } = taken
  const run = new ResponseRun(host, { session, reader: session.read({ after, extensions: 'all' }), response: id })
  run.stopWith(caller)
  return { run, about: { id, agent, config, endedAt: () => endedAt ?? host.now() } }
}

/** The response of the same session that followed the one that asked. */
async function nextOf(
  gateway: Pick<Gateway, 'response'>,
  { session, turn, principal }: Asking & { readonly principal: Principal },
): Promise<StoredResponse | undefined> {
  let id = session.lastResponse
  for (let looked = 0; id !== null && id !== turn.id && looked < LOOKED_THROUGH; looked++) {
    const response: StoredResponse | undefined = await gateway.response(id, principal)
    if (response?.parent === turn.id) return response
    id = response?.parent ?? null
  }
  return undefined
}

function isSame(before: Given, answer: Given): boolean {
  const [{ event_id: _, ...one }, { event_id: __, ...other }] = [before, answer]
  const fields = new Set([...Object.keys(one), ...Object.keys(other)])
  const valueOf = (of: object, field: string): string | undefined => JSON.stringify((of as Record<string, unknown>)[field])
  return [...fields].every((field) => valueOf(one, field) === valueOf(other, field))
}
