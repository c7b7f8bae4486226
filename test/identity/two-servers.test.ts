import { createRemoteJWKSet, jwtVerify, type JWTVerifyGetKey } from 'jose'
import { expect } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import type { Access } from '../../src/core/ports/access.ts'
import type { Signer } from '../../src/core/ports/keys.ts'
import type { Transport } from '../../src/core/ports/transport.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket } from '../support/wire.ts'
import { KINDS, kinds } from './kinds.ts'

const CALLERS = Object.fromEntries(Array.from({ length: 6 }, (_, index) => [`caller-${index}`, `secret-of-caller-${index}`]))
const ROUNDS = 3

/** Admits the callers of this server by their secrets, and agents of servers by tokens that are signed by the keys that these publish. */
function trusting(own: () => string): Access & { readonly refused: unknown[] } {
  const keys = new Map<string, JWTVerifyGetKey>()
  const keysOf = (issuer: string): JWTVerifyGetKey => {
    const known = keys.get(issuer) ?? createRemoteJWKSet(new URL(`${issuer}/.well-known/jwks.json`), { cooldownDuration: 0 })
    keys.set(issuer, known)
    return known
  }
  const refused: unknown[] = []
  return {
    schemes: ['Bearer'],
    refused,
    async authenticate({ headers, token = headers?.get('authorization')?.slice('Bearer '.length) }) {
      if (token === undefined) return undefined
      const [name] = Object.entries(CALLERS).find(([, secret]) => secret === token) ?? []
      if (name !== undefined) return { tenant: 'default', id: name, scopes: ['*'] }
      try {
        const { iss = '' } = JSON.parse(atob(token.split('.')[1] ?? '')) as { iss?: string }
        const options = { issuer: iss, audience: `${own()}/agents/home`, typ: 'at+jwt', algorithms: ['RS256'] }
        const { payload } = await jwtVerify(token, keysOf(iss), options)
        return { tenant: 'default', id: `${iss}#${payload.sub}`, scopes: ['*'], issuer: iss, subject: payload.sub }
      } catch (thrown) {
        refused.push(thrown)
        return undefined
      }
    },
    authorize: () => true,
  }
}

/** A server with an agent `home` that says who called it, and its keys. */
async function party() {
  let signer: Signer | undefined
  let url = ''
  const published: Transport = {
    name: 'keys',
    serves: 'all',
    routes: (host) => {
      signer = host.signer
      const handle = async (): Promise<Response> => Response.json(await host.signer?.publicJwks('tokens'))
      return [{ method: 'GET', path: '/.well-known/jwks.json', access: 'public', handle }]
    },
  }
  const access = trusting(() => url)
  const home = defineAgent('home', async function* (turn) {
    yield turn.principal.id
  })
  const server = await startServer(home, { access, transports: [published] })
  url = server.url
  return { ...server, access, rotate: () => signer?.rotate('tokens') }
}

verifies(['outbound.rotation', 'outbound.caller'], 'two servers call each other while their keys rotate', async () => {
  const [one, other] = [await party(), await party()]
  for (const [here, there] of [
    [one, other],
    [other, one],
  ] as const) {
    for (const kind of kinds) {
      here.agents.add(KINDS[kind]({ name: kind.replaceAll(' ', '-'), url: there.url, of: 'home', auth: { type: 'self', as: 'caller' } }))
    }
  }
  /** Each caller is new, so that each call needs a token of its own. */
  const call = async (from: typeof one, kind: string, caller: string): Promise<string> => {
    const wire = await overWebSocket(from.url, { path: `/agents/${kind.replaceAll(' ', '-')}/uamp`, token: CALLERS[caller] ?? '' })
    await wire.open()
    const answer = textOf(await say(wire, 'who am I?'))
    wire.close()
    return answer
  }
  for (let round = 0; round < ROUNDS; round++) {
    const callers = Object.keys(CALLERS).slice(round * 2, round * 2 + 2)
    const calls = [one, other].flatMap((from) => kinds.flatMap((kind) => callers.map((caller) => ({ from, kind, caller }))))
    const [answers] = await Promise.all([
      Promise.all(calls.map(({ from, kind, caller }) => call(from, kind, caller))),
      one.rotate(),
      other.rotate(),
    ])
    expect(answers).toEqual(calls.map(({ from, caller }) => `${from.url}#${caller}`))
  }
  expect([...one.access.refused, ...other.access.refused]).toEqual([])
})

verifies('outbound.bound', 'a token for one agent is not taken by another server', async () => {
  const [one, other] = [await party(), await party()]
  // What it is for is another URL than that which it is sent to.
  const target = `${one.url}/agents/home`
  one.agents.add(KINDS['events over HTTP']({ name: 'far', url: other.url, of: 'home', auth: { type: 'self', target } }))
  const wire = await overWebSocket(one.url, { path: '/agents/far/uamp', token: CALLERS['caller-0'] ?? '' })
  await wire.open()
  expect((await say(wire, 'hello')).at(-1)).toMatchObject({ type: 'response.error', error: { message: expect.stringContaining('401') } })
})
