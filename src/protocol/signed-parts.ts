/** What a signature of a response covers (UAMP events §6.7), so that whoever asked can compute it again. */
import { isMedia, type ContentItem } from './content.ts'
import { itemsOf, textOf, type Message } from './message.ts'

/**
 * The words of an answer: texts and the transcripts of speech in their order, then refusals. Refusals come last because OpenAI's protocols
 * have a field of their own for them, which does not say between which words they stood.
 */
export function answerText(output: readonly ContentItem[]): string {
  let words = ''
  let refusals = ''
  for (const item of output) {
    if (item.type === 'audio') words += item.transcript ?? ''
    else if (item.type !== 'text') continue
    else if (item.refusal) refusals += item.text
    else words += item.text
  }
  return words + refusals
}

/** True if the words are all of the answer: then their hash covers it. */
export function isOnlyWords(output: readonly ContentItem[]): boolean {
  return output.every(({ type }) => type === 'text')
}

/**
 * Messages in the one form that is hashed. Content ids are left out because servers add them, and slots because servers on the way may
 * add to them. Media is what the client sent, as items.
 */
export function requestMessages(messages: readonly Message[]): object[] {
  return messages.map((message) => {
    const { role, content, content_items: items = [], name, tool_call_id, tool_calls } = message
    const text = role === 'tool' || !items.some(({ type }) => type === 'text') ? (content ?? '') : textOf(items)
    const calls = tool_calls ?? itemsOf(message).flatMap((item) => (item.type === 'tool_call' ? [item.tool_call] : []))
    const media = items.filter(isMedia).map(({ content_id: _, ...item }) => item)
    return {
      role,
      content: text,
      ...(name !== undefined && { name }),
      ...(tool_call_id !== undefined && { tool_call_id }),
      ...(calls.length > 0 && {
        tool_calls: calls.map(({ id, name: called, arguments: args }) => ({ id, name: called, arguments: args })),
      }),
      ...(media.length > 0 && { content_items: media }),
    }
  })
}
