import { formatAmount, parseAmount } from '../../protocol/money.ts'
import { fieldsOf } from '../../protocol/records.ts'
import type { Wallet } from '../../protocol/wallet.ts'
import { otherThanToken, type PayTokenSource } from './token.ts'

const TIMEOUT_MS = 30_000

export interface SplitWalletOptions {
  /** The server whose ledger has the money. */
  readonly url: string
  /** The token that the money comes from. */
  readonly token: PayTokenSource
  /** Sent with each request to that server, such as `authorization`. */
  readonly headers?: Readonly<Record<string, string>>
  readonly fetch?: typeof globalThis.fetch
}

/**
 * Pays each demand with a token of its own, which is split off yours: it holds no more than was asked for, pays one agent only, and may be
 * handed on less often. What is left of it goes back when the answer is over, or when the token ends.
 */
export function splitWallet({ url, token, headers, fetch = globalThis.fetch.bind(globalThis) }: SplitWalletOptions): Wallet {
  const base = url.replace(/\/+$/, '')
  const call = async (path: string, init: RequestInit): Promise<Record<string, unknown> | number> => {
    const answer = await fetch(`${base}/api/payments/${path}`, {
      ...init,
      headers: { ...headers, ...(init.body != null && { 'content-type': 'application/json' }) },
      signal: init.signal ?? AbortSignal.timeout(TIMEOUT_MS),
    })
    const body: unknown = await answer.json().catch(() => undefined)
    return answer.ok ? fieldsOf(body) : answer.status
  }
  return {
    async pay(invoice, { signal }) {
      const refusal = otherThanToken(invoice)
      if (refusal) return refusal
      const { agent, requirements } = invoice
      if (agent === undefined) return { declined: 'Nobody said which agent is to be paid' }
      const parentToken = typeof token === 'function' ? await token() : token
      const body = JSON.stringify({ parentToken, delegateTo: agent, amount: requirements.amount })
      const split = await call('delegate', { method: 'POST', body, signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]) })
      if (split === 402) return { declined: 'There is not enough money in the token', code: 'budget_exceeded' }
      if (split === 403) return { declined: 'The token may not be handed on' }
      if (typeof split === 'number') return { declined: `The ledger does not split the token: it answered ${split}` }
      const text = split['token']
      if (typeof text !== 'string') return { declined: 'The ledger does not split the token: it gave none' }
      return { scheme: 'token', token: text, amount: requirements.amount }
    },
    async done({ requirements }, { payment }) {
      const id = idIn(payment.token)
      if (id === undefined) return undefined
      const body = JSON.stringify({ token: payment.token })
      const left = fieldsOf(await call('verify', { method: 'POST', body }))
      const ended = await call(`tokens/${encodeURIComponent(id)}`, { method: 'DELETE' })
      // It may still be spent, until it ends by itself: whatever the seller says, it counts in full.
      if (typeof ended === 'number') return requirements.amount
      const [asked, back] = [parseAmount(requirements.amount), parseAmount(left['balance'])]
      return asked === undefined || back === undefined || back > asked ? undefined : formatAmount(asked - back)
    },
  }
}

/** The `jti` of a token. Whether it is genuine is for the ledger to say. */
function idIn(token: string | undefined): string | undefined {
  const [, claims] = token?.split('.') ?? []
  if (claims === undefined) return undefined
  try {
    const { jti } = fieldsOf(JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/'))))
    return typeof jti === 'string' ? jti : undefined
  } catch {
    return undefined
  }
}
