import { expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { startServer } from '../support/server.ts'
import { chainOf, company, frames, hashOf, isSignedBy, message, pinned, post, signed, textIn, type Members } from './company.ts'

async function host(tokens: Record<string, string> = {}) {
  const client = await company()
  const server = await startServer(demo(), {
    tokens,
    envelope: { keys: pinned(client), insecureDev: true, senders: Object.keys(tokens).length > 0 ? { [client.did]: 'client' } : {} },
  })
  const document = (await (await fetch(`${server.url}/.well-known/did.json`)).json()) as Members
  return { ...server, client, document, did: String(document['id']) }
}

test('an ask is accepted, answered on its stream, and closed by a signed message', async () => {
  const { url, client, did, document } = await host()
  const ask = await signed(client, message(client, did, { body: { type: 'text/plain', content: '/count 5' } }))
  const accepted = await post(url, ask)
  expect([accepted.status, await accepted.text()]).toEqual([202, ''])
  const location = accepted.headers.get('location') ?? ''
  const raw: string[] = []
  const all = await frames(location, { raw })
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
})

test('the same message again has the same answer, and runs once', async () => {
  const { url, client, did } = await host()
  const ask = await signed(client, message(client, did))
  const answers = await Promise.all(Array.from({ length: 100 }, () => post(url, ask)))
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]))
  expect(new Set(answers.map(({ headers }) => headers.get('location'))).size).toBe(1)
  const other = await signed(client, { ...message(client, did), id: ask['id'] })
  const refused = await post(url, other)
  expect([refused.status, await refused.json()]).toMatchObject([422, { code: '4.22', retry: false, reason: 'replayed' }])
})
