import type { ClientProfile } from '../../protocol/capabilities.ts'
import type { ContentItem } from '../../protocol/content.ts'
import type { ClientEvent, EventOf } from '../../protocol/events.ts'
import type { Json } from '../../protocol/json.ts'
import type { Message } from '../../protocol/message.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import type { Usage } from '../../protocol/usage.ts'
import { nextTurn } from '../basics/time.ts'
import type { Numbering } from './epoch.ts'
import type { Principal } from '../ports/access.ts'
import type { Turn } from '../ports/agent.ts'
import type { Keys } from '../ports/keys.ts'
import type { Alias, SessionInit } from '../ports/session.ts'
import type { Operation, Page, PageRequest, Place, SetOperation, Store } from '../ports/store.ts'
import type { Paid } from '../engine/paid-before.ts'
import type { Answer, Question } from '../engine/questions.ts'
import { TURNS } from '../reading/conversation.ts'
import { pays, SealedRecords } from '../secrets/sealing.ts'
import { goesWith, idIn, storeKey, tenantIn } from '../basics/store-key.ts'
import { weigh } from '../basics/weight.ts'

/** The fixed part of a stored session: written when it opens and when its configuration changes. */
export interface SessionRecord {
  readonly id: string
  readonly transport: string
  readonly agent: string
  /** Stored without its rights. */
  readonly owner: Principal
  readonly config: SessionConfig
  readonly duplex: boolean
  readonly onDetach: SessionInit['onDetach']
  readonly createdAt: number
  readonly client: ClientProfile | undefined
  /** The chat that the client opened it for. */
  readonly chat?: string | undefined
}

/** The changing part of a stored session: written with every response. */
export interface HeadRecord extends Numbering {
  readonly id: string
  /** The fixed part, if it is small: then it has no record of its own. */
  readonly session?: SessionRecord | undefined
  readonly agent: string
  readonly owner: string
  /** The newest response. */
  readonly turn: string | null
  /** How many inputs the responses have used up. */
  readonly consumed: number
  readonly updatedAt: number
  readonly closed: boolean
}

export type Head = HeadRecord & { readonly tenant: string }

/** A head in the store: leaves out what its key says and what most have in common, and its session leaves out what the head says. */
type StoredHead = Omit<HeadRecord, 'id' | 'session' | 'consumed' | 'closed'> & {
  readonly consumed?: number
  readonly closed?: boolean
  readonly session?: Omit<SessionRecord, 'id' | 'agent' | 'owner' | 'duplex' | 'createdAt'> & {
    readonly duplex?: boolean
    readonly createdAt?: number
  }
}

/** One response of a conversation. It does not change once it has ended. */
export interface TurnRecord {
  readonly id: string
  /** Its turn: the id of that turn's first response. */
  readonly run: string
  readonly session: string
  readonly agent: string
  readonly tenant: string
  readonly owner: string
  readonly parent: string | null
  readonly input: readonly Message[]
  /** The input is the whole conversation: responses before it do not belong to it. */
  readonly stateless: boolean
  readonly output: readonly ContentItem[]
  readonly status: 'open' | 'waiting' | 'completed' | 'cancelled' | 'failed'
  readonly error?: EventOf<'response.error'>['error'] | undefined
  readonly usage?: Usage | undefined
  /** Its configuration, if the request changed the session's. */
  readonly config?: SessionConfig | undefined
  /** The slots of the `response.create` itself. */
  readonly asked?: Turn['asked']
  /** Every answer of its turn so far, by key. */
  readonly answers?: Readonly<Record<string, Answer>> | undefined
  /** The answers that opened it, to the questions of its parent. */
  readonly given?: readonly Answer[] | undefined
  /** What its turn has paid so far, by charge, if it ended with questions. */
  readonly paid?: Paid | undefined
  /** The questions that it ended with. */
  readonly questions?: readonly Question[] | undefined
  /** The client events it was made of: repeating one has no effect, even after a restart. */
  readonly eventIds: readonly string[]
  readonly createdAt: number
  readonly endedAt?: number | undefined
  /** Its owner deleted it: it can no longer be found, but responses that continue from it keep it in their conversation. */
  readonly deleted?: true
  /** The position in the session's inputs at which it began. */
  readonly from: number
  /** The session's newest event when it began. */
  readonly after: number
  /** The client's name for it. */
  readonly alias?: Alias | undefined
  /** The `note` of its `ResponseOptions`. */
  readonly note?: Json | undefined
  /** The name of its `TurnKeeper`. */
  readonly keeper?: string | undefined
}

/** Client events, and the position of the last one. */
export interface Inputs {
  readonly events: readonly ClientEvent[]
  readonly last: number
  /** The events among them that carry a payment. */
  readonly unused: readonly ClientEvent[]
}

const OPEN = 'open-turns'
/** The index of all sessions by the time of their last response. */
const AGE = 'sessions-by-age'
/** The same index as version 0.1 wrote it: by the time of expiry. */
const AGE_BEFORE = 'session-expiry'
/** How many records, and roughly how many bytes, are deleted at once: a larger step would keep others waiting. */
const PAGE = 100
const PAGE_BYTES = 1024 * 1024
const LARGE_TURN = 64 * 1024
/** A session up to this size is written again with each response, which costs less than a record of its own. */
const SMALL_SESSION = 4 * 1024

/** A time as text that sorts in order. It is rounded to minutes, because an index entry that stays the same costs no write. */
const sortable = (time: number): string => String(Math.floor(time / 60_000)).padStart(12, '0')

/** Stores and loads sessions, responses and inputs. Every key begins with the tenant. */
export class Records {
  readonly store: Store
  readonly sealed: SealedRecords

  constructor(store: Store, keys?: Keys) {
    this.store = store
    this.sealed = new SealedRecords(store, keys)
  }

  logStream(tenant: string, session: string): string {
    return storeKey(tenant, 'log', session)
  }

  inputStream(tenant: string, session: string): string {
    return storeKey(tenant, 'in', session)
  }

  /** Writes a session with its head, or in a record of its own if it is large. `used`: a payment in its configuration has been used. */
  setSession(session: SessionRecord, head: HeadRecord, used: boolean): { set: SetOperation[]; apart: boolean } {
    const { tenant } = session.owner
    const apart = weigh(session, SMALL_SESSION) > SMALL_SESSION
    const key = apart ? sessionKey(tenant, session.id) : headKey(tenant, session.id)
    const kept = this.sealed.session(session, { key, used })
    if (!apart) return { apart, set: [this.#setHead(tenant, head, kept)] }
    return { apart, set: [{ op: 'set', key, value: kept as unknown as Json }, this.#setHead(tenant, head)] }
  }

  /** Deletes the session's own record, because the head holds the session now. */
  dropSession({ id, owner }: Pick<SessionRecord, 'id' | 'owner'>): Operation {
    return deletion(sessionKey(owner.tenant, id))
  }

  #setHead(tenant: string, head: HeadRecord, session = head.session): SetOperation {
    const at = sortable(head.updatedAt)
    const index: Place[] = [[AGE, at]]
    if (!head.closed) index.push([storeKey(tenant, 'sessions', head.owner), at])
    // `undefined` is not stored. A copy without a field costs more than one with it.
    const inside = session && {
      ...session,
      id: undefined,
      agent: undefined,
      owner: undefined,
      duplex: session.duplex || undefined,
      createdAt: session.createdAt === head.updatedAt ? undefined : session.createdAt,
    }
    const { consumed, closed } = head
    const value = { ...head, id: undefined, consumed: consumed || undefined, closed: closed || undefined, session: inside }
    return { op: 'set', key: headKey(tenant, head.id), value: value as unknown as Json, options: { index } }
  }

  /** `used`: its payments have been used, which is so once the turn is over. */
  setTurn(record: TurnRecord, used = record.status !== 'open' && record.status !== 'waiting'): SetOperation {
    const { tenant, id, session, parent, status, alias } = record
    const key = storeKey(tenant, 'turn', id)
    const index: Place[] = [[this.#turnsOf(tenant, session), id]]
    if (parent !== null) index.push([this.#childrenOf(tenant, parent), id])
    if (status === 'open') index.push([OPEN, id])
    if (alias) index.push([namedBy(tenant, record.owner, alias), id])
    return { op: 'set', key, value: this.sealed.turn(record, { key, used }), options: { index } }
  }

  /** Names a session. The write fails with `conflict` while another open session has the name; the name is deleted with its session. */
  async setAlias(owner: Principal, alias: Alias, session: string): Promise<Operation> {
    const name = this.#aliasKey(owner, alias)
    const taken = await this.store.get(name)
    const before = taken && (await this.session(owner.tenant, taken.value as string))
    const isGone = taken !== undefined && (before === undefined || before.head.closed)
    const index: Place[] = [[goesWith(owner.tenant, session), '']]
    return { op: 'set', key: name, value: session, options: { ifVersion: isGone ? taken.version : 0, index } }
  }

  async alias(owner: Principal, alias: Alias): Promise<string | undefined> {
    return (await this.store.get(this.#aliasKey(owner, alias)))?.value as string | undefined
  }

  async session(tenant: string, id: string): Promise<{ session: SessionRecord; head: HeadRecord } | undefined> {
    const head = await this.head(tenant, id)
    if (!head) return undefined
    if (head.session) return { head, session: this.sealed.openSession(head.session as unknown as Json, headKey(tenant, id)) }
    const key = sessionKey(tenant, id)
    const stored = await this.store.get(key)
    return stored && { head, session: { ...this.sealed.openSession(stored.value, key), owner: storedOwner(tenant, head.owner) } }
  }

  async turn(tenant: string, id: string): Promise<TurnRecord | undefined> {
    const key = storeKey(tenant, 'turn', id)
    const stored = await this.store.get(key)
    return stored && this.sealed.openTurn(stored.value, key)
  }

  /** Made here, so that a log, which keeps it, keeps nothing else of its session. */
  outputsOf(tenant: string): (response: string) => Promise<readonly ContentItem[]> {
    return async (response) => (await this.turn(tenant, response))?.output ?? []
  }

  /** The newest response with this name. */
  async turnNamed({ tenant, id }: Principal, alias: Alias): Promise<TurnRecord | undefined> {
    const [found] = (await this.store.list(namedBy(tenant, id, alias), { limit: 1, descending: true })).items
    return found && this.sealed.openTurn(found.value, found.key)
  }

  /** The responses of the conversation up to `last`, oldest first. `count` gets the size of each as it is read, and may throw. */
  async turns(tenant: string, last: string | null, count: (bytes: number) => void): Promise<TurnRecord[]> {
    const turns: TurnRecord[] = []
    for (let id = last; id !== null && turns.length < TURNS;) {
      const turn = await this.turn(tenant, id)
      if (!turn) break
      const bytes = weigh(turn)
      count(bytes)
      // Reading a large response blocks the event loop for a while, so let others run before the next one.
      if (bytes > LARGE_TURN) await nextTurn()
      turns.push(turn)
      id = turn.stateless ? null : turn.parent
    }
    return turns.reverse()
  }

  /** The inputs of a session after a position. */
  async inputs(tenant: string, session: string, after: number): Promise<Inputs> {
    const events: ClientEvent[] = []
    let last = after
    for await (const group of this.store.read(this.inputStream(tenant, session), { after })) {
      const lines = group.text.split('\n').slice(Math.max(0, after + 1 - group.first))
      for (const line of lines) events.push(JSON.parse(line) as ClientEvent)
      last = group.last
    }
    const opened = await this.sealed.openInputs(tenant, session, events)
    return { events: opened, last, unused: opened.filter(pays) }
  }

  async openTurns(): Promise<TurnRecord[]> {
    const turns: TurnRecord[] = []
    for (let after: string | undefined; ;) {
      const page = await this.store.list(OPEN, after === undefined ? {} : { after })
      turns.push(...page.items.map(({ key, value }) => this.sealed.openTurn(value, key)))
      if ((after = page.next) === undefined) return turns
    }
  }

  /** Newest first. */
  async list(owner: Principal, page: PageRequest): Promise<Page<HeadRecord>> {
    const found = await this.store.list(storeKey(owner.tenant, 'sessions', owner.id), { ...page, descending: true })
    return { items: found.items.map(headIn), next: found.next }
  }

  async head(tenant: string, session: string): Promise<Head | undefined> {
    const key = headKey(tenant, session)
    const stored = await this.store.get(key)
    return stored && headIn({ key, value: stored.value })
  }

  /** Every session, by the time of its last response, oldest first. The caller may remove sessions while it iterates. */
  async *oldest(): AsyncGenerator<Head, void> {
    const [before, after] = [this.#heads(AGE_BEFORE), this.#heads(AGE)]
    let [one, two] = [await before.next(), await after.next()]
    while (!one.done || !two.done) {
      if (!one.done && (two.done || one.value.updatedAt <= two.value.updatedAt)) {
        yield one.value
        one = await before.next()
      } else if (!two.done) {
        yield two.value
        two = await after.next()
      }
    }
  }

  async *#heads(index: string): AsyncGenerator<Head, void> {
    for (let after: string | undefined; ;) {
      const page = await this.store.list(index, after === undefined ? {} : { after })
      for (const item of page.items) yield headIn(item)
      if ((after = page.next) === undefined) return
    }
  }

  /**
   * Removes a session with everything in it, a large one page by page. It closes the session first, so that nobody continues with half
   * of it. If the process dies on the way, the head is still there, and the rest is removed later.
   */
  async removeSession(tenant: string, id: string): Promise<void> {
    const keys = [headKey(tenant, id), sessionKey(tenant, id)]
    for (const list of [this.#turnsOf(tenant, id), goesWith(tenant, id)]) {
      let some = await this.#someOf(list)
      if (some.more) await this.#endForGood(tenant, id)
      for (; some.more; some = await this.#someOf(list)) await this.store.batch(some.keys.map(deletion))
      keys.push(...some.keys)
    }
    await this.store.batch([
      ...keys.map(deletion),
      { op: 'drop', stream: this.logStream(tenant, id) },
      { op: 'drop', stream: this.inputStream(tenant, id) },
      this.sealed.dropInputs(tenant, id),
    ])
  }

  /** As many keys of an index as may be deleted at once. */
  async #someOf(list: string): Promise<{ keys: string[]; more: boolean }> {
    const { items, next } = await this.store.keys(list, { limit: PAGE })
    const keys: string[] = []
    let left = PAGE_BYTES
    for (const { key, bytes } of items) {
      keys.push(key)
      if ((left -= bytes) < 0) break
    }
    return { keys, more: next !== undefined || keys.length < items.length }
  }

  async #endForGood(tenant: string, id: string): Promise<void> {
    const head = await this.head(tenant, id)
    if (head && !head.closed) await this.store.batch([this.#setHead(tenant, { ...head, closed: true })])
  }

  /** True if another response continues from this one. */
  async hasChildren(tenant: string, turn: string): Promise<boolean> {
    return (await this.store.list(this.#childrenOf(tenant, turn), { limit: 1 })).items.length > 0
  }

  /** How many responses a session has, up to `limit`. */
  async turnsIn(tenant: string, session: string, limit: number): Promise<number> {
    return (await this.store.list(this.#turnsOf(tenant, session), { limit })).items.length
  }

  #aliasKey(owner: Principal, alias: Alias): string {
    return storeKey(owner.tenant, 'alias', owner.id, alias.protocol, alias.id)
  }

  #childrenOf(tenant: string, turn: string): string {
    return storeKey(tenant, 'children', turn)
  }

  #turnsOf(tenant: string, session: string): string {
    return storeKey(tenant, 'turns', session)
  }
}

/** Adds what a stored head leaves out. Formats 1 and 2 left out less. */
function headIn({ key, value }: { readonly key: string; readonly value: Json }): Head {
  const { session, ...stored } = value as unknown as StoredHead
  const [id, tenant] = [idIn(key), tenantIn(key)]
  const head = { consumed: 0, closed: false, ...stored, id, tenant }
  if (!session) return head
  const owner = storedOwner(tenant, head.owner)
  return { ...head, session: { duplex: false, createdAt: head.updatedAt, ...session, id, agent: head.agent, owner } }
}

/** Rights are not stored: they come with the credentials of whoever attaches. Older versions stored them. */
function storedOwner(tenant: string, id: string): Principal {
  return { tenant, id, scopes: [] }
}

function headKey(tenant: string, session: string): string {
  return storeKey(tenant, 'head', session)
}

function sessionKey(tenant: string, session: string): string {
  return storeKey(tenant, 'session', session)
}

function namedBy(tenant: string, owner: string, { protocol, id }: Alias): string {
  return storeKey(tenant, 'turns-named', owner, protocol, id)
}

function deletion(key: string): Operation {
  return { op: 'delete', key }
}
