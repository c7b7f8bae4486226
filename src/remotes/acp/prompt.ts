import type { Conversation } from '../../upstream/places.ts'
import { itemsOf, plainText } from '../../protocol/message.ts'
import { toBlock, type Accepts, type ContentBlock } from '../../wire/acp/blocks.ts'

/** A turn as the other agent is asked. `known`: it has heard what came before. */
export function blocksOf(
  { before, now }: Conversation,
  { known, accepts }: { readonly known: boolean; readonly accepts: Accepts },
): ContentBlock[] {
  const blocks = now.flatMap((message) => itemsOf(message).flatMap((item) => toBlock(item, accepts) ?? []))
  if (known || before.length === 0) return blocks
  const lines = before.flatMap((message) => {
    const text = message.role === 'tool' ? '' : plainText(message)
    return text === '' ? [] : [`${message.role}: ${text}`]
  })
  return [{ type: 'text', text: `The conversation so far:\n${lines.join('\n')}\n\nNow:\n` }, ...blocks]
}
