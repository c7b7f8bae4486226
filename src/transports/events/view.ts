import type { Batch } from '../../core/ports/session.ts'
import type { ClientProfile } from '../../protocol/capabilities.ts'
import { isMedia, type ContentItem, type MediaItem } from '../../protocol/content.ts'
import type { EventOf, ServerEvent } from '../../protocol/events.ts'
import { fieldsOf } from '../../protocol/json.ts'
import type { Delta } from '../../protocol/server-events.ts'
import { note, publicUrl } from '../../wire/media-parts.ts'

/** What a client gets of a batch. */
type View = (batch: Batch) => Pick<Batch, 'eachText'>

/** Pieces of an answer. `response.done` has all of it. */
const PIECES: ReadonlySet<string> = new Set<ServerEvent['type']>([
  'response.delta',
  'thinking',
  'audio.delta',
  'audio.done',
  'transcript.delta',
  'transcript.done',
  'usage.delta',
])

/** Events that a view may change or leave out. A batch without any of them, such as one of plain text, is passed on as it is. */
const TYPES = [
  'capabilities',
  'response.delta',
  'thinking',
  'audio.delta',
  'audio.done',
  'transcript.delta',
  'tool.call_done',
  'response.done',
  'response.cancelled',
] as const satisfies ServerEvent['type'][]
const TOUCHED: ReadonlySet<string> = new Set(TYPES)
type Touched = EventOf<(typeof TYPES)[number]>

function isTouched(event: ServerEvent): event is Touched {
  return TOUCHED.has(event.type)
}

/** UAMP events §9.1: leaves out what a client says that it does not support, or puts it into words. What it does not say, it gets. */
export function viewOf(client: ClientProfile | undefined): View {
  if (!client) return (batch) => batch
  const eyes = new Eyes(client)
  const streams = client.supports_streaming !== false
  return (batch) => {
    if (streams && !batch.has(TOUCHED)) return batch
    return {
      eachText(visit) {
        for (const logged of batch) {
          if (!streams && PIECES.has(logged.type)) continue
          const event = isTouched(logged.event) ? eyes.see(logged.event) : logged.event
          if (event) visit(event === logged.event ? logged.text : JSON.stringify(event), logged.seq)
        }
      },
    }
  }
}

class Eyes {
  readonly #modalities: ReadonlySet<string>
  readonly #thinks: boolean
  readonly #tools: boolean
  readonly #widgets: readonly string[] | undefined
  /** The response whose words came as a transcript: its sound need not be put into words. */
  #transcribed: string | undefined

  constructor({ modalities, supports_thinking: thinks = true, tools, widgets }: ClientProfile) {
    this.#modalities = new Set(modalities)
    this.#thinks = thinks
    this.#tools = tools?.supports_tools ?? true
    this.#widgets = widgets
  }

  /** The event as this client gets it; the same one if nothing changes, undefined if it gets none. */
  see(event: Touched): Touched | undefined {
    switch (event.type) {
      case 'capabilities': {
        const { widgets } = event.capabilities
        const shared = widgets?.filter((widget) => this.#widgets?.includes(widget) ?? true)
        return shared?.length === widgets?.length ? event : { ...event, capabilities: { ...event.capabilities, widgets: shared } }
      }
      case 'thinking':
        return this.#thinks ? event : undefined
      case 'audio.delta':
      case 'audio.done':
        return this.#modalities.has('audio') ? event : undefined
      case 'tool.call_done':
        return this.#tools ? event : undefined
      case 'transcript.delta':
        this.#transcribed = event.response_id
        return event
      case 'response.delta': {
        if (event.delta.type === 'audio' && this.#isHeard(event.delta, event.response_id)) return undefined
        const [delta] = this.#items([event.delta])
        return delta === event.delta ? event : delta && { ...event, delta }
      }
      case 'response.done': {
        const output = this.#items(event.response.output)
        return output === event.response.output ? event : { ...event, response: { ...event.response, output } }
      }
      case 'response.cancelled': {
        const { partial_output: given } = event
        const partial = given && this.#items(given)
        return partial === given ? event : { ...event, partial_output: partial }
      }
    }
  }

  /** True for sound that a client without ears has in words already, and for pieces of sound that have none. */
  #isHeard({ audio, content_id, transcript }: Extract<Delta, { type: 'audio' }>, response: string): boolean {
    if (this.#modalities.has('audio')) return false
    return this.#transcribed === response || (content_id === undefined && typeof audio === 'string' && transcript === undefined)
  }

  /** The same list if nothing changes. */
  #items<T extends ContentItem | Delta>(items: T[]): T[] {
    const seen = items.flatMap((item) => (this.#hides(item) ? [] : [this.#plain(item)]))
    return seen.length === items.length && seen.every((item, index) => item === items[index]) ? items : seen
  }

  #hides(item: ContentItem | Delta): boolean {
    if (item.type === 'thinking') return !this.#thinks
    if (item.type === 'tool_call' || item.type === 'tool_result') return !this.#tools
    if (item.type !== 'tool_progress') return false
    return !this.#tools || (!this.#thinks && fieldsOf(item.tool_progress.data)['kind'] === 'thinking')
  }

  #plain<T extends ContentItem | Delta>(item: T): T {
    if (isMedia(item)) return this.#modalities.has(item.type) ? item : ({ type: 'text', text: inWords(item) } as T)
    if (item.type !== 'tool_result' || !item.tool_result.content_items) return item
    const inside = this.#items(item.tool_result.content_items)
    const same = inside === item.tool_result.content_items
    return same ? item : { ...item, tool_result: { ...item.tool_result, content_items: inside } }
  }
}

/** Names media, by its address if it has one that others can open. */
function inWords(item: MediaItem): string {
  const words = note(item)
  const source = item.type === 'image' ? item.image : item.type === 'audio' ? item.audio : item.type === 'video' ? item.video : item.file
  const url = publicUrl(source)
  // §8.5.4: no address of stored content in a text. Its handle is in the words.
  return url === undefined || url.startsWith('data:') || url.includes('/api/content/') ? words : `${words} ${url}`
}
