import type { Conversation } from '../../upstream/places.ts'
import { isMedia, type MediaItem } from '../../protocol/content.ts'
import { itemsOf, plainText, type Message } from '../../protocol/message.ts'
import { DATA_FILE, dataIn, partOf } from '../../wire/a2a/content.ts'
import { note } from '../../wire/media-parts.ts'
import type { Part } from '../../wire/a2a/parts.ts'

/** Characters of an earlier conversation that are told. The beginning of a longer one is left out. */
const TRANSCRIPT = 100_000

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

const WHO = { user: 'User', assistant: 'Assistant' } as const

function transcript(messages: readonly Message[]): string {
  const lines = messages.flatMap((message) => {
    const text = plainText(message)
    return (message.role === 'user' || message.role === 'assistant') && text !== '' ? [`${WHO[message.role]}: ${text}`] : []
  })
  if (lines.length === 0) return ''
  const whole = lines.join('\n\n')
  return `The conversation so far:\n\n${whole.length > TRANSCRIPT ? `…${whole.slice(-TRANSCRIPT)}` : whole}`
}
