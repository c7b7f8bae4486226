import { KeySet } from '../auth/verify/key-set.ts'
import { hasSignature, parseToken } from '../auth/verify/token.ts'
import { isCurrency } from '../protocol/money.ts'
import { storeKey } from '../core/basics/store-key.ts'
import { timeOrderedIds } from '../core/basics/time.ts'
import type { Asked, Authorisation, Offer, Refusal, Settlement } from '../core/ports/payments.ts'
import type { Operation, Store } from '../core/ports/store.ts'
import { base64Url, bytesIn } from '../protocol/base64.ts'
import { UampError } from '../protocol/errors.ts'
import { fieldsOf, isRecord, jsonIn, type Slot } from '../protocol/json.ts'
import type { Payment } from '../protocol/payment.ts'
import { accountOf, type Account, type Accounts } from './accounts.ts'
import type { PaymentMethod } from './method.ts'

/** Payments by mandates of AP2. Whoever runs the server has them settled by a processor of payments. */
export interface Ap2Settings {
  /** The public keys of those who issue mandates, by the issuer's name: a JWK Set each. */
  readonly issuers: Readonly<Record<string, { readonly keys: readonly object[] }>>
  /** The id of the payee that mandates must name. Default: any. */
  readonly payee?: string | undefined
  /** How many decimals the minor units of a currency are. Default: 2. */
  readonly minorUnits?: Readonly<Record<string, number>> | undefined
}

export interface Ap2Config {
  readonly issuers: ReadonlyMap<string, KeySet>
  readonly payee: string | undefined
  readonly minorUnits: ReadonlyMap<string, number>
}

/** Throws where a setting is wrong. */
export function ap2Config({ issuers, payee, minorUnits = {} }: Ap2Settings): Ap2Config {
  const keys = Object.entries(issuers).map(([issuer, set]): [string, KeySet] => {
    const found = KeySet.of(set)
    if (!found) throw new UampError('invalid_request', `payments.ap2.issuers["${issuer}"] is not a JWK Set`)
    return [issuer, found]
  })
  for (const [currency, decimals] of Object.entries(minorUnits)) {
    if (isCurrency(currency) && Number.isInteger(decimals) && decimals >= 0 && decimals <= 9) continue
    throw new UampError('invalid_request', `payments.ap2.minorUnits.${currency} must be a number of decimals up to 9`)
  }
  return { issuers: new Map(keys), payee, minorUnits: new Map(Object.entries(minorUnits)) }
}

/** A mandate by the version of AP2 that is served here. The name must match exactly. */
const VCT = 'mandate.payment.1'
const LENGTH = 65_536
const DISCLOSURES = 64
const UNIT_DECIMALS = 9
const MINOR = 2
const DAY_MS = 86_400_000
/** No mandate is valid for longer, so none has to be remembered for longer. */
const LONGEST_MS = 366 * DAY_MS
const ID = /^[\w.:/+=-]{1,256}$/

interface Ap2Options {
  readonly config: Ap2Config
  readonly accounts: Accounts
  readonly store: Store
  readonly now: () => number
}

/** What a mandate that was verified permits. */
interface Mandate {
  /** Names it among those of its issuer. */
  readonly id: string
  readonly issuer: string
  readonly amount: bigint
  readonly expiresAt: number
}

/** Pays with Payment Mandates of AP2 (SD-JWT VC): each one once. */
export class Ap2Method implements PaymentMethod {
  readonly #options: Ap2Options
  readonly #newId: () => string
  readonly #inUse = new Set<string>()

  constructor(options: Ap2Options) {
    this.#options = options
    this.#newId = timeOrderedIds(options.now)
  }

  offer(): Offer {
    return { schemes: this.#options.config.issuers.size > 0 ? [{ scheme: 'ap2' }] : [] }
  }

  takes({ scheme, ap2_credential }: Payment): boolean {
    return scheme === 'ap2' || ap2_credential !== undefined
  }

  async authorise(asked: Asked, payment: Payment): Promise<Authorisation | Refusal> {
    const { accounts, store } = this.#options
    const mandate = await this.#verify(asked, textOf(payment))
    if ('refused' in mandate) return mandate
    const key = storeKey('', 'ap2', mandate.issuer, mandate.id)
    const used = invalid('The mandate was used before')
    if (this.#inUse.has(key)) return used
    this.#inUse.add(key)
    let between: Using['between']
    try {
      const { tenant } = asked.principal
      const { currency, agent } = asked
      between = await Promise.all([
        accounts.get(tenant, accountOf.outside(currency)),
        accounts.get(tenant, accountOf.agent(agent, currency)),
      ])
      if (await store.get(key)) {
        this.#inUse.delete(key)
        return used
      }
    } catch (thrown) {
      this.#inUse.delete(key)
      throw thrown
    }
    const release = (): void => void this.#inUse.delete(key)
    return new Mandated(asked, mandate, { ...this.#options, id: `pay_${this.#newId()}`, key, release, between })
  }

  async #verify(asked: Asked, text: string | undefined): Promise<Mandate | Refusal> {
    const { config, now } = this.#options
    if (text === undefined || text.length > LENGTH) return invalid('The payment has no mandate that can be read')
    const [jwt = '', ...rest] = text.split('~')
    const token = parseToken(jwt, LENGTH)
    if ('denied' in token) return invalid('The mandate is not an SD-JWT that can be read')
    if (token.typ !== 'dc+sd-jwt' && token.typ !== 'vc+sd-jwt') return invalid('The mandate is not an SD-JWT VC')
    const issuer = typeof token.claims['iss'] === 'string' ? token.claims['iss'] : ''
    const found = await config.issuers.get(issuer)?.find(token.kid, token.alg)
    if (found === undefined) return invalid('Nobody here knows the issuer of the mandate')
    if (typeof found === 'string' || !(await hasSignature(token, found))) return invalid('The mandate is not signed by its issuer')
    // What follows the last `~` binds a key, which nobody here asks for.
    const claims = await disclosed(token.claims, rest.slice(0, -1))
    if (!claims) return invalid('The mandate discloses what it does not contain')
    return mandateIn(claims, { asked, config, now: now(), signed: token.claims })
  }
}

/** The credential as text, wherever it stands. */
function textOf({ token, proof, ap2_credential }: Payment): string | undefined {
  const { sd_jwt, credential, mandate } = fieldsOf(ap2_credential)
  return [token, proof, sd_jwt, credential, mandate].find((each) => typeof each === 'string')
}

/** The claims of an SD-JWT with what was disclosed at its top level. Undefined: a disclosure does not belong to it. */
async function disclosed(claims: Slot, disclosures: readonly string[]): Promise<Slot | undefined> {
  const { _sd: digests, _sd_alg: algorithm = 'sha-256', ...plain } = claims
  if (disclosures.length === 0) return plain
  if (!Array.isArray(digests) || algorithm !== 'sha-256' || disclosures.length > DISCLOSURES) return undefined
  const all: Slot = { ...plain }
  for (const disclosure of disclosures) {
    const digest = base64Url(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(disclosure))))
    const bytes = bytesIn(disclosure.replaceAll('-', '+').replaceAll('_', '/'))
    const told = bytes && jsonIn(new TextDecoder().decode(bytes))
    if (!digests.includes(digest) || !Array.isArray(told) || told.length !== 3) return undefined
    const [, name, value] = told as unknown[]
    if (typeof name !== 'string' || name === '__proto__' || name in all || name in claims) return undefined
    all[name] = value
  }
  return all
}

interface Wanted {
  readonly asked: Asked
  readonly config: Ap2Config
  readonly now: number
  /** What the mandate says to everybody, whatever is disclosed. */
  readonly signed: Slot
}

function mandateIn(claims: Slot, { asked, config, now, signed }: Wanted): Mandate | Refusal {
  const { vct, iss, exp, nbf, transaction_id, payee, payment_amount } = claims
  if (vct !== VCT) return invalid(`The mandate is not a "${VCT}"`)
  // Its holder chooses what to disclose, and must not choose between two names: under each of them it would pay.
  const names = [signed['transaction_id'], signed['jti'], transaction_id]
  const id = names.find((each) => typeof each === 'string' && ID.test(each)) as string | undefined
  if (id === undefined) return invalid('The mandate names no transaction')
  if (typeof exp !== 'number' || exp * 1000 - now > LONGEST_MS) return invalid('The mandate does not end within a year')
  if (exp * 1000 <= now) return { refused: 'token_expired', message: 'The mandate has expired' }
  if (nbf !== undefined && !(typeof nbf === 'number' && nbf * 1000 <= now)) return invalid('The mandate is not valid yet')
  const named = isRecord(payee) ? payee['id'] : payee
  if (config.payee !== undefined && named !== config.payee) return invalid('The mandate is for another payee')
  const { amount: minor, currency } = fieldsOf(payment_amount)
  if (currency !== asked.currency) return invalid(`The mandate is not in ${asked.currency}`)
  if (typeof minor !== 'number' || !Number.isSafeInteger(minor) || minor <= 0)
    return invalid('The amount of the mandate is no whole number')
  const decimals = config.minorUnits.get(asked.currency) ?? MINOR
  const amount = BigInt(minor) * 10n ** BigInt(UNIT_DECIMALS - decimals)
  if (amount < asked.amount) return { refused: 'insufficient_balance', message: 'The mandate is of less than what is asked' }
  return { id, issuer: String(iss), amount, expiresAt: exp * 1000 }
}

interface Using extends Ap2Options {
  readonly id: string
  /** The key of the record that says that the mandate was used. */
  readonly key: string
  readonly release: () => void
  /** From where to where the money goes. Kept in memory by this: a payment ends there without waiting. */
  readonly between: readonly [Account, Account]
}

/** A mandate that pays for a turn. What is taken of it is at most what it permits. */
class Mandated implements Authorisation {
  readonly scheme = 'ap2'
  readonly balance = undefined
  readonly id: string
  readonly currency: string
  readonly expiresAt: number
  readonly #asked: Asked
  readonly #mandate: Mandate
  readonly #using: Using
  #locked: bigint

  constructor(asked: Asked, mandate: Mandate, using: Using) {
    this.id = using.id
    this.currency = asked.currency
    this.expiresAt = mandate.expiresAt
    this.#asked = asked
    this.#mandate = mandate
    this.#using = using
    this.#locked = asked.amount
  }

  get locked(): bigint {
    return this.#locked
  }

  extend(amount: bigint): boolean {
    if (this.#locked + amount > this.#mandate.amount || this.expiresAt <= this.#using.now()) return false
    this.#locked += amount
    return true
  }

  settle(amount: bigint): Settlement {
    const { accounts, now, key, release, id, between } = this.#using
    if (amount === 0n) {
      release()
      return { operations: [], done: () => undefined }
    }
    const { principal, agent, session, response, question, currency } = this.#asked
    const moved = accounts.prepare(principal.tenant, {
      id,
      kind: 'payment',
      from: between[0].id,
      to: between[1].id,
      amount: `${amount}`,
      currency,
      at: now(),
      principal: principal.id,
      agent,
      session,
      response,
      question,
      description: `ap2 ${this.#mandate.id}`,
    })
    const ttlMs = Math.max(0, this.expiresAt - now()) + DAY_MS
    const used: Operation = { op: 'set', key, value: { payment: id, response }, options: { ifVersion: 0, ttlMs } }
    return {
      operations: [...moved.operations, used],
      done: (failure) => {
        moved.done(failure)
        release()
      },
    }
  }
}

function invalid(message: string): Refusal {
  return { refused: 'token_invalid', message }
}
