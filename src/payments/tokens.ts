import { signJwt } from '../auth/mint.ts'
import { OwnKeys } from '../auth/verify/own-keys.ts'
import { hasSignature, parseToken, TOKEN_CHARS } from '../auth/verify/token.ts'
import { formatAmount } from '../protocol/money.ts'
import { storeKey } from '../core/basics/store-key.ts'
import type { Clocks } from '../core/basics/time.ts'
import type { Signer } from '../core/ports/keys.ts'
import type { Operation, Page, PageRequest, Store } from '../core/ports/store.ts'
import { UampError } from '../protocol/errors.ts'
import type { Json } from '../protocol/json.ts'
import type { Account, Accounts, Movement } from './accounts.ts'
import { accountOf } from './accounts.ts'

/** The `typ` of a token that pays. */
const TYP = 'payment+jwt'
/** How many tokens are remembered after they were verified. */
const MOST = 10_000
/** A token that is older than this is verified again, so that it ends with a key that was withdrawn. */
const AGE_MS = 5 * 60_000
/** How long an ended token can still be looked at. */
const KEPT_MS = 30 * 86_400_000
/** An ended token is looked at once more after so long, for money that was on its way to it. */
const AGAIN_MS = 60_000
/** Every record that ends by itself, by the time of its end. */
export const EXPIRY = 'money-expiry'

/** A token as the ledger knows it. The signed text itself is not kept. */
export interface PayToken {
  readonly id: string
  readonly tenant: string
  /** The principal that it was made for. */
  readonly owner: string
  /** The agents that it pays. `*`: all. */
  readonly agents: readonly string[]
  readonly currency: string
  readonly createdAt: number
  readonly expiresAt: number
  /** How often its money has been handed on, and how often it may be. */
  readonly depth: number
  readonly maxDepth: number
  /** The account that gets back what is left. */
  readonly source: string
  /** The account that gets it if all tokens between have ended. */
  readonly root: string
  /** The token that it was split off from. */
  readonly parent?: string | undefined
  /** Nothing can be paid with it any more. */
  readonly endedAt?: number | undefined
}

export interface TokenRequest {
  readonly tenant: string
  readonly owner: string
  readonly agents: readonly string[]
  readonly amount: bigint
  readonly currency: string
  readonly ttlMs: number
  readonly maxDepth: number
  /** The account that the money comes from. */
  readonly source: string
}

interface TokensOptions extends Clocks {
  readonly store: Store
  readonly accounts: Accounts
  readonly signer: Pick<Signer, 'key' | 'publicJwks'>
  readonly newId: () => string
  /** The server's own address, which is the issuer. */
  readonly ownUrl: () => string | undefined
}

/** Tokens that carry money: each has an account in the ledger, and its text proves that somebody may spend from it. */
export class Tokens {
  readonly #options: TokensOptions
  readonly #keys: OwnKeys
  /** Verified texts, the least recently used first. */
  readonly #verified = new Map<string, { readonly tenant: string; readonly id: string; readonly until: number }>()
  readonly #known = new Map<string, PayToken>()

  constructor(options: TokensOptions) {
    this.#options = options
    this.#keys = new OwnKeys({ signer: options.signer, monotonic: options.monotonic, purpose: 'payments' })
  }

  /** Throws `conflict` if nothing can be paid with a token any more. Asks memory alone, which knows of every end. */
  checkOpen(token: PayToken): void {
    const { endedAt, expiresAt } = this.#known.get(tokenKey(token.tenant, token.id)) ?? token
    if (endedAt !== undefined) throw new UampError('conflict', 'The token was revoked', { details: { code: 'token_invalid' } })
    if (expiresAt > this.#options.now()) return
    throw new UampError('conflict', 'The token has expired', { details: { code: 'token_expired' } })
  }

  /** The token that a text is, without waiting, if it was seen before and both are in memory. */
  seen(tenant: string, text: string): { readonly token: PayToken; readonly account: Account } | undefined {
    const found = this.#verified.get(text)
    if (found?.tenant !== tenant || found.until < this.#options.monotonic()) return undefined
    const token = this.#known.get(tokenKey(tenant, found.id))
    const account = token && this.#options.accounts.known(tenant, accountOf.token(token.id))
    return account && { token, account }
  }

  /** True if a text says that a key of this ledger has signed it: it is then kept from others, whether or not it is valid. */
  async isOurs(text: string): Promise<boolean> {
    const parsed = parseToken(text)
    return !('denied' in parsed) && parsed.typ === TYP && typeof (await this.#keys.find(parsed.kid, 'RS256')) !== 'string'
  }

  /** Undefined: it is not a token of this ledger. */
  async verify(tenant: string, text: string): Promise<{ readonly token: PayToken; readonly account: Account } | undefined> {
    const seen = this.seen(tenant, text)
    if (seen) return seen
    const parsed = parseToken(text)
    if ('denied' in parsed || parsed.typ !== TYP || parsed.alg !== 'RS256') return undefined
    const key = await this.#keys.find(parsed.kid, parsed.alg)
    if (typeof key === 'string' || !(await hasSignature(parsed, key))) return undefined
    const { jti } = parsed.claims
    const token = typeof jti === 'string' ? await this.get(tenant, jti) : undefined
    if (!token) return undefined
    const account = await this.#options.accounts.get(tenant, accountOf.token(token.id))
    this.#verified.delete(text)
    this.#verified.set(text, { tenant, id: token.id, until: this.#options.monotonic() + AGE_MS })
    shrink(this.#verified)
    return { token, account }
  }

  async get(tenant: string, id: string): Promise<PayToken | undefined> {
    const key = tokenKey(tenant, id)
    const known = this.#known.get(key)
    if (known) return known
    const stored = (await this.#options.store.get(key))?.value as unknown as PayToken | undefined
    // It may have ended while it was read: memory then knows better than what was read.
    const token = this.#known.get(key) ?? stored
    if (token) this.#remember(token)
    return token
  }

  list(tenant: string, owner: string, page: PageRequest): Promise<Page<PayToken>> {
    return this.#options.store
      .list(ownedBy(tenant, owner), { ...page, descending: true })
      .then(({ items, next }) => ({ items: items.map(({ value }) => value as unknown as PayToken), next }))
  }

  /** Makes a token, and moves money to it. Throws `payment_required` if its source has not enough. */
  issue(request: TokenRequest): Promise<{ readonly token: PayToken; readonly text: string }> {
    return this.#make(request, { kind: 'issue', depth: 0, root: request.source })
  }

  /** Splits money off a token, for somebody else to spend. */
  async delegate(
    parent: PayToken,
    { agents, amount, expiresAt }: { readonly agents: readonly string[]; readonly amount: bigint; readonly expiresAt?: number | undefined },
  ): Promise<{ readonly token: PayToken; readonly text: string }> {
    this.checkOpen(parent)
    if (parent.depth >= parent.maxDepth) {
      throw new UampError('forbidden', `The token may be handed on ${parent.maxDepth} times, and has been`, {
        details: { max_depth: parent.maxDepth, reason: 'max_depth' },
      })
    }
    const until = Math.min(expiresAt ?? parent.expiresAt, parent.expiresAt)
    const { tenant, owner, currency, maxDepth, root } = parent
    const ttlMs = until - this.#options.now()
    const source = accountOf.token(parent.id)
    return this.#make(
      { tenant, owner, agents, amount, currency, ttlMs, maxDepth, source },
      { kind: 'delegate', depth: parent.depth + 1, root, parent: parent.id },
    )
  }

  async #make(
    request: TokenRequest,
    { kind, ...above }: Pick<PayToken, 'depth' | 'root' | 'parent'> & { readonly kind: 'issue' | 'delegate' },
  ): Promise<{ readonly token: PayToken; readonly text: string }> {
    const { newId, now, ownUrl, signer } = this.#options
    const { tenant, owner, agents, amount, currency, ttlMs, maxDepth, source } = request
    if (ttlMs <= 0) throw new UampError('invalid_request', 'The token would have ended already')
    const at = now()
    const token: PayToken = {
      id: `ptok_${newId()}`,
      tenant,
      owner,
      agents,
      currency,
      createdAt: at,
      expiresAt: at + ttlMs,
      maxDepth,
      source,
      ...above,
    }
    const claims = {
      iss: ownUrl() ?? 'urn:uamp:ledger',
      sub: owner,
      aud: agents,
      iat: Math.floor(at / 1000),
      exp: Math.floor(token.expiresAt / 1000),
      jti: token.id,
      payment: { balance: formatAmount(amount), scheme: 'token', currency },
      max_depth: maxDepth - token.depth,
    }
    const text = await signJwt(signer as Signer, { purpose: 'payments', typ: TYP, claims })
    // Nobody could verify it.
    if (text.length > TOKEN_CHARS) throw new UampError('invalid_request', 'The token would be too long: name fewer agents')
    await this.#fund(token, { amount, kind, from: source }, [this.#set(token)])
    this.#remember(token)
    return { token, text }
  }

  /** Adds money to a token. Money of an account never leaves the ledger when the token ends, even if that which it had came from outside. */
  async topUp(token: PayToken, amount: bigint, from: string): Promise<void> {
    this.checkOpen(token)
    const isBacked = from.startsWith('outside:') || !token.source.startsWith('outside:')
    const backed = isBacked ? token : { ...token, source: from, root: from }
    await this.#fund(backed, { amount, kind: 'topup', from }, isBacked ? [] : [this.#set(backed)])
    if (!isBacked) this.#remember({ ...backed, ...this.#known.get(tokenKey(token.tenant, token.id)), source: from, root: from })
  }

  async #fund(
    token: PayToken,
    { amount, kind, from }: Pick<Movement, 'kind' | 'from'> & { readonly amount: bigint },
    beside: readonly Operation[] = [],
  ): Promise<void> {
    const { accounts, newId, now } = this.#options
    const { id, tenant, currency, owner } = token
    const source = await accounts.get(tenant, from)
    await accounts.get(tenant, accountOf.token(id))
    this.checkOpen(token)
    if (!from.startsWith('outside:') && source.available < amount) {
      const [wanted, there] = [formatAmount(amount), formatAmount(source.available)]
      throw new UampError(
        'payment_required',
        `${from.startsWith('token:') ? 'The payment token' : 'The account'} holds ${there} ${currency}, and ${wanted} are needed`,
        {
          details: { code: 'insufficient_balance', balance_required: wanted, balance_current: there, currency },
        },
      )
    }
    const move = { id: `move_${newId()}`, kind, from, to: accountOf.token(id), amount: `${amount}`, currency, at: now(), principal: owner }
    await accounts.commit([accounts.prepare(tenant, move)], beside)
  }

  /** Ends a token and all that were split off from it. */
  async revoke(token: PayToken): Promise<void> {
    const { tenant, id } = token
    // First this one: nothing can be split off from it any more.
    await this.end(token)
    for (let after: string | undefined; ;) {
      const page = await this.#options.store.list(splitOff(tenant, id), after === undefined ? {} : { after })
      for (const { value } of page.items) {
        const child = await this.get(tenant, (value as unknown as PayToken).id)
        if (child && child.endedAt === undefined) await this.revoke(child)
      }
      if ((after = page.next) === undefined) return
    }
  }

  /** Ends a token. What is left goes back to where it came from; money that is locked, or on its way to it, follows later. */
  async end(token: PayToken): Promise<void> {
    const { accounts, newId, now, store } = this.#options
    const { tenant, id, currency, owner } = token
    const known = (await this.get(tenant, id)) ?? token
    const { endedAt = now() } = known
    const ended = { ...known, endedAt }
    this.#remember(ended)
    const account = await accounts.get(tenant, accountOf.token(id))
    const to = await this.#above(ended)
    await accounts.get(tenant, to)
    const left = account.available
    const isOver = left <= 0n && !account.isBusy && endedAt + AGAIN_MS <= now()
    const set = this.#set(ended, !isOver)
    if (left <= 0n) return store.batch([set], { sync: true })
    const move = { id: `move_${newId()}`, kind: 'return', from: account.id, to, amount: `${left}`, currency } as const
    await accounts.commit([accounts.prepare(tenant, { ...move, at: now(), principal: owner })], [set])
  }

  /** The account for money that comes back to a token: its own, or where its money goes when it has ended. Undefined: it is forgotten. */
  async heir(tenant: string, id: string): Promise<string | undefined> {
    const token = await this.get(tenant, id)
    return token && (token.endedAt === undefined ? accountOf.token(id) : this.#above(token))
  }

  async #above({ tenant, parent, source, root }: PayToken): Promise<string> {
    return parent === undefined ? source : ((await this.heir(tenant, parent)) ?? root)
  }

  #set(token: PayToken, isOpen = token.endedAt === undefined): Operation {
    const { tenant, owner, id, parent } = token
    const index = [[ownedBy(tenant, owner), id] as const]
    const above = parent === undefined ? [] : [[splitOff(tenant, parent), id] as const]
    const due = isOpen ? [[EXPIRY, expirySort(tokenDue(token))] as const] : []
    const options = { index: [...index, ...above, ...due], ...(!isOpen && { ttlMs: KEPT_MS }) }
    return { op: 'set', key: tokenKey(tenant, id), value: token as unknown as Json, options }
  }

  #remember(token: PayToken): void {
    const key = tokenKey(token.tenant, token.id)
    this.#known.delete(key)
    this.#known.set(key, token)
    shrink(this.#known)
  }
}

function shrink(map: Map<string, unknown>): void {
  if (map.size <= MOST) return
  for (const key of map.keys()) {
    if (map.size <= MOST * 0.9) return
    map.delete(key)
  }
}

/** A time as text that sorts in order. */
export function expirySort(time: number): string {
  return String(Math.max(0, Math.floor(time))).padStart(15, '0')
}

/** When there is something to do for a token. */
export function tokenDue({ endedAt, expiresAt }: Pick<PayToken, 'endedAt' | 'expiresAt'>): number {
  return endedAt === undefined ? expiresAt : endedAt + AGAIN_MS
}

function tokenKey(tenant: string, id: string): string {
  return storeKey(tenant, 'money-token', id)
}

function splitOff(tenant: string, parent: string): string {
  return storeKey(tenant, 'money-split', parent)
}

function ownedBy(tenant: string, owner: string): string {
  return storeKey(tenant, 'money-tokens', owner)
}
