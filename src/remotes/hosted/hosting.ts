import { isSamePrincipal } from '../../core/basics/principal.ts'
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
/** How long an agent that is offline stays known: its name is kept for its owner, and callers are told to come back. */
const KNOWN_MS = 10 * 60_000
const WATCH_MS = 1_000

export interface HostingOptions {
  /** Where hosted agents are offered. */
  readonly agents: Agents & { add(agent: AgentPort): void; remove(name: string): boolean }
  readonly gateway: Pick<Gateway, 'authorize'>
  readonly log: Logger
  readonly newId: () => string
  readonly now: () => number
  readonly monotonic: () => number
  /** What happens when a second process hosts a name. Default: it takes over, and the first one is told to leave. */
  readonly mode?: 'share' | 'takeover' | undefined
  /** How long an answer waits for an agent whose socket is gone. */
  readonly resumeWindowMs: number
  /** How long the name of an agent that is offline is kept. */
  readonly knownMs?: number | undefined
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

/** The agents of clients, by name. */
export class HostedAgents implements Hosting {
  readonly options: HostingOptions
  readonly #agents = new Map<string, HostedAgent>()
  #timer: ReturnType<typeof setInterval> | undefined

  constructor(options: HostingOptions) {
    this.options = options
  }

  open(socket: HostingSocket): GuestsOfSocket {
    return new GuestsOfSocket(this, socket)
  }

  /** True if the principal may host an agent of this name, or the name is theirs already. */
  mayHost({ name, principal }: Pick<Arrival, 'name' | 'principal'>): boolean {
    const known = this.options.agents.get(name)
    if (known && (known !== this.#agents.get(name) || !isSamePrincipal(this.#agents.get(name)?.owner ?? principal, principal))) return false
    try {
      this.options.gateway.authorize(principal, 'host', name)
      return true
    } catch {
      return false
    }
  }

  /** Finds a place for an agent's end that has come, or come back. Throws if it may not host the name. */
  admit(arrival: Arrival): { readonly agent: HostedAgent; readonly guest: Guest; readonly resumed: boolean } {
    const { name, principal, instance } = arrival
    const { agents, gateway, monotonic, newId } = this.options
    gateway.authorize(principal, 'host', name)
    const agent = this.#agentOf(arrival)
    const known = instance === undefined ? undefined : [...agent.guests].find((guest) => guest.options.instance === instance)
    const guest = known ?? new Guest({ agent: name, principal, instance, monotonic, newId })
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
    if (!guest.resumes) this.#agents.get(guest.options.agent)?.guests.delete(guest)
  }

  #agentOf({ name, principal }: Arrival): HostedAgent {
    const known = this.options.agents.get(name)
    const hosted = this.#agents.get(name)
    if (known && known !== hosted) throw taken(name)
    if (hosted && !isSamePrincipal(hosted.owner, principal)) throw taken(name)
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
    const { monotonic, resumeWindowMs, knownMs = KNOWN_MS, agents } = this.options
    const at = monotonic()
    for (const [name, agent] of this.#agents) {
      for (const guest of agent.guests) {
        guest.watch(at)
        if (!guest.connected && at - guest.lostAt > resumeWindowMs) {
          guest.fail()
          agent.guests.delete(guest)
        }
        this.#forgetIfOver(guest)
      }
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
    this.#agents.get(guest.options.agent)?.guests.delete(guest)
  }
}

function taken(name: string): UampError {
  return new UampError('conflict', `The name "${name}" is taken: host the agent under another`, { details: { agent: name } })
}
