import type { ContentItem } from '../../protocol/content.ts'
import type { Message } from '../../protocol/message.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'

/** Characters in a token, on the safe side: English has four, code and other scripts have fewer. */
const PER_TOKEN = 3
/** Tokens of a picture, a minute of sound or a page. Vendors differ. */
const MEDIA_TOKENS = 1500
/** Tokens of every message, call and definition beside its text. */
const FRAME_TOKENS = 8

/**
 * The newest part of a conversation that fits into so many tokens. It keeps system messages and the last message of the user. A call is
 * dropped together with its results, because no provider takes one without the other. Tokens are estimated from the length of texts,
 * which is good enough to stay below a window, not to fill it.
 */
export function fitting(messages: readonly Message[], tokens: number): readonly Message[] {
  let left = tokens
  for (const message of messages) left -= tokensIn(message)
  if (left >= 0) return messages
  const asked = messages.findLastIndex(({ role }) => role === 'user')
  const gone = new Set<Message>()
  const units = unitsOf(messages)
  for (const [index, unit] of units.entries()) {
    // The newest unit stays: there must be something to answer.
    if (left >= 0 || index === units.length - 1) break
    const loose = unit.filter((message) => message.role !== 'system' && message !== messages[asked])
    for (const message of loose) {
      gone.add(message)
      left += tokensIn(message)
    }
  }
  const kept = messages.filter((message) => !gone.has(message))
  return startingWithUser(kept)
}

/** Drops messages before the first one of a user: they answer something that is gone, and some providers refuse them. */
function startingWithUser(messages: readonly Message[]): readonly Message[] {
  const first = messages.findIndex(({ role }) => role === 'user')
  return first < 0 ? messages : messages.filter(({ role }, index) => index >= first || role === 'system')
}

/** Messages that are dropped together: one with calls and the results after it, or a single one. */
function unitsOf(messages: readonly Message[]): Message[][] {
  const units: Message[][] = []
  for (const message of messages) {
    const last = units.at(-1)
    if (message.role === 'tool' && last && last[0]?.role !== 'user') last.push(message)
    else units.push([message])
  }
  return units
}

/** The estimated tokens of instructions and tools. */
export function tokensOfConfig({ instructions = '', tools = [], response_format }: SessionConfig): number {
  const text = instructions.length + JSON.stringify(tools).length + JSON.stringify(response_format ?? '').length
  return Math.ceil(text / PER_TOKEN) + FRAME_TOKENS
}

function tokensIn({ content = '', content_items, tool_calls = [] }: Message): number {
  let tokens = FRAME_TOKENS
  if (content_items) for (const item of content_items) tokens += tokensOfItem(item)
  else tokens += content.length / PER_TOKEN
  const counted = content_items?.some(({ type }) => type === 'tool_call')
  if (!counted) for (const call of tool_calls) tokens += FRAME_TOKENS + (call.name.length + call.arguments.length) / PER_TOKEN
  // A result with media has its text in `content`, beside the items.
  if (content_items && !content_items.some(({ type }) => type === 'text')) tokens += content.length / PER_TOKEN
  return Math.ceil(tokens)
}

function tokensOfItem(item: ContentItem): number {
  switch (item.type) {
    case 'text':
      return item.text.length / PER_TOKEN
    case 'thinking':
      return (item.thinking.length + (item.signature?.length ?? 0)) / PER_TOKEN
    case 'tool_call':
      return FRAME_TOKENS + (item.tool_call.name.length + item.tool_call.arguments.length) / PER_TOKEN
    case 'tool_result':
      return FRAME_TOKENS + item.tool_result.result.length / PER_TOKEN
    default:
      return MEDIA_TOKENS
  }
}
