import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { startServer } from '../support/server.ts'
import { company, message, post, signed, type Company, type Members } from './company.ts'

type Answer = (response: ServerResponse, request: IncomingMessage) => void

/** A company whose DID document is on this machine. */
async function published(answer?: Answer) {
  let asked = 0
  let say: Answer = (response) => response.end()
  const server = createServer((request, response) => {
    asked++
    say(response, request)
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const did = `did:web:localhost%3A${(server.address() as AddressInfo).port}`
  const by = await company(did)
  const document = (of: Company): string => {
    const method = { id: `${did}#${of.kid}`, type: 'JsonWebKey2020', controller: did, publicKeyJwk: of.jwk }
    return JSON.stringify({ id: did, verificationMethod: [method], assertionMethod: [method.id] })
  }
  say = answer ?? ((response) => response.end(document(by)))
  return { by, did, document, asked: () => asked, change: (next: Answer) => (say = next) }
}

async function host() {
  const { url, logged } = await startServer(demo(), { insecureDev: true, envelope: {} })
  const { id: did } = (await (await fetch(`${url}/.well-known/did.json`)).json()) as { id: string }
  const send = async (by: Company, isNamed = true): Promise<readonly [number, Members]> => {
    const response = await post(url, await signed(by, message(by, did, { intent: 'inform' }), isNamed))
    return [response.status, response.status === 202 ? {} : ((await response.json()) as Members)]
  }
  return { url, did, send, logged }
}

test('the keys of a sender are those of its did:web document, read once for many messages', async () => {
  const { by, asked } = await published()
  const { send } = await host()
  const sent = await Promise.all(Array.from({ length: 20 }, () => send(by)))
  expect(sent.map(([status]) => status)).toEqual(Array.from({ length: 20 }, () => 202))
  expect(asked()).toBe(1)
})

test('a new key is found when it signs, and one that was taken away counts no more', async () => {
  const there = await published()
  const { send } = await host()
  expect(await send(there.by)).toEqual([202, {}])
  const next: Company = { ...(await company(there.did)), kid: 'k2' }
  there.change((response) => response.end(there.document(next)))
  expect(await send(next)).toEqual([202, {}])
  expect(await send(there.by)).toMatchObject([401, { code: '4.01' }])
})

test.each([
  ['that no signature names', false],
  ['under the name of the one before', true],
])('a new key %s is found when it signs', async (_, isNamed) => {
  const there = await published()
  const { send } = await host()
  expect(await send(there.by, isNamed)).toEqual([202, {}])
  const next = await company(there.did)
  there.change((response) => response.end(there.document(next)))
  expect(await send(next, isNamed)).toEqual([202, {}])
  // Whoever signs with keys that are nobody's does not have the document read for each message.
  const forger = await company(there.did)
  const before = there.asked()
  for (let turn = 0; turn < 10; turn++) expect(await send(forger, isNamed)).toMatchObject([401, { code: '4.01', reason: 'signature' }])
  expect(there.asked() - before).toBeLessThan(5)
})

const wrong: Record<string, Answer> = {
  'is not there': (response) => response.writeHead(404).end(),
  'is somewhere else': (response, { url }) => response.writeHead(302, { location: `${url}?again` }).end(),
  'is not JSON': (response) => response.end('<html>'),
  'is huge': (response) => response.end(JSON.stringify({ padding: 'x'.repeat(1024 * 1024) })),
  'is cut off': (response) => response.writeHead(200, { 'content-length': '1000' }).end('{', () => response.destroy()),
  'belongs to another': (response) => response.end(JSON.stringify({ id: 'did:web:other.example', verificationMethod: [] })),
  'is nested deeply': (response) => response.end('['.repeat(10_000) + ']'.repeat(10_000)),
}

test.each(Object.entries(wrong))('a document that %s gives no keys, and nobody waits for it again', async (_, answer) => {
  const { by, asked } = await published(answer)
  const { send, logged } = await host()
  for (let turn = 0; turn < 3; turn++) expect(await send(by)).toMatchObject([401, { code: '4.01', reason: 'did' }])
  expect(asked()).toBe(1)
  expect(logged.filter(({ message: said }) => said === 'The DID document of a sender could not be read')).toHaveLength(1)
})

test.each([
  'did:web:127.0.0.1',
  'did:web:169.254.169.254',
  'did:web:localhost%3A22',
  'did:web:internal.example%3A6379',
  'did:key:z6Mk',
  'did:web:user%40evil.example',
])('%s is not asked for its keys', async (did) => {
  const client = await company(did)
  const { url } = await startServer(demo(), { insecureDev: true, envelope: {} })
  const { id } = (await (await fetch(`${url}/.well-known/did.json`)).json()) as { id: string }
  const response = await post(url, await signed(client, message(client, id)))
  expect([response.status, await response.json()]).toMatchObject([401, { code: '4.01' }])
})

test('callers who name ever new senders are slowed down', async () => {
  const { url, did } = await host()
  const strangers = await Promise.all(Array.from({ length: 30 }, (_, number) => company(`did:web:localhost%3A${number + 2000}:x`)))
  const sent = await Promise.all(strangers.map(async (each) => (await post(url, await signed(each, message(each, did)))).status))
  expect(new Set(sent)).toEqual(new Set([401, 429]))
})
