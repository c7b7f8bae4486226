import { UampClientError } from './errors.ts'

/** The most unacknowledged events of one session, in number and in characters. `send` refuses more. */
const MAX_EVENTS = 1024
const MAX_SIZE = 16 * 1024 * 1024

export interface Outgoing {
  readonly id: string
  readonly text: string
}

interface Pending extends Outgoing {
  readonly resolve: () => void
  readonly reject: (error: UampClientError) => void
}

/** The events of one session that the server has not acknowledged, in the order of sending. */
export class Outbox {
  readonly #pending = new Map<string, Pending>()
  readonly #unsent = new Set<Pending>()
  #size = 0
  #over: UampClientError | undefined

  /** Resolves when the event is acknowledged, rejects if it is refused. */
  add({ id, text }: Outgoing): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#over) return reject(this.#over)
      if (this.#pending.size >= MAX_EVENTS || this.#size + text.length > MAX_SIZE) {
        return reject(new UampClientError({ code: 'overloaded', message: 'Too many events wait for acknowledgement: await send()' }))
      }
      const pending = { id, text, resolve, reject }
      this.#pending.set(id, pending)
      this.#unsent.add(pending)
      this.#size += text.length
    })
  }

  /** The next events to send: at least one, and at most so many characters. They stay here until they are acknowledged. */
  take({ events = Infinity, size = Infinity } = {}): readonly Outgoing[] {
    const taken: Outgoing[] = []
    let left = size
    for (const pending of this.#unsent) {
      left -= pending.text.length
      if (taken.length === events || (taken.length > 0 && left < 0)) break
      taken.push(pending)
      this.#unsent.delete(pending)
    }
    return taken
  }

  /** Called when the connection is gone: all unacknowledged events are sent again, with the same ids. */
  rewind(): void {
    this.#unsent.clear()
    for (const pending of this.#pending.values()) this.#unsent.add(pending)
  }

  acknowledge(ids: readonly string[]): void {
    for (const id of ids) this.#remove(id)?.resolve()
  }

  refuse(id: string, error: UampClientError): void {
    this.#remove(id)?.reject(error)
  }

  get largest(): Outgoing | undefined {
    let largest: Outgoing | undefined
    for (const pending of this.#pending.values()) if (pending.text.length > (largest?.text.length ?? 0)) largest = pending
    return largest
  }

  close(error: UampClientError): void {
    this.#over ??= error
    for (const id of [...this.#pending.keys()]) this.refuse(id, error)
  }

  #remove(id: string): Pending | undefined {
    const pending = this.#pending.get(id)
    if (!pending) return undefined
    this.#pending.delete(id)
    this.#unsent.delete(pending)
    this.#size -= pending.text.length
    return pending
  }
}
