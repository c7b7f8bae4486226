import { UampError } from '../../protocol/errors.ts'
import { AgentState } from '../durable/agent-state.ts'
import type { AgentRegistry } from './agent-registry.ts'
import { checkHops } from '../basics/hops.ts'
import { checkMay, isServer, principalKey } from '../basics/principal.ts'
import { clocksOf, expiryClock, Ticker, timeOrderedIds, Turnstile } from '../basics/time.ts'
import { Committer, LogStore } from '../log/log-store.ts'
import { beginEpoch, lastNumber } from '../durable/epoch.ts'
import { fetchHttp } from '../http/fetch-http.ts'
import type { AgentGateway, GatewayOptions } from './gateway-options.ts'
import { checkOpening } from '../edge/asked.ts'
import { agentOffline } from '../basics/agent-offline.ts'
import { isInput, withContentIds } from '../../protocol/gather-input.ts'
import { checkSlots } from './input.ts'
import { Journal } from '../durable/journal.ts'
import { CORE_LIMITS, limitsFrom, type CoreLimits } from '../basics/limits.ts'
import { Log } from '../log/log.ts'
import { OpenSessions } from './open-sessions.ts'
import { Parking } from './parking.ts'
import type { Access, Principal } from '../ports/access.ts'
import type { AgentPort } from '../ports/agent.ts'
import type { HttpClient } from '../ports/http.ts'
import type { RecoverKeeper } from '../ports/keeper.ts'
import type { Payments } from '../ports/payments.ts'
import type { Redaction } from '../ports/redaction.ts'
import type { Alias, Hold, Session, SessionInit, StoredResponse } from '../ports/session.ts'
import type { ResponseSigner } from '../ports/signing.ts'
import type { Store } from '../ports/store.ts'
import type { Trace } from '../ports/trace.ts'
import type { Logger, Meter } from '../ports/transport.ts'
import { Records } from '../durable/records.ts'
import { Secrets } from '../secrets/secrets.ts'
import { closeInterrupted } from '../durable/recovery.ts'
import { Removals } from './removals.ts'
import { Retention } from '../durable/retention.ts'
import { messagesOf, startOf, withAnswers } from './run.ts'
import { AgentSession } from './session.ts'
import { announce } from '../edge/session-created.ts'
import { openedState, type SessionHost, type SessionState, type StoredAt } from './session-parts.ts'
import { listSessions, StoredTurns } from '../durable/stored-turns.ts'

/** `StoredAt` of a new session, of which the store has nothing. */
const NOWHERE = { position: 0, head: 0, inputs: 0, consumed: 0, unused: [], apart: false }

export function createGateway(options: GatewayOptions): AgentGateway {
  return new SessionGateway(options)
}

class SessionGateway implements AgentGateway, SessionHost {
  readonly limits: CoreLimits
  readonly log: Logger
  readonly meter: Meter | undefined
  readonly signer: ResponseSigner | undefined
  readonly payments: Payments | undefined
  readonly http: HttpClient
  readonly secrets: Redaction
  readonly now: () => number
  readonly monotonic: () => number
  readonly newId: () => string
  readonly turnstile = new Turnstile()
  readonly state: AgentState
  readonly #access: Pick<Access, 'authorize'>
  readonly #agents: AgentRegistry
  readonly #records: Records
  readonly #turns: StoredTurns
  readonly #store: Store
  readonly #ticker = new Ticker()
  readonly #committer: Committer
  readonly #sessions: OpenSessions
  readonly #loading = new Map<string, Promise<AgentSession | undefined>>()
  readonly #parking: Parking
  readonly #removals: Removals
  readonly #retention: Retention
  readonly #keepers = new Map<string, RecoverKeeper>()
  readonly #closing = new AbortController()
  readonly #expiryTime: () => number
  readonly #sweeper: ReturnType<typeof setInterval>
  readonly #unsubscribe: () => void
  /** The number of this start on the store; 0 until the store has it. */
  #epoch = 0
  #beginning: Promise<void> | undefined
  #draining = false
  #sweeping: Promise<void> | undefined

  constructor({
    agents,
    store,
    access = { authorize: () => true },
    limits,
    meter,
    http = fetchHttp(),
    log = () => undefined,
    secrets = new Secrets(),
    keys,
    signer,
    payments,
    newId = timeOrderedIds(() => this.now()),
    ...clocks
  }: GatewayOptions) {
    this.limits = limitsFrom(CORE_LIMITS, limits)
    this.log = log
    this.meter = meter
    this.signer = signer
    this.payments = payments
    this.http = http
    this.secrets = secrets
    const { now, monotonic } = clocksOf(clocks)
    this.now = now
    this.monotonic = monotonic
    this.#expiryTime = expiryClock({ now, monotonic })
    this.newId = newId
    this.#access = access
    this.#agents = agents
    this.#store = store
    this.#records = new Records(store, keys)
    this.state = new AgentState({ store, keys, limits: this.limits, now })
    this.#turns = new StoredTurns(this.#records)
    this.#committer = new Committer(log)
    this.#parking = new Parking(this.limits.parkedPerPrincipal)
    this.#sessions = new OpenSessions(this.limits)
    const [records, turns, sessions] = [this.#records, this.#turns, this.#sessions]
    this.#removals = new Removals({ records, turns, sessions, loading: (id) => this.#loadingOf(id) })
    const isLive = (tenant: string, id: string): boolean => sessions.get(tenant, id) !== undefined
    const remove = (tenant: string, id: string): Promise<boolean> => this.#removals.unused(tenant, id)
    this.#retention = new Retention({ records, limits: this.limits, now: this.#expiryTime, monotonic, log, isLive, remove })
    this.#unsubscribe = agents.onChange((name) => {
      for (const session of this.#sessions) if (session.agent === name) session.announceCapabilities()
    })
    this.#sweeper = setInterval(() => void this.sweep(), this.limits.sweepMs)
    // Node only: the timer must not keep the process running.
    ;(this.#sweeper as { unref?: () => void }).unref?.()
  }

  get openSessions(): number {
    return this.#sessions.size
  }

  get openResponses(): number {
    return this.#sessions.responding
  }

  get heldBytes(): number {
    return this.#sessions.heldBytes
  }

  readonly authorize: AgentGateway['authorize'] = (principal, action, agent) => checkMay(this.#access, principal, { action, agent })
  readonly list: AgentGateway['list'] = (principal, page) => listSessions(this.#records, principal, { ...page, access: this.#access })
  readonly signs: AgentGateway['signs'] = (asked) => this.signer?.signs(asked) ?? false
  readonly findAgent = (name: string) => this.#agents.get(name)
  readonly storeOf: AgentGateway['storeOf'] = (agent, owner) => this.state.outside(agent, owner)

  admit(agent: string, trace?: Trace): AgentPort {
    if (trace) checkHops(trace, this.limits.hops)
    if (this.#draining) throw new UampError('overloaded', 'The server is shutting down: try again shortly', { details: { retry_after: 5 } })
    const found = this.#agents.get(agent)
    if (found && found.hosted?.online !== false) return found
    if (found) throw agentOffline(`The agent "${agent}" is offline`, { agent, retry_after: found.hosted?.retryAfter })
    throw agentOffline(`There is no agent "${agent}" here`, { agent, agents: this.#agents.names() })
  }

  checkSlots(value: unknown, length = Infinity): void {
    if (length > this.limits.slotBytes) checkSlots(value, this.limits.slotBytes)
  }

  readonly ended: SessionHost['ended'] = (session) => this.#sessions.remove(session)
  readonly parked: SessionHost['parked'] = (owner, abandon) => this.#parking.enter(owner, abandon)
  readonly recoverWith: AgentGateway['recoverWith'] = (keeper, recover) => void this.#keepers.set(keeper, recover)
  readonly hold = (principal: Principal, bytes: number): Hold => this.#sessions.holdBeside(principal, bytes)

  async open(init: SessionInit): Promise<Session> {
    checkOpening(this.admit(init.agent, init.trace), init)
    this.authorize(init.principal, 'call', init.agent)
    this.#sessions.checkRoom(init.principal)
    if (init.persist && this.#epoch === 0) await this.#begin()
    const { principal, parent } = init
    const turns = parent === undefined ? [] : await this.#ownTurns(principal, parent)
    const history = [...withContentIds(init.history ?? [], this.newId), ...turns.flatMap(messagesOf)]
    const state = openedState(init, { id: `sess_${this.newId()}`, createdAt: this.now(), messages: history })
    const { session, journal } = this.#build(
      state,
      init.persist ? { updatedAt: state.createdAt, turn: parent ?? null, ...NOWHERE } : undefined,
    )
    // One-way sessions have no reader yet to see `session.created`.
    if (init.duplex) announce(session, init.announce)
    this.#sessions.add(session)
    session.stay.found()
    try {
      const alias = init.alias ? [await this.#records.setAlias(principal, init.alias, session.id)] : []
      if (init.input) journal?.beginLater({ alias, silent: init.silent ?? false })
      else await journal?.begin(session, alias)
    } catch (error) {
      this.ended(session)
      throw error
    }
    return session
  }

  readonly attach: AgentGateway['attach'] = async (id, principal, action = 'call') => {
    const sessionId = typeof id === 'string' ? id : await this.#records.alias(principal, id)
    if (sessionId === undefined) return undefined
    const { tenant } = principal
    for (let removal; (removal = this.#removals.underWay(tenant, sessionId));) await removal
    const session = this.#sessions.get(tenant, sessionId) ?? (await this.#load(sessionId, principal))
    if (session?.owner.id !== principal.id || session.stay.over) return undefined
    this.authorize(principal, action, session.agent)
    if (action === 'call' && !isServer(principal)) session.owner = principal
    session.stay.found()
    return session
  }

  async response(id: string | Alias, principal: Principal): Promise<StoredResponse | undefined> {
    const found = await this.#turns.find(id, principal)
    if (found) this.authorize(principal, 'read', found.agent)
    return found
  }

  async forget(id: string, principal: Principal): Promise<boolean> {
    const found = await this.#turns.find(id, principal)
    if (found) this.authorize(principal, 'cancel', found.agent)
    return this.#removals.response(id, principal)
  }

  async remove(id: string, principal: Principal): Promise<boolean> {
    const { tenant } = principal
    const session = this.#sessions.get(tenant, id) ?? (await this.#stored(id, principal))?.session
    if (session?.owner.id !== principal.id) return false
    this.authorize(principal, 'cancel', session.agent)
    await this.#removals.session(tenant, id)
    return true
  }

  async start(): Promise<void> {
    await this.#begin()
    const interrupted = await closeInterrupted(this.#records, { epoch: this.#epoch, time: this.now(), keepers: this.#keepers })
    if (interrupted > 0) this.log('warn', 'Responses that the last run left open were closed as interrupted', { count: interrupted })
    void this.sweep()
  }

  async drain(graceMs: number): Promise<void> {
    this.#draining = true
    const until = this.monotonic() + graceMs
    while (this.openResponses > 0 && this.monotonic() < until) await new Promise((resolve) => setTimeout(resolve, 20))
    for (const session of this.#sessions) session.interrupt(new UampError('interrupted', 'The server is shutting down'))
    while (this.openResponses > 0 && this.monotonic() < until + 1000) await new Promise((resolve) => setTimeout(resolve, 5))
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeper)
    this.#closing.abort()
    await this.#sweeping
    this.#unsubscribe()
    this.#draining = true
    for (const session of this.#sessions) {
      await session.flush().catch((error: unknown) => this.log('error', 'A session could not be stored', { session: session.id, error }))
      session.close()
    }
    this.#sessions.clear()
  }

  async letGo({ owner, id }: Session): Promise<void> {
    const session = this.#sessions.get(owner.tenant, id)
    if (!session || session.busy) return
    const isFlushed = await session.flush().catch((thrown: unknown) => {
      // Something else has written this session, so what memory has of it can never be stored.
      if (thrown instanceof UampError && thrown.code === 'conflict') this.#sessions.unload(session)
      throw thrown
    })
    if (isFlushed && !session.busy) this.#sessions.unload(session)
  }

  async removeUnused(tenant: string, id: string): Promise<boolean> {
    const session = this.#sessions.get(tenant, id)
    if (session) await this.letGo(session)
    return this.#removals.unused(tenant, id)
  }

  #begin(): Promise<void> {
    return (this.#beginning ??= beginEpoch(this.#store)
      .then((epoch) => void (this.#epoch = epoch))
      .finally(() => (this.#beginning = undefined)))
  }

  /** The chain of responses up to `turn`. Throws `not_found` unless the principal owns it. */
  async #ownTurns(principal: Principal, turn: string) {
    const turns = await this.#sessions.reading(principal, (count) => this.#records.turns(principal.tenant, turn, count))
    const last = turns.at(-1)
    if (last?.owner !== principal.id || last.deleted) throw new UampError('not_found', `There is no response "${turn}"`)
    return turns
  }

  #load(id: string, principal: Principal): Promise<AgentSession | undefined> {
    // The key names the caller, too: the owner must not share the "not found" of a stranger who asked first.
    const key = `${principalKey(principal)} ${id}`
    let loading = this.#loading.get(key)
    if (!loading) {
      loading = this.#read(id, principal).finally(() => this.#loading.delete(key))
      this.#loading.set(key, loading)
    }
    return loading
  }

  #loadingOf(id: string): Promise<unknown> | undefined {
    const [, loading] = [...this.#loading].find(([key]) => key.endsWith(` ${id}`)) ?? []
    return loading?.catch(() => undefined)
  }

  async #stored(id: string, { tenant }: Principal) {
    const found = await this.#records.session(tenant, id)
    if (!found || found.head.closed || found.head.updatedAt + this.limits.sessionTtlMs < this.#expiryTime()) return undefined
    return found
  }

  async #read(id: string, principal: Principal): Promise<AgentSession | undefined> {
    const { tenant } = principal
    const found = await this.#stored(id, principal)
    if (found?.session.owner.id !== principal.id) return undefined
    const [turns, inputs, position] = await Promise.all([
      this.#sessions.reading(principal, (count) => this.#records.turns(tenant, found.head.turn, count)),
      this.#records.inputs(tenant, id, found.head.consumed),
      this.#store.last(this.#records.logStream(tenant, id)),
    ])
    this.#sessions.checkRoom(principal)
    const last = turns.at(-1)
    const start = last?.status === 'waiting' ? startOf(turns) : undefined
    if (this.#epoch === 0) await this.#begin()
    const head = lastNumber(position, found.head, this.#epoch)
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
      consumed: found.head.consumed,
      updatedAt: found.head.updatedAt,
      unused: inputs.unused,
      turn: found.head.turn,
      apart: found.head.session === undefined,
    })
    for (const turn of turns) for (const eventId of turn.eventIds) session.seen.addAny(eventId)
    for (const event of inputs.events) session.seen.addAny(event.event_id)
    this.#sessions.add(session)
    return session
  }

  #build(state: SessionState, stored: StoredAt | undefined) {
    const { tenant } = state.owner
    const held = this.#sessions.hold(state)
    const logStore =
      stored &&
      new LogStore({
        store: this.#store,
        committer: this.#committer,
        sessionId: state.id,
        outputOf: this.#records.outputsOf(tenant),
        stream: this.#records.logStream(tenant, state.id),
        position: stored.position,
        committed: stored.head,
      })
    const [now, records] = [this.now, this.#records]
    const journal = stored && logStore && new Journal({ records, logStore, now, session: state, at: stored, epoch: this.#epoch })
    const session = new AgentSession(this, state, {
      log: (onReaders) => new Log({ ticker: this.#ticker, now, store: logStore, head: stored?.head, onDetach: state.onDetach, onReaders }),
      journal,
      held,
    })
    return { session, journal }
  }

  sweep(): Promise<void> {
    return (this.#sweeping ??= this.#sweep().finally(() => (this.#sweeping = undefined)))
  }

  async #sweep(): Promise<void> {
    const untidy = (error: unknown): void => this.log('error', 'Idle sessions could not be tidied up', { error })
    for (const session of this.#sessions) await this.#sweepOne(session).catch(untidy)
    await this.#retention.sweep(this.#closing.signal).catch(untidy)
  }

  async #sweepOne(session: AgentSession): Promise<void> {
    const idle = this.monotonic() - session.idleSince
    if (!session.responding && idle > this.limits.sessionTtlMs) {
      await session.end('timeout', { code: 'timeout', message: 'The session was idle for too long' })
      if (session.stored) await this.#removals.unused(session.owner.tenant, session.id)
      return
    }
    const isIdle = idle >= (session.stored ? this.limits.unloadMs : this.limits.resumeWindowMs)
    if (isIdle || session.unwanted) await this.letGo(session)
  }
}
