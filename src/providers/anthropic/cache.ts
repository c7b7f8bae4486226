import { isRecord } from '../../protocol/json.ts'
import type { Block, Speech } from './blocks.ts'
import type { Traits } from './models.ts'

interface Cacheable {
  readonly messages: readonly Speech[]
  readonly system?: readonly Block[]
  readonly tools?: readonly object[]
}

/**
 * Prompt caching: one marker for the whole request, which the API sets on the last block that can have one. A `cache_control` with
 * a `type` replaces it, `{ tools, system, messages }` sets markers on the last block of each instead, and `null` turns it off.
 */
export function cached(body: Cacheable, wanted: unknown, { claude }: Traits): Readonly<Record<string, unknown>> {
  if (wanted === null || wanted === false || (wanted === undefined && !claude)) return { ...body }
  if (!isRecord(wanted)) return { ...body, cache_control: { type: 'ephemeral' } }
  if (wanted['type'] !== undefined) return { ...body, cache_control: wanted }
  const { messages, system, tools } = body
  const last = messages.at(-1)
  return {
    ...body,
    ...(tools && { tools: marked(tools, wanted['tools']) }),
    ...(system && { system: marked(system, wanted['system']) }),
    ...(last && { messages: [...messages.slice(0, -1), { ...last, content: marked(last.content, wanted['messages']) }] }),
  }
}

function marked(list: readonly object[], cache_control: unknown): readonly object[] {
  const last = list.at(-1)
  return last && isRecord(cache_control) ? [...list.slice(0, -1), { ...last, cache_control }] : list
}
