import { fieldsOf, isRecord } from '../../protocol/json.ts'
import type { Speech } from './blocks.ts'
import type { Traits } from './models.ts'

/** Tokens for thoughts, for models that want a number. */
const BUDGETS: Readonly<Record<string, number>> = { minimal: 1_024, low: 2_048, medium: 8_192, high: 16_384, xhigh: 32_768, max: 32_768 }
const EFFORTS: Readonly<Record<string, string>> = { minimal: 'low', low: 'low', medium: 'medium', high: 'high', max: 'max' }

/** `thinking: true`, as the example of UAMP events §5.1 has it, is a switch, not Anthropic's own object. */
const SWITCH: ReadonlyMap<unknown, string> = new Map([
  [true, 'medium'],
  [false, 'none'],
])

export interface Thinking {
  readonly thinking?: Readonly<Record<string, unknown>> | undefined
  readonly effort?: string | undefined
}

interface Wanted {
  readonly own: Readonly<Record<string, unknown>>
  readonly effort: string | undefined
}

/** How much to think: in Anthropic's own words if the client used them, else by the effort that OpenAI's clients name. */
export function thinkingFor(traits: Traits, { own, effort }: Wanted): Thinking {
  const said = fieldsOf(own['output_config'])['effort'] ?? own['effort']
  const wanted = typeof said === 'string' ? said : (effort ?? SWITCH.get(own['thinking']))
  const known = wanted === 'xhigh' && traits.xhigh ? 'xhigh' : (EFFORTS[wanted ?? ''] ?? 'high')
  if (isRecord(own['thinking'])) {
    return { thinking: own['thinking'], effort: wanted !== undefined && traits.thinking === 'adaptive' ? known : undefined }
  }
  if (wanted === undefined || traits.thinking === 'none') return {}
  if (wanted === 'none') {
    if (traits.thinking === 'budget') return {}
    return traits.alwaysThinks ? { effort: 'low' } : { thinking: { type: 'disabled' } }
  }
  // Newer models leave out the text of their thoughts unless the request asks for it.
  if (traits.thinking === 'adaptive') return { thinking: { type: 'adaptive', display: 'summarized' }, effort: known }
  return { thinking: { type: 'enabled', budget_tokens: BUDGETS[wanted] ?? 8_192 } }
}

export function thinks({ thinking }: Thinking): boolean {
  return thinking !== undefined && thinking['type'] !== 'disabled'
}

/** With a budget, results must follow thoughts. These are missing if another model made the call, or the client dropped them. */
export function thoughtsAreLost(speeches: readonly Speech[]): boolean {
  const [before, last] = speeches.slice(-2)
  if (last?.role !== 'user' || last.content[0]?.type !== 'tool_result') return false
  const first = before?.content[0]?.type
  return first !== 'thinking' && first !== 'redacted_thinking'
}
