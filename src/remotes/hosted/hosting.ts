import { isSamePrincipal, principalKey } from '../../core/basics/principal.ts'
import { RateLimiter } from '../../core/basics/rate-limiter.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { AgentPort } from '../../core/ports/agent.ts'
import type { Hosting, HostingSocket } from '../../core/ports/hosting.ts'
import type { LiveUses } from '../../core/ports/live.ts'
import type { Gateway } from '../../core/ports/session.ts'
import type { Agents, Logger } from '../../core/ports/transport.ts'
import type { ClientProfile } from '../../protocol/capabilities.ts'
import { UampError } from '../../protocol/errors.ts'
import { HostedAgent } from './agent.ts'
import { endOf, expiring, Guest } from './guest.ts'
import { GuestsOfSocket } from './socket.ts'

/** The names that clients host, those that are offline among them. */
const NAMES = 10_000
/** Of one principal. */
const NAMES_EACH = 1_000
/** Processes that host one name at once, those that may come back among them. */
const GUESTS_EACH = 256
const WATCH_MS = 1_000
/** Processes of an agent that are remembered after another one has taken over: the news may be lost with their socket. */
const REPLACED = 64
/** Refusals of one principal that are logged, so that nobody can fill the disk. */
const LOGGED = { perSecond: 0.1, burst: 8 }

export interface HostingOptions {
  /** Where hosted agents are offered. */
  readonly agents: Agents & { add(agent: AgentPort): void; remove(name: string): boolean }
  readonly gateway: Pick<Gateway, 'authorize' | 'hold'>
  readonly log: Logger
  readonly newId: () => string
  readonly now: () => number
  readonly monotonic: () => number
  /** What happens when a second process hosts a name. Default: it takes over, and the first one is told to leave. */
  readonly mode?: 'share' | 'takeover' | undefined
  /** How long an answer waits for an agent whose socket is gone. */
  readonly resumeWindowMs: number
  /** How long an agent that is offline stays known: its name is kept for its owner, and callers are told to come back. */
  readonly knownMs: number
  /** How long an agent may say nothing at all to a request. */
  readonly silenceMs: number
  readonly live: LiveUses
  /** The bytes of a message that the server takes. */
  readonly messageBytes: number
}

/** What a `session.create` brings that hosts an agent. */
export interface Arrival {
  readonly name: string
  readonly principal: Principal
  readonly instance: string | undefined
}

/** What became of it. */
export interface Admitted {
  readonly agent: HostedAgent
  readonly guest: Guest
  /** The same process has hosted the agent before, over another socket. */
  readonly resumed: boolean
}

/** The agents of clients, by name. */
export class HostedAgents implements Hosting {
  readonly options: HostingOptions
  readonly #agents = new Map<string, HostedAgent>()
  #timer: ReturnType<typeof setInterval> | undefined

  readonly #logged: RateLimiter

  constructor(options: HostingOptions) {
    this.options = options
    this.#logged = new RateLimiter({ ...LOGGED, monotonic: options.monotonic })
  }

  open(socket: HostingSocket): GuestsOfSocket {
    return new GuestsOfSocket(this, socket)
  }

  /**
   * True if a session that comes with a token of this principal is there to host the agent, and not to talk to it. Whoever may host
   * many names talks to those that are taken; a token that is made for one name hosts it, or is told that it is taken.
   */
  isOwnToken({ name, principal }: Pick<Arrival, 'name' | 'principal'>): boolean {
    if (!this.mayHost({ name, principal })) return false
    return !this.#isTaken(name, principal) || principal.scopes.includes(`host:${name}`)
  }

  mayHost({ name, principal }: Pick<Arrival, 'name' | 'principal'>): boolean {
    try {
      this.options.gateway.authorize(principal, 'host', name)
      return true
    } catch {
      return false
    }
  }

  /** Finds a place for an agent's end that has come, or come back. Throws if it may not host the name. */
  admit(arrival: Arrival): Admitted {
    const { name, principal, instance } = arrival
    const { agents, gateway } = this.options
    gateway.authorize(principal, 'host', name)
    const agent = this.#agentOf(arrival)
    const known = instance === undefined ? undefined : [...agent.guests].find((guest) => guest.options.instance === instance)
    if (!known && agent.guests.size >= GUESTS_EACH) {
      throw new UampError('rate_limited', `At most ${GUESTS_EACH} processes host one agent`, {
        details: { limit: GUESTS_EACH, retry_after: 60 },
      })
    }
    const guest = known ?? new Guest({ ...this.options, agent: name, principal, instance })
    // Its old socket may not be known to be dead yet.
    known?.detach()
    agent.guests.add(guest)
    this.renew(guest, principal)
    if (agents.get(name) !== agent) agents.add(agent)
    this.#watchFrom()
    return { agent, guest, resumed: known !== undefined }
  }

  /** The ends that must leave because this one has come. */
  rivalsOf(agent: HostedAgent, guest: Guest): readonly Guest[] {
    return this.options.mode === 'share' ? [] : [...agent.guests].filter((other) => other !== guest && !other.leaving)
  }

  /** Tells an end that another one has come. What it answers goes on. */
  replace(agent: HostedAgent, guest: Guest): void {
    const { instance } = guest.options
    if (instance !== undefined) agent.replaced.add(instance)
    if (agent.replaced.size > REPLACED) agent.replaced.delete(agent.replaced.values().next().value ?? '')
    // One that is away does not come back: what it was asked is lost.
    if (guest.connected) guest.send([endOf(guest)])
    else guest.fail()
    this.leave(guest)
  }

  /** True if the end was told to leave for another one that is still there. */
  isReplaced({ guests, replaced }: HostedAgent, guest: Guest): boolean {
    const { instance } = guest.options
    if (instance === undefined || !replaced.has(instance)) return false
    if ([...guests].some((other) => other !== guest && !other.leaving)) return true
    replaced.delete(instance)
    return false
  }

  logRefusal(name: string, principal: Principal, { code, message }: UampError): void {
    if (this.#logged.take(principalKey(principal)) > 0) return
    this.options.log('warn', 'An agent was not hosted', { agent: name, principal: principal.id, code, because: message })
  }

  describe({ options }: Guest, capabilities: ClientProfile): void {
    this.#agents.get(options.agent)?.describe(capabilities)
  }

  /** Newer credentials of whoever hosts it: what it says counts as long as they do. */
  renew(guest: Guest, principal: Principal): void {
    guest.principal = principal
    guest.unwatch()
    guest.unwatch = this.options.live.add({
      principal: () => guest.principal,
      expired: (grace) => guest.send([expiring(guest, grace)]),
      cut: (reason) => this.#cut(guest, reason),
    })
  }

  /** An end of an agent takes no new requests. */
  leave(guest: Guest): void {
    guest.leaving = true
    this.#saw(guest)
    this.#forgetIfOver(guest)
  }

  /** The socket of an end is gone. */
  lost(guest: Guest): void {
    this.#saw(guest)
    guest.detach()
    if (!guest.resumes) this.#remove(guest)
  }

  /** True if the name belongs to an agent of the server, or to another principal. */
  #isTaken(name: string, principal: Principal): boolean {
    const known = this.options.agents.get(name)
    const hosted = this.#agents.get(name)
    return (known !== undefined && known !== hosted) || (hosted !== undefined && !isSamePrincipal(hosted.owner, principal))
  }

  #agentOf({ name, principal }: Arrival): HostedAgent {
    if (this.#isTaken(name, principal)) throw taken(name)
    const hosted = this.#agents.get(name)
    if (hosted) return hosted
    let mine = 0
    for (const { owner } of this.#agents.values()) if (isSamePrincipal(owner, principal)) mine++
    if (this.#agents.size >= NAMES || mine >= NAMES_EACH) {
      throw new UampError('rate_limited', 'Too many agents are hosted', { details: { limit: NAMES_EACH, retry_after: 60 } })
    }
    const agent = new HostedAgent(name, principal, this.options.monotonic)
    // Refuses a name that cannot be one.
    this.options.agents.add(agent)
    this.#agents.set(name, agent)
    return agent
  }

  #saw({ options }: Guest): void {
    const agent = this.#agents.get(options.agent)
    if (agent) agent.seenAt = this.options.monotonic()
  }

  #forgetIfOver(guest: Guest): void {
    if (!guest.leaving || guest.busy > 0) return
    this.#remove(guest)
    guest.unhost()
  }

  #remove(guest: Guest): void {
    guest.unwatch()
    this.#agents.get(guest.options.agent)?.guests.delete(guest)
  }

  #watchFrom(): void {
    if (this.#timer !== undefined) return
    this.#timer = setInterval(() => this.#watch(), WATCH_MS)
    // Node only: the timer must not keep the process running.
    ;(this.#timer as { unref?: () => void }).unref?.()
  }

  #watch(): void {
    const { monotonic, resumeWindowMs, knownMs, agents } = this.options
    const at = monotonic()
    for (const [name, agent] of this.#agents) {
      for (const guest of agent.guests) {
        guest.watch(at)
        if (!guest.connected && at - guest.lostAt > resumeWindowMs) {
          guest.fail()
          this.#remove(guest)
        }
        this.#forgetIfOver(guest)
      }
      agent.settle()
      if (agent.hosted.online) agent.seenAt = at
      else if (agent.guests.size === 0 && at - agent.seenAt > knownMs) {
        this.#agents.delete(name)
        if (agents.get(name) === agent) agents.remove(name)
      }
    }
    if (this.#agents.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** The credentials of whoever hosts it have ended: what it says counts no more. */
  #cut(guest: Guest, reason: string): void {
    guest.send([endOf(guest, reason)])
    guest.fail()
    guest.detach()
    this.#remove(guest)
  }
}

function taken(name: string): UampError {
  return new UampError('conflict', `The name "${name}" is taken: host the agent under another`, { details: { agent: name } })
}
