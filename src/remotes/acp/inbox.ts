import { UampError } from '../../protocol/errors.ts'
import type { Slot } from '../../protocol/json.ts'
import { CANCELLED, type Permission } from './permission.ts'

/** Bytes that wait to be passed on. A turn that is further behind is given up: the other ones are read from the same pipe. */
const UNREAD = 8 * 1024 * 1024

type Heard = { readonly update: Slot } | { readonly permission: Permission; readonly answer: (outcome: Slot) => void }

/** What one turn hears of its session, until it ends. */
export class Inbox {
  /** Why it ended, where nobody wanted it to. */
  failure: UampError | undefined
  readonly #given: () => void
  readonly #queue: { readonly heard: Heard; readonly bytes: number }[] = []
  readonly #asked = new Set<(outcome: Slot) => void>()
  #unread = 0
  #ended = false
  #wake: () => void = () => undefined

  /** `given`: it was given up. */
  constructor(given: () => void) {
    this.#given = given
  }

  add(heard: Heard, bytes: number): void {
    if (this.#ended) return
    if (this.#unread > UNREAD) {
      this.failure = new UampError('overloaded', `The answer was given up: more than ${UNREAD} bytes of it waited to be read`)
      this.end()
      return this.#given()
    }
    this.#unread += bytes
    this.#queue.push({ heard, bytes })
    this.#wake()
  }

  /** One that is not decided when the turn ends is not given. */
  ask(permission: Permission, bytes: number): Promise<Slot> {
    return new Promise((resolve) => {
      if (this.#ended) return resolve(CANCELLED)
      const answer = (outcome: Slot): void => {
        this.#asked.delete(answer)
        resolve(outcome)
      }
      this.#asked.add(answer)
      this.add({ permission, answer }, bytes)
    })
  }

  /** Undefined: there is no more. */
  async next(): Promise<Heard | undefined> {
    if (this.#queue.length === 0 && !this.#ended) await new Promise<void>((resolve) => (this.#wake = resolve))
    const next = this.#queue.shift()
    this.#unread -= next?.bytes ?? 0
    return next?.heard
  }

  /** What came before is still there, unless it was too much. */
  end(): void {
    this.#ended = true
    if (this.failure) this.#queue.length = 0
    this.#wake()
  }

  /** Nobody listens any more. */
  close(): void {
    this.end()
    this.#queue.length = 0
    for (const answer of this.#asked) answer(CANCELLED)
  }
}
