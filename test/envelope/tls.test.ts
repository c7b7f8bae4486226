import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import { expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { Authority } from '../support/certificates.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { company, message, pinned, post, signed, type Members } from './company.ts'

const authority = new Authority()
const ca = readFileSync(authority.cert)

interface Call {
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly maxVersion?: 'TLSv1.2'
}

/** A call that trusts this authority alone. */
function call(url: string, { body, headers = {}, maxVersion }: Call = {}): Promise<{ status: number; location: string; text: string }> {
  return new Promise((resolve, reject) => {
    const options = { ca, headers, method: body === undefined ? 'GET' : 'POST', ...(maxVersion && { maxVersion }) }
    const sent = request(url, options, (response) => {
      let text = ''
      response.on('data', (piece: Buffer) => (text += piece.toString()))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, location: response.headers.location ?? '', text }))
    })
    sent.on('error', reject).end(body)
  })
}

verifies('envelope:tls', 'messages are taken over TLS 1.3, with a token beside their signature, and not without', async () => {
  const client = await company()
  const server = await startServer(demo(), {
    tls: authority.issue(),
    tokens: { client: 'secret-of-the-client' },
    envelope: { keys: pinned(client), senders: { [client.did]: 'client' } },
  })
  const url = server.url.replace('127.0.0.1', 'localhost')
  const { id: did } = JSON.parse((await call(`${url}/.well-known/did.json`)).text) as { id: string }
  expect(did).toMatch(/^did:web:localhost%3A\d+$/)
  const ask = JSON.stringify(await signed(client, message(client, did, { body: { type: 'text/plain', content: '/count 3' } })))
  const headers = { 'content-type': 'application/uamp+json', authorization: 'Bearer secret-of-the-client' }
  const accepted = await call(`${url}/v1/messages`, { body: ask, headers })
  expect(accepted.status).toBe(202)
  expect((await call(url + accepted.location, { headers })).text).toContain('"type":"done"')
  const { authorization: _, ...unknown } = headers
  expect(await call(`${url}/v1/messages`, { body: ask, headers: unknown })).toMatchObject({ status: 401 })
  await expect(call(`${url}/v1/messages`, { body: ask, headers, maxVersion: 'TLSv1.2' })).rejects.toThrow()

  const plain = await startServer(demo(), { tokens: { client: 'secret-of-the-client' }, envelope: {} })
  const refused = await post(plain.url, ask, { authorization: 'Bearer secret-of-the-client' })
  expect([refused.status, (await refused.json()) as Members]).toMatchObject([403, { code: '4.03', reason: 'tls' }])
})
