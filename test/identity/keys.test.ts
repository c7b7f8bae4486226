import { expect, test } from 'vitest'
import { RemoteKeys } from '../../src/auth/verify/remote-keys.ts'
import { fetchHttp } from '../../src/core/http/fetch-http.ts'
import { verifies } from '../support/verifies.ts'
import { byHeader, claimsFor, identityServer, issuer, json, keyPair, type Pair } from './support.ts'

type Issuer = Awaited<ReturnType<typeof issuer>>

const believing = (...all: readonly Issuer[]) =>
  identityServer({
    access: { agents: { allow: ['everyone'] } },
    outbound: { allow: all.map(({ host }) => host) },
    limits: { wrongTokenBurst: 10_000 },
  })

/** The keys of an issuer, with a clock that the test moves. */
function reader({ url }: Pick<Issuer, 'url'>, { jwksUri }: { readonly jwksUri?: string } = {}) {
  const clock = { now: 0 }
  const failures: string[] = []
  const keys = new RemoteKeys(
    { issuer: url, isStranger: true, jwksUri },
    {
      http: fetchHttp(),
      monotonic: () => clock.now,
      closing: new AbortController().signal,
      onFailure: (_, error) => failures.push((error as Error).message),
    },
  )
  return { clock, failures, find: async (kid: string) => kindOf(await keys.find(kid, 'RS256')) }
}

function kindOf(found: CryptoKey | string): string {
  return typeof found === 'string' ? found : 'found'
}

const MINUTE = 60_000

verifies('keys.rotation', 'an issuer replaces its keys under traffic, and no token fails', async () => {
  const first = await keyPair('k0', 'ES256')
  const from = await issuer(first)
  const server = await believing(from)
  let current: Pair = first
  let isOver = false
  const outcomes: (number | undefined)[] = []
  const traffic = async (): Promise<void> => {
    while (!isOver) outcomes.push((await byHeader(server.url, await current.sign(claimsFor(server.url, from.url)))).status)
  }
  const talkers = [traffic(), traffic(), traffic()]
  await expect.poll(() => outcomes.length).toBeGreaterThan(0)
  for (let at = 1; at <= 3; at++) {
    const next = await keyPair(`k${at}`, 'ES256')
    from.published.keys = [next.jwk, current.jwk]
    current = next
    const seen = outcomes.length
    await expect.poll(() => outcomes.length).toBeGreaterThan(seen + 10)
  }
  isOver = true
  await Promise.all(talkers)
  expect(new Set(outcomes)).toEqual(new Set([200]))
  expect(from.asked.length).toBe(4)
})

verifies('keys.cache', 'keys are kept for as long as their server says, within bounds', async () => {
  const from = await issuer(await keyPair('k1'))
  from.published.headers = { 'cache-control': 'public, max-age=600', etag: '"one"' }
  const { clock, find } = reader(from)
  expect(await find('k1')).toBe('found')
  clock.now = 9 * MINUTE
  expect(await find('k1')).toBe('found')
  expect(from.asked.length).toBe(1)
  clock.now = 10 * MINUTE
  expect(await find('k1')).toBe('found')
  await expect.poll(() => from.asked.length).toBe(2)
  // A server that forbids to keep anything, or wants it kept forever.
  for (const [header, least] of [
    ['no-store', 1],
    ['max-age=99999999', 24 * 60],
  ] as const) {
    const other = await issuer(await keyPair('k1'))
    other.published.headers = { 'cache-control': header }
    const bounded = reader(other)
    await bounded.find('k1')
    bounded.clock.now = least * MINUTE - 1
    await bounded.find('k1')
    expect(other.asked.length).toBe(1)
    bounded.clock.now = least * MINUTE
    await bounded.find('k1')
    await expect.poll(() => other.asked.length).toBe(2)
  }
})

verifies('keys.cache', 'keys that have not changed are not read again', async () => {
  const from = await issuer(await keyPair('k1'))
  const tags: (string | undefined)[] = []
  from.published.answer = (request, response) => {
    tags.push(request.headers['if-none-match'])
    if (request.headers['if-none-match'] === '"one"') response.writeHead(304, { 'cache-control': 'max-age=120' }).end()
    else json(response, { keys: from.published.keys }, { etag: '"one"', 'cache-control': 'max-age=60' })
  }
  const { clock, find } = reader(from)
  expect(await find('k1')).toBe('found')
  for (const at of [1, 3]) {
    clock.now = at * MINUTE
    expect(await find('k1')).toBe('found')
    await expect.poll(() => tags.length).toBe(at === 1 ? 2 : 3)
    // The answer has been taken in when the next one is not asked for.
    clock.now += MINUTE - 1
    await expect.poll(async () => (await find('k1')) && tags.length).toBe(at === 1 ? 2 : 3)
  }
  expect(tags).toEqual([undefined, '"one"', '"one"'])
})

test('old keys are used for ten minutes while newer ones cannot be read, and then no longer', async () => {
  const from = await issuer(await keyPair('k1'))
  const { clock, find, failures } = reader(from)
  expect(await find('k1')).toBe('found')
  from.published.answer = (_, response) => response.writeHead(500).end()
  clock.now = 5 * MINUTE
  expect(await find('k1')).toBe('found')
  await expect.poll(() => failures.length).toBe(1)
  clock.now = 15 * MINUTE - 1
  expect(await find('k1')).toBe('found')
  clock.now = 17 * MINUTE
  expect(await find('k1')).toBe('unreachable')
})

test('a kid that is not known causes a few calls, and then few', async () => {
  const from = await issuer(await keyPair('k1'))
  const { clock, find } = reader(from)
  for (let at = 0; at < 50; at++) expect(await find(`made-up-${at}`)).toBe('unknown')
  expect(from.asked.length).toBe(5)
  clock.now += 15_000
  for (let at = 0; at < 50; at++) await find(`made-up-${at}`)
  expect(from.asked.length).toBe(6)
  expect(await find('k1')).toBe('found')
})

test('many who wait for the same keys cause one call', async () => {
  const from = await issuer(await keyPair('k1'))
  const { find } = reader(from)
  expect(new Set(await Promise.all(Array.from({ length: 20 }, () => find('k1'))))).toEqual(new Set(['found']))
  expect(from.asked.length).toBe(1)
})

const BAD: readonly (readonly [name: string, answer: NonNullable<Issuer['published']['answer']>])[] = [
  ['redirects', (_, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/keys' }).end()],
  ['is huge', (_, response) => json(response, { keys: [], fill: 'x'.repeat(100_000) })],
  ['never ends', (_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).write('{"keys":[')],
  ['is a page', (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('{"keys":[]}')],
  ['is no JSON', (_, response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{')],
  ['is a list', (_, response) => json(response, [])],
  ['has too many keys', (_, response) => json(response, { keys: Array.from({ length: 65 }, () => ({})) })],
  ['fails', (_, response) => response.writeHead(500).end()],
  ['hangs up', (request) => request.socket.destroy()],
]

verifies(['keys.unreadable', 'keys.negative'], 'keys that cannot be read are refused, and nobody else is affected', async () => {
  const [pair, other] = await Promise.all([keyPair('k1'), keyPair('k1')])
  const good = await issuer(other)
  const bad = await Promise.all(BAD.map(() => issuer(pair)))
  const server = await believing(good, ...bad)
  const call = async (from: Issuer, signer = pair) => byHeader(server.url, await signer.sign(claimsFor(server.url, from.url)))
  const waiting = BAD.slice(0, 4).map(async ([, answer], at) => {
    const from = bad[at] as Issuer
    from.published.answer = answer
    return call(from)
  })
  expect(await call(good, other)).toMatchObject({ accepted: true })
  for (const outcome of await Promise.all(waiting)) {
    expect(outcome).toMatchObject({ status: 401, error: { message: 'The keys of the issuer of the token cannot be read' } })
  }
  for (const from of bad.slice(0, 4)) {
    const before = from.asked.length
    expect(await call(from)).toMatchObject({ status: 401 })
    expect(from.asked.length).toBe(before)
  }
  expect(server.logged.filter(({ message }) => message === 'The keys of an issuer could not be read').length).toBe(4)
})

// The one that never ends takes its five seconds above.
test.each(BAD.filter(([name]) => name !== 'never ends'))('a set of keys that %s is refused', async (_, answer) => {
  const from = await issuer(await keyPair('k1'))
  from.published.answer = answer
  const { find, failures, clock } = reader(from)
  expect(await find('k1')).toBe('unreachable')
  expect(failures.length).toBe(1)
  const before = from.asked.length
  clock.now += MINUTE - 1
  expect(await find('k1')).toBe('unreachable')
  expect(from.asked.length).toBe(before)
  from.published.answer = undefined
  clock.now += 1
  expect(await find('k1')).toBe('found')
})

const ELSEWHERE: readonly (readonly [name: string, document: (url: string) => object])[] = [
  ['speaks for another issuer', (url) => ({ issuer: 'https://other.example', jwks_uri: `${url}/keys` })],
  ['names keys of another server', (url) => ({ issuer: url, jwks_uri: 'https://other.example/keys' })],
  ['names no keys', (url) => ({ issuer: url })],
]

for (const [name, document] of ELSEWHERE) {
  verifies('keys.another', `a document that ${name} is refused`, async () => {
    const from = await issuer(await keyPair('k1'))
    from.published.answer = (request, response) =>
      request.url === '/.well-known/openid-configuration' ? json(response, document(from.url)) : response.writeHead(404).end()
    const { find, failures } = reader(from)
    expect(await find('k1')).toBe('unreachable')
    expect(failures[0]).toContain(name)
  })
}

test('the keys are found by RFC 8414 and by OpenID Connect, too', async () => {
  for (const path of ['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server']) {
    const from = await issuer(await keyPair('k1'))
    from.published.answer = (request, response) => {
      if (request.url === path) json(response, { issuer: from.url, jwks_uri: `${from.url}/keys` })
      else if (request.url === '/keys') json(response, { keys: from.published.keys })
      else response.writeHead(404).end()
    }
    expect(await reader(from).find('k1')).toBe('found')
  }
})

verifies('keys.strangers', 'who makes issuers up is throttled, and known ones go on', async () => {
  const pair = await keyPair('k1')
  const from = await issuer(pair)
  const server = await believing(from)
  const good = await pair.sign(claimsFor(server.url, from.url))
  expect(await byHeader(server.url, good)).toMatchObject({ accepted: true })
  const outcomes = await Promise.all(
    Array.from({ length: 30 }, async (_, at) =>
      byHeader(server.url, await pair.sign(claimsFor(server.url, `http://127.0.0.1:1/${at}`))).then(({ status }) => status),
    ),
  )
  expect(outcomes.every((status) => status === 401 || status === 429)).toBe(true)
  const another = await pair.sign(claimsFor(server.url, `${from.url}/made-up`))
  expect((await byHeader(server.url, another)).status).toBe(401)
  expect(await byHeader(server.url, await pair.sign(claimsFor(server.url, from.url)))).toMatchObject({ accepted: true })
})

test('an issuer may sign with any asymmetric algorithm', async () => {
  for (const alg of ['RS256', 'PS256', 'ES256', 'EdDSA']) {
    const pair = await keyPair('k1', alg)
    const from = await issuer(pair)
    const server = await believing(from)
    expect(await byHeader(server.url, await pair.sign(claimsFor(server.url, from.url)))).toMatchObject({ accepted: true })
  }
})
