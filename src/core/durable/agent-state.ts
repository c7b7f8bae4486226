import { UampError } from '../../protocol/errors.ts'
import { utf8Length } from '../../protocol/json.ts'
import type { CoreLimits } from '../basics/limits.ts'
import type { Principal } from '../ports/access.ts'
import type { Keys } from '../ports/keys.ts'
import type { Store } from '../ports/store.ts'
import type { Shelf, TurnStore } from '../ports/turn-store.ts'
import { memoryPlace, principalPlace, sessionPlace, agentPlace, type Place } from './state-places.ts'

const KEY_LENGTH = 256
/** How often a change is tried again that another process was faster with. */
const ATTEMPTS = 8

type StateLimits = Pick<CoreLimits, 'stateBytes' | 'stateKeys' | 'stateTtlMs'>

export interface AgentStateOptions {
  readonly store: Store
  readonly keys: Keys | undefined
  readonly limits: StateLimits
  readonly now: () => number
}

/** The part of a session that its agent's state needs. */
export interface StateSession {
  readonly id: string
  readonly agent: string
  readonly owner: Principal
  readonly stored: boolean
  readonly stay: { readonly over: 'ended' | 'unloaded' | undefined }
  readonly held: { grow(part: 'state', bytes: number): void }
}

/** What the agents of a gateway remember. */
export class AgentState {
  readonly #options: AgentStateOptions
  readonly #lanes = new Lanes()

  constructor(options: AgentStateOptions) {
    this.#options = options
  }

  of(session: StateSession): TurnStore {
    const check = (): void => {
      if (session.stay.over === 'ended') throw new UampError('not_found', 'This session has ended, and what it remembered with it')
    }
    const place = session.stored ? sessionPlace(this.#options, session) : memoryPlace((bytes) => session.held.grow('state', bytes))
    return {
      session: this.#shelf(place, check),
      principal: this.#shelf(principalPlace(this.#options, session)),
      agent: this.#shelf(agentPlace(this.#options, session)),
    }
  }

  /** For a call that has no session. */
  outside(agent: string, owner: Principal): TurnStore {
    return this.of({ id: '', agent, owner, stored: false, stay: { over: undefined }, held: { grow: () => undefined } })
  }

  #shelf(place: Place, check: () => void = () => undefined): Shelf {
    return new PlacedShelf({ place, check, lanes: this.#lanes, limits: this.#options.limits })
  }
}

interface ShelfParts {
  readonly place: Place
  /** Throws if nothing may be written any more. */
  readonly check: () => void
  readonly lanes: Lanes
  readonly limits: StateLimits
}

class PlacedShelf implements Shelf {
  readonly #parts: ShelfParts

  constructor(parts: ShelfParts) {
    this.#parts = parts
  }

  async get<T>(key: string): Promise<T | undefined> {
    checkKey(key)
    const found = await this.#parts.place.read(key)
    return found && (JSON.parse(found.text) as T)
  }

  async set(key: string, value: unknown): Promise<void> {
    checkKey(key)
    if (value === undefined) throw new TypeError(`The value of "${key}" is undefined: delete the key instead`)
    await this.#write(key, value)
  }

  async delete(key: string): Promise<void> {
    checkKey(key)
    this.#parts.check()
    await this.#parts.place.remove(key)
  }

  async update<T>(key: string, change: (value: T | undefined) => T | undefined): Promise<T | undefined> {
    checkKey(key)
    const { place, lanes } = this.#parts
    return lanes.run(`${place.id} ${key}`, async () => {
      for (let attempt = 1; ; attempt++) {
        const found = await place.read(key)
        const value = change(found && (JSON.parse(found.text) as T))
        try {
          if (value !== undefined) await this.#write(key, value, found?.version ?? 0)
          else if (found) {
            this.#parts.check()
            await place.remove(key, found.version)
          }
          return value
        } catch (thrown) {
          if (!(thrown instanceof UampError) || thrown.code !== 'conflict' || attempt >= ATTEMPTS) throw thrown
        }
      }
    })
  }

  keys(): Promise<readonly string[]> {
    return this.#parts.place.names(this.#parts.limits.stateKeys)
  }

  async #write(key: string, value: unknown, version?: number): Promise<void> {
    const { place, check, limits } = this.#parts
    const text = JSON.stringify(value) as string | undefined
    if (text === undefined) throw new TypeError(`The value of "${key}" is a ${typeof value}, which is not JSON`)
    if (text.length * 3 > limits.stateBytes && utf8Length(text) > limits.stateBytes) {
      throw tooLarge(`The value of "${key}" is larger than ${limits.stateBytes} bytes`, limits.stateBytes)
    }
    // A key that is there already takes no more room.
    if ((await place.count()) >= limits.stateKeys && !(await place.read(key))) {
      throw tooLarge(`There are ${limits.stateKeys} keys already: delete some`, limits.stateKeys)
    }
    check()
    await place.write(key, text, version)
  }
}

function checkKey(key: string): void {
  if (typeof key === 'string' && key !== '' && key.length <= KEY_LENGTH) return
  throw new UampError('invalid_request', `A key is a text of 1 to ${KEY_LENGTH} characters`)
}

function tooLarge(message: string, limit: number): UampError {
  return new UampError('too_large', message, { details: { limit } })
}

/** Lets changes of the same value wait for each other, so that they do not all begin again after each one. */
class Lanes {
  readonly #last = new Map<string, Promise<unknown>>()

  async run<T>(lane: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(lane)
    const result = before ? before.then(work, work) : work()
    this.#last.set(lane, result)
    try {
      return await result
    } finally {
      if (this.#last.get(lane) === result) this.#last.delete(lane)
    }
  }
}
