import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseAmount } from '../../src/core/basics/money.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import type { ServeOptions } from '../../src/serve/index.ts'
import { accountOf } from '../../src/payments/accounts.ts'
import { startServer } from './server.ts'

/** Where the ledger of a test is kept. */
export const DATA = ['memory', 'sqlite'] as const
export type Data = (typeof DATA)[number]

/** A server whose ledger can be asked for tokens and balances, in units of 10⁻⁹. */
export async function startPaid(agents: AgentPort | readonly AgentPort[], data: Data = 'memory', options: Partial<ServeOptions> = {}) {
  const folder = data === 'memory' ? 'memory' : mkdtempSync(join(tmpdir(), 'uamp-paid-'))
  const server = await startServer(agents, { data: folder, ...options })
  const { ledger } = server
  const balance = async (id: string): Promise<bigint> => (await ledger.accounts.get('default', id)).available
  return {
    ...server,
    async token(amount: string, { agents: names = ['*'], currency = 'USD' }: { agents?: string[]; currency?: string } = {}) {
      const units = parseAmount(amount) ?? 0n
      const source = accountOf.outside(currency)
      const { token, text } = await ledger.tokens.issue({
        tenant: 'default',
        owner: 'payer',
        agents: names,
        amount: units,
        currency,
        ttlMs: 600_000,
        maxDepth: 1,
        source,
      })
      return {
        text,
        left: () => balance(accountOf.token(token.id)),
        locked: async () => (await ledger.accounts.get('default', accountOf.token(token.id))).locked,
      }
    },
    earned: (agent: string, currency = 'USD') => balance(accountOf.agent(agent, currency)),
  }
}

/** Asks over Chat Completions. */
export function complete(
  url: string,
  model: string,
  { token, stream = false, text = 'Hello' }: { token?: string; stream?: boolean; text?: string } = {},
) {
  return fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(token !== undefined && { 'x-payment': token }) },
    body: JSON.stringify({
      model,
      messages: [{ role: 'user', content: text }],
      ...(stream && { stream, stream_options: { include_usage: true } }),
    }),
  })
}

/** The usage of an answer of Chat Completions, streamed or not. */
export async function usageIn(response: Response): Promise<Record<string, unknown> & { cost?: number }> {
  const text = await response.text()
  if (!text.startsWith('data:')) return (JSON.parse(text) as { usage: Record<string, unknown> }).usage
  const chunks = text
    .split('\n\n')
    .flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6)) as Record<string, unknown>] : []))
  return (chunks.find((chunk) => chunk['usage'] != null)?.['usage'] ?? {}) as Record<string, unknown>
}

/** Events of one response over server-sent events. */
export async function ask(url: string, agent: string, { token, text = 'Hello' }: { token?: string; text?: string } = {}) {
  const create = { type: 'session.create', ...(token !== undefined && { session: { modalities: ['text'] }, payment_token: token }) }
  const response = await fetch(`${url}/agents/${agent}/events`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
    body: JSON.stringify([create, { type: 'input.text', text }, { type: 'response.create' }]),
  })
  const said = await response.text()
  return said.split('\n\n').flatMap((block) => {
    const data = /^data: (.*)$/m.exec(block)?.[1]
    return data === undefined ? [] : [JSON.parse(data) as Record<string, unknown> & { type: string }]
  })
}
