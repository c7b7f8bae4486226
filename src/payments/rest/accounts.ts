import { formatAmount, isCurrency } from '../../protocol/money.ts'
import type { KnownCall } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import { invalid, parseBody } from '../../wire/parse.ts'
import { accountOf } from '../accounts.ts'
import type { Caller } from './caller.ts'
import { RefundBody, TransferBody } from './schema.ts'
import { answer, bodyOf, cursorOf, keyOf, pageIn, shownMove, shownPayment } from './shown.ts'
import { parsed, type RestParts, type TokenRoutes } from './tokens.ts'

/** What can be done with accounts. */
export class AccountRoutes {
  readonly #parts: RestParts
  readonly #tokens: TokenRoutes

  constructor(parts: RestParts, tokens: TokenRoutes) {
    this.#parts = parts
    this.#tokens = tokens
  }

  /** `GET balance`: of one's own account, or of that which `principal` or `agent` names. */
  async balance(call: KnownCall, caller: Caller): Promise<Response> {
    const named = namedIn(new URL(call.request.url).searchParams)
    const account = await this.#parts.ledger.accounts.get(caller.tenant, caller.account(named))
    const { available, locked } = account
    const [balance, set] = [formatAmount(available), formatAmount(locked)]
    return answer({ balance, locked: set, currency: named.currency, ...ownerOf(named, caller) })
  }

  /** `GET statements`: the movements of an account or a token, the newest first. */
  async statements(call: KnownCall, caller: Caller): Promise<Response> {
    const query = new URL(call.request.url).searchParams
    const named = namedIn(query)
    const isOfToken = query.has('token')
    if (isOfToken && (named.principal ?? named.agent) !== undefined) throw invalid('Name one account, or a token', 'token')
    const account = isOfToken ? accountOf.token((await this.#tokens.own(query.get('token'), caller)).id) : caller.account(named)
    const { items, next } = await this.#parts.ledger.statement(caller.tenant, account, pageIn(query))
    return answer({ entries: items.map((move) => shownMove(move, account)), ...cursorOf(next) })
  }

  /** `POST deposit` and `POST withdraw`: money comes from outside, or leaves. */
  async transfer(kind: 'deposit' | 'withdraw', call: KnownCall, caller: Caller): Promise<Response> {
    caller.checkOperator()
    const { amount, currency = 'USD', principal, agent, description, idempotencyKey } = parseBody(TransferBody, await bodyOf(call))
    if ((principal ?? agent) === undefined) throw invalid('Name the "principal", or the "agent", whose account it is', 'principal')
    const key = keyOf(call, idempotencyKey)
    const [account, outside] = [caller.account({ principal, agent, currency }), accountOf.outside(currency)]
    const [from, to] = kind === 'deposit' ? [outside, account] : [account, outside]
    const { ledger } = this.#parts
    const about = { principal, agent, description, key }
    const id = await ledger.transfer(caller.tenant, { kind, from, to, amount: parsed(amount), currency, ...about })
    const { available } = await ledger.accounts.get(caller.tenant, account)
    return answer({ success: true, id, amount: formatAmount(parsed(amount)), currency, balance: formatAmount(available) })
  }

  /** `GET payments/:id`: what it paid for and how it stands, for whoever paid, whoever owns the token that paid, and the seller. */
  async payment(call: KnownCall, caller: Caller): Promise<Response> {
    caller.checkNamed()
    const { ledger } = this.#parts
    const { tenant } = caller
    const id = call.params['id'] ?? ''
    const found = await ledger.find(tenant, id)
    const mine = found && (caller.owns(found.principal ?? '') || caller.mayActFor(found.agent ?? '') || (await this.#paid(id, caller)))
    if (!mine) throw new UampError('not_found', 'There is no payment with this id')
    return answer(shownPayment(found, await ledger.refunded(tenant, id)))
  }

  /** True if the token that paid is theirs. */
  async #paid(id: string, caller: Caller): Promise<boolean> {
    const { ledger } = this.#parts
    const [kind, jti = ''] = (await ledger.payment(caller.tenant, id))?.from.split(':') ?? []
    const token = kind === 'token' ? await ledger.tokens.get(caller.tenant, jti) : undefined
    return token !== undefined && caller.owns(token.owner)
  }

  /** `POST refund`: by the operator, and by those who may `host` the agent that was paid. */
  async refund(call: KnownCall, caller: Caller): Promise<Response> {
    caller.checkNamed()
    const { paymentId, amount, description, idempotencyKey } = parseBody(RefundBody, await bodyOf(call))
    const { ledger } = this.#parts
    const key = keyOf(call, idempotencyKey)
    const payment = await ledger.payment(caller.tenant, paymentId)
    if (!payment || !caller.mayActFor(payment.agent ?? '')) throw new UampError('not_found', 'There is no payment with this id')
    const asked = { amount: amount === undefined ? undefined : parsed(amount), key, description }
    const { refund, amount: back } = await ledger.refund(caller.tenant, payment, asked)
    return answer({ success: true, refundId: refund, paymentId, refunded: formatAmount(back), currency: payment.currency })
  }
}

interface Named {
  readonly currency: string
  readonly principal?: string | undefined
  readonly agent?: string | undefined
}

function namedIn(query: URLSearchParams): Named {
  const currency = query.get('currency') ?? 'USD'
  if (!isCurrency(currency))
    throw invalid('"currency" must be the name of a currency in capitals, such as "USD"', 'currency', 'invalid_value')
  const [principal, agent] = [query.get('principal') ?? undefined, query.get('agent') ?? undefined]
  return { currency, principal, agent }
}

function ownerOf({ principal, agent }: Named, caller: Caller): object {
  return agent === undefined ? { principal: principal ?? caller.id } : { agent }
}
