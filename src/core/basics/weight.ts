import type { Message } from '../../protocol/message.ts'

/** Bytes that V8 spends on an object or a list itself, and on each member. Measured, rounded up. */
const OBJECT = 48
const MEMBER = 16

/**
 * Roughly the bytes that a JSON value takes in memory. Many small members take more than their text: `[{},{},…]` twenty times as
 * much. Stops at `limit`, so that the cost of weighing is bounded, too.
 */
export function weigh(value: unknown, limit = Infinity): number {
  if (typeof value === 'string') return MEMBER + value.length
  if (typeof value !== 'object' || value === null) return 0
  let sum = OBJECT
  if (Array.isArray(value)) {
    for (const member of value) {
      sum += MEMBER + weigh(member, limit - sum)
      if (sum > limit) return sum
    }
    return sum
  }
  for (const key in value) {
    sum += MEMBER + key.length + weigh((value as Record<string, unknown>)[key], limit - sum)
    if (sum > limit) return sum
  }
  return sum
}

/** The weight of messages. `content` and `tool_calls` of an agent's message share memory with its items, so they count once. */
export function weighMessages(messages: readonly Message[]): number {
  let sum = 0
  for (const message of messages) sum += weigh(message) - shared(message)
  return sum
}

/** The weight that a message shares with its items. A `content` joined of several texts is a new text, so it is not shared. */
function shared({ content, content_items, tool_calls }: Message): number {
  if (!content_items) return 0
  let sum = 0
  let calls = 0
  for (const item of content_items) {
    if (item.type === 'text' && item.text === content) sum = content.length
    else if (item.type === 'tool_call' && tool_calls?.[calls] === item.tool_call) calls++
  }
  for (let n = 0; n < calls; n++) sum += weigh(tool_calls?.[n])
  return sum
}

/** Roughly the bytes of a value's JSON text, up to just above `limit`. */
export function textLength(value: unknown, limit: number): number {
  if (typeof value === 'string') return value.length + 2
  if (typeof value !== 'object' || value === null) return String(value).length
  let sum = 2
  for (const key in value) {
    sum += (Array.isArray(value) ? 1 : key.length + 4) + textLength((value as Record<string, unknown>)[key], limit - sum)
    if (sum > limit) return sum
  }
  return sum
}
