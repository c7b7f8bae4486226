import { request } from 'node:http'
import { expect, test } from 'vitest'
import { exportJWK, flattenedVerify, generateKeyPair } from 'jose'
import { demo } from '../../src/agents/demo/index.ts'
import type { AgentCard } from '../../src/transports/a2a/card/index.ts'
import { cardSigner, payloadOf } from '../../src/transports/a2a/card/sign.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'

type Wire = any // eslint-disable-line

const PUBLIC = 'https://agents.example/bots'
const CARDS = ['/.well-known/agent-card.json', '/.well-known/agent.json', '/agents/demo/.well-known/agent-card.json']

async function keyPair(alg = 'ES256') {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  return { privateKey, publicKey, jwk: { ...(await exportJWK(privateKey)), alg, kid: `key-${alg}` } }
}

/** As a client does it: A2A 1.0 §8.4.3. One good signature is enough. */
async function isGood(card: AgentCard, publicKey: Parameters<typeof flattenedVerify>[1]): Promise<boolean> {
  const payload = Buffer.from(payloadOf(card)).toString('base64url')
  for (const signature of card.signatures ?? []) {
    if (await flattenedVerify({ ...signature, payload }, publicKey as CryptoKey).catch(() => undefined)) return true
  }
  return false
}

verifies('a2a-1.0.card-signature', 'a card that is served signed can be verified, and not once it is changed', async () => {
  const { jwk, publicKey } = await keyPair()
  const other = await keyPair('EdDSA')
  const signingKeys = [
    { key: jwk, jku: 'https://example.com/jwks.json' },
    { key: other.privateKey, kid: 'second', alg: 'EdDSA' },
  ]
  const { url } = await startServer(demo(), { tokens: { alice: 'secret-0123456789abcdef' }, publicUrl: PUBLIC, a2a: { signingKeys } })
  const address = `${url}/.well-known/agent-card.json`
  const served: Wire = await (await fetch(address, { headers: { 'a2a-version': '1.0' } })).json()
  const headers = served.signatures.map(({ protected: header }: Wire) => JSON.parse(Buffer.from(header, 'base64url').toString()))
  expect(headers).toContainEqual({ alg: 'ES256', typ: 'JOSE', kid: 'key-ES256', jku: 'https://example.com/jwks.json' })
  expect(headers).toContainEqual({ alg: 'EdDSA', typ: 'JOSE', kid: 'second' })
  expect(await isGood(served, publicKey)).toBe(true)
  expect(await isGood(served, other.publicKey)).toBe(true)
  expect(await isGood({ ...served, name: 'mallory' }, publicKey)).toBe(false)
  const { securityRequirements: _, ...open } = served
  expect(await isGood(open, publicKey)).toBe(false)
  expect(
    await isGood({ ...served, supportedInterfaces: [{ ...served.supportedInterfaces[0], url: 'https://evil.example' }] }, publicKey),
  ).toBe(false)
  expect(await isGood(served, (await keyPair()).publicKey)).toBe(false)

  const again = await fetch(address, { headers: { 'a2a-version': '1.0' } })
  expect(await again.json()).toEqual(served)
  const hybrid: Wire = await (await fetch(address)).json()
  expect(hybrid.signatures.length).toBeGreaterThan(0)
  const {
    name,
    description,
    supportedInterfaces,
    version,
    securitySchemes,
    securityRequirements,
    defaultInputModes,
    defaultOutputModes,
    skills,
  } = served
  const read = {
    name,
    description,
    supportedInterfaces,
    version,
    securitySchemes,
    securityRequirements,
    defaultInputModes,
    defaultOutputModes,
    skills,
  }
  // What a client of 1.0 reads of the hybrid card, which has nothing else in common with the pure one.
  expect(await isGood({ ...read, capabilities: served.capabilities, signatures: hybrid.signatures }, publicKey)).toBe(true)
})

/** A request by `fetch` cannot say another `Host` than that which it is sent to. */
function ask(url: string, headers: Record<string, string>, body?: string): Promise<Wire> {
  return new Promise((resolve, reject) => {
    const asking = request(url, { method: body === undefined ? 'GET' : 'POST', headers }, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      answer.on('end', () => resolve(JSON.parse(text)))
    })
    asking.on('error', reject).end(body)
  })
}

const GENERATIONS: readonly Record<string, string>[] = [{}, { 'a2a-version': '1.0' }, { 'a2a-version': '0.3' }]
const STRANGE = { host: 'localhost:1', 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' }

/** Every card that a server gives away, by whatever way and in whatever generation. */
async function allCards(url: string): Promise<Wire[]> {
  const cards: Wire[] = []
  for (const path of CARDS) for (const generation of GENERATIONS) cards.push(await ask(url + path, { ...STRANGE, ...generation }))
  const known = { ...STRANGE, authorization: 'Bearer secret-0123456789abcdef' }
  const json = { ...known, 'content-type': 'application/json' }
  for (const agent of ['', '/agents/demo']) {
    for (const method of ['GetExtendedAgentCard', 'agent/getAuthenticatedExtendedCard']) {
      const version = method === 'GetExtendedAgentCard' ? { 'a2a-version': '1.0' } : {}
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method })
      cards.push((await ask(`${url}${agent}/a2a`, { ...json, ...version }, body)).result)
    }
    cards.push(await ask(`${url}${agent}/a2a/rest/extendedAgentCard`, { ...known, 'a2a-version': '1.0' }))
    cards.push(await ask(`${url}${agent}/a2a/rest/v1/card`, known))
  }
  for (const card of cards) expect(card).toHaveProperty('supportedInterfaces')
  return cards
}

const addressesIn = (card: Wire): string[] => card.supportedInterfaces.map(({ url }: Wire) => url as string)

test.each([false, true])('no card is signed where only requests say what the server is called (trusting a proxy: %s)', async (trusted) => {
  const { jwk } = await keyPair()
  const extendedCard = { description: 'More' }
  const options = {
    tokens: { alice: 'secret-0123456789abcdef' },
    allowAnonymous: true,
    trustProxy: trusted ? ['127.0.0.1'] : [],
    a2a: { signingKeys: [{ key: jwk }], extendedCard },
  }
  const { url, logged } = await startServer(demo(), options)
  for (const card of await allCards(url.replace('127.0.0.1', 'localhost'))) expect(card).not.toHaveProperty('signatures')
  expect(logged).toContainEqual(expect.objectContaining({ level: 'warn', message: 'Agent cards are not signed: set publicUrl' }))
})

test('a signed card names no address but those below publicUrl, whatever the request says', async () => {
  const { jwk, publicKey } = await keyPair()
  // An addition that is made of the request, against what its type allows.
  const extendedCard = ({ request }: Wire) => ({ supportedInterfaces: [{ url: new URL(request.url).origin }] })
  const a2a = { signingKeys: [{ key: jwk }], extendedCard: extendedCard as () => object }
  const { url } = await startServer(demo(), {
    tokens: { alice: 'secret-0123456789abcdef' },
    allowAnonymous: true,
    trustProxy: ['127.0.0.1'],
    publicUrl: PUBLIC,
    a2a,
  })
  for (const card of await allCards(url)) {
    expect(card.signatures).toHaveLength(1)
    for (const address of addressesIn(card)) expect(address.startsWith(`${PUBLIC}/`), address).toBe(true)
    expect(JSON.stringify(card)).not.toMatch(/evil\.example|localhost/)
  }
  expect(await isGood(await ask(url + CARDS[0], { ...STRANGE, 'a2a-version': '1.0' }), publicKey)).toBe(true)
})

verifies('a2a-1.0.card-canonical', 'what is signed is sorted, without signatures, defaults and blanks', () => {
  const card: Wire = {
    version: '1',
    name: 'Example Agent',
    description: '',
    capabilities: { streaming: false, pushNotifications: false, extensions: [{ uri: 'u', required: false, params: { list: [] } }] },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    signatures: [{ protected: 'x', signature: 'y' }],
    skills: [{ id: 'é', tags: ['b', 'a'], examples: [] }],
  }
  expect(payloadOf(card)).toBe(
    '{"capabilities":{"extensions":[{"params":{"list":[]},"uri":"u"}],"pushNotifications":false,"streaming":false},"description":"","name":"Example Agent",' +
      '"securityRequirements":[{"schemes":{"bearer":{}}}],"skills":[{"id":"é","tags":["b","a"]}],"version":"1"}',
  )
})

test('a key that cannot be told from another, or that others have too, is refused', async () => {
  const { privateKey, jwk } = await keyPair()
  expect(() => cardSigner([{ key: privateKey }])).toThrow('needs "kid" and "alg"')
  expect(() => cardSigner([{ key: { ...jwk, alg: 'HS256' } }])).toThrow('HS256 has none')
})
