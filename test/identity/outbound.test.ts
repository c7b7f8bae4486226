import { decodeJwt } from 'jose'
import { expect } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import type { Access, Principal } from '../../src/core/ports/access.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket } from '../support/wire.ts'
import { KINDS, kinds, type Kind } from './kinds.ts'
import { recorder } from './recorder.ts'

const CALLER = 'wonderland-secret-of-alice'

/** Everybody who brings a token is admitted, by the claims in it. Those whose number is in `refuse` are not. */
function believing({ refuse = [], seen = [] }: { refuse?: readonly number[]; seen?: string[] } = {}): Access {
  return {
    schemes: ['Bearer'],
    authenticate: async ({ headers, token = /^Bearer (.*)$/.exec(headers?.get('authorization') ?? '')?.[1] }) => {
      // A socket without a token is asked for it later.
      if (token === undefined) return undefined
      if (!seen.includes(token)) seen.push(token)
      if (refuse.includes(seen.indexOf(token))) return undefined
      const { iss = '', sub = '' } = decodeJwt(token)
      return { tenant: 'default', id: `${iss}#${sub}`, scopes: ['*'] } satisfies Principal
    },
    authorize: () => true,
  }
}

/** A server behind a recorder, and one whose agent `near` stands for its agent `far`. Alice calls `near` with a token of her own. */
async function pair(kind: Kind, auth: Parameters<(typeof KINDS)[Kind]>[0]['auth'], access = believing()) {
  const far = await startServer(
    defineAgent('far', async function* (turn) {
      yield `to ${turn.principal.id}`
    }),
    { access },
  )
  const { url, sent } = await recorder(() => far.url)
  const near = await startServer(KINDS[kind]({ name: 'near', url, of: 'far', ...(auth && { auth }) }), { tokens: { alice: CALLER } })
  const ask = async (): Promise<string> => {
    const wire = await overWebSocket(near.url, { token: CALLER })
    await wire.open()
    const events = await say(wire, 'hello')
    expect(events.at(-1)).toMatchObject({ type: 'response.done' })
    return textOf(events)
  }
  return { far, near, url, sent, ask }
}

/** The tokens that left, each once. */
function tokensIn(sent: readonly { headers: object; body: string }[]): string[] {
  return [...new Set(JSON.stringify(sent).match(/eyJ[\w-]+\.[\w-]+\.[\w-]+/g))]
}

for (const kind of kinds) {
  verifies(['outbound.self', 'outbound.bound', 'hops.carried'], `${kind}: the agent calls in its own name`, async () => {
    const { near, url, sent, ask } = await pair(kind, { type: 'self' })
    expect(await ask()).toBe(`to ${near.url}#near`)
    await ask()
    const tokens = tokensIn(sent)
    // Made once, for both.
    expect(tokens).toHaveLength(1)
    const [token = ''] = tokens
    expect(decodeJwt(token)).toMatchObject({ iss: near.url, sub: 'near', aud: `${url}/agents/far`, scope: 'call' })
    expect(JSON.stringify(sent)).not.toContain(CALLER)
    const hops = sent.filter(({ method, headers, body }) => (method === 'WS' ? /"hops":1\b/.test(body) : headers['uamp-hops'] === '1'))
    expect(hops).toHaveLength(sent.length)
  })

  verifies(['outbound.caller', 'outbound.bound'], `${kind}: the agent calls in the name of its caller`, async () => {
    const { near, url, sent, ask } = await pair(kind, { type: 'self', as: 'caller', scope: 'read call' })
    expect(await ask()).toBe(`to ${near.url}#alice`)
    const [token = '', ...others] = tokensIn(sent)
    expect(others).toEqual([])
    expect(decodeJwt(token)).toMatchObject({
      sub: 'alice',
      act: { iss: near.url, sub: 'near' },
      client_id: 'near',
      aud: `${url}/agents/far`,
      scope: 'read call',
    })
    expect(JSON.stringify(sent)).not.toContain(CALLER)
  })

  verifies('outbound.cached', `${kind}: a token that is refused is replaced once`, async () => {
    const seen: string[] = []
    const { ask } = await pair(kind, { type: 'self' }, believing({ refuse: [0], seen }))
    await ask()
    expect(seen).toHaveLength(2)
  })

  verifies('outbound.bound', `${kind}: without credentials nothing that the caller sent goes on`, async () => {
    const { sent, near } = await pair(kind, undefined)
    const wire = await overWebSocket(near.url, { token: CALLER })
    await wire.open()
    expect((await say(wire, 'hello')).at(-1)).toMatchObject({ type: 'response.error' })
    expect(sent.length).toBeGreaterThan(0)
    expect(JSON.stringify(sent)).not.toContain(CALLER)
    expect(sent.filter(({ headers }) => headers.authorization !== undefined)).toEqual([])
  })
}

verifies('outbound.cached', 'a server that refuses every token is not asked for ever', async () => {
  const seen: string[] = []
  const { near, sent } = await pair('events over HTTP', { type: 'self' }, believing({ refuse: [0, 1, 2, 3, 4, 5, 6, 7], seen }))
  const wire = await overWebSocket(near.url, { token: CALLER })
  await wire.open()
  for (let turn = 0; turn < 4; turn++) expect((await say(wire, 'hello')).at(-1)).toMatchObject({ type: 'response.error' })
  expect(seen.length).toBeLessThanOrEqual(2)
  expect(sent.length).toBeLessThanOrEqual(5)
})

verifies('outbound.self', 'a server without a URL of its own says so', async () => {
  const far = await startServer(defineAgent('far', async function* () {}))
  const agent = KINDS['events over HTTP']({ name: 'near', url: far.url, of: 'far', auth: { type: 'self' } })
  const { createAgentApp } = await import('../../src/serve/index.ts')
  const app = createAgentApp(agent, { data: 'memory', log: () => undefined })
  const body = JSON.stringify({ model: 'near', messages: [{ role: 'user', content: 'hi' }] })
  const answer = await app.fetch(new Request('http://localhost/v1/chat/completions', { method: 'POST', body }))
  expect(await answer.json()).toMatchObject({ error: { message: expect.stringContaining('set `publicUrl`') } })
  await app.close({ graceMs: 0 })
})

for (const kind of ['events over HTTP', 'events over WebSocket'] as const) {
  verifies(['outbound.refreshed', 'outbound.caller'], `${kind}: a turn outlives its token`, async () => {
    let release: () => void = () => undefined
    const held = new Promise<void>((resolve) => (release = resolve))
    const far = await startServer(
      defineAgent('far', async function* () {
        await held
        yield 'at last'
      }),
      { access: believing() },
    )
    const { url, sent } = await recorder(() => far.url)
    // The caller's own token ends soon, so those that are made for it do, too.
    const agent = KINDS[kind]({ name: 'near', url, of: 'far', auth: { type: 'self', as: 'caller' } })
    let expiresAt = Infinity
    const authenticate = async (): Promise<Principal> => {
      // From the first call on: a busy machine may need the time to start.
      expiresAt = Math.min(expiresAt, Date.now() + 6_000)
      return { tenant: 'default', id: 'alice', scopes: ['*'], expiresAt }
    }
    const near = await startServer(agent, { access: { authenticate, authorize: () => true } })
    const wire = await overWebSocket(near.url)
    await wire.open()
    const answer = say(wire, 'hello')
    await expect.poll(() => /"session.update"/.test(JSON.stringify(sent).replaceAll('\\', ''))).toBe(true)
    release()
    expect(textOf(await answer)).toBe('at last')
    const [first = '', second = ''] = tokensIn(sent)
    expect(decodeJwt(first).exp).toBeLessThanOrEqual(Math.ceil(expiresAt / 1000))
    expect(second).not.toBe('')
  })
}
