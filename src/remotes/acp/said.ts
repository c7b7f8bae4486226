import * as z from 'zod/mini'
import type { ToolCall as Called, ToolResult } from '../../protocol/content.ts'
import type { Draft } from '../../protocol/events.ts'
import { FIRST_EXPLAINED } from '../../protocol/explain.ts'
import { Plan } from '../../protocol/extension-events.ts'
import { fieldsOf, isRecord, recordsIn, type Slot } from '../../protocol/json.ts'
import { ContentBlock, toItem } from '../../wire/acp/blocks.ts'
import { present } from '../../wire/fields.ts'

const text = z.nullish(z.string())
/** ACP, Tool Calls: a call, or a change of one. */
export const ToolCall = z.object({
  toolCallId: z.string(),
  title: text,
  name: text,
  kind: text,
  status: text,
  content: z.nullish(z.array(z.unknown())),
  locations: z.nullish(z.array(z.unknown())),
  rawInput: z.optional(z.unknown()),
  rawOutput: z.optional(z.unknown()),
})
type ToolCall = z.infer<typeof ToolCall>
type Known = Partial<ToolCall>
const Cost = z.object({ amount: z.number(), currency: z.string() })

/** Updates of the other agent as events. Unknown or malformed updates are left out, as newer agents may send more. */
export class Said {
  /** All text so far. */
  text = ''
  /** What is known of the running calls, and whether our client was told of them. */
  readonly #calls = new Map<string, { readonly told: boolean; readonly known: Known }>()
  readonly #denied = new Set<string>();

  /** `spent`: what the session has cost so far. */
  *take(update: Slot, spent: { cost: number }): Generator<Draft, void> {
    switch (update['sessionUpdate']) {
      case 'agent_message_chunk': {
        const { data: block } = z.safeParse(ContentBlock, update['content'], FIRST_EXPLAINED)
        const delta = block && toItem(block)
        if (!delta || (delta.type === 'text' && delta.text === '')) return
        if (delta.type === 'text') this.text += delta.text
        return yield { type: 'response.delta', delta }
      }
      case 'agent_thought_chunk': {
        const { text: thought } = fieldsOf(update['content'])
        if (typeof thought === 'string' && thought !== '') yield { type: 'thinking', content: thought, is_delta: true }
        return
      }
      case 'tool_call':
      case 'tool_call_update': {
        const { data: call } = z.safeParse(ToolCall, update, FIRST_EXPLAINED)
        if (call) yield* this.#call(call)
        return
      }
      case 'plan': {
        const { data: entries } = z.safeParse(Plan.shape.entries, update['entries'], FIRST_EXPLAINED)
        if (entries) yield { type: 'x.plan', entries }
        return
      }
      case 'usage_update': {
        const { data: cost } = z.safeParse(Cost, update['cost'], FIRST_EXPLAINED)
        if (!cost) return
        // The sum of the session. A session that was loaded again may count from zero.
        const before = cost.amount < spent.cost ? 0 : spent.cost
        spent.cost = cost.amount
        if (cost.amount > before)
          yield { type: 'usage.delta', delta: { cost: { total_cost: cost.amount - before, currency: cost.currency } } }
        return
      }
      default:
    }
  }

  /** Tells of a call once its arguments are known, or `now`, when something happens to it. */
  *announce(call: ToolCall, now: boolean): Generator<Draft, void> {
    const { toolCallId: id, status: _, rawOutput: __, ...about } = call
    const before = this.#calls.get(id)
    const known: Known = { ...before?.known, ...Object.fromEntries(Object.entries(about).filter(([, value]) => value != null)) }
    const told = before?.told || now || known.rawInput !== undefined
    this.#calls.set(id, { told, known })
    if (before?.told || !told) return
    const tool_call = { id, name: nameOf(known), arguments: JSON.stringify(known.rawInput ?? {}) }
    yield { type: 'response.delta', delta: { type: 'tool_call', tool_call } }
    // Names of tools allow few characters, so the title and the kind come as progress.
    if (known.title != null || known.kind != null) yield this.#progress(id, known.title ?? tool_call.name)
  }

  /** Tells of a call that the agent asks permission for, so that our client knows what the question is about. */
  *question(call: ToolCall): Generator<Draft, void> {
    const told = this.#calls.get(call.toolCallId)?.told
    yield* this.announce(call, true)
    if (told && call.content?.length) yield this.#progress(call.toolCallId, textsIn(call.content))
  }

  /** A call with all that is known of it: a question for permission may hold no more than its id. */
  whole({ toolCallId: id }: ToolCall): Called {
    const { known = {} } = this.#calls.get(id) ?? {}
    const { rawInput, locations, content } = known
    // Some agents show only what a call will change, and where.
    const shown = isEmpty(rawInput) ? present({ locations, content }) : rawInput
    return { id, name: nameOf(known), arguments: JSON.stringify(shown) }
  }

  deny({ toolCallId }: Pick<ToolCall, 'toolCallId'>): void {
    this.#denied.add(toolCallId)
  }

  /** A call that was denied has failed, even if the agent does not say so. */
  *end(): Generator<Draft, void> {
    for (const call_id of this.#denied) {
      if (!this.#calls.has(call_id)) continue
      const tool_result: ToolResult = { call_id, result: 'The user did not allow it', status: 'failed', is_error: true }
      yield { type: 'response.delta', delta: { type: 'tool_result', tool_result } }
    }
  }

  #progress(call_id: string, text: string): Draft {
    const { content = [], ...known } = this.#calls.get(call_id)?.known ?? {}
    return {
      type: 'response.delta',
      delta: { type: 'tool_progress', tool_progress: { call_id, text, data: { acp: { ...known, content } } } },
    }
  }

  *#call(call: ToolCall): Generator<Draft, void> {
    const { toolCallId: call_id, content, status, rawOutput } = call
    const over = status === 'completed' || status === 'failed'
    yield* this.announce(call, over || status === 'in_progress')
    const text = textsIn(content)
    if (!over) {
      if (content?.length) yield this.#progress(call_id, text)
      return
    }
    const data = { acp: this.#calls.get(call_id)?.known }
    const output = typeof rawOutput === 'string' ? rawOutput : JSON.stringify(rawOutput)
    const tool_result: ToolResult = { call_id, result: output ?? text, status, is_error: status === 'failed', data }
    yield { type: 'response.delta', delta: { type: 'tool_result', tool_result } }
    this.#calls.delete(call_id)
  }
}

/** Names of tools allow few characters. */
function nameOf({ name, title }: Known): string {
  return (name || title || 'tool').replaceAll(/[^a-zA-Z0-9_-]+/g, '_').slice(0, 64)
}

function isEmpty(input: unknown): boolean {
  return input == null || (isRecord(input) && Object.keys(input).length === 0)
}

/** The content of a call, in words. */
function textsIn(content: unknown): string {
  const texts = recordsIn(content).map(({ type, path, content: inner }) =>
    type === 'diff' ? `${String(path)} changed` : fieldsOf(inner)['text'],
  )
  return texts.filter((text) => typeof text === 'string').join('\n')
}
