import { formatAmount } from '../../protocol/money.ts'
import { ratesOf } from '../../core/basics/price.ts'
import type { KnownCall } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { invalid, parseBody } from '../../wire/parse.ts'
import { accountOf } from '../accounts.ts'
import { namesOf } from '../ledger-method.ts'
import type { PayLock } from '../locks.ts'
import type { PayToken } from '../tokens.ts'
import type { Caller } from './caller.ts'
import { DEPTH, ExtendBody, LockBody, lockTtlMs, ReleaseBody, SettleBody, USUAL_TTL_MS } from './schema.ts'
import { answer, bodyOf, keyOf, shownLock } from './shown.ts'
import { listed, parsed, shownNew, type RestParts, type TokenRoutes } from './tokens.ts'

type Settling = ReturnType<typeof parseBody<typeof SettleBody>>

/**
 * Locks of sellers. Whoever has the text of a token opens one. It is settled, extended and released by that principal, by those who may
 * `host` the agent that is paid, and by the operator. Not by the owner of the token: they would take back what was promised to the seller
 * while the seller works. The owner waits for the end of the lock, which every lock has.
 */
export class LockRoutes {
  readonly #parts: RestParts
  readonly #tokens: TokenRoutes

  constructor(parts: RestParts, tokens: TokenRoutes) {
    this.#parts = parts
    this.#tokens = tokens
  }

  /** `POST lock` of a seller, with a token; or of a payer, who gets a token for so much. */
  async open(call: KnownCall, caller: Caller): Promise<Response> {
    caller.checkNamed()
    const body = parseBody(LockBody, await bodyOf(call))
    const { token: text, amount, audience } = body
    if (text === undefined) return this.#payer(body, caller)
    const found = await this.#tokens.usable(caller, text)
    const agent = this.#agentOf(found.token, body.agent ?? (typeof audience === 'string' ? audience : audience?.[0]) ?? caller.pathAgent)
    caller.checkMayPay([agent])
    const { currency } = found.token
    if (body.currency !== undefined && body.currency !== currency) {
      throw refused(`The payment token holds ${currency}, and the lock is to hold ${body.currency}`)
    }
    const lock = await this.#parts.ledger.locks.open(found.token, {
      agent,
      openedBy: caller.id,
      amount: parsed(amount),
      ttlMs: lockTtlMs(body.expiresIn),
    })
    return answer({ ...shownLock(lock, parsed(amount)), remaining: formatAmount(found.account.available) }, 201)
  }

  async #payer({ amount, audience, currency = 'USD', expiresIn }: LockForm, caller: Caller): Promise<Response> {
    if (audience === undefined) throw invalid('Send the "token" to lock money of, or the "audience" to get one for', 'token')
    const ttlMs = expiresIn === undefined ? USUAL_TTL_MS : expiresIn * 1000
    const asked = { owner: caller.id, agents: listed(audience), amount: parsed(amount), currency, ttlMs, maxDepth: DEPTH.usual }
    const made = await this.#tokens.make(caller, { ...asked, isFresh: caller.isOperator })
    return answer(shownNew(made, parsed(amount)), 201)
  }

  /** Who is paid. A token for all agents pays those of this server, so that no money goes to a name that is spelt wrong. */
  #agentOf({ agents }: PayToken, named: string | undefined): string {
    const isForAll = agents.includes('*')
    const agent = named ?? (agents.length === 1 && !isForAll ? agents[0] : undefined)
    if (agent === undefined) throw invalid('Say which "agent" is paid', 'agent')
    if (agents.includes(agent)) return agent
    if (!isForAll) throw refused(`The payment token pays ${namesOf(agents)}, and not "${agent}"`)
    if (!this.#parts.host.agents.get(agent)) throw new UampError('agent_offline', 'There is no agent of this name here')
    return agent
  }

  async get(call: KnownCall, caller: Caller): Promise<Response> {
    const lock = await this.#own(call.params['id'], caller)
    return answer(shownLock(lock, await this.#balance(lock)))
  }

  /** `PATCH lock/:id`: locks more of the same token. */
  async extend(call: KnownCall, caller: Caller): Promise<Response> {
    const lock = await this.#own(call.params['id'], caller)
    const { amount } = parseBody(ExtendBody, await bodyOf(call))
    const { ledger } = this.#parts
    const token = await ledger.tokens.get(lock.tenant, lock.token)
    if (!token) throw new UampError('conflict', 'The token of this lock has ended')
    return answer(shownLock(lock, await ledger.locks.extend(lock, { amount: parsed(amount), token })))
  }

  /** `POST settle`. */
  async settle(call: KnownCall, caller: Caller): Promise<Response> {
    const body = parseBody(SettleBody, await bodyOf(call))
    const key = keyOf(call, body.idempotencyKey) ?? this.#parts.host.newId()
    const lock = await this.#own(body.lockId, caller)
    const amount = body.usage ? this.#costOf(body, lock) : body.amount === undefined ? undefined : parsed(body.amount)
    if (amount === undefined && !body.release) throw invalid('Say the "amount", or the "usage", or "release" the lock', 'amount')
    const description = body.description ?? body.chargeType
    const request = { amount: amount ?? 0n, key, release: body.release ?? false, description }
    const { charged, remaining, payment } = await this.#parts.ledger.locks.settle(lock, request)
    const { currency, id } = lock
    const paid = payment === undefined ? {} : { paymentId: payment }
    return answer({ success: true, lockId: id, charged: formatAmount(charged), remaining: formatAmount(remaining), currency, ...paid })
  }

  /** `POST release` and `DELETE lock/:id`. A lock that has ended stays as it is. */
  async release(call: KnownCall, caller: Caller): Promise<Response> {
    const id = call.params['id'] ?? parseBody(ReleaseBody, await bodyOf(call)).lockId
    const lock = await this.#own(id, caller)
    const { ledger } = this.#parts
    await ledger.locks.release(lock)
    const { id: lockId, currency } = lock
    const { state } = (await ledger.locks.get(lock.tenant, lockId)) ?? lock
    return answer({ success: true, lockId, state, remaining: '0.00', currency })
  }

  /** What was used, at the prices of the agent that is paid. */
  #costOf({ usage = [], amount }: Settling, { agent, currency }: PayLock): bigint {
    if (amount !== undefined) throw invalid('Say either the "amount" or the "usage"', 'usage')
    let sum = 0n
    for (const used of usage) {
      if (used.amount !== undefined) sum += parsed(used.amount)
      else sum += this.#rates(agent, currency).cost(tokensIn(used))
    }
    return sum
  }

  #rates(agent: string, currency: string): ReturnType<typeof ratesOf> {
    const price = this.#parts.host.agents.get(agent)?.price
    const rates = price && ratesOf(price)
    if (!rates?.perUse) throw invalid('The agent has no price for what it uses: say the "amount" of each', 'usage')
    if ((price?.currency ?? 'USD') !== currency) throw invalid(`The prices of the agent are not in ${currency}: say the "amount"`, 'usage')
    return rates
  }

  /** A lock of others is not there. */
  async #own(id: string | undefined, caller: Caller): Promise<PayLock> {
    caller.checkNamed()
    const lock = await this.#parts.ledger.locks.get(caller.tenant, id ?? '')
    if (lock && (caller.owns(lock.openedBy) || caller.mayActFor(lock.agent))) return lock
    throw new UampError('not_found', 'There is no lock with this id')
  }

  async #balance({ tenant, id }: PayLock): Promise<bigint> {
    return (await this.#parts.ledger.accounts.get(tenant, accountOf.lock(id))).available
  }
}

type LockForm = ReturnType<typeof parseBody<typeof LockBody>>
type Used = NonNullable<Settling['usage']>[number]

function tokensIn({ promptTokens = 0, cachedTokens = 0, completionTokens = 0 }: Used) {
  return { input_tokens: promptTokens, cached_tokens: cachedTokens, output_tokens: completionTokens }
}

function refused(message: string): UampError {
  return new UampError('payment_required', message, { details: { code: 'token_invalid' } })
}
