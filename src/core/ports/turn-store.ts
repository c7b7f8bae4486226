import type { Json } from '../../protocol/json.ts'

/** What an agent remembers between turns. */
export interface TurnStore {
  /** What belongs to this session, and goes with it. */
  readonly session: Shelf
  /** What belongs to whoever is asking, in all their sessions with this agent. */
  readonly principal: Shelf
  /** What belongs to the agent itself: everybody of this tenant has the same. */
  readonly agent: Shelf
}

/** Values by key. A value is anything that JSON can express. */
export interface Shelf {
  get<T = Json>(key: string): Promise<T | undefined>
  /** Resolves when the value is stored. */
  set(key: string, value: unknown): Promise<void>
  delete(key: string): Promise<void>
  /**
   * Changes a value in one step, whoever else changes it at the same time. `change` gets the value, undefined if there is none, and
   * returns the new one, undefined to delete it. It may be called several times. Resolves with the new value.
   */
  update<T = Json>(key: string, change: (value: T | undefined) => T | undefined): Promise<T | undefined>
  keys(): Promise<readonly string[]>
}
