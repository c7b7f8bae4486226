import type { EventOf } from '../../protocol/events.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Slot } from '../../protocol/json.ts'
import { parseParams } from '../../wire/json-rpc.ts'
import { PermissionAnswer } from './schema.ts'
import { shownCall } from './tool-calls.ts'

interface Decision {
  readonly approved: boolean
  readonly option?: string
  readonly reason?: string
  /** Counts for every call of this tool. */
  readonly always?: boolean
}

const USUAL = [
  { optionId: 'allow', name: 'Allow', kind: 'allow_once' },
  { optionId: 'allow-always', name: 'Always allow', kind: 'allow_always' },
  { optionId: 'reject', name: 'Reject', kind: 'reject_once' },
]
type Ask = (params: Slot, signal: AbortSignal) => Promise<unknown>

const KINDS = new Set(['allow_once', 'allow_always', 'reject_once', 'reject_always'])

/** Questions for permission that are open, and what the user has allowed for good. */
export class Permissions {
  /** Tools that may always run, as long as the session is open here. */
  readonly #allowed = new Set<string>()
  readonly #asked = new Map<string, AbortController>()

  /** `signal`: the response has ended. `undefined`: nobody waits for the decision any more. */
  async decide(event: EventOf<'x.approval.request'>, signal: AbortSignal, ask: Ask): Promise<Decision | undefined> {
    const { approval_id, tool_call } = event
    const name = tool_call?.name ?? ''
    if (this.#allowed.has(name)) return { approved: true }
    const recalled = new AbortController()
    const either = AbortSignal.any([signal, recalled.signal])
    this.#asked.set(approval_id, recalled)
    const decision = await askPermission(event, (params) => ask(params, either))
    this.#asked.delete(approval_id)
    if (either.aborted) return undefined
    if (decision.always) this.#allowed.add(name)
    return decision
  }

  /** Takes back the questions that another client has decided. */
  recall(isDecided: (id: string) => boolean): void {
    for (const [id, asked] of this.#asked) if (isDecided(id)) asked.abort()
  }
}

/** ACP, Requesting Permission. A client that cannot answer has not allowed it. */
async function askPermission(event: EventOf<'x.approval.request'>, ask: (params: Slot) => Promise<unknown>): Promise<Decision> {
  const { approval_id, message, tool_call, options } = event
  const usual = options === undefined || options.length === 0
  const offered = usual
    ? USUAL.filter(({ kind }) => tool_call !== undefined || kind !== 'allow_always')
    : options.map(({ id, label, kind }) => ({ optionId: id, name: label, kind: kindOf(id, kind) }))
  // The client goes on showing the call; a question without one is shown as a call of its own.
  const toolCall = tool_call
    ? { ...shownCall(tool_call), title: message }
    : { toolCallId: approval_id, title: message, kind: 'other', status: 'pending' }
  try {
    const { outcome } = parseParams(PermissionAnswer, await ask({ toolCall, options: offered }))
    if (outcome.outcome === 'cancelled') return { approved: false, reason: 'cancelled' }
    const chosen = offered.find(({ optionId }) => optionId === outcome.optionId)
    if (!chosen) return { approved: false, reason: `There is no option "${outcome.optionId}"` }
    const approved = chosen.kind.startsWith('allow')
    return { approved, ...(!usual && { option: chosen.optionId }), always: usual && chosen.kind === 'allow_always' }
  } catch (thrown) {
    return { approved: false, reason: UampError.from(thrown).code === 'internal' ? 'approval_unavailable' : 'cancelled' }
  }
}

/** Agents of other protocols may have other names for the kinds. */
function kindOf(id: string, kind: string | undefined): string {
  if (kind !== undefined && KINDS.has(kind)) return kind
  return /^(reject|deny|no|cancel|decline)/i.test(kind ?? id) ? 'reject_once' : 'allow_once'
}
