import { UampError } from '../../protocol/errors.ts'
import { Budget, type Holding } from './budget.ts'
import type { CoreLimits } from '../basics/limits.ts'
import type { Principal } from '../ports/access.ts'
import type { Hold, Session } from '../ports/session.ts'
import type { AgentSession } from './session.ts'
import type { SessionState } from './session-parts.ts'
import { weigh, weighMessages } from '../basics/weight.ts'

/** How often `#countLogs` runs. */
const COUNT_MS = 1_000

/** The sessions in memory: how many there are, whose they are, and what they hold. */
export class OpenSessions {
  readonly #limits: CoreLimits
  readonly #budget: Budget
  readonly #sessions = new Map<string, AgentSession>()
  readonly #counter: ReturnType<typeof setInterval>

  constructor(limits: CoreLimits) {
    this.#limits = limits
    this.#budget = new Budget(limits)
    this.#counter = setInterval(() => this.#countLogs(), COUNT_MS)
    // Node only: the timer must not keep the process running.
    ;(this.#counter as { unref?: () => void }).unref?.()
  }

  get size(): number {
    return this.#sessions.size
  }

  /** How many sessions run a response now. */
  get responding(): number {
    let count = 0
    for (const session of this) if (session.responding) count++
    return count
  }

  get heldBytes(): number {
    return this.#budget.bytes
  }

  [Symbol.iterator](): Iterator<AgentSession> {
    return this.#sessions.values()
  }

  get(tenant: string, id: string): AgentSession | undefined {
    return this.#sessions.get(sessionKey(tenant, id))
  }

  /** Throws `rate_limited` when the principal or the process has too many sessions. */
  checkRoom(principal: Principal): void {
    const mine = this.#budget.sessionsOf(principal)
    const { sessions, sessionsPerPrincipal } = this.#limits
    if (mine < sessionsPerPrincipal && this.#sessions.size < sessions) return
    throw new UampError('rate_limited', 'Too many open sessions: end some, or try again later', {
      details: { limit: mine < sessionsPerPrincipal ? sessions : sessionsPerPrincipal, retry_after: 30 },
    })
  }

  /** Counts what a session holds, until the session is removed. Throws `overloaded`. */
  hold({ owner, config, client, messages, input, pending, waiting }: SessionState): Holding {
    const held = this.#budget.open(owner, 'session')
    try {
      held.grow('config', weigh(config) + weigh(client))
      held.grow('messages', weighMessages(messages))
      held.grow('pending', weighMessages(input ?? []) + weigh(pending))
      held.grow('answers', weigh(waiting?.record.answers))
      return held
    } catch (error) {
      held.close()
      throw error
    }
  }

  /** Counts memory beside sessions, such as an answer on its way to a client. Throws `overloaded`. */
  holdBeside(principal: Principal, bytes: number): Hold {
    const held = this.#budget.open(principal, 'beside')
    const hold: Hold = {
      set: (now) => held.set('output', now),
      grow: (now) => held.grow('output', now),
      close: () => held.close(),
    }
    try {
      hold.grow(bytes)
    } catch (error) {
      held.close()
      throw error
    }
    return hold
  }

  /** Counts records while they are read for a session that is still loading. */
  async reading<T>(principal: Principal, read: (count: (bytes: number) => void) => Promise<T>): Promise<T> {
    const hold = this.holdBeside(principal, 0)
    let bytes = 0
    try {
      return await read((more) => hold.grow((bytes += more)))
    } finally {
      hold.close()
    }
  }

  add(session: AgentSession): void {
    this.#sessions.set(sessionKey(session.owner.tenant, session.id), session)
  }

  remove(session: Session): void {
    const key = sessionKey(session.owner.tenant, session.id)
    const found = this.#sessions.get(key)
    if (found !== session) return
    this.#sessions.delete(key)
    found.held.close()
  }

  /** Takes a session out of memory whose data is in the store, or gone. */
  unload(session: AgentSession, over: 'ended' | 'unloaded' = 'unloaded'): void {
    session.stay.over = over
    session.log.end()
    this.remove(session)
  }

  clear(): void {
    clearInterval(this.#counter)
    this.#sessions.clear()
  }

  /**
   * Counts what logs keep for slow readers, and the ids of seen events. Counting with each event would cost more, and a second adds
   * little compared with the bound.
   */
  #countLogs(): void {
    for (const { held, log, seen } of this.#sessions.values()) {
      held.set('log', log.bytes)
      held.set('seen', seen.bytes)
    }
  }
}

const sessionKey = (tenant: string, id: string): string => `${tenant} ${id}`
