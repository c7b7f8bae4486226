import { UampError } from '../protocol/errors.ts'
import type { AgentRegistry } from './agent-registry.ts'
import { Committer } from './committer.ts'
import { Ticker } from './defer.ts'
import { fetchHttp } from './fetch-http.ts'
import { timeOrderedId } from './ids.ts'
import { isInput, withContentIds } from './input.ts'
import { Journal } from './journal.ts'
import { CORE_LIMITS, type CoreLimits } from './limits.ts'
import { Log } from './log.ts'
import { LogStore } from './log-store.ts'
import { Parking } from './parking.ts'
import type { Principal } from './ports/access.ts'
import type { AgentPort } from './ports/agent.ts'
import type { HttpClient } from './ports/http.ts'
import type { Redaction } from './ports/redaction.ts'
import type { Keys } from './ports/keys.ts'
import type { Gateway, Session, SessionInit, SessionSummary, StoredTurn } from './ports/session.ts'
import type { Page, PageRequest, Store } from './ports/store.ts'
import type { Log as LogLine, Meter } from './ports/transport.ts'
import { Records } from './records.ts'
import { Secrets } from './secrets.ts'
import { closeInterrupted } from './recovery.ts'
import { messagesOf, startOf, withAnswers } from './run.ts'
import { AgentSession } from './session.ts'
import type { SessionHost, SessionState, Stored } from './session-parts.ts'
import { StoredTurns } from './stored-turns.ts'
import { Turnstile } from './turnstile.ts'

/**
 * After a restart numbering goes on so far above the last committed number. What was sent and not committed before is less
 * than this, so no number stands for two events.
 */
const RESTART_GAP = 1_000_000

export interface GatewayOptions {
  readonly agents: AgentRegistry
  readonly store: Store
  readonly limits?: Partial<CoreLimits>
  readonly log?: LogLine
  readonly meter?: Meter
  /** How agents call the outside. Default: `fetch`. */
  readonly http?: HttpClient
  /** What must not stand in errors, and what secrets of clients are sealed with. Default: nothing is known, and none is stored. */
  readonly secrets?: Redaction
  readonly keys?: Keys
  readonly now?: () => number
  readonly newId?: () => string
}

export interface AgentGateway extends Gateway {
  readonly openSessions: number
  readonly openResponses: number
  /** Closes what a crash left open. Call it before the first session. */
  start(): Promise<void>
  /** No new work; running responses get the grace time, then are interrupted. */
  drain(graceMs: number): Promise<void>
  close(): Promise<void>
}

/** Sessions on the agents of a registry. */
export function createGateway(options: GatewayOptions): AgentGateway {
  return new SessionGateway(options)
}

class SessionGateway implements AgentGateway, SessionHost {
  readonly limits: CoreLimits
  readonly log: LogLine
  readonly meter: Meter | undefined
  readonly http: HttpClient
  readonly secrets: Redaction
  readonly now: () => number
  readonly newId: () => string
  readonly turnstile = new Turnstile()
  readonly #agents: AgentRegistry
  readonly #records: Records
  readonly #turns: StoredTurns
  readonly #store: Store
  readonly #instance: string
  readonly #ticker = new Ticker()
  readonly #committer: Committer
  readonly #sessions = new Map<string, AgentSession>()
  readonly #loading = new Map<string, Promise<AgentSession | undefined>>()
  readonly #perPrincipal = new Map<string, number>()
  readonly #parking: Parking
  readonly #sweeper: ReturnType<typeof setInterval>
  readonly #unsubscribe: () => void
  #draining = false
  #sweeping = false

  constructor({
    agents,
    store,
    limits,
    meter,
    http = fetchHttp(),
    log = () => undefined,
    secrets = new Secrets(),
    keys,
    now = Date.now,
    newId = () => timeOrderedId(now()),
  }: GatewayOptions) {
    this.limits = { ...CORE_LIMITS, ...limits }
    this.log = log
    this.meter = meter
    this.http = http
    this.secrets = secrets
    this.now = now
    this.newId = newId
    this.#instance = newId()
    this.#agents = agents
    this.#store = store
    this.#records = new Records(store, this.limits.sessionTtlMs, keys)
    this.#turns = new StoredTurns(this.#records)
    this.#committer = new Committer(log)
    this.#parking = new Parking(this.limits.parkedPerPrincipal)
    this.#unsubscribe = agents.onChange((name) => {
      for (const session of this.#sessions.values()) if (session.agent === name) session.announceCapabilities()
    })
    this.#sweeper = setInterval(() => void this.#sweep(), this.limits.sweepMs)
    // Node only: a gateway alone does not keep the process up.
    ;(this.#sweeper as { unref?: () => void }).unref?.()
  }

  get openSessions(): number {
    return this.#sessions.size
  }

  get openResponses(): number {
    let count = 0
    for (const session of this.#sessions.values()) if (session.responding) count++
    return count
  }

  findAgent(name: string) {
    return this.#agents.get(name)
  }

  admit(agent: string): AgentPort {
    if (this.#draining) throw new UampError('overloaded', 'The server is shutting down: try again shortly', { details: { retry_after: 5 } })
    const found = this.#agents.get(agent)
    if (found) return found
    throw new UampError('agent_offline', `There is no agent "${agent}" here`, { details: { agent, agents: this.#agents.names() } })
  }

  async open(init: SessionInit): Promise<Session> {
    this.admit(init.agent)
    this.#checkRoom(init.principal)
    const { principal, parent } = init
    const turns = parent === undefined ? [] : await this.#ownTurns(principal, parent)
    const history = [...withContentIds(init.history ?? [], this.newId), ...turns.flatMap(messagesOf)]
    const state: SessionState = {
      id: `sess_${this.newId()}`,
      transport: init.transport,
      agent: init.agent,
      owner: principal,
      config: init.config,
      duplex: init.duplex,
      onDetach: init.onDetach,
      createdAt: this.now(),
      client: init.client,
      head: parent ?? null,
      messages: history,
      pending: [],
      waiting: undefined,
      payment: init.payment,
      input: init.input,
    }
    const { session, journal } = this.#build(
      state,
      init.persist ? { position: 0, head: 0, inputs: 0, unused: [], turn: parent ?? null } : undefined,
    )
    // Of one request and its reply, nobody sees how the session began.
    if (init.duplex) session.announce(init.announce)
    this.#keep(session)
    try {
      const alias = init.alias ? [await this.#records.setAlias(principal, init.alias, session.id)] : []
      if (init.input) journal?.beginLater(session, { alias, silent: init.silent ?? false })
      else await journal?.begin(session, alias)
    } catch (error) {
      this.ended(session)
      throw error
    }
    return session
  }

  async attach(id: string | { readonly protocol: string; readonly id: string }, principal: Principal): Promise<Session | undefined> {
    const sessionId = typeof id === 'string' ? id : await this.#records.alias(principal, id)
    if (sessionId === undefined) return undefined
    const key = sessionKey(principal.tenant, sessionId)
    const session = this.#sessions.get(key) ?? (await this.#load(key, principal.tenant, sessionId))
    return session?.owner.id === principal.id ? session : undefined
  }

  async list(principal: Principal, { agent, ...request }: PageRequest & { readonly agent?: string }): Promise<Page<SessionSummary>> {
    const limit = request.limit ?? 100
    const items: SessionSummary[] = []
    let next = request.after
    do {
      const page = await this.#records.list(principal, { limit: limit - items.length, ...(next !== undefined && { after: next }) })
      for (const head of page.items) {
        if (agent !== undefined && head.agent !== agent) continue
        const found = await this.#records.session(principal.tenant, head.id)
        if (found) items.push({ id: head.id, agent: head.agent, updatedAt: head.updatedAt, config: found.session.config })
      }
      next = page.next
    } while (items.length < limit && next !== undefined)
    return { items, next }
  }

  turn(id: string, principal: Principal): Promise<StoredTurn | undefined> {
    return this.#turns.find(id, principal)
  }

  async forget(id: string, principal: Principal): Promise<boolean> {
    const turn = await this.#turns.find(id, principal)
    if (!turn) return false
    const session = this.#sessions.get(sessionKey(principal.tenant, turn.session))
    await session?.forget(id)
    const removed = await this.#turns.remove(id, principal)
    if (session && removed === 'session') {
      session.log.end()
      this.ended(session)
    }
    return removed !== undefined
  }

  async remove(id: string, principal: Principal): Promise<boolean> {
    const session = await this.attach(id, principal)
    if (!session) return false
    await session.end('deleted')
    await this.#records.removeSession(principal.tenant, id)
    return true
  }

  async start(): Promise<void> {
    const interrupted = await closeInterrupted(this.#records, RESTART_GAP)
    if (interrupted > 0) this.log('warn', 'Responses that the last run left open were closed as interrupted', { count: interrupted })
  }

  async drain(graceMs: number): Promise<void> {
    this.#draining = true
    const until = this.now() + graceMs
    while (this.openResponses > 0 && this.now() < until) await new Promise((resolve) => setTimeout(resolve, 20))
    for (const session of this.#sessions.values()) session.interrupt(new UampError('interrupted', 'The server is shutting down'))
    while (this.openResponses > 0 && this.now() < until + 1000) await new Promise((resolve) => setTimeout(resolve, 5))
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeper)
    this.#unsubscribe()
    this.#draining = true
    for (const session of this.#sessions.values()) {
      await session.flush().catch((error: unknown) => this.log('error', 'A session could not be stored', { session: session.id, error }))
      session.log.end()
    }
    this.#sessions.clear()
  }

  ended(session: Session): void {
    if (!this.#sessions.delete(sessionKey(session.owner.tenant, session.id))) return
    const owner = ownerKey(session.owner)
    const left = (this.#perPrincipal.get(owner) ?? 1) - 1
    if (left > 0) this.#perPrincipal.set(owner, left)
    else this.#perPrincipal.delete(owner)
  }

  async letGo({ owner, id }: Session): Promise<void> {
    const session = this.#sessions.get(sessionKey(owner.tenant, id))
    if (!session || session.busy) return
    await session.flush()
    if (session.busy) return
    session.log.end()
    this.ended(session)
  }

  parked(owner: Principal, abandon: () => void): () => void {
    return this.#parking.enter(owner, abandon)
  }

  #keep(session: AgentSession): void {
    this.#sessions.set(sessionKey(session.owner.tenant, session.id), session)
    const owner = ownerKey(session.owner)
    this.#perPrincipal.set(owner, (this.#perPrincipal.get(owner) ?? 0) + 1)
  }

  #checkRoom(principal: Principal): void {
    const mine = this.#perPrincipal.get(ownerKey(principal)) ?? 0
    const { sessions, sessionsPerPrincipal } = this.limits
    if (mine < sessionsPerPrincipal && this.#sessions.size < sessions) return
    throw new UampError('rate_limited', 'Too many open sessions: end some, or try again later', {
      details: { limit: mine < sessionsPerPrincipal ? sessions : sessionsPerPrincipal, retry_after: 30 },
    })
  }

  /** The conversation up to a turn, if it is the principal's own. */
  async #ownTurns(principal: Principal, turn: string) {
    const turns = await this.#records.turns(principal.tenant, turn)
    const last = turns.at(-1)
    if (last?.owner !== principal.id || last.deleted) throw new UampError('not_found', `There is no turn "${turn}"`)
    return turns
  }

  #load(key: string, tenant: string, id: string): Promise<AgentSession | undefined> {
    let loading = this.#loading.get(key)
    if (!loading) {
      loading = this.#read(tenant, id).finally(() => this.#loading.delete(key))
      this.#loading.set(key, loading)
    }
    return loading
  }

  async #read(tenant: string, id: string): Promise<AgentSession | undefined> {
    const found = await this.#records.session(tenant, id)
    if (!found || found.head.closed || found.head.updatedAt + this.limits.sessionTtlMs < this.now()) return undefined
    const [turns, inputs, position] = await Promise.all([
      this.#records.turns(tenant, found.head.turn),
      this.#records.inputs(tenant, id, found.head.consumed),
      this.#store.last(this.#records.logStream(tenant, id)),
    ])
    const last = turns.at(-1)
    const start = last?.status === 'waiting' ? startOf(turns) : undefined
    const head = found.head.instance === this.#instance ? position : position + RESTART_GAP
    const state: SessionState = {
      ...found.session,
      head: found.head.turn,
      messages: turns.flatMap(messagesOf),
      pending: inputs.events.filter(isInput),
      waiting: last && start && { record: withAnswers(last, inputs.events), start },
    }
    const { session } = this.#build(state, {
      position,
      head,
      inputs: inputs.last,
      unused: inputs.unused,
      turn: found.head.turn,
    })
    for (const turn of turns) for (const eventId of turn.eventIds) session.seen.addAny(eventId)
    for (const event of inputs.events) session.seen.addAny(event.event_id)
    this.#keep(session)
    return session
  }

  #build(state: SessionState, stored: Stored | undefined) {
    const { tenant } = state.owner
    const logStore =
      stored &&
      new LogStore({
        store: this.#store,
        committer: this.#committer,
        sessionId: state.id,
        stream: this.#records.logStream(tenant, state.id),
        position: stored.position,
        committed: stored.head,
      })
    const journal =
      stored &&
      logStore &&
      new Journal({
        records: this.#records,
        logStore,
        now: this.now,
        tenant,
        session: state.id,
        inputs: stored.inputs,
        unused: stored.unused,
        turn: stored.turn,
        instance: this.#instance,
      })
    const session = new AgentSession(this, state, {
      log: (onReaders) =>
        new Log({ ticker: this.#ticker, store: logStore, head: stored?.head ?? 0, keep: state.onDetach === 'continue', onReaders }),
      journal,
    })
    return { session, journal }
  }

  /** Lets go of sessions that nobody needs in memory, and removes those whose time has come. */
  async #sweep(): Promise<void> {
    if (this.#sweeping) return
    this.#sweeping = true
    try {
      for (const session of this.#sessions.values()) await this.#sweepOne(session)
      while ((await this.#records.expire(this.now())) === 100);
    } catch (error) {
      this.log('error', 'Idle sessions could not be tidied up', { error })
    } finally {
      this.#sweeping = false
    }
  }

  async #sweepOne(session: AgentSession): Promise<void> {
    const idle = this.now() - session.idleSince
    if (!session.responding && idle > this.limits.sessionTtlMs) return session.expire()
    if (idle >= (session.stored ? this.limits.unloadMs : this.limits.resumeWindowMs)) await this.letGo(session)
  }
}

const sessionKey = (tenant: string, id: string): string => `${tenant} ${id}`
const ownerKey = ({ tenant, id }: Principal): string => `${tenant} ${id}`
