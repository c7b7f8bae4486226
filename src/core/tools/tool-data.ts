import type { ContentItem } from '../../protocol/content.ts'
import type { Message } from '../../protocol/message.ts'

type Change = (data: unknown) => unknown

/** Changes the `data` in tool results: the only part of a conversation in which anybody may choose the fields. */
export function withData(messages: readonly Message[], change: Change): readonly Message[] {
  return mapped(messages, (message) => {
    const { content_items: items } = message
    const changed = items && withDataIn(items, change)
    return changed === items ? message : { ...message, content_items: [...(changed ?? [])] }
  })
}

/** The same for content items, which tool results may nest. */
export function withDataIn(items: readonly ContentItem[], change: Change): readonly ContentItem[] {
  return mapped(items, (item) => {
    if (item.type !== 'tool_result') return item
    const { data, content_items: inside } = item.tool_result
    const clean = data === undefined ? data : change(data)
    const within = inside && withDataIn(inside, change)
    if (clean === data && within === inside) return item
    return { ...item, tool_result: { ...item.tool_result, data: clean, ...(within && { content_items: [...within] }) } }
  })
}

/** Returns the same list if nothing changes, as in most messages. */
function mapped<T>(list: readonly T[], change: (item: T) => T): readonly T[] {
  let changed: T[] | undefined
  for (const [index, item] of list.entries()) {
    const made = change(item)
    if (made !== item) (changed ??= [...list])[index] = made
  }
  return changed ?? list
}
