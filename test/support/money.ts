import { generateKeyPairSync, sign } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { formatAmount, parseAmount } from '../../src/protocol/money.ts'
import type { Asked, Authorisation, Payments } from '../../src/core/ports/payments.ts'
import { accountOf } from '../../src/payments/accounts.ts'
import type { Ledger } from '../../src/payments/ledger.ts'

/** A test server, as far as its money goes. */
export interface Mint {
  readonly ledger: Ledger
}

export interface CoinOptions {
  /** Default: all agents. */
  readonly agents?: readonly string[]
  /** Default: USD. */
  readonly currency?: string
  /** Default: an hour. */
  readonly ttlMs?: number
  readonly tenant?: string
  readonly owner?: string
  readonly maxDepth?: number
}

/** A token that carries money of this server: `await coin(server, '5')`. */
export async function coin({ ledger }: Mint, amount: string, options: CoinOptions = {}): Promise<string> {
  const { agents = ['*'], currency = 'USD', ttlMs = 3_600_000, tenant = 'default', owner = 'payer', maxDepth = 5 } = options
  const source = accountOf.outside(currency)
  const { text } = await ledger.tokens.issue({ tenant, owner, agents, amount: units(amount), currency, ttlMs, maxDepth, source })
  return text
}

/** A token whose time is over. */
export async function expiredCoin(server: Mint, amount = '5'): Promise<string> {
  // The first token has to wait for the key.
  await coin(server, '1')
  const ttlMs = 1000
  const text = await coin(server, amount, { ttlMs })
  await sleep(ttlMs + 1)
  return text
}

/** Tokens that are worth nothing, by what is wrong with them. Each is made of one that is worth `amount`. */
export async function forgedCoins(server: Mint, amount = '5'): Promise<Readonly<Record<Forgery, string>>> {
  const [header = '', payload = '', signature = ''] = (await coin(server, amount)).split('.')
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const signed = sign('sha256', Buffer.from(`${header}.${payload}`), privateKey).toString('base64url')
  const richer = encoded({ ...decoded(payload), payment: { balance: '1000000', scheme: 'token', currency: 'USD' } })
  const unsigned = encoded({ ...decoded(header), alg: 'none' })
  return {
    'signed by another key': `${header}.${payload}.${signed}`,
    'a changed payload': `${header}.${richer}.${signature}`,
    'alg none': `${unsigned}.${payload}.`,
    'an unknown id': await unknown(server, header, decoded(payload)),
    garbage: 'worthless',
  }
}

export type Forgery = 'signed by another key' | 'a changed payload' | 'alg none' | 'an unknown id' | 'garbage'

/** The signature of one token under the words of another. */
async function unknown(server: Mint, header: string, claims: Readonly<Record<string, unknown>>): Promise<string> {
  const [, , other = ''] = (await coin(server, '1')).split('.')
  return `${header}.${encoded({ ...claims, jti: 'ptok_unknown' })}.${other}`
}

/** A company's own ledger, which takes whatever it is given: for tests of where a payment goes, and not of what it is worth. */
export const TRUSTING: Payments = {
  offer: () => ({ schemes: [{ scheme: 'token' }] }),
  authorise: ((asked, payment) => payment && taken(asked, payment.scheme)) as Payments['authorise'],
  isOwn: () => false,
  takeFree: async () => undefined,
  write: async () => undefined,
}

function taken({ amount, currency, question }: Asked, scheme: string): Authorisation {
  const settle = () => ({ operations: [], done: () => undefined })
  const id = `taken_${question}`
  return { id, scheme, currency, locked: amount, balance: undefined, expiresAt: undefined, extend: () => false, settle }
}

/** What a token can still spend. */
export async function left(server: Mint, token: string): Promise<string> {
  return formatAmount((await accountIn(server, token)).available)
}

/** What a token has set aside for turns that run. */
export async function locked(server: Mint, token: string): Promise<string> {
  return formatAmount((await accountIn(server, token)).locked)
}

/** Adds money to a token, as its owner would. */
export async function topUp({ ledger }: Mint, text: string, amount: string, tenant = 'default'): Promise<void> {
  const token = await ledger.tokens.get(tenant, idOf(text))
  if (!token) throw new Error('There is no such token')
  await ledger.tokens.topUp(token, units(amount), accountOf.outside(token.currency))
}

/** What an agent was paid. */
export async function earned({ ledger }: Mint, agent: string, { currency = 'USD', tenant = 'default' } = {}): Promise<string> {
  return formatAmount((await ledger.accounts.get(tenant, accountOf.agent(agent, currency))).available)
}

/** The ledger adds up, and nothing is set aside in any of these tokens. */
export async function settled(server: Mint, tokens: readonly string[] = []): Promise<void> {
  const { problems, openLocks } = await server.ledger.check()
  expect({ problems, openLocks }).toEqual({ problems: [], openLocks: 0 })
  for (const token of tokens) expect(await locked(server, token)).toBe('0.00')
}

async function accountIn({ ledger }: Mint, token: string, tenant = 'default') {
  return ledger.accounts.get(tenant, accountOf.token(idOf(token)))
}

/** The id of a token, whose text is what a client has. */
function idOf(token: string): string {
  return String(decoded(token.split('.')[1] ?? '')['jti'])
}

function units(amount: string): bigint {
  const found = parseAmount(amount)
  if (found === undefined) throw new Error(`${amount} is no amount`)
  return found
}

function decoded(part: string): Readonly<Record<string, unknown>> {
  return JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
