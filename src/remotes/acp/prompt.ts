import { createHash } from 'node:crypto'
import type { Turn } from '../../core/ports/agent.ts'
import type { ContentItem } from '../../protocol/content.ts'
import type { Slot } from '../../protocol/json.ts'
import { textOf, type Message } from '../../protocol/message.ts'
import { mediaSource } from '../../wire/media-source.ts'

/** A turn as the other agent is asked: what is new, and what came before it. */
export interface Talk {
  readonly before: readonly Message[]
  readonly now: readonly Message[]
}

/** Messages without an answer that are looked through for the last that was heard. */
const UNANSWERED = 16

/** How a turn may be put: the first of them whose beginning was heard before, else the last, which has all that was not answered. */
export function talksOf({ messages }: Turn): readonly Talk[] {
  const last = Math.max(
    0,
    messages.findLastIndex(({ role }) => role === 'user'),
  )
  const talks: Talk[] = []
  for (let at = last; at >= 0 && talks.length < UNANSWERED; at--) {
    talks.push({ before: messages.slice(0, at), now: messages.slice(at, last + 1) })
    if (messages[at - 1]?.role !== 'user') break
  }
  return talks
}

/** Under what a session over there is kept: by our session, or by what was said, for those who bring it along. */
export function keysOf({ sessionId, principal: { tenant, id } }: Turn, messages: readonly Message[]): readonly string[] {
  const users = messages.filter(({ role }) => role === 'user').map(plainText)
  if (users.length === 0) return []
  const print = createHash('sha256').update(JSON.stringify(users)).digest('base64')
  return [JSON.stringify(['session', tenant, id, sessionId, print]), JSON.stringify(['talk', tenant, id, print])]
}

export interface Accepts {
  readonly image: boolean
  readonly audio: boolean
  readonly embeddedContext: boolean
}

/** ACP, Content: whoever does not take media is told of it in words. */
export function blocksOf({ before, now }: Talk, { known, accepts }: { readonly known: boolean; readonly accepts: Accepts }): Slot[] {
  const blocks = now.flatMap(({ content, content_items }) =>
    (content_items ?? [{ type: 'text' as const, text: content ?? '' }]).flatMap((item) => toBlock(item, accepts)),
  )
  if (known || before.length === 0) return blocks
  const lines = before.flatMap((message) =>
    message.role === 'tool' || plainText(message) === '' ? [] : [`${message.role}: ${plainText(message)}`],
  )
  return [{ type: 'text', text: `The conversation so far:\n${lines.join('\n')}\n\nNow:\n` }, ...blocks]
}

function toBlock(item: ContentItem, accepts: Accepts): Slot[] {
  if (item.type === 'text') return [{ type: 'text', text: item.text }]
  if (item.type === 'tool_call' || item.type === 'tool_result' || item.type === 'thinking') return []
  const source = mediaSource(item)
  if (!source) return []
  const name = item.type === 'file' ? item.filename : (item.description ?? item.type)
  if ('url' in source) return [{ type: 'resource_link', uri: source.url, name }]
  if ((item.type === 'image' && accepts.image) || (item.type === 'audio' && accepts.audio))
    return [{ type: item.type, data: source.data, mimeType: source.mime }]
  if (accepts.embeddedContext)
    return [{ type: 'resource', resource: { uri: `uamp://content/${item.content_id ?? name}`, blob: source.data, mimeType: source.mime } }]
  return [{ type: 'text', text: `[${item.type}: ${name}, which cannot be shown here]` }]
}

function plainText({ content, content_items }: Message): string {
  return content ?? textOf(content_items ?? [])
}
