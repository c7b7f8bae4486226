import { createHash } from 'node:crypto'
import { createServer } from 'node:https'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { request as httpsRequest } from 'node:https'
import { calculateJwkThumbprint, exportJWK, generateKeyPair, SignJWT } from 'jose'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { demo } from '../../src/agents/demo/index.ts'
import { createAgentApp } from '../../src/serve/index.ts'
import { verifies } from '../support/verifies.ts'
import { byHeader, bySubprotocol, byMessage, claimsFor, identityServer, issuer, keyPair, now } from './support.ts'

const PATH = '/v1/chat/completions'
const ath = (token: string): string => createHash('sha256').update(token).digest('base64url')

/** A server that wants proofs of an issuer's tokens, and a client that can make them. */
async function world(options: { readonly nonce?: boolean; readonly publicUrl?: string; readonly data?: string } = {}) {
  const pair = await keyPair('k1')
  const from = await issuer(pair)
  const server = await identityServer({
    access: { agents: { allow: [from.url] }, dpopNonce: options.nonce ?? false },
    outbound: { allow: [from.host] },
    limits: { wrongTokenBurst: 10_000 },
    ...(options.publicUrl !== undefined && { publicUrl: options.publicUrl, allowedHosts: ['*'] }),
    ...(options.data !== undefined && { data: options.data }),
  })
  const client = await holder()
  const seen = options.publicUrl ?? server.url
  const token = await pair.sign(claimsFor(seen, from.url, { cnf: { jkt: client.jkt } }))
  const call = async (proof: string | undefined, { scheme = 'DPoP', given = token, path = PATH } = {}) => {
    const response = await fetch(server.url + path, {
      method: 'POST',
      headers: { authorization: `${scheme} ${given}`, 'content-type': 'application/json', ...(proof !== undefined && { dpop: proof }) },
      body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'Hello' }] }),
    })
    const { error } = (await response.json()) as { error?: { message: string } }
    const { status, headers } = response
    return {
      status,
      message: error?.message,
      challenge: headers.get('www-authenticate') ?? '',
      nonce: headers.get('dpop-nonce') ?? undefined,
    }
  }
  const prove = (claims: object = {}, header: object = {}) =>
    client.prove({ htm: 'POST', htu: seen + PATH, ath: ath(token), ...claims }, header)
  return { server, pair, from, client, token, call, prove, seen }
}

async function holder(alg = 'ES256') {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
  const jwk = await exportJWK(publicKey)
  const prove = (claims: object, header: object = {}) =>
    new SignJWT({ jti: crypto.randomUUID(), iat: now(), ...claims })
      .setProtectedHeader({ alg, typ: 'dpop+jwt', jwk, ...header })
      .sign(privateKey)
  return { jwk, jkt: await calculateJwkThumbprint(jwk), prove, privateKey }
}

verifies('dpop.accepted', 'a bound token with its proof is accepted', async () => {
  const { call, prove, seen } = await world()
  expect(await call(await prove())).toMatchObject({ status: 200 })
  expect(await call(await prove({ htu: `${seen}${PATH}?a=b#c` }))).toMatchObject({ status: 200 })
  expect(await call(await prove({ iat: now() - 90 }))).toMatchObject({ status: 200 })
})

verifies('dpop.accepted', 'the proof is for the URL that clients call, behind a proxy too', async () => {
  const { call, prove, server } = await world({ publicUrl: 'https://agents.example/uamp' })
  expect(await call(await prove())).toMatchObject({ status: 200 })
  expect(await call(await prove({ htu: server.url + PATH }))).toMatchObject({ status: 401 })
})

verifies('dpop.accepted', 'a proof on an upgrade counts, and for the tokens of the same key that follow', async () => {
  const { server, client, token, pair, from } = await world()
  const htu = `${server.url.replace('http', 'ws')}/uamp`
  const socket = new WebSocket(htu, {
    headers: { authorization: `DPoP ${token}`, dpop: await client.prove({ htm: 'GET', htu, ath: ath(token) }) },
  })
  onTestFinished(() => socket.terminate())
  const heard: { type: string; error?: { message: string } }[] = []
  socket.on('message', (data: Buffer) => heard.push(JSON.parse(data.toString())))
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
  const create = async (jkt: string) => {
    const given = await pair.sign(claimsFor(server.url, from.url, { cnf: { jkt } }))
    const before = heard.length
    socket.send(JSON.stringify({ type: 'session.create', uamp_version: '1.0', event_id: '1', session: {}, token: given }))
    await expect.poll(() => heard.slice(before).find(({ type }) => /^session\.(created|error)$/.test(type))).toBeTruthy()
    return heard.slice(before).find(({ type }) => /^session\.(created|error)$/.test(type))
  }
  expect(await create(client.jkt)).toMatchObject({ type: 'session.created' })
  expect(await create((await holder()).jkt)).toMatchObject({ type: 'session.error', error: { code: 'unauthorized' } })
})

verifies('dpop.bearer', 'a bound token without a proof is refused, however it comes', async () => {
  const { server, call, token, prove } = await world()
  expect(await call(undefined)).toMatchObject({ status: 401, challenge: expect.stringMatching(/^DPoP error="invalid_dpop_proof"/) })
  expect(await call(await prove(), { scheme: 'Bearer' })).toMatchObject({
    status: 401,
    challenge: expect.stringMatching(/^DPoP error="invalid_token"/),
  })
  for (const way of [byHeader, bySubprotocol, byMessage]) expect(await way(server.url, token)).toMatchObject({ accepted: false })
})

test('a proof that is refused is told what it lacks', async () => {
  const { call, prove } = await world()
  const wrong: readonly (readonly [claims: object, told: string, header?: object])[] = [
    [{}, 'must be of the type dpop+jwt', { typ: 'JWT' }],
    [{}, 'has no public key of its own', { jwk: undefined }],
    [{ htm: 'post' }, 'is for another request: htm must be its method'],
    [{ htu: 'https://other.example/' }, 'is for another request: htu must be its URL'],
    [{ ath: undefined }, 'does not say for which token it is: it needs ath'],
    [{ ath: 'x' }, 'is for another token'],
    [{ jti: undefined }, 'needs a jti, which is new each time'],
    [{ iat: undefined }, 'does not say when it was made: it needs iat'],
    [{ iat: now() - 600 }, 'is too old, or not valid yet'],
  ]
  for (const [claims, told, header] of wrong) {
    expect(await call(await prove(claims, header))).toMatchObject({ status: 401, message: `The DPoP proof ${told}` })
  }
})

test('a token that is not bound is no DPoP token', async () => {
  const { server, from, pair, call, client } = await world()
  const given = await pair.sign(claimsFor(server.url, from.url))
  const proof = await client.prove({ htm: 'POST', htu: server.url + PATH, ath: ath(given) })
  expect(await call(proof, { given })).toMatchObject({ status: 401 })
})

const WRONG: readonly (readonly [name: string, claims: object, header?: object])[] = [
  ['for another method', { htm: 'GET' }],
  ['for another URL', { htu: 'https://other.example/v1/chat/completions' }],
  ['for another path', { htu: undefined }],
  ['for another token', { ath: ath('another') }],
  ['for no token', { ath: undefined }],
  ['too old', { iat: now() - 600 }],
  ['of the future', { iat: now() + 600 }],
  ['without a time', { iat: undefined }],
  ['without an id', { jti: undefined }],
  ['of another type', {}, { typ: 'JWT' }],
  ['without a key', {}, { jwk: undefined }],
  ['with an algorithm that is not for its key', {}, { jwk: { kty: 'RSA', n: 'AQAB', e: 'AQAB' } }],
]

for (const [name, claims, header] of WRONG) {
  verifies('dpop.proof', `a proof ${name} is refused`, async () => {
    const { call, prove } = await world()
    const outcome = await call(await prove(claims, header))
    expect(outcome).toMatchObject({ status: 401, challenge: expect.stringMatching(/^DPoP error="invalid_dpop_proof"/) })
  })
}

verifies('dpop.proof', 'a proof of another key, with a private one, or with a wrong signature is refused', async () => {
  const { call, prove, client, token, server } = await world()
  const other = await holder()
  const claims = { htm: 'POST', htu: server.url + PATH, ath: ath(token) }
  expect(await call(await other.prove(claims))).toMatchObject({ status: 401, message: expect.stringContaining('another key') })
  expect(await call(await other.prove(claims, { jwk: client.jwk }))).toMatchObject({ message: expect.stringContaining('signature') })
  const secret = await exportJWK(client.privateKey)
  expect(await call(await prove({}, { jwk: secret }))).toMatchObject({ status: 401, message: expect.stringContaining('public key') })
  expect(await call(`${await prove()}, ${await prove()}`)).toMatchObject({ status: 401 })
})

verifies('dpop.once', 'a proof counts once, also after a restart', async () => {
  const data = mkdtempSync(join(tmpdir(), 'uamp-proof-'))
  onTestFinished(() => rmSync(data, { recursive: true, force: true }))
  const { call, prove, server, from, token } = await world({ data, publicUrl: 'https://agents.example' })
  const proof = await prove()
  const outcomes = await Promise.all([call(proof), call(proof), call(proof)])
  expect(outcomes.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([200, 401, 401])
  await server.close({ graceMs: 0 })
  const again = await identityServer({
    access: { agents: { allow: [from.url] } },
    outbound: { allow: [from.host] },
    publicUrl: 'https://agents.example',
    allowedHosts: ['*'],
    data,
  })
  const response = await fetch(again.url + PATH, {
    method: 'POST',
    headers: { authorization: `DPoP ${token}`, dpop: proof, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'Hello' }] }),
  })
  expect([response.status, await response.text()]).toEqual([401, expect.stringContaining('used before')])
})

verifies('dpop.nonce', 'a server that wants a nonce says so, and gives it', async () => {
  const { call, prove } = await world({ nonce: true })
  const first = await call(await prove())
  expect(first).toMatchObject({ status: 401, challenge: expect.stringMatching(/^DPoP error="use_dpop_nonce"/), nonce: expect.any(String) })
  expect(await call(await prove({ nonce: first.nonce }))).toMatchObject({ status: 200 })
  expect(await call(await prove({ nonce: 'made-up' }))).toMatchObject({ status: 401, nonce: first.nonce })
})

/** A certificate that nobody vouches for, and its thumbprint. */
function certificate(folder: string, name: string) {
  const [key, cert] = [join(folder, `${name}.key`), join(folder, `${name}.pem`)]
  const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1', '-subj', `/CN=${name}`]
  execFileSync('openssl', [...args, '-keyout', key, '-out', cert], { stdio: 'ignore' })
  const pem = readFileSync(cert, 'utf8')
  const der = pem.replace(/-----[^-]+-----|\s/g, '')
  return { key: readFileSync(key), cert: pem, der, x5t: createHash('sha256').update(Buffer.from(der, 'base64')).digest('base64url') }
}

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'uamp-certificate-'))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

verifies('mtls.bound', 'a token for the holder of a certificate needs a connection that shows it', async () => {
  const place = folder()
  const [own, alice, bob] = [certificate(place, 'localhost'), certificate(place, 'alice'), certificate(place, 'bob')]
  const pair = await keyPair('k1')
  const from = await issuer(pair)
  const app = createAgentApp(demo(), {
    data: 'memory',
    publicUrl: 'https://localhost',
    access: { agents: { allow: [from.url] } },
    outbound: { allow: [from.host] },
    log: () => undefined,
  })
  const listener = createServer({ key: own.key, cert: own.cert, requestCert: true, rejectUnauthorized: false }, (request, response) => {
    void app.handleRequest(request, response)
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    listener.closeAllConnections()
    listener.close()
    await app.close({ graceMs: 0 })
  })
  const { port } = listener.address() as AddressInfo
  const token = await pair.sign(claimsFor('https://localhost', from.url, { cnf: { 'x5t#S256': alice.x5t } }))
  const status = (shown: Partial<typeof alice>) =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}`, host: 'localhost' }
      const { key, cert } = shown
      const options = { port, host: '127.0.0.1', path: '/v1/models', headers, rejectUnauthorized: false, agent: false, key, cert }
      httpsRequest(options, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
        .once('error', reject)
        .end()
    })
  expect(await status(alice)).toBe(200)
  expect(await status(bob)).toBe(401)
  expect(await status({})).toBe(401)
})

verifies('mtls.proxy', 'the certificate that a proxy tells counts only if the operator says so', async () => {
  const alice = certificate(folder(), 'alice')
  const pair = await keyPair('k1')
  const from = await issuer(pair)
  const start = (more: { trustProxy?: string[]; clientCertHeader?: boolean }) => {
    const { clientCertHeader = false, ...rest } = more
    return identityServer({
      access: { agents: { allow: [from.url] }, clientCertHeader },
      outbound: { allow: [from.host] },
      publicUrl: 'https://agents.example',
      allowedHosts: ['*'],
      ...rest,
    })
  }
  const status = async (server: { url: string }, told: string | undefined) => {
    const token = await pair.sign(claimsFor('https://agents.example', from.url, { cnf: { 'x5t#S256': alice.x5t } }))
    const headers = { authorization: `Bearer ${token}`, ...(told !== undefined && { 'client-cert': told }) }
    return (await fetch(`${server.url}/v1/models`, { headers })).status
  }
  const told = `:${alice.der}:`
  const right = await start({ trustProxy: ['127.0.0.1'], clientCertHeader: true })
  expect(await status(right, told)).toBe(200)
  for (const wrong of [undefined, alice.der, ':AAAA:', `${told}, ${told}`]) expect(await status(right, wrong)).toBe(401)
  expect(await status(await start({ trustProxy: ['127.0.0.1'] }), told)).toBe(401)
  expect(await status(await start({ clientCertHeader: true }), told)).toBe(401)
  expect(await status(await start({ trustProxy: ['10.0.0.1'], clientCertHeader: true }), told)).toBe(401)
})
