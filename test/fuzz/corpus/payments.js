// @ts-check
import { entry, get, post, request } from './entry.js'
import { FORGED } from '../mutate/payments.js'

const UAMP = /** @type {const} */ ({ form: 'uamp' })
const ROOT = '/api/payments/'
const [token = ''] = FORGED

/** @param {string} path @param {unknown} body */
const posted = (path, body) => entry(`POST ${ROOT}${path}`, post(ROOT + path, body), UAMP)
/** @param {string} path @param {string} target */
const read = (path, target) => entry(`GET ${ROOT}${path}`, get(ROOT + target), UAMP)

/** The ledger over HTTP. A server without it is not asked. @type {readonly import('./entry.js').Entry[]} */
export const payments = [
  posted('verify', { token, agent: 'demo' }),
  posted('lock', { token, amount: '0.05', currency: 'USD', agent: 'demo', audience: ['demo'], expiresIn: 60 }),
  read('lock/:id', 'lock/lock_1'),
  entry(`PATCH ${ROOT}lock/:id`, request('PATCH', `${ROOT}lock/lock_1`, { body: { amount: '0.01' } }), UAMP),
  entry(`DELETE ${ROOT}lock/:id`, request('DELETE', `${ROOT}lock/lock_1`), UAMP),
  posted('settle', {
    lockId: 'lock_1',
    amount: '0.01',
    usage: [{ type: 'llm', model: 'm', promptTokens: 10, completionTokens: 20, amount: '0.01' }],
    release: true,
    idempotencyKey: 'k1',
  }),
  posted('release', { lockId: 'lock_1' }),
  posted('delegate', { parentToken: token, delegateTo: ['demo'], amount: '0.01', expiresIn: 60 }),
  posted('tokens', { amount: '1', currency: 'USD', agents: ['*'], expiresIn: 60, maxDepth: 1 }),
  read('tokens', 'tokens?limit=10'),
  read('tokens/:id', 'tokens/ptok_1'),
  entry(`DELETE ${ROOT}tokens/:id`, request('DELETE', `${ROOT}tokens/ptok_1`), UAMP),
  entry(`POST ${ROOT}tokens/:id/topup`, post(`${ROOT}tokens/ptok_1/topup`, { amount: '1' }), UAMP),
  read('balance', 'balance?currency=USD'),
  read('statements', 'statements?currency=USD&limit=5'),
  read('payments/:id', 'payments/pay_1'),
  posted('deposit', { principal: 'alice', amount: '1', currency: 'USD', idempotencyKey: 'k2' }),
  posted('withdraw', { principal: 'alice', amount: '1', currency: 'USD', idempotencyKey: 'k3' }),
  posted('refund', { paymentId: 'pay_1', amount: '0.01', idempotencyKey: 'k4' }),
]

/** True for a route that not every server has. @param {string} route */
export function isOptional(route) {
  return route.includes(` ${ROOT}`)
}
