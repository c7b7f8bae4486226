import * as z from 'zod/mini'
import type { Turn } from '../../core/ports/agent.ts'
import { isRecord, type Slot } from '../../protocol/json.ts'

export const Option = z.object({ optionId: z.string(), name: z.string(), kind: z.string() })
export type Option = z.infer<typeof Option>

const CANCELLED = { outcome: { outcome: 'cancelled' } }

/** Puts a question for permission to our client. Whoever cannot answer it has not given it. */
export async function decide(turn: Turn, toolCall: unknown, options: readonly Option[]): Promise<Slot> {
  const { toolCallId, title, name, rawInput } = isRecord(toolCall) ? toolCall : {}
  const call =
    typeof toolCallId === 'string'
      ? {
          id: toolCallId,
          name: [name, title].find((each) => typeof each === 'string') ?? 'tool',
          arguments: JSON.stringify(rawInput ?? {}),
        }
      : undefined
  try {
    const answer = await turn.ask('x.approval.request', {
      message: typeof title === 'string' ? title : 'The agent asks for permission',
      ...(call && { tool_call: call }),
      options: options.map(({ optionId, name: label, kind }) => ({ id: optionId, label, kind })),
    })
    const chosen = options.find(({ optionId }) => optionId === answer.option) ?? usual(options, answer.approved)
    // An answer that contradicts itself is no permission.
    if (!chosen || chosen.kind.startsWith('allow') !== answer.approved) return CANCELLED
    return { outcome: { outcome: 'selected', optionId: chosen.optionId } }
  } catch {
    return CANCELLED
  }
}

/** Once, if that is offered: for good is not for us to say. */
function usual(options: readonly Option[], approved: boolean): Option | undefined {
  const kind = approved ? 'allow' : 'reject'
  return (
    options.find((option) => option.kind === `${kind}_once`) ??
    (approved ? undefined : options.find((option) => option.kind.startsWith(kind)))
  )
}
