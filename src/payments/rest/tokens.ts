import { formatAmount, parseAmount } from '../../protocol/money.ts'
import type { Host, KnownCall } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { invalid, parseBody } from '../../wire/parse.ts'
import { accountOf, type Account } from '../accounts.ts'
import { namesOf, NOT_OURS } from '../ledger-method.ts'
import type { Ledger } from '../ledger.ts'
import type { PayToken } from '../tokens.ts'
import type { Caller } from './caller.ts'
import { DelegateBody, DEPTH, TokenBody, TopUpBody, USUAL_TTL_MS, VerifyBody } from './schema.ts'
import { answer, bodyOf, cursorOf, isoTime, pageIn, shownToken } from './shown.ts'

export interface RestParts {
  readonly host: Host
  readonly ledger: Ledger
}

export interface Found {
  readonly token: PayToken
  readonly account: Account
}

interface NewToken {
  readonly owner: string
  readonly agents: readonly string[]
  readonly amount: bigint
  readonly currency: string
  readonly ttlMs: number
  readonly maxDepth: number
  /** The money is paid in from outside, which only the operator can do. */
  readonly isFresh: boolean
}

/** What can be done with tokens. */
export class TokenRoutes {
  readonly #parts: RestParts

  constructor(parts: RestParts) {
    this.#parts = parts
  }

  /** `POST verify`: what a token is worth. A worthless one is an answer, and no error. */
  async verify(call: KnownCall, caller: Caller): Promise<Response> {
    const { token: text, agent } = parseBody(VerifyBody, await bodyOf(call))
    const found = await this.#parts.ledger.tokens.verify(caller.tenant, text)
    const wrong = found ? this.wrongWith(found, agent ?? caller.pathAgent) : UNKNOWN
    if (!found || wrong) return answer({ valid: false, balance: '0.00', reason: wrong?.code, message: wrong?.message })
    const { id, agents, currency, expiresAt, depth, maxDepth } = found.token
    const balance = formatAmount(found.account.available)
    return answer({
      valid: true,
      balance,
      currency,
      expiresAt: isoTime(expiresAt),
      tokenId: id,
      agents,
      maxDepth: maxDepth - depth,
    })
  }

  /** Why a token cannot pay, or not this agent. */
  wrongWith({ token }: Found, agent: string | undefined): Wrong | undefined {
    if (token.endedAt !== undefined) return { code: 'token_invalid', message: 'The payment token was revoked' }
    if (token.expiresAt <= this.#parts.host.now()) return { code: 'token_expired', message: 'The payment token has expired' }
    if (agent === undefined || token.agents.includes('*') || token.agents.includes(agent)) return undefined
    return { code: 'token_invalid', message: `The payment token pays ${namesOf(token.agents)}, and not "${agent}"` }
  }

  /** The token of a request, if it can pay. */
  async usable(caller: Caller, text: string, agent?: string): Promise<Found> {
    const found = await this.#parts.ledger.tokens.verify(caller.tenant, text)
    const wrong = found ? this.wrongWith(found, agent) : UNKNOWN
    if (found && !wrong) return found
    const { code, message } = wrong ?? UNKNOWN
    throw new UampError('payment_required', message, { details: { code } })
  }

  /** `POST delegate`: whoever has the text of a token may hand a part of it on, as far as its depth allows. */
  async delegate(call: KnownCall, caller: Caller): Promise<Response> {
    const { parentToken, delegateTo, amount, expiresIn } = parseBody(DelegateBody, await bodyOf(call))
    const { token: parent } = await this.usable(caller, parentToken)
    const expiresAt = expiresIn === undefined ? undefined : this.#parts.host.now() + expiresIn * 1000
    const made = await this.#parts.ledger.tokens.delegate(parent, { agents: listed(delegateTo), amount: parsed(amount), expiresAt })
    return answer(shownNew(made, parsed(amount)), 201)
  }

  /** `POST tokens`. */
  async create(call: KnownCall, caller: Caller): Promise<Response> {
    caller.checkNamed()
    const {
      amount,
      currency = 'USD',
      agents,
      expiresIn,
      maxDepth = DEPTH.usual,
      principal,
      source,
    } = parseBody(TokenBody, await bodyOf(call))
    const isFresh = (source ?? (caller.isOperator ? 'outside' : 'account')) === 'outside'
    if (isFresh) caller.checkOperator()
    if (!caller.owns(principal ?? caller.id)) throw new UampError('not_found', 'There is no account of this name')
    const ttlMs = expiresIn === undefined ? USUAL_TTL_MS : expiresIn * 1000
    const owner = principal ?? caller.id
    const made = await this.make(caller, { owner, agents: listed(agents), amount: parsed(amount), currency, ttlMs, maxDepth, isFresh })
    return answer(shownNew(made, parsed(amount)), 201)
  }

  /** A token of the owner's account, which the operator may fill for it: what is left returns there when the token ends. */
  async make(caller: Caller, { isFresh, ...asked }: NewToken): Promise<Made> {
    const { ledger } = this.#parts
    const { owner, agents, amount, currency } = asked
    caller.checkMayPay(agents)
    const source = accountOf.principal(owner, currency)
    if (isFresh) await this.#fill(caller, { owner, amount, currency })
    return ledger.tokens.issue({ ...asked, tenant: caller.tenant, source })
  }

  async #fill({ tenant }: Caller, { owner, amount, currency }: Pick<NewToken, 'owner' | 'amount' | 'currency'>): Promise<void> {
    const [from, to] = [accountOf.outside(currency), accountOf.principal(owner, currency)]
    await this.#parts.ledger.transfer(tenant, { kind: 'deposit', from, to, amount, currency, principal: owner })
  }

  /** `GET tokens`: one's own, the newest first. */
  async list(call: KnownCall, caller: Caller): Promise<Response> {
    caller.checkNamed()
    const query = new URL(call.request.url).searchParams
    const owner = query.get('principal') ?? caller.id
    if (!caller.owns(owner)) throw new UampError('not_found', 'There is no account of this name')
    const { items, next } = await this.#parts.ledger.tokens.list(caller.tenant, owner, pageIn(query))
    const tokens = await Promise.all(items.map((token) => this.#shown(token)))
    return answer({ tokens, ...cursorOf(next) })
  }

  async get(call: KnownCall, caller: Caller): Promise<Response> {
    return answer(await this.#shown(await this.own(call.params['id'], caller)))
  }

  /** `DELETE tokens/:id`: also ends what was split off from it. What is left goes back to where it came from. */
  async revoke(call: KnownCall, caller: Caller): Promise<Response> {
    const token = await this.own(call.params['id'], caller)
    await this.#parts.ledger.tokens.revoke(token)
    return answer({ success: true, ...(await this.#shown(await this.own(token.id, caller))) })
  }

  /** `POST tokens/:id/topup`: from the account of its owner, which the operator may fill for it. */
  async topUp(call: KnownCall, caller: Caller): Promise<Response> {
    const token = await this.own(call.params['id'], caller)
    const { amount: text, source } = parseBody(TopUpBody, await bodyOf(call))
    const { ledger } = this.#parts
    const amount = parsed(text)
    const { owner, currency } = token
    ledger.tokens.checkOpen(token)
    const isFresh = (source ?? (caller.isOperator ? 'outside' : 'account')) === 'outside'
    if (isFresh) {
      caller.checkOperator()
      await this.#fill(caller, { owner, amount, currency })
    }
    await ledger.tokens.topUp(token, amount, accountOf.principal(owner, currency))
    return answer({ success: true, added: formatAmount(amount), ...(await this.#shown(token)) })
  }

  /** Somebody else's token is not there. What was asked for is not repeated: it may be the text of a token. */
  async own(id: string | null | undefined, caller: Caller): Promise<PayToken> {
    caller.checkNamed()
    if (id === '' || id === null || id === undefined) throw invalid('Name a token', 'token')
    const token = await this.#parts.ledger.tokens.get(caller.tenant, id)
    if (!token || !caller.owns(token.owner))
      throw new UampError('not_found', 'There is no token with this id: ids begin with "ptok_", and `uamp pay tokens` shows them')
    return token
  }

  async #shown(token: PayToken): Promise<object> {
    const { ledger, host } = this.#parts
    return shownToken(token, await ledger.accounts.get(token.tenant, accountOf.token(token.id)), host.now())
  }
}

interface Wrong {
  readonly code: 'token_invalid' | 'token_expired'
  readonly message: string
}

const UNKNOWN: Wrong = { code: NOT_OURS.refused, message: NOT_OURS.message }

interface Made {
  readonly token: PayToken
  readonly text: string
}

/** The only place that shows the text of a token. */
export function shownNew({ token: { id, agents, currency, expiresAt, depth, maxDepth }, text }: Made, amount: bigint): object {
  const balance = formatAmount(amount)
  const facts = { tokenId: id, balance, lockedAmount: balance, currency, agents, maxDepth: maxDepth - depth }
  return { token: text, ...facts, expiresAt: isoTime(expiresAt) }
}

export function listed(agents: string | readonly string[]): readonly string[] {
  return typeof agents === 'string' ? [agents] : [...new Set(agents)]
}

/** An amount whose form was checked. */
export function parsed(text: string): bigint {
  return parseAmount(text) ?? 0n
}
