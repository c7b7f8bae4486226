import * as z from 'zod/mini'
import type { ClientAnswers } from '../../upstream/client-answers.ts'
import type { ToolCall as Called } from '../../protocol/content.ts'
import type { Slot } from '../../protocol/json.ts'
import { ToolCall } from './said.ts'

const Option = z.object({ optionId: z.string(), name: z.string(), kind: z.string() })
type Option = z.infer<typeof Option>

/** ACP, Tool Calls: Requesting Permission. */
export const Permission = z.object({ sessionId: z.string(), toolCall: ToolCall, options: z.array(Option) })
export type Permission = z.infer<typeof Permission>

export const CANCELLED = { outcome: { outcome: 'cancelled' } }

/** Asks our client for permission to run a call. `undefined`: the client did not allow it, or could not answer. */
export async function decide(
  { toolCall: { title }, options }: Permission,
  tool_call: Called,
  client: ClientAnswers,
): Promise<Option | undefined> {
  const message = title ?? 'The agent asks for permission'
  const offered = options.map(({ optionId, name: label, kind }) => ({ id: optionId, label, kind }))
  const answer = await client.decision({ message, tool_call, options: offered }).catch(() => undefined)
  const chosen = answer && (options.find(({ optionId }) => optionId === answer.option) ?? usual(options, answer.approved))
  // An answer whose option contradicts it is no permission.
  return chosen && allows(chosen) === answer.approved ? chosen : undefined
}

export function allows(chosen: Option | undefined): boolean {
  return chosen?.kind.startsWith('allow') ?? false
}

export function outcomeOf(chosen: Option | undefined): Slot {
  return chosen ? { outcome: { outcome: 'selected', optionId: chosen.optionId } } : CANCELLED
}

/** The option for this once: only the user may decide for good. */
function usual(options: readonly Option[], approved: boolean): Option | undefined {
  const once = options.find(({ kind }) => kind === (approved ? 'allow_once' : 'reject_once'))
  return once ?? (approved ? undefined : options.find(({ kind }) => kind.startsWith('reject')))
}
