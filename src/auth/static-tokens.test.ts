import { expect, test } from 'vitest'
import { staticTokens } from './static-tokens.ts'

const tokens = { alice: 'wonderland-4f1c0a', bob: 'builder-ünïcode-9d' }
const alice = { tenant: 'default', id: 'alice', scopes: ['*'] }
const anonymous = { tenant: 'default', id: 'anonymous', scopes: ['*'] }
const base64url = (text: string) => Buffer.from(text).toString('base64url')
const bearer = (token: string) => ({ headers: new Headers({ authorization: `Bearer ${token}` }) })

test.each([
  ['the header', bearer('wonderland-4f1c0a')],
  ['the header, whatever the case of its scheme', { headers: new Headers({ authorization: 'bearer wonderland-4f1c0a' }) }],
  ['a subprotocol', { subprotocols: ['uamp', `uamp.token.${base64url('wonderland-4f1c0a')}`] }],
  ['a subprotocol of OpenAI Realtime', { subprotocols: ['realtime', 'openai-insecure-api-key.wonderland-4f1c0a'] }],
  ['a message', { token: 'wonderland-4f1c0a' }],
])('a token by %s', async (_, credentials) => {
  expect(await staticTokens({ tokens, anonymous: false }).authenticate(credentials)).toEqual(alice)
})

test('each token is a principal of its own', async () => {
  const access = staticTokens({ tokens, anonymous: false })
  const principal = await access.authenticate({ subprotocols: [`uamp.token.${base64url('builder-ünïcode-9d')}`] })
  expect(principal).toMatchObject({ id: 'bob' })
})

test.each([
  ['wrong', bearer('wonderland-4f1c0b')],
  ['the beginning of a right one', bearer('wonderland-4f1c')],
  ['longer than a right one', bearer('wonderland-4f1c0a1')],
  ['empty', { token: '' }],
  ['of another scheme', { headers: new Headers({ authorization: `Basic ${btoa('alice:wonderland-4f1c0a')}` }) }],
  ['a header without a token', { headers: new Headers({ authorization: 'Bearer' }) }],
  ['broken base64', { subprotocols: ['uamp.token.***'] }],
  ['an empty key of OpenAI Realtime', { subprotocols: ['realtime', 'openai-insecure-api-key.'] }],
  ['base64 of broken UTF-8', { subprotocols: [`uamp.token.${Buffer.from([0xff]).toString('base64url')}`] }],
])('a token that is %s is refused, also where anonymous is allowed', async (_, credentials) => {
  for (const options of [
    { tokens, anonymous: false },
    { tokens, anonymous: true },
  ]) {
    expect(await staticTokens(options).authenticate(credentials)).toBeUndefined()
  }
})

test('no token is anonymous only where that is allowed', async () => {
  expect(await staticTokens({ tokens, anonymous: true }).authenticate({ headers: new Headers() })).toEqual(anonymous)
  expect(await staticTokens({ tokens: {}, anonymous: true }).authenticate({})).toEqual(anonymous)
  expect(await staticTokens({ tokens, anonymous: false }).authenticate({ headers: new Headers() })).toBeUndefined()
  expect(await staticTokens({ tokens: {}, anonymous: false }).authenticate({ subprotocols: ['uamp'] })).toBeUndefined()
})

test('where there are no tokens none can be wrong: clients that must have a key send any', async () => {
  expect(await staticTokens({ tokens: {}, anonymous: true }).authenticate(bearer('sk-any'))).toEqual(anonymous)
  expect(await staticTokens({ tokens: {}, anonymous: false }).authenticate(bearer('sk-any'))).toBeUndefined()
})

test('refuses names and secrets that would open a door', () => {
  expect(() => staticTokens({ tokens: { anonymous: '0123456789abcdef' }, anonymous: true })).toThrow('cannot be a token')
  expect(() => staticTokens({ tokens: { alice: '' }, anonymous: true })).toThrow('has no secret')
  const short = () => staticTokens({ tokens: { alice: '0123456789abcde' }, anonymous: true })
  expect(short).toThrow('The secret of the token "alice" has 15 characters, and needs 16: `openssl rand -hex 16` prints a good one')
  const twins = { alice: '0123456789abcdef', bob: '0123456789abcdef' }
  expect(() => staticTokens({ tokens: twins, anonymous: true })).toThrow('"alice" have the same secret: give each its own')
  expect(staticTokens({ tokens: { alice: '0123456789abcdef' }, anonymous: true }).schemes).toEqual(['Bearer'])
})

test('asks the scopes of the principal', () => {
  const access = staticTokens({ tokens, anonymous: false })
  expect(access.authorize(alice, 'call', 'demo')).toBe(true)
  expect(access.authorize({ ...alice, scopes: ['read'] }, 'call', 'demo')).toBe(false)
})
