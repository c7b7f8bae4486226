import { agentCapabilities } from '../../core/agent-kit/define-agent.ts'
import { agentOffline } from '../../core/basics/agent-offline.ts'
import type { AgentPort, Said, Turn } from '../../core/ports/agent.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { Capabilities, ClientProfile } from '../../protocol/capabilities.ts'
import { UampError } from '../../protocol/errors.ts'
import type { Draft, EventOf, ServerEvent } from '../../protocol/events.ts'
import { answered } from '../../upstream/line.ts'
import { Payer } from '../../upstream/payer.ts'
import { toDraft } from '../../wire/server-event.ts'
import type { Guest } from './guest.ts'

/** Seconds after which an agent that has just left may be back, and one that is away for longer. */
const SOON = 5
const LATER = 30
const SOON_MS = 60_000
/** Its callers are told of new capabilities at most this often. */
const DESCRIBE_MS = 1_000
/** Characters of a description. Every list of agents has it. */
const DESCRIPTION = 2_000

/** An agent that clients of this server host. Each request goes to the one of them that has the least to do. */
export class HostedAgent implements AgentPort {
  readonly name: string
  description?: string
  capabilities: Capabilities
  /** Whose agent it is, as long as its name is known. */
  readonly owner: Principal
  readonly guests = new Set<Guest>()
  /** The processes that others have taken over from, by instance. */
  readonly replaced = new Set<string>()
  /** When it was last online. */
  seenAt: number
  readonly #monotonic: () => number
  readonly #listeners = new Set<() => void>()
  /** What its end said of it last, until it is taken over. */
  #said: { readonly profile: ClientProfile | undefined; readonly description: string | undefined } | undefined
  #describedAt = -Infinity

  constructor(name: string, owner: Principal, monotonic: () => number) {
    this.name = name
    this.owner = owner
    this.#monotonic = monotonic
    this.seenAt = monotonic()
    this.capabilities = agentCapabilities(name, { modalities: ['text', 'image', 'audio', 'video', 'file'] })
  }

  get hosted(): { readonly online: boolean; readonly retryAfter: number } {
    const online = [...this.guests].some((guest) => guest.online)
    return { online, retryAfter: this.#monotonic() - this.seenAt < SOON_MS ? SOON : LATER }
  }

  run(turn: Turn): AsyncIterable<Said> {
    return answered(
      () => this.#choose().begin(turn),
      { turn, payer: new Payer(turn, { name: this.name, isHosted: true }) },
      (event) => this.#pass(event),
    )
  }

  /** Takes over what the agent's end says of it. */
  describe(profile: ClientProfile | undefined, description?: unknown): void {
    this.#said = {
      profile: profile ?? this.#said?.profile,
      description: typeof description === 'string' ? description.slice(0, DESCRIPTION) : this.#said?.description,
    }
    this.settle()
  }

  /** Does it later, if that was done just now: call it again after a while. */
  settle(): void {
    const at = this.#monotonic()
    if (!this.#said || at - this.#describedAt < DESCRIBE_MS) return
    const { profile, description } = this.#said
    this.#said = undefined
    this.#describedAt = at
    const before = JSON.stringify([this.capabilities, this.description])
    if (profile) this.capabilities = { ...agentCapabilities(this.name), ...profile, id: this.name } as Capabilities
    if (description !== undefined) this.description = description
    if (JSON.stringify([this.capabilities, this.description]) === before) return
    for (const changed of this.#listeners) changed()
  }

  onChange(changed: () => void): () => void {
    this.#listeners.add(changed)
    return () => this.#listeners.delete(changed)
  }

  #choose(): Guest {
    const there = [...this.guests].filter((guest) => guest.online)
    const [first, ...others] = there
    if (!first) throw agentOffline(`The agent "${this.name}" is offline`, { agent: this.name, retry_after: this.hosted.retryAfter })
    return others.reduce((least, guest) => (guest.busy < least.busy ? guest : least), first)
  }

  #pass(event: ServerEvent): Draft | undefined {
    switch (event.type) {
      case 'session.error':
        if (event.error.details?.['slowed'] === true) return undefined
        throw new UampError('provider_error', `The agent "${this.name}" refused: ${event.error.message}`, {
          details: { remote_code: event.error.code },
        })
      case 'response.error':
        return { type: 'response.error', error: ownError(event.error) }
      case 'session.end':
        throw new UampError('interrupted', `The agent "${this.name}" ended the session: ${event.reason ?? 'it gave no reason'}`)
      // Said by the session that hosts it, and about its own use of another server.
      case 'capabilities':
      case 'rate_limit':
        return undefined
      default:
        return toDraft(event)
    }
  }
}

type Failure = EventOf<'response.error'>['error']

/** An error as its agent may tell it. Who the caller is and what they may do is said by the host alone, and so is every header. */
function ownError({ code, message, details = {} }: Failure): Failure {
  const { challenge: _c, dpop_nonce: _n, allow: _a, ...kept } = details
  if (code !== 'unauthorized' && code !== 'forbidden') return { code, message, details: kept }
  return { code: 'provider_error', message, details: { ...kept, remote_code: code } }
}
