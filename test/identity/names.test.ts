/** Agents of others that write their names so that a rule takes them for somebody else. */
import { expect, test } from 'vitest'
import { mistakesIn } from '../../src/auth/settings.ts'
import { judge } from '../../src/auth/trust.ts'
import { verifies } from '../support/verifies.ts'
import { byHeader, claimsFor, identityServer, issuer, json, keyPair } from './support.ts'

const HOST = 'https://host.example'
const alice = (subject: string) => ({ issuer: `${HOST}/agents/alice`, subject, labels: [] })
const ELSEWHERE = [
  '../bob',
  '../../bob',
  './../bob',
  '%2e%2e/bob',
  '.%2E/bob',
  '..\\bob',
  '\\..\\bob',
  'x/../../bob',
  '../bob?',
  '../bob#x',
]

verifies('trust.order', 'a name that leads to another address is nobody’s', () => {
  for (const subject of ELSEWHERE) {
    for (const allow of ['@example.host/bob', '@example.host.**', 'everyone', `${HOST}/agents/bob`, HOST]) {
      expect(judge({ allow: [allow] }, alice(subject), undefined), `${subject} as ${allow}`).toMatchObject({ accepted: false })
    }
  }
  expect(judge({ allow: ['@example.host/alice/helper'] }, alice('helper'), undefined)).toMatchObject({ accepted: true })
  expect(judge({ allow: ['@example.host/bob'] }, { issuer: HOST, path: '/agents', subject: 'bob', labels: [] }, undefined).accepted).toBe(
    true,
  )
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
