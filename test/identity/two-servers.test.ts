import { expect } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { principalId } from '../../src/core/basics/principal.ts'
import type { Signer } from '../../src/core/ports/keys.ts'
import type { Transport } from '../../src/core/ports/transport.ts'
import type { RemoteAuth } from '../../src/upstream/outbound-auth.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket, type Heard } from '../support/wire.ts'
import { KINDS, kinds, type Kind } from './kinds.ts'
import { ACCESS_TOKEN, EXCHANGE, postForm } from './oauth.ts'

const CALLERS = Object.fromEntries(Array.from({ length: 6 }, (_, index) => [`caller-${index}`, `secret-of-caller-${index}`]))
const ROUNDS = 3

/** A server with keys of its own and an agent `home` that says who called it. `believe`: whose agents it accepts from now on. */
async function party(clients: Readonly<Record<string, { readonly secret: string; readonly targets: readonly string[] }>> = {}) {
  let signer: Signer | undefined
  const probe: Transport = {
    name: 'probe',
    routes: (host) => {
      signer = host.signer
      return []
    },
  }
  const home = defineAgent('home', async function* (turn) {
    yield turn.principal.id
  })
  const allow: string[] = []
  const server = await startServer(home, {
    tokens: CALLERS,
    access: { agents: { allow }, clients },
    outbound: { allow: ['127.0.0.1'] },
    transports: [probe],
  })
  const believe = (...rules: readonly string[]): void => void allow.push(...rules)
  /** Adds an agent that stands for `home` of another server, over this protocol. */
  const stand = (kind: Kind, there: string, { name = nameOf(kind), auth }: { readonly name?: string; readonly auth: RemoteAuth }): void =>
    server.agents.add(KINDS[kind]({ name, url: there, of: 'home', auth }))
  return { ...server, believe, stand, rotate: () => signer?.rotate('tokens') }
}

const nameOf = (kind: string): string => kind.replaceAll(' ', '-')

/** What an agent answers to a caller of its server. */
async function call(url: string, agent: string, caller = 'caller-0'): Promise<Heard[]> {
  const wire = await overWebSocket(url, { path: `/agents/${agent}/uamp`, token: CALLERS[caller] ?? '' })
  await wire.open()
  const heard = await say(wire, 'who am I?')
  wire.close()
  return heard
}

verifies(['outbound.rotation', 'outbound.caller', 'keys.rotation'], 'two servers call each other while their keys rotate', async () => {
  const [one, other] = [await party(), await party()]
  for (const [here, there] of [
    [one, other],
    [other, one],
  ] as const) {
    here.believe(there.url)
    for (const kind of kinds) here.stand(kind, there.url, { auth: { type: 'self', as: 'caller' } })
  }
  for (let round = 0; round < ROUNDS; round++) {
    // Each caller is new, so that each call needs a token of its own.
    const callers = Object.keys(CALLERS).slice(round * 2, round * 2 + 2)
    const calls = [one, other].flatMap((from) => kinds.flatMap((kind) => callers.map((caller) => ({ from, kind, caller }))))
    const [answers] = await Promise.all([
      Promise.all(calls.map(async ({ from, kind, caller }) => textOf(await call(from.url, nameOf(kind), caller)))),
      one.rotate(),
      other.rotate(),
    ])
    expect(answers).toEqual(calls.map(({ from, caller }) => principalId(from.url, caller)))
  }
  const refusals = [...one.logged, ...other.logged].filter(({ message }) => message === 'A token was refused')
  expect(refusals).toEqual([])
})

verifies(['outbound.self', 'aoauth.agent-url', 'trust.order'], 'a server believes one agent of another, and no other', async () => {
  const [one, other] = [await party(), await party()]
  const believed = kinds.map((kind) => `${one.url}/agents/${nameOf(kind)}`)
  other.believe(...believed)
  for (const kind of kinds) one.stand(kind, other.url, { auth: { type: 'self' } })
  for (const kind of kinds) {
    expect(textOf(await call(one.url, nameOf(kind)))).toBe(`${encodeURIComponent(one.url)}/%2Fagents/${nameOf(kind)}`)
  }
  // Its neighbour, and a caller: neither is the agent.
  one.stand('completions', other.url, { name: 'neighbour', auth: { type: 'self' } })
  one.stand('completions', other.url, { name: 'messenger', auth: { type: 'self', as: 'caller' } })
  for (const agent of ['neighbour', 'messenger']) {
    const [end] = (await call(one.url, agent)).slice(-1)
    expect(end, agent).toMatchObject({ type: 'response.error', error: { message: expect.stringContaining('401') } })
  }
})

verifies(['aoauth.per-agent', 'trust.order'], 'a client that asks at the endpoint of an agent is not taken for the agent', async () => {
  const secret = 'shop-0123456789abcdef'
  const other = await party()
  const targets = ['home', other.url]
  const one = await party({ shop: { secret, targets }, home: { secret, targets } })
  other.believe(`${one.url}/agents/home`)
  const ask = async (client_id: string, endpoint: string, more: Readonly<Record<string, string>>): Promise<string> => {
    const { body } = await postForm(`${one.url}${endpoint}/auth/token`, { client_id, client_secret: secret, ...more })
    return String(body['access_token'])
  }
  const status = async (token: string): Promise<number> => {
    const response = await fetch(`${other.url}/v1/models`, { headers: { authorization: `Bearer ${token}` } })
    await response.arrayBuffer()
    return response.status
  }
  for (const endpoint of ['', '/agents/home']) {
    for (const [client, expected] of [
      ['shop', 401],
      ['home', 200],
    ] as const) {
      expect(await status(await ask(client, endpoint, { grant_type: 'client_credentials', target: other.url }))).toBe(expected)
      const subject_token = await ask(client, endpoint, { grant_type: 'client_credentials', target: '@home' })
      const exchange = { grant_type: EXCHANGE, subject_token, subject_token_type: ACCESS_TOKEN, target: other.url }
      expect(await status(await ask(client, endpoint, exchange))).toBe(expected)
    }
  }
})

verifies('outbound.bound', 'a token for one agent is not taken by another server', async () => {
  const [one, other] = [await party(), await party()]
  other.believe(one.url)
  // What it is for is another URL than that which it is sent to.
  one.stand('events over HTTP', other.url, { name: 'far', auth: { type: 'self', target: `${one.url}/agents/home` } })
  expect((await call(one.url, 'far')).at(-1)).toMatchObject({ type: 'response.error', error: { message: expect.stringContaining('401') } })
})
