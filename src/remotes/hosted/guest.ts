import type { Turn } from '../../core/ports/agent.ts'
import type { Principal } from '../../core/ports/access.ts'
import type { Gateway } from '../../core/ports/session.ts'
import { agentOffline } from '../../core/basics/agent-offline.ts'
import { credentialsEnded, TOKEN_EXPIRED } from '../../core/basics/principal.ts'
import { UampError } from '../../protocol/errors.ts'
import { TAKEOVER } from '../../wire/connect.ts'
import { farewell, Interaction, type Way } from './interaction.ts'
import { requestOf } from './request.ts'

/** Requests that one end of an agent answers at once. */
const INTERACTIONS = 1024
/** Interactions that ended while the socket was gone, and that the other end has to be told of. */
const FAREWELLS = 1024

/** A socket as its guests see it. */
export interface GuestSocket {
  readonly interactions: Map<string, Interaction>
  /** The session is over. */
  forget(sessionId: string): void
  write(texts: readonly string[]): void
}

export interface GuestOptions {
  readonly agent: string
  readonly principal: Principal
  /** Names the process that hosts the agent. Undefined: it knows nothing of our additions. */
  readonly instance: string | undefined
  readonly gateway: Pick<Gateway, 'hold'>
  /** How long it may say nothing at all to a request. */
  readonly silenceMs: number
  readonly monotonic: () => number
  readonly newId: () => string
}

/** One process that answers for an agent, over one socket after the other. */
export class Guest implements Way {
  readonly options: GuestOptions
  principal: Principal
  /** The session of the agent on the present socket. */
  sessionId = ''
  /** It takes no new requests, and finishes those that it has. */
  leaving = false
  /** When the socket was lost. */
  lostAt = 0
  /** What it says counts with the credentials of its principal until this is called. */
  unwatch: () => void = () => undefined
  #socket: GuestSocket | undefined
  readonly #interactions = new Map<string, Interaction>()
  #farewells: string[] = []

  constructor(options: GuestOptions) {
    this.options = options
    this.principal = options.principal
  }

  get resumes(): boolean {
    return this.options.instance !== undefined
  }

  get online(): boolean {
    return this.#socket !== undefined && !this.leaving
  }

  get connected(): boolean {
    return this.#socket !== undefined
  }

  isAt(socket: GuestSocket): boolean {
    return this.#socket === socket
  }

  get busy(): number {
    return this.#interactions.size
  }

  /** Asks the agent for a turn. */
  begin(turn: Turn): Interaction {
    const { agent: name, gateway, monotonic, newId } = this.options
    if (this.#interactions.size >= INTERACTIONS) {
      throw new UampError('overloaded', `The agent "${name}" answers too many requests already`, { details: { retry_after: 5 } })
    }
    const id = newId()
    const input = requestOf(turn, { id, agent: name })
    // What waits for a slow caller is counted to whoever sends it.
    const hold = gateway.hold(this.principal, 0)
    const interaction = new Interaction({ id, name, way: this, input, signal: turn.signal, hold, monotonic })
    this.#interactions.set(id, interaction)
    this.#socket?.interactions.set(id, interaction)
    interaction.start()
    return interaction
  }

  send(texts: readonly string[]): void {
    if (texts.length > 0) this.#socket?.write(texts)
  }

  left({ id }: Interaction): void {
    this.#interactions.delete(id)
    if (this.#socket) this.#socket.interactions.delete(id)
    else if (this.#farewells.length < FAREWELLS) this.#farewells.push(farewell(id))
  }

  /** The agent's end has come, or come back: what it missed is sent again. */
  attach(socket: GuestSocket, sessionId: string): void {
    this.#socket = socket
    this.sessionId = sessionId
    this.leaving = false
    for (const [id, interaction] of this.#interactions) socket.interactions.set(id, interaction)
  }

  /** Goes on where the last socket was lost. Call it when the other end knows that it is back. */
  resume(): void {
    this.send(this.#farewells.splice(0))
    for (const interaction of this.#interactions.values()) interaction.start()
  }

  /** The socket is gone, or belongs to it no more. */
  detach(): void {
    this.unwatch()
    for (const id of this.#interactions.keys()) this.#socket?.interactions.delete(id)
    this.#socket?.forget(this.sessionId)
    this.#socket = undefined
    this.lostAt = this.options.monotonic()
    if (!this.resumes) this.fail()
  }

  /** Its session on the present socket is over. Its last answers are. */
  unhost(): void {
    this.#socket?.forget(this.sessionId)
  }

  /** Ends all that it was asked for. */
  fail(): void {
    const { agent } = this.options
    for (const interaction of this.#interactions.values()) {
      interaction.fail(agentOffline(`The agent "${agent}" went offline in the middle of its answer`, { agent, retry_after: 5 }))
    }
  }

  /** Gives up requests that the agent does not answer. An end that is away is given its own time to come back. */
  watch(now: number): void {
    if (!this.#socket) return
    const { agent, silenceMs } = this.options
    for (const interaction of this.#interactions.values()) {
      // Ends with our additions are alive as long as their socket is, and a turn has a time limit of its own.
      if ((interaction.begun && this.resumes) || now - interaction.heardAt < silenceMs) continue
      interaction.fail(new UampError('timeout', `The agent "${agent}" did not answer within ${silenceMs} ms`))
    }
  }
}

/** Tells that the credentials have expired, and how long newer ones are waited for. */
export function expiring({ sessionId }: Guest, graceSeconds: number): string {
  const error = credentialsEnded(TOKEN_EXPIRED, { grace_seconds: graceSeconds }).toBody()
  return JSON.stringify({ type: 'session.error', event_id: crypto.randomUUID(), session_id: sessionId, error })
}

/** Ends the session of a hosted agent. What it answers at the moment goes on. */
export function endOf({ sessionId }: Guest, reason: string = TAKEOVER): string {
  return JSON.stringify({ type: 'session.end', event_id: crypto.randomUUID(), session_id: sessionId, reason })
}
