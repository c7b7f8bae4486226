import { withContentId, withIds } from '../../protocol/content.ts'
import type { Delta } from '../../protocol/server-events.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent, EventOf } from '../../protocol/events.ts'
import { gatherInput, withContentIds, type Gathered, type InputEvent } from '../../protocol/gather-input.ts'
import { slotsOf, type Message } from '../../protocol/message.ts'
import { unpaid, withDataIn } from '../secrets/sealing.ts'
import { textLength, weigh } from '../basics/weight.ts'
import type { Holding } from './budget.ts'
import type { CoreLimits } from '../basics/limits.ts'

/** A client's tool result without payments, because results are shown and stored, and with content ids. */
export function tidyResult<E extends ClientEvent>(event: E, newId: () => string): E {
  if (event.type !== 'tool.result' || !event.content_items) return event
  const items = withIds(withDataIn(event.content_items, unpaid), newId)
  return items === event.content_items ? event : { ...event, content_items: items }
}

/** Gives media a content id. Audio without one gets none: it is a chunk of a stream, not an item. */
export function withHandle(delta: Delta, newId: () => string): Delta {
  return delta.type === 'audio' || delta.type === 'tool_progress' ? delta : withContentId(delta, newId)
}

/** Fields in which clients may put anything. AG-UI's `state` is not among them: only the memory budget bounds it. */
const SLOTS: ReadonlySet<string> = new Set(['extensions', 'metadata', 'context', 'forwardedProps', '_meta', 'offer', 'answer'])

/** How many levels deep to search: an A2A part is in a list, in a message, in the parameters. */
const LEVELS = 6

/** Throws `too_large` when a slot in a client's message holds more than `limit` bytes of JSON. */
export function checkSlots(value: unknown, limit: number, levels = LEVELS): void {
  if (typeof value !== 'object' || value === null || levels === 0) return
  for (const key in value) {
    const member = (value as Record<string, unknown>)[key]
    if (typeof member !== 'object' || member === null) continue
    if (!SLOTS.has(key)) checkSlots(member, limit, levels - 1)
    else if (textLength(member, limit) > limit) {
      throw new UampError('too_large', `"${key}" holds more than ${limit} bytes`, { details: { field: key, limit } })
    }
  }
}

/** Inputs that no response has used yet. Bounded: an input beyond the bound is refused. */
export class PendingInputs {
  readonly #limits: Pick<CoreLimits, 'pendingInputs' | 'pendingBytes' | 'slotBytes'>
  readonly #held: Holding
  /** The messages of the request that opened the session. */
  #messages: readonly Message[]
  #events: InputEvent[]

  constructor(limits: CoreLimits, held: Holding, { messages, events }: { messages: readonly Message[]; events: readonly InputEvent[] }) {
    this.#limits = limits
    this.#held = held
    this.#messages = messages
    this.#events = [...events]
  }

  get empty(): boolean {
    return this.#events.length === 0 && this.#messages.length === 0
  }

  get eventIds(): string[] {
    return this.#events.map(({ event_id }) => event_id)
  }

  /** UAMP events §5.6: the newest `payment_token` of these inputs. */
  get paymentToken(): string | undefined {
    return this.#events.findLast(paid)?.payment_token
  }

  add(event: InputEvent): void {
    const { pendingInputs, pendingBytes } = this.#limits
    const bytes = this.#held.get('pending') + weigh(event)
    if (this.#events.length >= pendingInputs || bytes > pendingBytes) {
      throw new UampError('too_large', 'Too much input without a response: send response.create, then go on', {
        details: { max_inputs: pendingInputs, max_bytes: pendingBytes },
      })
    }
    this.#checkSlots(event)
    this.#held.grow('pending', bytes)
    this.#events.push(event)
  }

  /** The slots of gathered inputs become those of one message, so together they have the bound of one. */
  #checkSlots(event: InputEvent): void {
    const { slotBytes } = this.#limits
    if (!hasSlots(event)) return
    const length = textLength(
      [...this.#events, event].filter(hasSlots).map((each) => slotsOf(each)),
      slotBytes,
    )
    if (length <= slotBytes) return
    const message = `"context", "extensions" and "metadata" of inputs without a response hold more than ${slotBytes} bytes`
    throw new UampError('too_large', message, { details: { limit: slotBytes } })
  }

  /** Adds all or none. Returns a function that takes them back. */
  addAll(events: readonly InputEvent[]): () => void {
    const before = { events: [...this.#events], bytes: this.#held.get('pending') }
    try {
      for (const event of events) this.add(event)
    } catch (error) {
      this.#events = before.events
      this.#held.set('pending', before.bytes)
      throw error
    }
    return () => events.forEach((event) => this.remove(event))
  }

  remove(event: InputEvent): void {
    const at = this.#events.indexOf(event)
    if (at < 0) return
    this.#events.splice(at, 1)
    this.#held.set('pending', this.#held.get('pending') - weigh(event))
  }

  /** Makes messages of the inputs. Audio that cannot be joined is dropped and refused, because it would block every later response. */
  gather(newId: () => string): Gathered {
    const { messages, stateless } = this.#gathered(newId)
    return { messages: stateless ? messages : [...withContentIds(this.#messages, newId), ...messages], stateless }
  }

  #gathered(newId: () => string): Gathered {
    try {
      return gatherInput(this.#events, newId)
    } catch (error) {
      for (const event of this.#events.filter(({ type }) => type === 'input.audio')) this.remove(event)
      throw error
    }
  }

  /** Empties the list, as a response uses the inputs now. Returns a function that puts them back, before newer ones. */
  take(): () => void {
    const { messages, events, bytes } = { messages: this.#messages, events: this.#events, bytes: this.#held.get('pending') }
    this.#messages = []
    this.#events = []
    this.#held.set('pending', 0)
    return () => {
      this.#messages = messages
      this.#events = [...events, ...this.#events]
      this.#held.set('pending', this.#held.get('pending') + bytes)
    }
  }
}

function paid(event: InputEvent): event is EventOf<'input.text'> {
  return event.type === 'input.text' && event.payment_token !== undefined
}

function hasSlots({ extensions, metadata, ...event }: InputEvent): boolean {
  return extensions !== undefined || metadata !== undefined || ('context' in event && event.context !== undefined)
}
