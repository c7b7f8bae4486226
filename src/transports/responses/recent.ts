import { weigh } from '../../core/basics/weight.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { Gateway, Hold } from '../../core/ports/session.ts'
import { recordsIn } from '../../protocol/json.ts'
import { parseValue } from '../../wire/parse.ts'
import type { Asked } from './request.ts'
import { InputItem } from './schema.ts'

/** Conversations that one socket remembers: as many as it carries answers at once. */
const REMEMBERED = 16
/** Items of one of them: as many as a request may have. */
const ITEMS = 8_192

interface Recent {
  readonly items: readonly InputItem[]
  readonly hold: Hold
}

/** The last responses of a socket that are not stored. The next requests on the socket may go on from them. */
export class RecentResponses {
  readonly #gateway: Gateway
  readonly #principal: Principal
  /** By the id of the response, the oldest first. */
  readonly #recent = new Map<string, Recent>()

  constructor(gateway: Gateway, principal: Principal) {
    this.#gateway = gateway
    this.#principal = principal
  }

  /** The request with the whole conversation, if it goes on from a response that is remembered here. */
  continued(asked: Asked): Asked {
    const recent = asked.previous === undefined ? undefined : this.#recent.get(asked.previous)
    return recent ? { ...asked, previous: undefined, input: [...recent.items, ...itemsOf(asked.input)] } : asked
  }

  /** Remembers a response with the conversation before it, unless memory has no room for it. */
  add(id: string, asked: Asked, response: Readonly<Record<string, unknown>>): void {
    const oldest = this.#recent.size >= REMEMBERED ? this.#recent.keys().next().value : undefined
    if (oldest !== undefined) this.forget(oldest)
    try {
      const items = [...itemsOf(asked.input), ...recordsIn(response['output']).map((item) => parseValue(InputItem, item))]
      if (items.length > ITEMS) return
      this.#recent.set(id, { items, hold: this.#gateway.hold(this.#principal, weigh(items)) })
    } catch {
      // The client is told that the response is not found, and sends the conversation itself.
    }
  }

  close(): void {
    for (const id of this.#recent.keys()) this.forget(id)
  }

  /** Open Responses, WebSocket: after a failed turn, nobody goes on from the response before it. */
  forget(id: string | undefined): void {
    if (id === undefined) return
    this.#recent.get(id)?.hold.close()
    this.#recent.delete(id)
  }
}

function itemsOf(input: Asked['input']): readonly InputItem[] {
  return typeof input === 'string' ? [{ role: 'user', content: input }] : input
}
