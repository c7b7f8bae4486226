import type { Conversation } from '../../upstream/places.ts'
import { isMedia, type MediaItem } from '../../protocol/content.ts'
import { itemsOf, type Message } from '../../protocol/message.ts'
import { transcript } from '../../upstream/transcript.ts'
import { DATA_FILE, dataIn, partOf } from '../../wire/a2a/content.ts'
import { note } from '../../wire/media-parts.ts'
import type { Part } from '../../wire/a2a/parts.ts'

/** The parts of a message. An agent that cannot know the conversation so far is told it first. */
export function toParts({ before, now }: Conversation, { known }: { readonly known: boolean }): Part[] {
  const said = known ? '' : transcript(before)
  const parts = [...(said === '' ? [] : [{ text: said }]), ...now.flatMap(partsOf)]
  // A message without parts is refused by all.
  return parts.length > 0 ? parts : [{ text: '' }]
}

function partsOf(message: Message): Part[] {
  return itemsOf(message).flatMap((item) => {
    if (item.type === 'text') return item.text === '' ? [] : [{ text: item.text }]
    return isMedia(item) ? [mediaPart(item)] : []
  })
}

function mediaPart(item: MediaItem): Part {
  const part = partOf(item)
  if (!part) return { text: note(item) }
  const data = part.filename === DATA_FILE && part.raw !== undefined ? dataIn(part.raw) : undefined
  return data === undefined ? part : { data }
}
