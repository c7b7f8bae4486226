import { expect, test } from 'vitest'
import { verifies } from '../support/verifies.ts'
import { byHeader, bySubprotocol, claimsFor, identityServer, issuer, keyPair, now, WAYS } from './support.ts'

/** A server that believes one issuer about its agents. */
async function world(agents: object = {}, more: object = {}) {
  const pair = await keyPair('k1')
  const from = await issuer(pair)
  const server = await identityServer({
    tokens: { root: 'a-secret-of-sixteen' },
    access: { agents: { allow: [from.url], ...agents } },
    outbound: { allow: [from.host] },
    ...more,
  })
  const token = (claims: object = {}) => pair.sign(claimsFor(server.url, from.url, claims))
  const status = async (path: string, given: string) => {
    const response = await fetch(server.url + path, { headers: { authorization: `Bearer ${given}` } })
    await response.arrayBuffer()
    return response.status
  }
  return { pair, from, server, token, status, url: server.url }
}

verifies('verify.agent', 'a token for one agent is refused by the others', async () => {
  const { url, token, server } = await world()
  const completions = (agent: string, given: string) => byHeader(url, given, 'Bearer', `/agents/${agent}/v1/chat/completions`)
  for (const given of [await token({ aud: `${url}/agents/demo` }), await server.mint({ audience: `${url}/agents/demo` })]) {
    expect(await completions('demo', given)).toMatchObject({ accepted: true })
    expect(await completions('secret', given)).toMatchObject({ status: 403, challenge: 'Bearer error="insufficient_scope"' })
  }
  const both = await token({ aud: [`${url}/agents/demo`, `${url}/agents/secret`, 'https://other.example'] })
  expect(await completions('secret', both)).toMatchObject({ accepted: true })
})

verifies('verify.aud', 'a token for this machine counts, by whichever name it calls it, and for no other port', async () => {
  const { url, token } = await world()
  const local = url.replace('127.0.0.1', 'localhost')
  for (const aud of [local, `${local}/`, url.replace('127.0.0.1', '[::1]')])
    expect(await byHeader(url, await token({ aud }))).toMatchObject({ accepted: true })
  for (const aud of [`${local}0`, 'http://localhost', local.replace('http:', 'https:'), local.replace('localhost', 'localhost.example')]) {
    expect(await byHeader(url, await token({ aud }))).toMatchObject({ status: 401 })
  }
})

verifies('trust.reserved', 'others cannot make themselves administrators', async () => {
  const { url, token, status, server } = await world()
  for (const scope of ['admin', 'operate', 'service:*', '*', 'platform', 'host:demo', 'admin service:billing host']) {
    const given = await token({ scope })
    expect(await status('/metrics', given)).toBe(403)
    expect(await byHeader(url, given)).toMatchObject({ status: 403 })
  }
  const mixed = await token({ scope: 'admin write' })
  expect(await status('/metrics', mixed)).toBe(403)
  expect(await byHeader(url, mixed)).toMatchObject({ accepted: true })
  expect(await status('/metrics', await server.mint({ scope: ['admin'] }))).toBe(200)
})

test('the scopes of a token are what it may do', async () => {
  const { url, token } = await world()
  expect(await byHeader(url, await token({ scope: 'read' }))).toMatchObject({ status: 403 })
  expect(await byHeader(url, await token({ scope: 'call' }))).toMatchObject({ accepted: true })
  expect(await byHeader(url, await token({ scope: undefined }))).toMatchObject({ status: 403 })
})

test('agents of others may do no more than the operator says', async () => {
  const { url, token } = await world({ scopes: ['read'] })
  expect(await byHeader(url, await token({ scope: 'write' }))).toMatchObject({ status: 403 })
})

verifies(['trust.order', 'keys.no-call'], 'nobody asks an issuer that the rules do not accept', async () => {
  const { from, url, pair } = await world({ deny: ['@127-0-0-1:1.**'] }, {})
  const closed = await identityServer({ tokens: { root: 'a-secret-of-sixteen' }, outbound: { allow: [from.host] } })
  const denied = await identityServer({
    access: { agents: { allow: ['everyone'], deny: [from.url] } },
    outbound: { allow: [from.host] },
    allowAnonymous: false,
  })
  for (const server of [closed, denied]) {
    for (const way of Object.values(WAYS)) {
      const outcome = await way(server.url, await pair.sign(claimsFor(server.url, from.url)))
      expect(outcome).toMatchObject({ accepted: false, error: { message: 'This server does not believe the issuer of the token' } })
    }
  }
  expect(from.asked).toEqual([])
  expect(await byHeader(url, await pair.sign(claimsFor(url, from.url)))).toMatchObject({ accepted: true })
  expect(from.asked).toEqual(['/.well-known/jwks.json'])
})

test.each(['HTTP', '127.1', 'trailing'])('a denied issuer gains nothing by writing its name otherwise: %s', async (kind) => {
  const pair = await keyPair('k1')
  const from = await issuer(pair)
  const server = await identityServer({
    access: { agents: { allow: ['everyone'], deny: [from.url] } },
    outbound: { allow: [from.host, '127.0.0.0/8'] },
  })
  const name = { HTTP: from.url.replace('http', 'HTTP'), '127.1': from.url.replace('127.0.0.1', '127.1'), trailing: `${from.url}//` }[kind]
  expect(await byHeader(server.url, await pair.sign(claimsFor(server.url, name ?? '')))).toMatchObject({ status: 401 })
  expect(from.asked).toEqual([])
})

verifies('trust.labels', 'labels of an issuer count only if it is trusted', async () => {
  const pair = await keyPair('k1')
  const from = await issuer(pair)
  const rules = { allow: ['#reputation:80'] }
  const make = (trusted: string[]) =>
    identityServer({ access: { agents: { ...rules, trusted } }, outbound: { allow: [from.host] }, allowAnonymous: false })
  const [stranger, believed] = [await make([]), await make([from.url])]
  const token = (url: string, label: string) => pair.sign(claimsFor(url, from.url, { scope: `write ${label}` }))
  expect(await byHeader(stranger.url, await token(stranger.url, 'trust:reputation-90'))).toMatchObject({ status: 401 })
  expect(await byHeader(believed.url, await token(believed.url, 'trust:reputation-90'))).toMatchObject({ accepted: true })
  expect(await byHeader(believed.url, await token(believed.url, 'trust:reputation-70'))).toMatchObject({ status: 401 })
})

verifies('verify.time', 'clocks may differ by a minute, or by what the operator says', async () => {
  const { url, token } = await world()
  expect(await byHeader(url, await token({ exp: now() - 30, iat: now() - 300 }))).toMatchObject({ accepted: true })
  expect(await byHeader(url, await token({ nbf: now() + 30, iat: now() + 30 }))).toMatchObject({ accepted: true })
  const pair = await keyPair('k1')
  const from = await issuer(pair)
  const strict = await identityServer({ access: { agents: { allow: [from.url] }, leewaySeconds: 0 }, outbound: { allow: [from.host] } })
  const late = await pair.sign(claimsFor(strict.url, from.url, { exp: now() - 1, iat: now() - 300 }))
  const outcome = await byHeader(strict.url, late)
  expect(outcome).toMatchObject({ status: 401, error: { code: 'token_expired' } })
  expect(outcome.challenge).toBe('Bearer error="invalid_token", error_description="The token has expired"')
})

test('a token that was verified ends with its time', async () => {
  let clock = Date.now()
  const { identityAccess } = await import('../../src/auth/identity.ts')
  const { host, mint, url } = await identityServer({ tokens: { root: 'a-secret-of-sixteen' } })
  const parts = () => ({
    ...host,
    now: () => clock,
    monotonic: () => clock,
    once: async () => true,
    signer: host.signer,
    outbound: undefined,
  })
  const access = identityAccess({ tokens: {}, anonymous: false, parts })
  const token = await mint({ now: clock })
  expect(await access.authenticate({ token })).toMatchObject({ subject: 'alice', issuer: url })
  clock += 359_000
  expect(await access.authenticate({ token })).toMatchObject({ subject: 'alice' })
  clock += 1_000
  expect(await access.authenticate({ token })).toMatchObject({ denied: 'expired' })
})

verifies('verify.throttle', 'wrong tokens are throttled by address, and right ones work all the while', async () => {
  const { url, token, pair } = await world({}, { limits: { wrongTokenBurst: 5, wrongTokensPerSecond: 0.001 } })
  const wrong = await pair.sign(claimsFor('https://other.example', url))
  const statuses: (number | undefined)[] = []
  for (let at = 0; at < 8; at++) statuses.push((await byHeader(url, wrong)).status)
  expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429, 429])
  expect(await bySubprotocol(url, wrong)).toMatchObject({ status: 429 })
  expect(await byHeader(url, await token())).toMatchObject({ accepted: true })
})

verifies('verify.owner-assertion', 'an owner assertion admits nobody', async () => {
  const { url, token, pair, from, server } = await world()
  const assertion = await pair.sign(
    { ...claimsFor('webagents-agent:demo', from.url), owner_user_id: 'root', agent_id: 'demo' },
    { typ: 'JWT' },
  )
  const call = (headers: Record<string, string>) =>
    fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-owner-assertion': assertion, ...headers },
      body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'Hello' }] }),
    }).then(({ status }) => status)
  expect(await call({})).toBe(401)
  expect(await call({ authorization: `Bearer ${assertion}` })).toBe(401)
  expect(await call({ authorization: `Bearer ${await token({ scope: 'read' })}` })).toBe(403)
  expect(await call({ authorization: `Bearer ${await token()}` })).toBe(200)
  expect(JSON.stringify(server.logged)).not.toContain(assertion.split('.')[2])
})

test('the log names an issuer that is not believed, and the caller is not told more', async () => {
  const { url, server, pair } = await world()
  const refused = await byHeader(url, await pair.sign(claimsFor(url, 'https://stranger.example', { sub: 'bob' })))
  expect(refused).toMatchObject({ status: 401, error: { message: 'This server does not believe the issuer of the token' } })
  expect(JSON.stringify(refused)).not.toContain('stranger')
  const claimed = { issuer: 'https://stranger.example', subject: 'bob' }
  expect(server.logged.find(({ message }) => message === 'A token was refused')).toMatchObject({ fields: { denied: 'untrusted', claimed } })
})

test('two issuers cannot give the same name', async () => {
  const [one, two] = await Promise.all([keyPair('k1'), keyPair('k1')])
  const [here, there] = [await issuer(one), await issuer(two)]
  const server = await identityServer({
    access: { agents: { allow: ['everyone'] } },
    outbound: { allow: [here.host, there.host] },
  })
  const create = async (token: string) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    return fetch(`${server.url}/v1/responses`, { method: 'POST', headers, body: JSON.stringify({ model: 'demo', input: 'Hello' }) })
  }
  const [mine, theirs] = [await one.sign(claimsFor(server.url, here.url)), await two.sign(claimsFor(server.url, there.url))]
  const { id } = (await (await create(mine)).json()) as { id: string }
  const read = (token: string) => fetch(`${server.url}/v1/responses/${id}`, { headers: { authorization: `Bearer ${token}` } })
  expect((await read(mine)).status).toBe(200)
  expect((await read(theirs)).status).toBe(404)
})

test('where nobody is known, any key will do, but a token of this server counts', async () => {
  const server = await identityServer()
  expect(await byHeader(server.url, 'sk-any')).toMatchObject({ accepted: true })
  expect(await byHeader(server.url, await server.mint({ scope: ['read'] }))).toMatchObject({ status: 403 })
  expect(await byHeader(server.url, await server.mint({ now: Date.now() - 3_600_000 }))).toMatchObject({ error: { code: 'token_expired' } })
})
