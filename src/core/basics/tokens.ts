import type { ContentItem } from '../../protocol/content.ts'
import type { Message } from '../../protocol/message.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'

/** Characters in a token, on the safe side: English has four, code and other scripts have fewer. */
const PER_TOKEN = 3
/** Tokens of a picture, a minute of sound or a page. Vendors differ. */
const MEDIA_TOKENS = 1500
/** Tokens of every message, call and definition beside its text. */
const FRAME_TOKENS = 8

/** The estimated tokens of instructions and tools. */
export function tokensOfConfig({ instructions = '', tools = [], response_format }: SessionConfig): number {
  const text = instructions.length + JSON.stringify(tools).length + JSON.stringify(response_format ?? '').length
  return Math.ceil(text / PER_TOKEN) + FRAME_TOKENS
}

/** The estimated tokens of a message. */
export function tokensIn({ content = '', content_items, tool_calls = [] }: Message): number {
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
