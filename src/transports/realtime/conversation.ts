import type { Hold } from '../../core/ports/session.ts'
import { outputMessages } from '../../core/reading/output.ts'
import { weigh } from '../../core/basics/weight.ts'
import type { ContentItem } from '../../protocol/content.ts'
import { textOf, type Message } from '../../protocol/message.ts'
import { pcm16 } from '../../wire/audio/samples.ts'
import { imageItem } from '../../wire/openai/media.ts'
import { invalid } from '../../wire/parse.ts'
import { cutAt, durationMs, type Decode } from './audio/formats.ts'
import type { GivenItem, Item, Part } from './model.ts'

/** Items that a conversation keeps. Beyond that the oldest are dropped, like OpenAI's automatic truncation does. */
const MAX_ITEMS = 512
/**
 * Bytes of all items, with recordings in base64. Beyond that the oldest recordings are dropped, but not their transcripts, then the
 * oldest items.
 */
const MAX_SIZE = 12 * 1024 * 1024

/** OpenAI's `previous_item_id` for the beginning of the conversation. */
const ROOT = 'root'

/** The items of one connection, in order. */
export class Conversation {
  readonly id: string
  readonly #hold: Pick<Hold, 'set' | 'grow'>
  #items: Item[] = []
  #size = 0

  constructor(id: string, hold: Pick<Hold, 'set' | 'grow'>) {
    this.id = id
    this.#hold = hold
  }

  get last(): string | null {
    return this.#items.at(-1)?.id ?? null
  }

  find(id: string): Item | undefined {
    return this.#items.find((item) => item.id === id)
  }

  /** Throws `overloaded` if there is no room for an item of the client. What an agent says was counted before. */
  checkRoom(item: Item): void {
    this.#hold.grow(this.#size + weigh(item))
    this.#hold.set(this.#size)
  }

  /** Inserts an item after the item `after`, by default at the end. Returns the id of the item before it. */
  add(item: Item, after?: string): string | null {
    if (this.find(item.id)) throw invalid(`There is an item "${item.id}" already`, 'item.id', 'item_create_duplicate_item_id')
    const at = after === undefined ? this.#items.length : after === ROOT ? 0 : this.#items.findIndex(({ id }) => id === after) + 1
    if (at === 0 && after !== ROOT && after !== undefined) {
      throw invalid(`There is no item "${after}" to put it after`, 'previous_item_id', 'item_create_invalid_previous_item_id')
    }
    this.#items.splice(at, 0, item)
    this.#size += weigh(item)
    this.#trim(item)
    const index = this.#items.indexOf(item)
    return this.#items[index - 1]?.id ?? null
  }

  /** Replaces an item that has grown, unless it was deleted meanwhile. */
  replace(item: Item): void {
    const index = this.#items.findIndex(({ id }) => id === item.id)
    const before = this.#items[index]
    if (!before) return
    this.#items[index] = item
    this.#size += weigh(item) - weigh(before)
    this.#trim(item)
  }

  retrieve(id: string): Item {
    return this.#need(id, 'retrieve')
  }

  delete(id: string): void {
    const item = this.#need(id, 'delete')
    this.#items = this.#items.filter((each) => each !== item)
    this.#size -= weigh(item)
    this.#hold.set(this.#size)
  }

  /** The client heard an answer only up to here. The transcript is dropped, as it is unknown which words were heard. */
  truncate(id: string, index: number, ms: number): void {
    const item = this.#need(id, 'truncate')
    const part = item.type === 'message' && item.role === 'assistant' ? item.content[index] : undefined
    if (item.type !== 'message' || part?.type !== 'audio') {
      throw invalid('Only the audio of an assistant message can be truncated', 'content_index', 'item_truncate_invalid_content')
    }
    const audio = part.audio ?? ''
    if (ms > durationMs(audio)) {
      throw invalid(`The audio is ${durationMs(audio)} ms long, which is less than ${ms}`, 'audio_end_ms', 'invalid_value')
    }
    const cut: Part = { ...part, audio: cutAt(audio, ms), transcript: null }
    this.replace({ ...item, content: item.content.map((each) => (each === part ? cut : each)) })
  }

  messages(): Message[] {
    return toMessages(this.#items)
  }

  #need(id: string, what: string): Item {
    const item = this.find(id)
    if (!item) throw invalid(`There is no item "${id}"`, 'item_id', `item_${what}_invalid_item_id`)
    return item
  }

  /** `kept` is the newest item, and stays even if it is too large. */
  #trim(kept: Item): void {
    for (let index = 0; this.#size > MAX_SIZE && index < this.#items.length; index++) {
      const item = this.#items[index] as Item
      if (item === kept || item.type !== 'message' || !item.content.some(hasRecording)) continue
      const content = item.content.map((part) => (part.type === 'audio' ? { ...part, audio: undefined } : part))
      this.#items[index] = { ...item, content }
      this.#size += weigh(this.#items[index] as Item) - weigh(item)
    }
    while (this.#items.length > MAX_ITEMS || (this.#size > MAX_SIZE && this.#items.length > 1)) {
      const oldest = this.#items[0] === kept ? 1 : 0
      this.#size -= weigh(this.#items[oldest] as Item)
      this.#items.splice(oldest, 1)
    }
    this.#hold.set(this.#size)
  }
}

/** An item that a client gives, with an id, and its audio as samples. */
export function newItem(given: GivenItem, newId: () => string, decode: Decode): Item {
  const id = given.id ?? `item_${newId()}`
  if (given.type !== 'message') return { ...given, id, status: 'completed' }
  const content = given.content.map((part, index): Part => {
    const param = `item.content[${index}]`
    if (part.type === 'audio' && part.audio !== undefined) return { ...part, audio: pcm16(decode(part.audio, `${param}.audio`)) }
    // Checked now, so that whoever sent it is told.
    if (part.type === 'image') imageItem(part.url, { detail: part.detail, param: `${param}.image_url` })
    return part
  })
  return { ...given, id, status: 'completed', content }
}

/** Items as the agent gets them: what the assistant said and called in a row is one message. */
export function toMessages(items: readonly Item[]): Message[] {
  const messages: Message[] = []
  let output: ContentItem[] = []
  for (const item of items) {
    const content = contentOf(item)
    if (item.type !== 'message' || item.role === 'assistant') {
      output.push(...content)
      continue
    }
    messages.push(...outputMessages(output))
    output = []
    if (content.length > 0) messages.push({ role: item.role, content: textOf(content), content_items: content })
  }
  return [...messages, ...outputMessages(output)]
}

function contentOf(item: Item): ContentItem[] {
  if (item.type === 'message') return item.content.flatMap((part, index) => partContent(part, `${item.id}.${index}`))
  const { call_id } = item
  if (item.type === 'function_call_output') return [{ type: 'tool_result', tool_result: { call_id, result: item.output } }]
  if (item.status !== 'completed') return []
  return [{ type: 'tool_call', tool_call: { id: call_id, name: item.name, arguments: item.arguments } }]
}

function partContent(part: Part, content_id: string): ContentItem[] {
  switch (part.type) {
    case 'text':
      return part.text === '' ? [] : [part]
    case 'image':
      return [{ ...imageItem(part.url, { detail: part.detail, param: 'image_url' }), content_id }]
    case 'audio': {
      const { audio, transcript } = part
      if (audio === undefined || audio === '') return transcript === null || transcript === '' ? [] : [{ type: 'text', text: transcript }]
      return [{ type: 'audio', audio, format: 'pcm16', content_id, ...(transcript !== null && { transcript }) }]
    }
  }
}

const hasRecording = (part: Part): boolean => part.type === 'audio' && part.audio !== undefined
