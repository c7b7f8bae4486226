import canonicalize from 'canonicalize'
import { calculateJwkThumbprint, compactVerify, decodeProtectedHeader, importJWK, SignJWT, type JWK } from 'jose'
import { createHash } from 'node:crypto'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { chainOf, company, frames, hashOf, isSignedBy, message, pinned, post, signed, streamOf, textIn, type Members } from './company.ts'

async function host(tokens: Record<string, string> = {}) {
  const client = await company()
  const server = await startServer(demo(), {
    tokens,
    insecureDev: true,
    envelope: { keys: pinned(client), senders: Object.keys(tokens).length > 0 ? { [client.did]: 'client' } : {} },
  })
  const document = (await (await fetch(`${server.url}/.well-known/did.json`)).json()) as Members
  return { ...server, client, document, did: String(document['id']) }
}

verifies(
  ['envelope:ask', 'envelope:answer-signature', 'envelope:stream-hash', 'envelope:delta-order'],
  'an ask is answered and closed',
  async () => {
    const { url, client, did, document } = await host()
    const ask = await signed(client, message(client, did, { body: { type: 'text/plain', content: '/count 5' } }))
    const accepted = await post(url, ask)
    expect([accepted.status, await accepted.text()]).toEqual([202, ''])
    expect(accepted.headers.get('location')).toMatch(/^\/v1\/stream\/str-/)
    const raw: string[] = []
    const all = await frames(streamOf(accepted), { raw })
    expect(all.map(({ delta_seq }) => delta_seq)).toEqual(all.map((_, index) => index))
    expect(textIn(all)).toBe('1 2 3 4 5')
    const last = all.at(-1)
    expect(last).toMatchObject({ type: 'done', payload: { status: 'completed', stream_sha256: chainOf(raw.slice(0, -1)) } })

    const closing = await fetch(`${url}/v1/messages/${String(ask['id'])}`)
    expect(closing.headers.get('content-type')).toBe('application/uamp+json')
    const confirm = (await closing.json()) as Members
    expect(confirm).toMatchObject({ intent: 'confirm', reply_to: ask['id'], to: [client.did], body: { content: '1 2 3 4 5' } })
    expect(confirm['context']).toEqual([{ id: ask['id'], hash: `sha256:${hashOf(ask)}` }])
    expect(confirm['ext']).toMatchObject({ uamp: { stream_sha256: chainOf(raw.slice(0, -1)) } })
    const agentDocument = (await (await fetch(`${url}/agents/demo/did.json`)).json()) as Members
    expect(await isSignedBy(confirm, agentDocument)).toBe(true)
    expect(document['id']).toBe(did)
  },
)

verifies('envelope:retries', 'the same message again has the same answer, and runs once', async () => {
  const { url, client, did } = await host()
  const ask = await signed(client, message(client, did))
  const answers = await Promise.all(Array.from({ length: 100 }, () => post(url, ask)))
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]))
  expect(new Set(answers.map(({ headers }) => headers.get('location'))).size).toBe(1)
  const other = await signed(client, { ...message(client, did), id: ask['id'] })
  const refused = await post(url, other)
  expect([refused.status, await refused.json()]).toMatchObject([422, { code: '4.22', retry: false, reason: 'replayed' }])
})

verifies(['envelope:did-document', 'envelope:manifest', 'envelope:hub'], 'the documents of a server are signed by its keys', async () => {
  const { url, did, document } = await host()
  const agentDid = `${did}:agents:demo`
  expect(document).toMatchObject({ id: did, assertionMethod: [expect.stringContaining(`${did}#`), expect.any(String)] })
  const verified = async (path: string, typ: string, keys: Members) => {
    const response = await fetch(url + path)
    expect(response.headers.get('content-type')).toBe(`application/${typ}`)
    const jws = await response.text()
    const { kid } = decodeProtectedHeader(jws)
    const method = (keys['verificationMethod'] as { id: string; publicKeyJwk: JWK }[]).find(({ id }) => id === kid)
    const { payload, protectedHeader } = await compactVerify(jws, await importJWK(method?.publicKeyJwk ?? {}, 'ES256'))
    expect(protectedHeader).toEqual({ alg: 'ES256', kid, typ })
    const shown = await fetch(url + path, { headers: { accept: 'application/json' } })
    const json = JSON.parse(Buffer.from(payload).toString()) as Members
    expect({ ...((await shown.json()) as Members), updated: 0 }).toEqual({ ...json, updated: 0 })
    return json
  }
  const agent = (await (await fetch(`${url}/agents/demo/did.json`)).json()) as Members
  const manifest = await verified('/agents/demo/.well-known/agent-manifest.json', 'manifest+jws', agent)
  expect(Object.keys(manifest).toSorted()).toEqual(['agent', 'auth', 'body_types', 'description', 'intents', 'limits'])
  expect(manifest).toMatchObject({ agent: 'uamp/1.0', limits: { max_body_kb: 1024 } })
  const hub = await verified('/.well-known/agent-hub.json', 'hub+jws', document)
  const place = `${url}/agents/demo/.well-known/agent-manifest.json`
  expect(hub).toMatchObject({ hub: did, manifests: [{ did: agentDid, url: place }], trust_anchors: { dids: [did] } })
  const sha256 = createHash('sha256').update(canonicalize(manifest) as string)
  expect((hub['manifests'] as Members[])[0]?.['sha256']).toBe(sha256.digest('hex'))
})

verifies('envelope:body-read', 'a body is read however it is packed', async () => {
  const { url, client, did } = await host()
  const packed = {
    base64: { content: Buffer.from('hello').toString('base64'), encoding: 'base64' },
    base64url: { content: Buffer.from('hello').toString('base64url'), encoding: 'base64url' },
    gzip: { content: gzipSync('hello').toString('base64'), encoding: 'base64', compression: 'gzip' },
    br: { content: brotliCompressSync('hello').toString('base64'), encoding: 'base64', compression: 'br' },
  }
  for (const body of Object.values(packed)) {
    const accepted = await post(url, await signed(client, message(client, did, { body: { type: 'text/plain', ...body } })))
    expect(textIn(await frames(streamOf(accepted)))).toBe('You said: hello')
  }
  const bomb = { content: gzipSync(Buffer.alloc(4 * 1024 * 1024)).toString('base64'), encoding: 'base64', compression: 'gzip' }
  const refused = await post(url, await signed(client, message(client, did, { body: { type: 'text/plain', ...bomb } })))
  expect([refused.status, await refused.json()]).toMatchObject([413, { code: '4.13' }])
})

verifies('envelope:ext', 'what is beside the message reaches the agent', async () => {
  const client = await company()
  const teller = defineAgent('teller', async function* (turn) {
    yield JSON.stringify(turn.asked?.extensions?.['envelope'])
  })
  const { url } = await startServer(teller, { insecureDev: true, envelope: { keys: pinned(client) } })
  const { id: did } = (await (await fetch(`${url}/.well-known/did.json`)).json()) as { id: string }
  const ask = message(client, did, { ext: { 'x-trace': 'b3:1', deep: { a: [1, null] } } })
  const told = textIn(await frames(streamOf(await post(url, await signed(client, ask)))))
  expect(JSON.parse(told)).toEqual({ id: ask['id'], from: client.did, intent: 'ask', ext: ask['ext'] })
})

verifies('envelope:capability', 'a capability token is held against what it is for', async () => {
  const [client, issuer] = [await company(), await company('did:web:issuer.example')]
  const envelope = { keys: pinned(client, issuer), anchors: [issuer.did] }
  const { url } = await startServer(demo(), { insecureDev: true, envelope })
  const { id: did } = (await (await fetch(`${url}/.well-known/did.json`)).json()) as { id: string }
  const good = { iss: issuer.did, sub: client.did, aud: did, exp: Math.floor(Date.now() / 1000) + 60, scope: 'demo:ask' }
  const send = async (claims: object, by = issuer) => {
    const token = await new SignJWT({ ...good, ...claims }).setProtectedHeader({ alg: 'ES256', kid: `${by.did}#k1` }).sign(by.key)
    const response = await post(url, await signed(client, message(client, did, { cap_token: token })))
    return response.status === 202 ? 202 : ((await response.json()) as Members)['code']
  }
  expect(await send({})).toBe(202)
  expect(await send({ sub: 'did:web:other.example' })).toBe('4.03')
  expect(await send({ sub: 'x', cnf: { jkt: await calculateJwkThumbprint(client.jwk) } })).toBe(202)
  expect(await send({ aud: 'did:web:other.example' })).toBe('4.03')
  expect(await send({ scope: 'demo:inform' })).toBe('4.03')
  expect(await send({ exp: 1 })).toBe('4.01')
  expect(await send({ iss: client.did }, client)).toBe('4.03')
  expect(await send({}, client)).toBe('4.01')
})

verifies('envelope:busy', 'where there is no room, a message is told when to come again', async () => {
  const client = await company()
  const { url } = await startServer(demo(), { insecureDev: true, envelope: { keys: pinned(client) }, limits: { heldBytes: 1 } })
  const { id: did } = (await (await fetch(`${url}/.well-known/did.json`)).json()) as { id: string }
  const refused = await post(url, await signed(client, message(client, did)))
  expect([refused.status, await refused.json()]).toMatchObject([503, { code: '5.04', retry: true, retry_after_ms: expect.any(Number) }])
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
})

test('a server that does not know its own address says so, whatever is asked of it, and lives', async () => {
  const { url, port } = await startServer(demo(), { host: '0.0.0.0', tokens: { a: 'b'.repeat(20) }, envelope: {} })
  const local = url.replace(/:\/\/[^/]+/, `://127.0.0.1:${port}`)
  for (const document of ['did.json', 'agent-hub.json', 'agent-manifest.json']) {
    const response = await fetch(`${local}/.well-known/${document}`)
    expect([response.status, await response.json()]).toMatchObject([501, { code: '5.01', reason: 'public_url' }])
  }
})

test('a page of another origin can read where its answer comes', async () => {
  const { url, client, did } = await host()
  const accepted = await post(url, await signed(client, message(client, did)), { origin: url })
  expect(accepted.headers.get('access-control-expose-headers')).toContain('Location')
})
