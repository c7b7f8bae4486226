import * as z from 'zod/mini'
import { agentOffline } from '../../core/basics/agent-offline.ts'
import { withHops } from '../../core/basics/hops.ts'
import { onBehalfOf } from '../../core/basics/principal.ts'
import type { Gateway } from '../../core/ports/session.ts'
import type { Logger } from '../../core/ports/transport.ts'
import { ClientProfile } from '../../protocol/capabilities.ts'
import { UampError } from '../../protocol/errors.ts'
import type { ClientEvent, EventOf } from '../../protocol/events.ts'
import { fieldsOf, isRecord, uampIn, type Slot } from '../../protocol/json.ts'
import { Message } from '../../protocol/message.ts'
import { parseClientEvent } from '../../protocol/parse.ts'
import { SessionConfig } from '../../protocol/session-config.ts'
import { RESUME, TAKEN } from '../../wire/connect.ts'
import { callerOf, errorText, Interaction, type Route } from './interaction.ts'

export type LocalGateway = Pick<Gateway, 'open' | 'remove'>

/** Sessions of a host that are kept. Beyond it, one that neither runs nor is new goes first. */
const MOST = 4096
/** How often `finish` looks whether everything is done. */
const LOOK_MS = 20

export interface InteractionsOptions {
  readonly gateway: LocalGateway
  readonly log: Logger
  readonly newId: () => string
  readonly host: string
}

/** The sessions of one host, by its ids. */
export class Interactions {
  readonly #options: InteractionsOptions
  readonly #byId = new Map<string, Interaction>()
  /** What is being done with the last event of each session. The next one waits for it: it may be about what that one opens. */
  readonly #underWay = new Map<string, Promise<void>>()
  /** Where events of each agent go at the moment. */
  readonly #routes = new Map<string, Route>()
  #hasComplained = false
  /** The host knows our additions. */
  isOurs = false

  constructor(options: InteractionsOptions) {
    this.#options = options
  }

  /** An agent is hosted from now on. `resumed`: the host remembers what it asked before. */
  attach(route: Route, { agent, resumed }: { readonly agent: string; readonly resumed: boolean }): void {
    this.isOurs = route.isOurs
    this.#routes.set(agent, route)
    // Nobody will ask for these again.
    if (!resumed) this.forgetAll(agent)
  }

  /** True if the host has not yet taken all answers of an agent. */
  isAnswering(agent: string): boolean {
    return [...this.#byId.values()].some((interaction) => interaction.agent === agent)
  }

  /** The socket is gone. */
  detach(): void {
    this.#routes.clear()
    for (const interaction of this.#byId.values()) {
      if (this.isOurs) interaction.detach()
      else this.#forget(interaction.id)
    }
  }

  /** Takes one event of the host. `agent`: whose it is, if it opens an interaction; undefined: no new ones are taken. */
  receive(value: Record<string, unknown>, agent: string | undefined): void {
    const { type, session_id: id } = value
    if (typeof id !== 'string') return
    const known = this.#byId.get(id)
    if (type === TAKEN) return known?.taken(Number(value['seq']) || 0)
    if (type === RESUME) return this.#resume(id, value['after'])
    this.#next(id, () =>
      this.#take(id, value, agent).catch((thrown: unknown) => this.#refuse(id, agent ?? this.#byId.get(id)?.agent, thrown)),
    )
  }

  /** The host has ended a session: what runs in it is cancelled. */
  end(id: unknown): void {
    if (typeof id === 'string') this.#next(id, () => this.#forget(id))
  }

  /** Cancels and forgets all that an agent was asked. */
  forgetAll(agent: string): void {
    for (const interaction of this.#byId.values()) if (interaction.agent === agent) this.#forget(interaction.id)
  }

  #next(id: string, what: () => void | Promise<void>): void {
    const before = this.#underWay.get(id)
    const done = before ? before.then(what) : what()
    if (!done) return
    this.#underWay.set(id, done)
    void done.then(() => this.#underWay.get(id) === done && this.#underWay.delete(id))
  }

  #forget(id: string): void {
    const interaction = this.#byId.get(id)
    if (!interaction) return
    this.#byId.delete(id)
    interaction.detach()
    void this.#remove(interaction)
  }

  /** Resolves when nothing runs any more, and everything is sent, or after this time. */
  async finish(graceMs: number): Promise<void> {
    const until = performance.now() + graceMs
    const isBusy = (): boolean => {
      if (this.#underWay.size > 0) return true
      // The host says when it has the whole answer.
      if (this.isOurs) return this.#byId.size > 0
      return [...this.#byId.values()].some((each) => each.isAnswering) || [...this.#routes.values()].some(({ outbox }) => !outbox.isEmpty)
    }
    while (isBusy() && performance.now() < until) await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }

  /** Tells the host that answers which have not ended never will. */
  abandon(): void {
    const error = agentOffline('The agent was stopped in the middle of its answer', { retry_after: 5 })
    for (const { id, agent, isAnswering } of this.#byId.values()) {
      if (isAnswering) this.#routes.get(agent)?.outbox.add(errorText(id, error))
    }
  }

  async close(): Promise<void> {
    const all = [...this.#byId.values()]
    this.#byId.clear()
    for (const interaction of all) interaction.detach()
    await Promise.all(all.map((interaction) => this.#remove(interaction)))
  }

  async #remove({ session }: Interaction): Promise<void> {
    const { gateway, log } = this.#options
    await gateway.remove(session.id, session.owner).catch((error: unknown) => log('warn', 'An interaction could not be removed', { error }))
  }

  #resume(id: string, after: unknown): void {
    const interaction = this.#byId.get(id)
    const route = this.#routes.get(interaction?.agent ?? '') ?? this.#routes.values().next().value
    if (!route) return
    try {
      if (!interaction) throw new UampError('interrupted', 'The agent was started anew, and no longer knows the request')
      interaction.follow(route, Number(after) || 0)
    } catch (thrown) {
      route.outbox.add(errorText(id, UampError.from(thrown)))
    }
  }

  async #take(id: string, value: Record<string, unknown>, agent: string | undefined): Promise<void> {
    const { newId, log } = this.#options
    // Ours is read as it is: its bounds are for strangers, and the agent must not see it.
    const extensions = fieldsOf(value['extensions'])
    const { connect, ...others } = uampIn(extensions)
    const plain = isRecord(connect) ? { ...value, extensions: { ...extensions, uamp: others } } : value
    const parsed = parseClientEvent(plain, newId)
    if (parsed.kind === 'unknown') {
      if (!this.#hasComplained) log('info', 'Ignored an event of unknown type', { type: parsed.type })
      this.#hasComplained = true
      return
    }
    const { event } = parsed
    const known = this.#byId.get(id)
    if (isInput(event)) return this.#input(withAll(event, fieldsOf(connect)), { id, agent, connect: fieldsOf(connect), known })
    if (!known) return
    await known.send(event)
    const route = this.#routes.get(known.agent)
    if (route?.isOurs) route.outbox.add(JSON.stringify({ type: 'x.ack', session_id: id, event_ids: [event.event_id] }))
  }

  async #input(event: InputEvent, { id, agent, connect, known }: Asked): Promise<void> {
    const { extensions, metadata } = fieldsOf(connect['asked'])
    const asked = { ...(isRecord(extensions) && { extensions }), ...(isRecord(metadata) && { metadata }) }
    if (known) {
      const route = this.#routes.get(known.agent)
      // The host asks again because it does not know whether it was heard.
      if (route?.isOurs) return known.follow(route, 0)
      return known.input(event, asked)
    }
    if (agent === undefined) throw agentOffline('The agent takes no new requests', { retry_after: 5 })
    const interaction = await this.#open(id, agent, connect)
    await interaction.input(event, asked)
  }

  async #open(id: string, agent: string, connect: Slot): Promise<Interaction> {
    const { gateway, newId, host } = this.#options
    this.#makeRoom()
    const { client, chat, caller } = connect
    const config = z.safeParse(SessionConfig, connect['config'] ?? {})
    const profile = z.safeParse(ClientProfile, client)
    if (!config.success) throw new UampError('invalid_request', 'The settings of the request cannot be read')
    const { tenant, id: owner } = callerOf(host, fieldsOf(caller))
    const { issuer, subject, labels } = fieldsOf(caller)
    const principal = Object.assign(onBehalfOf(tenant, owner), {
      ...(typeof issuer === 'string' && { issuer }),
      ...(typeof subject === 'string' && { subject }),
      ...(Array.isArray(labels) && { labels: labels.filter((label) => typeof label === 'string') }),
    })
    const trace = withHops(undefined, connect['hops'])
    const session = await gateway.open({
      transport: 'events',
      agent,
      principal,
      ...(trace && { trace }),
      config: config.data,
      duplex: true,
      persist: true,
      onDetach: 'continue',
      paidThere: true,
      ...(profile.success && { client: profile.data }),
      ...(typeof chat === 'string' && { announce: { chat } }),
    })
    const interaction = new Interaction({ id, agent, session, principal, newId })
    this.#byId.set(id, interaction)
    const route = this.#routes.get(agent)
    if (route) interaction.follow(route, 0)
    return interaction
  }

  #makeRoom(): void {
    if (this.#byId.size < MOST) return
    const idle = [...this.#byId.values()].find(({ isAnswering }) => !isAnswering)
    if (!idle) throw new UampError('overloaded', 'Too many requests run at once', { details: { retry_after: 5 } })
    this.#forget(idle.id)
  }

  #refuse(id: string, agent: string | undefined, thrown: unknown): void {
    const { log } = this.#options
    const error = UampError.from(thrown)
    if (error.code === 'internal') log('error', 'A request of the host failed', { error: error.cause ?? error })
    const route = this.#routes.get(agent ?? '') ?? this.#routes.values().next().value
    route?.outbox.add(errorText(id, error))
  }
}

type InputEvent = EventOf<'input.text' | 'input.audio' | 'input.image' | 'input.video' | 'input.file'>

interface Asked {
  readonly id: string
  readonly agent: string | undefined
  readonly connect: Slot
  readonly known: Interaction | undefined
}

function isInput(event: ClientEvent): event is InputEvent {
  return /^input\.(?!typing)/.test(event.type)
}

/** With the beginning of a conversation that is longer than one event may have. */
function withAll(event: InputEvent, { before }: Slot): InputEvent {
  if (event.type !== 'input.text' || before === undefined) return event
  const read = z.safeParse(z.array(Message), before)
  if (!read.success) throw new UampError('invalid_request', 'The conversation cannot be read')
  return { ...event, messages: [...read.data, ...(event.messages ?? [])] }
}
