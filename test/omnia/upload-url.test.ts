/** An upload URL is its own credential: all that a `PUT` needs, and of use for one upload alone. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { OmniaClient } from './omnia-client.ts'

const tokens = { alice: 'alice-0123456789abcdef', bob: 'bob-0123456789abcdef' }
const ALICE = { authorization: `Bearer ${tokens.alice}` }

interface Place {
  readonly upload_id: string
  readonly upload_url: string
  readonly storage_ref: string
}

async function ask(client: OmniaClient, size_bytes: number): Promise<Place> {
  const upload_request = { filename: 'a.txt', mime_type: 'text/plain', size_bytes }
  const ready = await client.ask({ type: 'upload_request', session_id: client.sessionId, upload_request }, 'upload_ready')
  return ready['upload_ready'] as Place
}

const put = (url: string | URL, body: string, headers: Record<string, string> = {}) => fetch(url, { method: 'PUT', body, headers })

async function refusalOf(response: Response) {
  return [response.status, await response.json()]
}

/** What a `PUT` of something that never existed gets. */
const ABSENT = [404, { error: { code: 'INVALID_MESSAGE', message: 'There is no such upload', details: { code: 'not_found' } } }]

verifies(['omnia.upload-url', 'omnia.upload-complete'], 'a PUT to the URL needs no token, and no other one is taken', async () => {
  const { url } = await startServer(demo(), { tokens })
  const alice = await OmniaClient.open(url, { headers: ALICE })
  const place = await ask(alice, 3)
  const other = await ask(alice, 3)
  const key = new URL(place.upload_url).searchParams.get('key') ?? ''
  // Of random bytes, of which each has two characters.
  expect(key).toMatch(/^[0-9a-f]{48}$/)
  expect(new URL(other.upload_url).searchParams.get('key')).not.toBe(key)
  const changed = (change: (url: URL) => void): URL => {
    const made = new URL(place.upload_url)
    change(made)
    return made
  }
  const wrong = [
    changed(({ searchParams }) => searchParams.delete('key')),
    changed(({ searchParams }) => searchParams.set('key', '')),
    changed(({ searchParams }) => searchParams.set('key', key.slice(0, -1))),
    changed(({ searchParams }) => searchParams.set('key', `${key}0`)),
    changed(({ searchParams }) =>
      searchParams.set(
        'key',
        key.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
      ),
    ),
    changed(({ searchParams }) => searchParams.set('tenant', 'another')),
    changed(({ searchParams }) => searchParams.delete('tenant')),
    // The secret of one upload is none for another.
    changed((made) => (made.pathname = `/media/upload/${other.upload_id}`)),
    changed((made) => (made.pathname = '/media/upload/upl-none')),
  ]
  for (const each of wrong) {
    expect([each.href, ...(await refusalOf(await put(each, 'one')))]).toEqual([each.href, ...ABSENT])
    // A token is no secret of the URL, not even that of its owner.
    expect(await refusalOf(await put(each, 'one', ALICE))).toEqual(ABSENT)
  }
  expect((await put(place.upload_url, 'one')).status).toBe(204)
  expect(await alice.next('upload_complete')).toMatchObject({ upload_complete: { upload_id: place.upload_id, size_bytes: 3 } })
  // Who has the URL cannot read what was uploaded with it, nor send it again.
  expect((await put(place.upload_url, 'two')).status).toBe(409)
  const file = `${url}/media/download/${place.storage_ref.replace('omnia://sessions/', '').replace('/media/', '/')}`
  expect((await fetch(file + new URL(place.upload_url).search)).status).toBe(401)
  expect(await (await fetch(file, { headers: ALICE })).text()).toBe('one')
})

verifies(
  'omnia.upload-url',
  'the secret is looked at before a byte of the body comes, and the body ends where it was announced',
  async () => {
    const { url, port } = await startServer(demo(), { tokens })
    const alice = await OmniaClient.open(url, { headers: ALICE })
    const place = await ask(alice, 100_000)
    const send = async (target: string, body: string | Uint8Array): Promise<string> => {
      const client = connect(port, '127.0.0.1')
      onTestFinished(() => void client.destroy())
      client.write(`PUT ${target} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n`)
      client.write(body)
      const [head] = (await once(client, 'data')) as [Buffer]
      return String(head).split('\r\n')[0] ?? ''
    }
    const { pathname, search } = new URL(place.upload_url)
    expect(await send(`${pathname}?tenant=default&key=wrong`, '')).toContain('404')
    const chunk = Buffer.concat([Buffer.from('186a1\r\n'), Buffer.alloc(100_001), Buffer.from('\r\n')])
    expect(await send(pathname + search, chunk)).toContain('413')
    // Nothing of that was kept, so the URL still serves.
    expect((await put(place.upload_url, 'x'.repeat(100_000))).status).toBe(204)
  },
)

test('an upload by URL counts for its owner, and not for all who have no token', async () => {
  const { url } = await startServer(demo(), { tokens, limits: { requestBurst: 5, requestsPerSecond: 1 } })
  const bob = await OmniaClient.open(url, { headers: { authorization: `Bearer ${tokens.bob}` } })
  const alice = await OmniaClient.open(url, { headers: ALICE })
  const [first, second] = [await ask(alice, 3), await ask(bob, 3)]
  const statuses: number[] = []
  for (let n = 0; n < 8; n++) statuses.push((await put(first.upload_url, 'one')).status)
  expect(statuses.slice(0, 2)).toEqual([204, 409])
  expect(statuses.at(-1)).toBe(429)
  expect((await put(second.upload_url, 'two')).status).toBe(204)
})

test('the secret of an upload URL is in no file and in no line of the log, and outlives a restart', async () => {
  const data = mkdtempSync(join(tmpdir(), 'uamp-upload-url-'))
  onTestFinished(() => rmSync(data, { recursive: true, force: true, maxRetries: 5 }))
  const before = await startServer(demo(), { data, tokens })
  const place = await ask(await OmniaClient.open(before.url, { headers: ALICE }), 3)
  const { pathname, search, searchParams } = new URL(place.upload_url)
  const key = searchParams.get('key') ?? ''
  expect((await put(before.url + pathname + search, 'more')).status).toBe(413)
  await before.close({ graceMs: 0 })
  const files = readdirSync(data, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  expect(files.length).toBeGreaterThan(0)
  for (const { parentPath, name } of files) expect(readFileSync(join(parentPath, name)).includes(key), name).toBe(false)
  const after = await startServer(demo(), { data, tokens })
  expect((await put(after.url + pathname + search, 'one')).status).toBe(204)
  expect(JSON.stringify([before.logged, after.logged])).not.toContain(key)
})
