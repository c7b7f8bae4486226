import { expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import type { A2aOptions, ServeOptions } from '../../src/serve/index.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'

type Wire = any // eslint-disable-line

const MORE = { id: 'admin', name: 'Admin', description: 'For those who are known', tags: ['admin'] }
const TOKENS = { tokens: { alice: 'secret-a-0123456789abcdef', bob: 'secret-b-0123456789abcdef' } }

const start = (options: A2aOptions, server: Partial<ServeOptions> = TOKENS) => startServer(demo(), { a2a: options, ...server })

async function ask(url: string, token?: string, version: string | undefined = '1.0'): Promise<{ status: number; body: Wire }> {
  const method = version === '1.0' ? 'GetExtendedAgentCard' : 'agent/getAuthenticatedExtendedCard'
  const response = await fetch(`${url}/a2a`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(version === '1.0' && { 'a2a-version': version }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: {} }),
  })
  return { status: response.status, body: await response.json() }
}

verifies(
  'a2a-1.0.extended-card',
  'those who are known get more, each his own; others are refused, also where anybody may call',
  async () => {
    const { url } = await start(
      { extendedCard: ({ principal }) => ({ description: `For ${principal.id}`, skills: [MORE] }) },
      { ...TOKENS, allowAnonymous: true },
    )
    for (const [token, name] of [
      ['secret-a-0123456789abcdef', 'alice'],
      ['secret-b-0123456789abcdef', 'bob'],
    ]) {
      const { body } = await ask(url, token)
      expect(body.result).toMatchObject({ name: 'demo', description: `For ${name}` })
      expect(body.result.skills.at(-1)).toEqual(MORE)
      expect([body.result.url, body.result.protocolVersion]).toEqual([undefined, undefined])
    }
    const old = await ask(url, 'secret-a-0123456789abcdef', '0.3')
    expect(old.body.result).toMatchObject({ url: `${url}/a2a`, protocolVersion: '0.3.0', description: 'For alice' })

    expect((await ask(url)).body).toMatchObject({ error: { message: expect.stringContaining('with credentials') } })
    const rest = await fetch(`${url}/a2a/rest/extendedAgentCard`, { headers: { 'a2a-version': '1.0' } })
    expect([rest.status, (await rest.json()) as Wire]).toMatchObject([401, { error: { status: 'UNAUTHENTICATED' } }])
    expect((await ask(url, 'wrong')).status).toBe(401)

    const publicCard: Wire = await (await fetch(`${url}/.well-known/agent-card.json`)).json()
    expect([publicCard.capabilities.extendedAgentCard, JSON.stringify(publicCard).includes('admin')]).toEqual([true, false])
  },
)

verifies('a2a-1.0.extended-card', 'where there are no tokens nobody is known', async () => {
  const { url } = await start({ extendedCard: { skills: [MORE] } }, {})
  expect((await ask(url, 'anything')).body.error.message).toContain('with credentials')
})

verifies('a2a-1.0.extended-card-unsupported', 'an agent without one says so, in the words of each generation', async () => {
  const { url } = await start({})
  expect((await ask(url, 'secret-a-0123456789abcdef')).body.error.code).toBe(-32004)
  expect((await ask(url, 'secret-a-0123456789abcdef', '0.3')).body.error.code).toBe(-32007)
})

verifies('a2a-1.0.extended-card-not-configured', 'an agent that has one, but none for this caller, says that', async () => {
  const { url } = await start({ extendedCard: ({ principal }) => (principal.id === 'alice' ? {} : undefined) })
  expect((await ask(url, 'secret-a-0123456789abcdef')).body.result.name).toBe('demo')
  expect((await ask(url, 'secret-b-0123456789abcdef')).body.error.code).toBe(-32007)
})
