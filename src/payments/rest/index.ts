import type { Host, HttpRoute, KnownCall, Transport } from '../../core/ports/transport.ts'
import type { Ledger } from '../ledger.ts'
import { AccountRoutes } from './accounts.ts'
import { Caller } from './caller.ts'
import { LockRoutes } from './locks.ts'
import { TokenRoutes } from './tokens.ts'

export interface LedgerRestOptions {
  readonly ledger: () => Ledger
  /** True if whoever has no credentials is the operator of this server: it listens on this machine alone, and admits nobody else. */
  readonly isOpen: () => boolean
}

type Answer = (call: KnownCall, caller: Caller) => Promise<Response>

/** The server's own ledger for programs: tokens, locks and accounts below `/api/payments`. */
export function ledgerRest({ ledger, isOpen }: LedgerRestOptions): Transport {
  return {
    name: 'payments',
    serves: 'all',
    routes: (host) => routesOf(host, { ledger: ledger(), isOpen }),
  }
}

function routesOf(host: Host, { ledger, isOpen }: { readonly ledger: Ledger; readonly isOpen: () => boolean }): HttpRoute[] {
  const parts = { host, ledger }
  const tokens = new TokenRoutes(parts)
  const locks = new LockRoutes(parts, tokens)
  const accounts = new AccountRoutes(parts, tokens)
  const route = (method: HttpRoute['method'], path: string, run: Answer): HttpRoute => {
    const handle = (_: Request, call: KnownCall): Promise<Response> => run(call, new Caller(call, { host, isOpen }))
    const body = method === 'GET' ? {} : ({ body: 'text' } as const)
    return {
      method,
      path: `/api/payments/${path}`,
      access: 'request',
      action: 'pay',
      ...body,
      handle: async (...given) => handle(...given),
    }
  }
  return [
    route('POST', 'verify', (...asked) => tokens.verify(...asked)),
    route('POST', 'lock', (...asked) => locks.open(...asked)),
    route('GET', 'lock/:id', (...asked) => locks.get(...asked)),
    route('PATCH', 'lock/:id', (...asked) => locks.extend(...asked)),
    route('DELETE', 'lock/:id', (...asked) => locks.release(...asked)),
    route('POST', 'settle', (...asked) => locks.settle(...asked)),
    route('POST', 'release', (...asked) => locks.release(...asked)),
    route('POST', 'delegate', (...asked) => tokens.delegate(...asked)),
    route('POST', 'tokens', (...asked) => tokens.create(...asked)),
    route('GET', 'tokens', (...asked) => tokens.list(...asked)),
    route('GET', 'tokens/:id', (...asked) => tokens.get(...asked)),
    route('DELETE', 'tokens/:id', (...asked) => tokens.revoke(...asked)),
    route('POST', 'tokens/:id/topup', (...asked) => tokens.topUp(...asked)),
    route('GET', 'balance', (...asked) => accounts.balance(...asked)),
    route('GET', 'statements', (...asked) => accounts.statements(...asked)),
    route('GET', 'payments/:id', (...asked) => accounts.payment(...asked)),
    route('POST', 'deposit', (...asked) => accounts.transfer('deposit', ...asked)),
    route('POST', 'withdraw', (...asked) => accounts.transfer('withdraw', ...asked)),
    route('POST', 'refund', (...asked) => accounts.refund(...asked)),
  ]
}
