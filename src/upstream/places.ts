import type { ContentItem } from '../protocol/content.ts'
import { itemsOf, plainText, type Message } from '../protocol/message.ts'
import type { Turn } from '../core/ports/agent.ts'
import { hashed } from '../wire/upstream.ts'

/** The most conversations that are remembered. Beyond it, the least recently used are forgotten. */
const KEPT = 10_000
/** How many unanswered messages are searched for the last one that the remote agent heard. */
const UNANSWERED = 16

/** The new messages, and those before them. Calls and results after the last user message are sent on request. */
export interface Conversation {
  readonly before: readonly Message[]
  readonly now: readonly Message[]
}

interface Held<P> {
  /** The conversation's id on the other side; undefined: it has none. */
  readonly place: P | undefined
  /** The messages that the remote agent heard. Default: all of the turn's. */
  readonly heard?: readonly Message[]
  /** The text of the turn's answer. */
  readonly said: string
}

interface Entry<P> {
  readonly place: P
  /** A hash of the user's messages so far. */
  readonly asked: string
  readonly keys: readonly string[]
}

/**
 * Where each conversation continues with a remote agent that keeps its own memory. A session finds its own place. A request that
 * carries the conversation finds the place where the same was said. One that continues from an older point finds none, because the
 * remote agent has heard more than that.
 */
export class Places<P> {
  readonly #entries = new Map<string, Entry<P>>()
  /** Writes under way. A turn that was cut short does not wait for its own. */
  #keeping: Promise<unknown> = Promise.resolve()

  /** The new messages of a turn, and their place. The turn owns the place until `keep`. */
  async find(turn: Turn): Promise<Conversation & { readonly place: P | undefined }> {
    await this.#keeping
    const { messages } = turn
    const last = messages.findLastIndex(({ role }) => role === 'user')
    let first = Math.max(0, last)
    while (messages[first - 1]?.role === 'user') first--
    // The remote agent may have heard a message that was not answered.
    for (let at = last; at >= Math.max(first, last - UNANSWERED, 1); at--) {
      const before = messages.slice(0, at)
      const place = await this.#take(turn, before)
      if (place !== undefined) return { before, now: messages.slice(at, last + 1), place }
    }
    return { before: messages.slice(0, first), now: messages.slice(first, last + 1), place: undefined }
  }

  async #take(turn: Turn, before: readonly Message[]): Promise<P | undefined> {
    const asked = await fingerprint(before.filter(({ role }) => role === 'user'))
    const key = await talkKey(turn, before)
    const session = this.#entries.get(sessionKey(turn))
    const entry = session?.asked === asked ? session : this.#entries.get(key)
    // A second turn from the same point is another conversation.
    this.#forget(entry)
    return entry?.place
  }

  keep(turn: Turn, held: Held<P>): Promise<void> {
    const kept = this.#keep(turn, held)
    this.#keeping = Promise.all([this.#keeping, kept])
    return kept
  }

  async #keep(turn: Turn, { place, heard = turn.messages, said }: Held<P>): Promise<void> {
    if (place === undefined) return
    const whole: Message[] = [...heard, { role: 'assistant', content: said }]
    const asked = await fingerprint(heard.filter(({ role }) => role === 'user'))
    const keys = [sessionKey(turn), await talkKey(turn, whole)]
    const entry = { place, asked, keys }
    this.#forget(this.#entries.get(sessionKey(turn)))
    for (const key of keys) {
      this.#entries.delete(key)
      this.#entries.set(key, entry)
    }
    for (const key of this.#entries.keys()) {
      if (this.#entries.size <= KEPT * 2) break
      this.#entries.delete(key)
    }
  }

  #forget(entry: Entry<P> | undefined): void {
    for (const key of entry?.keys ?? []) if (this.#entries.get(key) === entry) this.#entries.delete(key)
  }
}

function sessionKey({ principal: { tenant, id }, sessionId }: Turn): string {
  return JSON.stringify(['session', tenant, id, sessionId])
}

async function talkKey({ principal: { tenant, id }, config }: Turn, messages: readonly Message[]): Promise<string> {
  return JSON.stringify(['talk', tenant, id, await fingerprint(messages, config.instructions)])
}

/** A hash of all messages, exact to the last space. Of the newest answer only the text counts: `keep` knows no more. */
async function fingerprint(messages: readonly Message[], instructions = ''): Promise<string> {
  const last = messages.findLastIndex(({ role }) => role === 'user')
  const said = messages.flatMap((message, at) => (at <= last || message.role === 'system' ? [exactly(message)] : []))
  const answer = messages.slice(last + 1).map((message) => (message.role === 'assistant' ? plainText(message) : ''))
  return hashed(JSON.stringify([instructions, said, answer.join('')]))
}

function exactly(message: Message): unknown {
  const { role, tool_call_id, tool_calls = [] } = message
  const calls = tool_calls.map(({ id, name, arguments: args }) => [id, name, args])
  return [role, plainText(message), tool_call_id, calls, itemsOf(message).flatMap((item) => beside(item) ?? [])]
}

/** Identifies media by its content or address, because clients may send it with a new handle. Clients may leave out thoughts. */
function beside(item: ContentItem): readonly unknown[] | undefined {
  switch (item.type) {
    case 'image':
      return [item.type, item.image]
    case 'audio':
      return [item.type, item.audio]
    case 'video':
      return [item.type, item.video]
    case 'file':
      return [item.type, item.file, item.filename]
    case 'tool_call':
      return [item.type, item.tool_call.id, item.tool_call.name, item.tool_call.arguments]
    case 'tool_result':
      return [item.type, item.tool_result.call_id, item.tool_result.result]
    case 'text':
    case 'thinking':
      return undefined
  }
}
