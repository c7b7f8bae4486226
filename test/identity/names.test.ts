/** Agents of others that write their names so that a rule takes them for somebody else. */
import { expect, test } from 'vitest'
import { mistakesIn } from '../../src/auth/settings.ts'
import { judge } from '../../src/auth/trust.ts'
import { verifies } from '../support/verifies.ts'
import { byHeader, claimsFor, identityServer, issuer, json, keyPair } from './support.ts'

const HOST = 'https://host.example'
const alice = (subject: string) => ({ issuer: `${HOST}/agents/alice`, subject, labels: [] })
/** Slashes, which are a part of the name, and what a URL would take for a slash, a step up or an end. */
const SLASHES = ['../bob', '../../bob', '%2e%2e/bob', '.%2E/bob', 'x/../../bob', '%2e%2e%2fbob']
const STEPS = ['..\\bob', '\\..\\bob', '..', '.', 'x\\..\\..\\bob', '../bob?', '../bob#x', 'helper?', 'helper#', ' bob', 'b\nob']
const ELSEWHERE = [...SLASHES, ...STEPS]

verifies('trust.order', 'nobody gets the address of another by the name that they choose', () => {
  const accepts = (rule: string, subject: string): boolean => judge({ allow: [rule] }, alice(subject), undefined).accepted
  for (const subject of ELSEWHERE) {
    for (const rule of ['@example.host/bob', '@example.host/*', `${HOST}/agents/bob`, `${HOST}/bob`, HOST]) {
      expect(accepts(rule, subject), `${subject} as ${rule}`).toBe(false)
    }
  }
  for (const subject of SLASHES) expect(accepts(`${HOST}/agents/alice`, subject), subject).toBe(true)
  for (const subject of STEPS) expect(accepts('everyone', subject), subject).toBe(false)
  expect(accepts('@example.host/alice/helper', 'helper')).toBe(true)
  // A caller of a server whose name, or whose tenant, looks like the path of an agent.
  const caller = { issuer: HOST, subject: 'agents/bob', labels: [] }
  for (const rule of ['@example.host/bob', `${HOST}/agents/bob`]) {
    expect(judge({ allow: [rule] }, caller, undefined).accepted).toBe(false)
    expect(judge({ allow: [rule] }, { ...caller, path: '/agents', subject: 'bob' }, undefined).accepted).toBe(true)
  }
})

test('an agent of a shared server is not admitted under the name of its neighbour', async () => {
  const pair = await keyPair('k1')
  const { url, host, published, asked } = await issuer(pair)
  published.answer = (request, response) => {
    if (request.url === '/agents/alice/.well-known/jwks.json') json(response, { keys: [pair.jwk] })
    else response.writeHead(404).end()
  }
  const neighbour = `@127-0-0-1:${host.split(':')[1]}/bob`
  const server = await identityServer({ access: { agents: { allow: [neighbour] } }, outbound: { allow: [host] } })
  const call = async (sub: string) => byHeader(server.url, await pair.sign(claimsFor(server.url, `${url}/agents/alice`, { sub })))
  for (const sub of ['bob', ...ELSEWHERE]) {
    expect(await call(sub), sub).toMatchObject({ status: 401, error: { message: 'This server does not believe the issuer of the token' } })
  }
  expect(asked).toEqual([])
})

test('one issuer cannot have two settings by a slash at the end', () => {
  const twice = [{ issuer: 'https://login.example' }, { issuer: 'https://login.example/' }]
  expect(mistakesIn({ issuers: twice })).toEqual([[['issuers', 1, 'issuer'], 'is named twice']])
})
