import * as z from 'zod/mini'
import type { ContentItem } from '../../protocol/content.ts'
import type { Draft } from '../../protocol/events.ts'
import { isRecord, type Slot } from '../../protocol/json.ts'

const text = z.nullish(z.string())
const Block = z.object({ type: z.string(), text, data: text, mimeType: text, uri: text, name: text, resource: z.optional(z.unknown()) })
const ToolCall = z.object({
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
const Plan = z.object({
  entries: z.array(
    z.object({ content: z.string(), status: z.enum(['pending', 'in_progress', 'completed']), priority: z.optional(z.string()) }),
  ),
})
const UsageUpdate = z.object({ cost: z.nullish(z.object({ amount: z.number(), currency: z.string() })) })

/** Updates of the other agent as events. What is not known, or not in its form, is left out: newer agents say more. */
export class Said {
  /** Calls that were told: with their arguments, or only kept until these are there. */
  readonly #calls = new Map<string, { told: boolean; known: Slot }>()
  #cost = 0;

  *take(update: Slot): Generator<Draft, void> {
    switch (update['sessionUpdate']) {
      case 'agent_message_chunk':
        return yield* message(update['content'])
      case 'agent_thought_chunk': {
        const block = parsed(Block, update['content'])
        if (block?.text) yield { type: 'thinking', content: block.text, is_delta: true }
        return
      }
      case 'tool_call':
      case 'tool_call_update': {
        const call = parsed(ToolCall, update)
        if (call) yield* this.#call(call)
        return
      }
      case 'plan': {
        const plan = parsed(Plan, update)
        if (plan) yield { type: 'x.plan', entries: plan.entries }
        return
      }
      case 'usage_update': {
        const { cost } = parsed(UsageUpdate, update) ?? {}
        if (cost && cost.amount > this.#cost) {
          yield { type: 'usage.delta', delta: { cost: { total_cost: cost.amount - this.#cost, currency: cost.currency } } }
          this.#cost = cost.amount
        }
        return
      }
      default:
    }
  }

  /** A call for which a permission is asked: it is told before the question. */
  *asked(update: unknown): Generator<Draft, void> {
    const call = parsed(ToolCall, update)
    if (call) yield* this.#announce(call, true)
  }

  *#call(call: ToolCall): Generator<Draft, void> {
    const over = call.status === 'completed' || call.status === 'failed'
    yield* this.#announce(call, over || call.status === 'in_progress')
    const { toolCallId: call_id, content, rawOutput } = call
    const known = this.#calls.get(call_id)?.known ?? {}
    const shown = textsIn(content)
    if (!over) {
      if (content && content.length > 0) {
        yield { type: 'response.delta', delta: { type: 'tool_progress', tool_progress: { call_id, text: shown, data: { acp: known } } } }
      }
      return
    }
    const failed = call.status === 'failed'
    const result = rawOutput === undefined ? shown : typeof rawOutput === 'string' ? rawOutput : JSON.stringify(rawOutput)
    const status = failed ? ('failed' as const) : ('completed' as const)
    yield {
      type: 'response.delta',
      delta: { type: 'tool_result', tool_result: { call_id, result, status, is_error: failed, data: { acp: known } } },
    }
    this.#calls.delete(call_id)
  }

  /** With its arguments where they are known; at the latest when something is done with it. */
  *#announce(call: ToolCall, now: boolean): Generator<Draft, void> {
    const { toolCallId: id, title, name, kind, content, locations, rawInput } = call
    const before = this.#calls.get(id) ?? { told: false, known: {} }
    const known: Slot = { ...before.known, ...defined({ title, name, kind, content, locations, rawInput }) }
    const told = before.told || now || known['rawInput'] !== undefined
    this.#calls.set(id, { told, known })
    if (before.told || !told) return
    const called =
      wordIn(known, ['name', 'title'], 'tool')
        .replaceAll(/[^a-zA-Z0-9_-]+/g, '_')
        .slice(0, 64) || 'tool'
    yield {
      type: 'response.delta',
      delta: { type: 'tool_call', tool_call: { id, name: called, arguments: JSON.stringify(known['rawInput'] ?? {}) } },
    }
  }
}

function* message(content: unknown): Generator<Draft, void> {
  const block = parsed(Block, content)
  if (!block) return
  const item = itemOf(block)
  if (item?.type === 'text') yield { type: 'response.delta', delta: { type: 'text', text: item.text } }
  else if (item && item.type !== 'tool_call' && item.type !== 'tool_result') yield { type: 'response.delta', delta: item }
}

function itemOf({ type, text: said, data, mimeType, uri, name, resource }: z.infer<typeof Block>): ContentItem | undefined {
  const format = mimeType?.slice(mimeType.indexOf('/') + 1)
  const how = format === undefined ? {} : { format }
  if (type === 'text' && said) return { type: 'text', text: said }
  if (type === 'image' && data) return { type: 'image', image: data, ...how }
  if (type === 'audio' && data) return { type: 'audio', audio: data, content_id: crypto.randomUUID(), ...how }
  if (type === 'resource_link' && uri) return { type: 'text', text: `[${name ?? uri}](${uri})` }
  const held = isRecord(resource) ? resource : {}
  if (typeof held['text'] === 'string') return { type: 'text', text: held['text'] }
  if (typeof held['blob'] !== 'string') return undefined
  const filename = wordIn(held, ['uri'], 'file').split('/').at(-1) ?? 'file'
  return { type: 'file', file: held['blob'], filename, mime_type: wordIn(held, ['mimeType'], 'application/octet-stream') }
}

/** The first of these fields that is a text. */
function wordIn(fields: Slot, names: readonly string[], otherwise: string): string {
  const word = names.map((name) => fields[name]).find((value) => typeof value === 'string' && value !== '')
  return typeof word === 'string' ? word : otherwise
}

/** What a call shows, in words. */
function textsIn(content: readonly unknown[] | null | undefined): string {
  return (content ?? [])
    .flatMap((part) => {
      if (!isRecord(part)) return []
      if (part['type'] === 'diff') return [`${String(part['path'])} changed`]
      const inner = part['content']
      return isRecord(inner) && typeof inner['text'] === 'string' ? [inner['text']] : []
    })
    .join('\n')
}

function defined(fields: Slot): Slot {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null))
}

function parsed<T extends z.ZodMiniType>(schema: T, value: unknown): z.output<T> | undefined {
  const result = z.safeParse(schema, value)
  return result.success ? result.data : undefined
}
