import { expect, test } from 'vitest'
import { outcome } from '../../test/support/envelopes.ts'
import { verifies } from '../../test/support/verifies.ts'
import { checkCapability, type CapabilityUse } from './capability.ts'

const NOW = 1_769_860_800
const US = 'did:web:worker.example'
const THEM = 'did:web:client.example'
const USE: CapabilityUse = { audience: [US, `${US}:bob`], from: THEM, intent: 'ask', agent: 'bob', now: NOW * 1000, thumbprint: 'abc' }
const CLAIMS = { aud: US, exp: NOW + 300, iat: NOW, sub: THEM, scope: 'ask' }

type Row = readonly [what: string, claims: Readonly<Record<string, unknown>>, use?: Partial<CapabilityUse>]

const ACCEPTED: readonly Row[] = [
  ['as it should be', {}],
  ['for several, with us', { aud: ['did:web:other.example', US] }],
  ['for our agent', { aud: `${US}:bob` }],
  ['for us in another case of the host', { aud: 'did:web:WORKER.example' }],
  ['that has just expired, by a clock that is slow', { exp: NOW - 59.9 }],
  ['that is about to begin, by a clock that is fast', { iat: NOW + 60, nbf: NOW + 60 }],
  ['without iat', { iat: undefined }],
  ['of the sender in another case of the host', { sub: 'did:web:CLIENT.example' }],
  ['of the key of the sender', { sub: undefined, cnf: { jkt: 'abc' } }],
  ['of the key of the sender, who goes by another name', { sub: 'client-42', cnf: { jkt: 'abc' } }],
  ['for everything', { scope: '*' }],
  ['for everything of the agent', { scope: 'inform bob:*' }],
  ['for this of the agent', { scope: 'bob:ask' }],
  ['for several intents', { scope: 'inform ask cancel' }],
]

const NOT_GOOD: readonly Row[] = [
  ['without exp', { exp: undefined }],
  ['whose exp is a text', { exp: String(NOW + 300) }],
  ['whose exp is null', { exp: null }],
  ['whose exp is true', { exp: true }],
  ['that expired a minute ago', { exp: NOW - 60 }],
  ['that expired long ago', { exp: 0 }],
  ['whose exp is below zero', { exp: -1e12 }],
  ['that begins in more than a minute', { nbf: NOW + 60.1 }],
  ['that was issued in more than a minute', { iat: NOW + 61 }],
  ['whose nbf is a text', { nbf: '0' }],
  ['whose iat is null', { iat: null }],
]

const NOT_FOR_THIS: readonly Row[] = [
  ['for nobody', { aud: undefined }],
  ['for none of these', { aud: [] }],
  ['for null', { aud: null }],
  ['for an object', { aud: { 0: US } }],
  ['for an array in an array', { aud: [[US]] }],
  ['for somebody else', { aud: 'did:web:other.example' }],
  ['for another agent of ours', { aud: `${US}:alice` }],
  ['for a host that begins like ours', { aud: `${US}.evil.example` }],
  ['for all', { aud: '*' }],
  ['for our URL', { aud: 'https://worker.example' }],
  ['for us, but we are known as nobody', {}, { audience: [] }],
  ['of nobody', { sub: undefined }],
  ['of somebody else', { sub: 'did:web:evil.example' }],
  ['of an agent of the sender', { sub: `${THEM}:bob` }],
  ['of an array with the sender', { sub: [THEM] }],
  ['of another key', { sub: undefined, cnf: { jkt: 'abd' } }],
  ['of a key as an array', { sub: undefined, cnf: [{ jkt: 'abc' }] }],
  ['of a certificate', { sub: undefined, cnf: { 'x5t#S256': 'abc' } }],
  ['of a key as a text', { sub: undefined, cnf: 'abc' }],
  ['of an empty key', { sub: undefined, cnf: {} }],
  ['for nothing', { scope: undefined }],
  ['for an empty scope', { scope: '' }],
  ['for scopes as an array', { scope: ['ask'] }],
  ['for another intent', { scope: 'inform' }],
  ['for the intent in another case', { scope: 'ASK' }],
  ['for an intent that begins so', { scope: 'asking' }],
  ['for intents with a comma', { scope: 'inform,ask' }],
  ['for intents with a line break', { scope: 'inform\nask' }],
  ['for another agent', { scope: 'alice:ask alice:*' }],
  ['for another intent of the agent', { scope: 'bob:inform' }],
  ['for all agents', { scope: '*:ask' }],
  ['for all intents, half written', { scope: 'bob:' }],
]

const held = ([, claims, use]: Row) => outcome(() => checkCapability({ ...CLAIMS, ...claims }, { ...USE, ...use }))

verifies('envelope:capability-claims', 'a token is for us, of its sender, for this, and for now', async () => {
  for (const row of ACCEPTED) expect([row[0], await held(row)]).toEqual([row[0], 'accepted'])
  for (const row of NOT_GOOD) expect([row[0], await held(row)]).toEqual([row[0], '4.01 cap_token'])
  for (const row of NOT_FOR_THIS) expect([row[0], await held(row)]).toEqual([row[0], '4.03 cap_token'])
})

test('no claim can be left out but iat and nbf', async () => {
  for (const name of ['aud', 'exp', 'sub', 'scope']) {
    const { [name]: _, ...rest } = CLAIMS as Record<string, unknown>
    expect([name, await outcome(() => checkCapability(rest, USE))]).not.toEqual([name, 'accepted'])
  }
  expect(await outcome(() => checkCapability({}, USE))).toBe('4.01 cap_token')
})

test('what has expired says so before it says whose it is', async () => {
  expect(await outcome(() => checkCapability({ ...CLAIMS, exp: 0, aud: 'x', sub: 'y', scope: '' }, USE))).toBe('4.01 cap_token')
})
