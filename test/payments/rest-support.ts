import { expect } from 'vitest'
import { defineAgent, type AgentOptions } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { ServeOptions } from '../../src/serve/index.ts'
import { startServer } from '../support/server.ts'

export const SECRETS = {
  alice: 'alice-0123456789abcdef',
  bob: 'bob-0123456789abcdef',
  shop: 'shop-0123456789abcdef',
  bank: 'bank-0123456789abcdef',
} as const

type Name = keyof typeof SECRETS

export interface Said {
  readonly status: number
  // What comes is looked at by `expect`.
  readonly body: Readonly<Record<string, unknown>>
}

const agent = (name: string, options: AgentOptions = {}) =>
  defineAgent(
    name,
    async function* () {
      yield text('Thank you')
    },
    options,
  )

/** A server with callers who may do different things with its money, and one who asks it. */
export async function startBank(options: Partial<ServeOptions> = {}, ofShop: AgentOptions = {}) {
  const grants = { shop: ['host:shop'], bank: ['bank'] } as const
  const server = await startServer([agent('shop', ofShop), agent('other')], { tokens: SECRETS, grants, ...options })
  return { ...server, ...asking(server.url) }
}

export function asking(url: string) {
  async function ask(who: Name | undefined, line: string, body?: unknown, headers: Record<string, string> = {}): Promise<Said> {
    const [method = '', path = ''] = line.split(' ')
    const response = await fetch(`${url}/api/payments/${path}`, {
      method,
      headers: { ...(who && { authorization: `Bearer ${SECRETS[who]}` }), ...headers },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    return { status: response.status, body: (await response.json()) as Said['body'] }
  }
  /** The same, for what must succeed. */
  async function does(who: Name | undefined, line: string, body?: unknown): Promise<Said['body']> {
    const { status, body: said } = await ask(who, line, body)
    expect([line, status, said]).toEqual([line, status < 300 ? status : 200, said])
    return said
  }
  /** The code of a refusal with this status. */
  async function refused(who: Name | undefined, line: string, body?: unknown): Promise<readonly [number, unknown]> {
    const { status, body: said } = await ask(who, line, body)
    const { code, details } = said['error'] as { code: string; details?: { code?: string } }
    return [status, code === 'payment_required' ? details?.code : code]
  }
  const balanceOf = async (who: Name, query = ''): Promise<unknown> => (await does(who, `GET balance${query}`))['balance']
  /** A token of alice with so much. */
  async function token(amount: string, more: object = {}): Promise<{ token: string; tokenId: string }> {
    await does('bank', 'POST deposit', { principal: 'alice', amount })
    return (await does('alice', 'POST tokens', { amount, agents: 'shop', ...more })) as { token: string; tokenId: string }
  }
  /** A lock of the shop, of a token of alice. */
  async function lock(text: string, amount: string): Promise<string> {
    return (await does('shop', 'POST lock', { token: text, amount }))['lockId'] as string
  }
  const worth = async (tokenId: string): Promise<unknown> => (await does('alice', `GET tokens/${tokenId}`))['balance']
  return { ask, does, refused, balanceOf, token, lock, worth }
}
