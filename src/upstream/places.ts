import type { ContentItem } from '../protocol/content.ts'
import { itemsOf, plainText, type Message } from '../protocol/message.ts'
import type { Turn } from '../core/ports/agent.ts'

/** Conversations that are remembered. Of more, the ones that were longest without a word are forgotten. */
const KEPT = 10_000
/** Messages without an answer that are looked through for the last that was heard. */
const UNANSWERED = 16

/** What is new, and what was said before it. Calls and results behind the last user message are told when they are asked for. */
export interface Conversation {
  readonly before: readonly Message[]
  readonly now: readonly Message[]
}

interface Held<P> {
  /** Where the conversation goes on at the other side; undefined: nowhere. */
  readonly place: P | undefined
  /** What it has heard, where that is not all of the turn's messages. */
  readonly heard?: readonly Message[]
  /** The text that the turn ended with. */
  readonly said: string
}

interface Entry<P> {
  readonly place: P
  /** What the user said so far. */
  readonly asked: string
  readonly keys: readonly string[]
}

/**
 * Where each conversation goes on with an agent elsewhere that remembers by itself. A session finds its own place; a request that
 * brings the conversation along finds the one in which the same was said. One that goes on from an older point finds none, as the
 * agent there has heard more than it knows of.
 */
export class Places<P> {
  readonly #entries = new Map<string, Entry<P>>()
  /** Those that are being written down: of a turn that was cut short nobody waits for it. */
  #keeping: Promise<unknown> = Promise.resolve()

  /** What is new in the turn's conversation, and the place where that goes. It is the turn's alone until it is kept again. */
  async find(turn: Turn): Promise<Conversation & { readonly place: P | undefined }> {
    await this.#keeping
    const { messages } = turn
    const last = messages.findLastIndex(({ role }) => role === 'user')
    let first = Math.max(0, last)
    while (messages[first - 1]?.role === 'user') first--
    // A message that was not answered may have been heard all the same.
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
    // Whoever goes on from the same point a second time is another.
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

/** All that was said, and by whom, to the last space. Of the newest answer only its text is known when it is kept. */
async function fingerprint(messages: readonly Message[], instructions = ''): Promise<string> {
  const last = messages.findLastIndex(({ role }) => role === 'user')
  const said = messages.flatMap((message, at) => (at <= last || message.role === 'system' ? [exactly(message)] : []))
  const answer = messages.slice(last + 1).map((message) => (message.role === 'assistant' ? plainText(message) : ''))
  const whole = JSON.stringify([instructions, said, answer.join('')])
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(whole))
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function exactly(message: Message): unknown {
  const { role, tool_call_id, tool_calls = [] } = message
  const calls = tool_calls.map(({ id, name, arguments: args }) => [id, name, args])
  return [role, plainText(message), tool_call_id, calls, itemsOf(message).flatMap((item) => beside(item) ?? [])]
}

/** Media is what it holds or where it is: its handle may be a new one each time that it is sent. Thoughts are not always sent again. */
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
