import type { Draft } from '../../../protocol/events.ts'
import { isRecord } from '../../../protocol/json.ts'
import type { Message, Part, Struct } from '../model.ts'

/** The event by which an agent answers with a message instead of a task. */
const NAME = 'a2a.message'

/** Events that say nothing yet. */
const IDLE: ReadonlySet<string> = new Set(['usage.delta', 'payment.accepted'])

/** Finds out from the first event of an agent whether it answers with a message. */
export class DirectAnswer {
  readonly #contextId: string
  readonly #newId: () => string
  /** Resolves with the message, or with undefined if the answer is a task. */
  readonly decided: Promise<Message | undefined>
  isMessage = false
  #decide: (message: Message | undefined) => void = () => undefined
  #isDecided = false

  constructor(contextId: string, newId: () => string) {
    this.#contextId = contextId
    this.#newId = newId
    this.decided = new Promise((resolve) => (this.#decide = resolve))
  }

  see(event: Draft): void {
    if (this.#isDecided || IDLE.has(event.type)) return
    this.#isDecided = true
    const message = messageOf(event)
    this.isMessage = message !== undefined
    this.#decide(message && { messageId: this.#newId(), role: 'ROLE_AGENT', contextId: this.#contextId, ...message })
  }

  /** The agent said nothing at all. */
  over(): void {
    this.#decide(undefined)
  }
}

function messageOf(event: Draft): Pick<Message, 'parts' | 'metadata' | 'extensions'> | undefined {
  if (event.type !== 'x.custom' || event.name !== NAME) return undefined
  const { value } = event
  if (typeof value === 'string') return { parts: [{ text: value }] }
  if (!isRecord(value) || !Array.isArray(value['parts'])) return undefined
  const { parts, metadata, extensions } = value
  return {
    parts: parts as Part[],
    ...(isRecord(metadata) && { metadata: metadata as Struct }),
    ...(Array.isArray(extensions) && { extensions: extensions as string[] }),
  }
}
