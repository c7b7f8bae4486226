import * as z from 'zod/mini'
import { principalId, principalKey } from '../core/basics/principal.ts'
import { idIn, storeKey, tenantIn } from '../core/basics/store-key.ts'
import type { Access, Principal } from '../core/ports/access.ts'
import type { Revocation, Revocations } from '../core/ports/revocations.ts'
import type { Store } from '../core/ports/store.ts'
import { UampError } from '../protocol/errors.ts'
import type { Json } from '../protocol/json.ts'
import { AGENTS_PATH, isOwnIssuer } from './issuers.ts'

const DAY_MS = 24 * 3_600_000
/** How long a token is refused of which nobody knows when it ends. */
const UNKNOWN_MS = 30 * DAY_MS
/** A revocation outlives its token by this: the clock may be set back, and the token be good again. */
const MARGIN_MS = DAY_MS
/** The most of each kind. Clients revoke their own tokens, so they must not be able to take the room of operators. */
const MOST = { token: 100_000, key: 10_000, principal: 100_000 } satisfies Record<Revocation['kind'], number>
/** Fewer are not worth looking for old ones. */
const SWEPT = 1000
/** How many are read from the store at a time. */
const PAGE = 500

const INDEX = storeKey('', 'revocations')

export const RevocationForm = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('token'),
    id: z.string(),
    issuer: z.optional(z.string()),
    expiresAt: z.optional(z.number()),
  }),
  z.object({ kind: z.literal('key'), id: z.string(), issuer: z.optional(z.string()) }),
  z.object({ kind: z.literal('principal'), id: z.string(), tenant: z.optional(z.string()) }),
])

interface Entry {
  readonly what: Revocation
  /** When it was revoked. */
  readonly at: number
  /** When it may be forgotten. */
  readonly until: number | undefined
}

export interface RevocationsOptions {
  readonly store: Pick<Store, 'batch' | 'delete' | 'list'>
  readonly now: () => number
  /** This server's own URL: tokens that it issued for a name are revoked with the principal of that name. */
  readonly ownUrl?: () => string | undefined
  /** Cuts the open connections of matching principals, and says how many. */
  readonly cut?: (matches: (principal: Principal) => boolean, reason: string) => number
}

/** Revocations that are kept in the store. Nobody is admitted before `load` is done. */
export class StoredRevocations implements Revocations {
  readonly #options: RevocationsOptions
  readonly #entries = { token: new Map<string, Entry>(), key: new Map<string, Entry>(), principal: new Map<string, Entry>() }

  /** The number of entries at which those are removed whose time is over. It grows with them, so that most calls do not look. */
  #sweepAt = SWEPT

  constructor(options: RevocationsOptions) {
    this.#options = options
  }

  async load(): Promise<void> {
    for (let after: string | undefined, more = true; more; more = after !== undefined) {
      const page = await this.#options.store.list(INDEX, { limit: PAGE, ...(after !== undefined && { after }) })
      for (const { value } of page.items) {
        const entry = value as unknown as Entry
        this.#entries[entry.what.kind].set(nameOf(entry.what), entry)
      }
      after = page.next
    }
  }

  find(principal: Principal): Revocation['kind'] | undefined {
    const { token, key, principal: people } = this.#entries
    if (people.size > 0 && this.#namesOf(principal).some((name) => people.has(name))) return 'principal'
    if (token.size > 0 && has(token, principal.credential, principal.issuer)) return 'token'
    if (key.size > 0 && has(key, principal.key, principal.issuer)) return 'key'
    return undefined
  }

  async revoke(what: Revocation): Promise<number> {
    const { now, store, cut } = this.#options
    const at = now()
    const until = what.kind === 'token' ? (what.expiresAt ?? at + UNKNOWN_MS) + MARGIN_MS : undefined
    const entry: Entry = { what, at, until }
    const entries = this.#entries[what.kind]
    const name = nameOf(what)
    if (!entries.has(name)) this.#makeRoom(what.kind)
    // First in memory: whatever comes while the store writes is refused.
    entries.set(name, entry)
    const cuts = cut?.((principal) => this.find(principal) !== undefined, 'token_revoked') ?? 0
    const options = { index: [[INDEX, String(at).padStart(15, '0')]] as const, ...(until !== undefined && { ttlMs: until - at }) }
    await store.batch([{ op: 'set', key: keyOf(what), value: entry as unknown as Json, options }], { sync: true })
    return cuts
  }

  async restore(what: Revocation): Promise<boolean> {
    const known = this.#entries[what.kind].delete(nameOf(what))
    if (known) await this.#options.store.delete(keyOf(what))
    return known
  }

  list(): readonly (Revocation & { readonly at: number })[] {
    const all = Object.values(this.#entries).flatMap((entries) => [...entries.values()])
    return all.toSorted((a, b) => a.at - b.at).map(({ what, at }) => ({ ...what, at }))
  }

  /** The principal, and everybody who acts for them by this token: it was issued to the last of these. */
  #namesOf(principal: Principal): readonly string[] {
    const { tenant } = principal
    const names = [principalKey(principal), ...this.#ownNames(principal)]
    for (let { actor } = principal; actor; { actor } = actor) {
      const { issuer, subject } = actor
      if (issuer !== undefined) names.push(principalKey({ tenant, id: principalId(issuer, subject) }))
      if (issuer !== undefined) names.push(principalKey({ tenant, id: principalId(issuer, subject, AGENTS_PATH) }))
      names.push(...this.#ownNames({ ...actor, tenant }))
    }
    return names
  }

  /** Clients of this server are known by their name alone, too. */
  #ownNames({ tenant, ...named }: Pick<Principal, 'issuer' | 'subject' | 'tenant'> & { readonly id?: string }): readonly string[] {
    const { issuer, subject } = namesIn(named)
    const isOwn = issuer !== undefined && subject !== undefined && isOwnIssuer(this.#options.ownUrl?.(), issuer)
    return isOwn ? [principalKey({ tenant, id: subject })] : []
  }

  #makeRoom(kind: Revocation['kind']): void {
    const entries = this.#entries[kind]
    if (entries.size < this.#sweepAt) return
    const now = this.#options.now()
    for (const [name, { until }] of entries) if (until !== undefined && until < now) entries.delete(name)
    this.#sweepAt = Math.min(MOST[kind], Math.max(SWEPT, 2 * entries.size))
    if (entries.size >= MOST[kind]) throw new UampError('overloaded', `No more than ${MOST[kind]} revocations of this kind are kept`)
  }
}

const REASONS = {
  token: 'The token was revoked',
  key: 'The key of the token was revoked',
  principal: 'The access was revoked',
} satisfies Record<Revocation['kind'], string>

/** The same access without those who are revoked. */
export function revocable(access: Access, revocations: Pick<Revocations, 'find'>): Access {
  return {
    schemes: access.schemes,
    graceSeconds: access.graceSeconds,
    authenticate: async (credentials) => {
      const found = await access.authenticate(credentials)
      const kind = found && 'id' in found ? revocations.find(found) : undefined
      return kind === undefined ? found : { denied: 'revoked', message: REASONS[kind] }
    },
    authorize: (principal, action, agent) => revocations.find(principal) === undefined && access.authorize(principal, action, agent),
  }
}

function has(entries: ReadonlyMap<string, Entry>, id: string | undefined, issuer = ''): boolean {
  return id !== undefined && (entries.has(storeKey('', id)) || (issuer !== '' && entries.has(storeKey(issuer, id))))
}

/** Owners that come from the store have only their id, which has both in it. */
function namesIn({ issuer, subject, id = '' }: Partial<Principal>): Pick<Principal, 'issuer' | 'subject'> {
  const isKnown = issuer !== undefined || !/^https?%3A%2F%2F[\w.%-]+\//.test(id)
  return isKnown ? { issuer, subject } : { issuer: tenantIn(id), subject: idIn(id) }
}

function nameOf(what: Revocation): string {
  if (what.kind === 'principal') return principalKey({ tenant: what.tenant ?? 'default', id: what.id })
  return storeKey(what.issuer ?? '', what.id)
}

/** Three parts, so that the record belongs to no principal, with whose data it would be removed. */
function keyOf(what: Revocation): string {
  return storeKey('', 'revoked', `${what.kind} ${nameOf(what)}`)
}
