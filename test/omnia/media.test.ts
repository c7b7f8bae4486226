import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import type { OmniaOptions } from '../../src/serve/index.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { OmniaClient } from './omnia-client.ts'

const JPEG = { filename: 'photo.jpg', mime_type: 'image/jpeg' }

interface Ready {
  readonly upload_id: string
  readonly upload_url: string
  readonly storage_ref: string
  readonly expires_at: string
}

/** Asks over the socket for a place for the bytes. */
async function ready(client: OmniaClient, bytes: Uint8Array, more: object = {}): Promise<Ready> {
  const upload_request = { ...JPEG, size_bytes: bytes.length, ...more }
  return (await client.ask({ type: 'upload_request', session_id: client.sessionId, upload_request }, 'upload_ready'))[
    'upload_ready'
  ] as Ready
}

const put = (url: string, body: BodyInit, headers: Record<string, string> = {}) =>
  fetch(url, { method: 'PUT', body, headers: { 'content-type': 'image/jpeg', ...headers } })

const placeOf = ({ storage_ref }: Ready) => storage_ref.replace('omnia://sessions/', '').replace('/media/', '/')

/** A server whose agent says what it was shown. */
async function start(options: OmniaOptions = {}, tokens?: Record<string, string>) {
  const seen: unknown[] = []
  const agent = defineAgent('demo', async function* ({ messages }) {
    seen.push(messages.at(-1)?.content_items)
    yield { type: 'response.delta', delta: { type: 'text', text: 'seen' } }
  })
  const server = await startServer(agent, { omnia: options, ...(tokens && { tokens }) })
  return { ...server, seen }
}

const code = async (response: Response) => [response.status, ((await response.json()) as { error: { code: string } }).error.code]

describe('an upload', () => {
  verifies(
    ['omnia.upload-socket', 'omnia.upload-put', 'omnia.upload-complete', 'omnia.storage-ref'],
    'is asked for, sent, told to be complete, and referred to',
    async () => {
      const { url, seen } = await start()
      const client = await OmniaClient.open(url)
      // More than a body may have elsewhere.
      const bytes = randomBytes(6 * 1024 * 1024)
      const before = Date.now()
      const place = await ready(client, bytes)
      expect(place.upload_id).toMatch(/^upl-/)
      expect(place.upload_url).toMatch(`${url}/media/upload/${place.upload_id}?`)
      expect(place.storage_ref).toMatch(new RegExp(`^omnia://sessions/${client.sessionId}/media/med-`))
      expect(Date.parse(place.expires_at)).toBeGreaterThanOrEqual(before + 15 * 60_000)
      const response = await put(place.upload_url, bytes)
      expect([response.status, await response.text()]).toEqual([204, ''])
      expect(await client.next('upload_complete')).toMatchObject({
        session_id: client.sessionId,
        upload_complete: { upload_id: place.upload_id, storage_ref: place.storage_ref, size_bytes: bytes.length },
      })
      const parts = [
        { type: 'text', text: 'What is it?' },
        { type: 'image', media: { storage_ref: place.storage_ref, mime_type: 'image/jpeg' } },
        { type: 'file', media: { storage_ref: place.storage_ref, mime_type: 'image/jpeg' } },
      ]
      // Twice would be more than an agent is handed at once.
      expect((await client.fails({ type: 'message', session_id: client.sessionId, parts })).code).toBe('INVALID_MESSAGE')
      await client.say('', { parts: parts.slice(0, 2) })
      const [[text, image]] = seen as [[object, { image: string }]]
      expect(text).toEqual({ type: 'text', text: 'What is it?' })
      expect(image).toMatchObject({ type: 'image', format: 'jpeg' })
      expect(Buffer.from(image.image, 'base64').equals(bytes)).toBe(true)
    },
  )

  verifies(
    ['omnia.upload-http', 'omnia.upload-confirm', 'omnia.media-info'],
    'can be asked for over HTTP, confirmed and looked at',
    async () => {
      const { url } = await start()
      const client = await OmniaClient.open(url)
      const asked = await fetch(`${url}/media/request-upload`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ session_id: client.sessionId, ...JPEG, size_bytes: 4 }),
      })
      expect(asked.status).toBe(200)
      const place = (await asked.json()) as Ready
      const confirm = () => fetch(`${url}/media/confirm-upload/${place.upload_id}`, { method: 'POST' })
      expect(await code(await confirm())).toEqual([404, 'UPLOAD_FAILED'])
      expect(await code(await fetch(`${url}/media/info/${placeOf(place)}`))).toEqual([404, 'INVALID_MESSAGE'])
      expect((await put(place.upload_url, 'data')).status).toBe(204)
      const info = (await (await fetch(`${url}/media/info/${placeOf(place)}`)).json()) as Record<string, string>
      expect(info).toMatchObject({ ...JPEG, size_bytes: 4, storage_ref: place.storage_ref })
      expect(Date.parse(info['expires_at'] ?? '') - Date.parse(info['created_at'] ?? '')).toBe(24 * 3_600_000)
      expect(await (await confirm()).json()).toEqual(info)
    },
  )

  verifies('omnia.media-download', 'is given back, whole or a part of it', async () => {
    const { url } = await start()
    const client = await OmniaClient.open(url)
    const place = await ready(client, Buffer.from('0123456789'))
    await put(place.upload_url, '0123456789')
    const get = (range?: string, method = 'GET') =>
      fetch(`${url}/media/download/${placeOf(place)}`, { method, headers: range === undefined ? {} : { range } })
    const whole = await get()
    expect([whole.status, await whole.text()]).toEqual([200, '0123456789'])
    expect(Object.fromEntries(whole.headers)).toMatchObject({
      'content-type': 'image/jpeg',
      'content-length': '10',
      'content-disposition': `inline; filename="photo.jpg"; filename*=UTF-8''photo.jpg`,
      'accept-ranges': 'bytes',
      'x-content-type-options': 'nosniff',
    })
    const head = await get(undefined, 'HEAD')
    expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, '10', ''])
    const parts = { 'bytes=2-4': '234', 'bytes=7-': '789', 'bytes=-3': '789', 'bytes=0-0': '0', 'bytes=5-99': '56789' }
    for (const [range, expected] of Object.entries(parts)) {
      const part = await get(range)
      const at = '0123456789'.indexOf(expected)
      expect([part.status, await part.text()]).toEqual([206, expected])
      expect(part.headers.get('content-range')).toBe(`bytes ${at}-${at + expected.length - 1}/10`)
    }
    for (const range of ['bytes=10-', 'bytes=-0']) {
      const beyond = await get(range)
      expect([beyond.status, beyond.headers.get('content-range')]).toEqual([416, 'bytes */10'])
    }
    for (const range of ['bytes=1-2,4-5', 'bytes=5-2', 'lines=1-2', 'bytes=-']) expect((await get(range)).status).toBe(200)
  })

  verifies('omnia.media-download', 'a part of another version was given as one of this', async () => {
    const { url } = await start()
    const client = await OmniaClient.open(url)
    const place = await ready(client, Buffer.from('0123456789'))
    await put(place.upload_url, '0123456789')
    const get = (headers: Record<string, string>) => fetch(`${url}/media/download/${placeOf(place)}`, { headers })
    const etag = (await get({})).headers.get('etag') ?? ''
    const part = await get({ range: 'bytes=2-4', 'if-range': etag })
    expect([part.status, await part.text()]).toEqual([206, '234'])
    for (const other of ['"other"', `W/${etag}`, 'Sat, 29 Oct 1994 19:43:31 GMT']) {
      const whole = await get({ range: 'bytes=2-4', 'if-range': other })
      expect([whole.status, await whole.text()]).toEqual([200, '0123456789'])
    }
    expect((await get({ range: 'bytes=99-', 'if-range': '"other"' })).status).toBe(200)
  })

  test('of many that bring its bytes at once one is read, and the others are refused', async () => {
    const data = mkdtempSync(join(tmpdir(), 'uamp-test-'))
    onTestFinished(() => rmSync(data, { recursive: true, force: true, maxRetries: 5 }))
    const { url } = await startServer(demo(), { data })
    const { upload_url } = await ready(await OmniaClient.open(url), Buffer.alloc(200_000))
    // Each has sent all but its last byte, and stands still.
    const sent = Array.from({ length: 30 }, () => {
      const sending = request(upload_url, { method: 'PUT', headers: { 'content-length': 200_000 } })
      // One that still writes when it is refused may find its connection closed before it reads why.
      const status = new Promise<number | undefined>((resolve) => {
        sending.on('error', () => resolve(409)).on('response', (response) => resolve(response.resume().statusCode))
      })
      sending.write(Buffer.alloc(199_999))
      return { sending, status }
    })
    const settled: (number | undefined)[] = []
    for (const { status } of sent) void status.then((code) => settled.push(code))
    await expect.poll(() => settled, { timeout: 10_000 }).toEqual(Array.from({ length: 29 }, () => 409))
    expect(readdirSync(join(data, 'blobs'))).toHaveLength(1)
    for (const { sending } of sent) sending.end(Buffer.alloc(1))
    await expect.poll(() => settled.at(-1), { timeout: 10_000 }).toBe(204)
    expect(readdirSync(join(data, 'blobs'))).toHaveLength(1)
  })

  test('what browsers record had no type', async () => {
    const { url } = await start()
    const client = await OmniaClient.open(url)
    const types = [
      'video/webm;codecs=vp8,opus',
      'video/webm; codecs="vp8, opus"',
      'audio/webm;codecs=opus',
      'audio/mp4; codecs="mp4a.40.2"',
      'text/plain; charset="utf-8"',
      'text/plain ; charset=utf-8;\tx="a \\"quoted\\" word"',
    ]
    for (const mime_type of types) {
      const place = await ready(client, Buffer.alloc(3), { mime_type })
      expect((await put(place.upload_url, 'abc')).status).toBe(204)
      expect((await fetch(`${url}/media/download/${placeOf(place)}`)).headers.get('content-type')).toBe(mime_type)
    }
  })

  test('that came slowly was cut', async () => {
    const send = async (requestTimeoutMs: number, pieces: readonly string[]): Promise<number | undefined> => {
      const { url } = await startServer(demo(), { limits: { headersTimeoutMs: 50, requestTimeoutMs } })
      const { upload_url } = await ready(await OmniaClient.open(url), Buffer.alloc(10))
      return new Promise((resolve, reject) => {
        const slow = request(upload_url, { method: 'PUT', headers: { 'content-length': 10 } }, ({ statusCode }) => resolve(statusCode))
        slow.on('error', reject)
        for (const [index, piece] of pieces.entries()) setTimeout(() => slow.write(piece), index * 150)
      })
    }
    expect(await send(60_000, ['01', '23', '456789'])).toBe(204)
    expect(await send(200, ['01'])).toBe(408)
  })

  test('that a browser would run is saved instead, under its own name', async () => {
    const { url } = await start()
    const client = await OmniaClient.open(url)
    const place = await ready(client, Buffer.from('<script>'), { filename: 'ü "x".html', mime_type: 'text/html' })
    await put(place.upload_url, '<script>')
    const { headers } = await fetch(`${url}/media/download/${placeOf(place)}`)
    expect(headers.get('content-disposition')).toBe(`attachment; filename="_ _x_.html"; filename*=UTF-8''%C3%BC%20%22x%22.html`)
    expect(headers.get('content-security-policy')).toContain('sandbox')
  })

  verifies('omnia.upload-size', 'takes no more than was announced, and no less', async () => {
    const { url } = await start()
    const client = await OmniaClient.open(url)
    const place = await ready(client, Buffer.alloc(10))
    expect(await code(await put(place.upload_url, 'x'.repeat(11)))).toEqual([413, 'UPLOAD_FAILED'])
    expect(await code(await put(place.upload_url, 'x'.repeat(9)))).toEqual([400, 'UPLOAD_FAILED'])
    // Nothing of it was kept.
    expect(await code(await fetch(`${url}/media/download/${placeOf(place)}`))).toEqual([404, 'INVALID_MESSAGE'])
    expect((await put(place.upload_url, 'x'.repeat(10))).status).toBe(204)
  })

  verifies('omnia.upload-size', 'is cut while it comes', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'uamp-omnia-'))
    onTestFinished(() => rmSync(folder, { recursive: true, maxRetries: 5 }))
    const { url } = await startServer(demo(), { data: folder })
    const client = await OmniaClient.open(url)
    const place = await ready(client, Buffer.alloc(100_000))
    const status = await new Promise<number | undefined>((resolve, reject) => {
      // Without a length, and without an end.
      const endless = request(place.upload_url, { method: 'PUT' }, (response) => {
        resolve(response.statusCode)
        endless.destroy()
      })
      endless.on('error', reject)
      const write = (): void => void endless.write(Buffer.alloc(50_000), (error) => !error && !endless.destroyed && setImmediate(write))
      write()
    })
    expect(status).toBe(413)
    await expect.poll(() => readdirSync(join(folder, 'blobs'))).toEqual([])
    expect((await put(place.upload_url, Buffer.alloc(100_000))).status).toBe(204)
    expect(readdirSync(join(folder, 'blobs'))).toHaveLength(1)
  })

  verifies('omnia.upload-size', 'that would be too large is refused when it is asked for', async () => {
    const { url } = await start({ limits: { uploadBytes: 1000 } })
    const client = await OmniaClient.open(url)
    const upload_request = { ...JPEG, size_bytes: 1001 }
    expect(await client.fails({ type: 'upload_request', upload_request })).toMatchObject({
      code: 'UPLOAD_FAILED',
      details: { code: 'too_large' },
    })
    const body = JSON.stringify({ session_id: client.sessionId, ...upload_request })
    expect(await code(await fetch(`${url}/media/request-upload`, { method: 'POST', body }))).toEqual([413, 'UPLOAD_FAILED'])
  })

  verifies('omnia.upload-once', 'is not replaced', async () => {
    const { url } = await start()
    const client = await OmniaClient.open(url)
    const place = await ready(client, Buffer.alloc(3))
    expect((await put(place.upload_url, 'one')).status).toBe(204)
    expect(await code(await put(place.upload_url, 'two'))).toEqual([409, 'UPLOAD_FAILED'])
    expect(await (await fetch(`${url}/media/download/${placeOf(place)}`)).text()).toBe('one')
  })

  verifies('omnia.upload-expiry', 'can be sent for a while, and is kept for a while', async () => {
    const late = await start({ limits: { uploadMs: 1 } })
    const client = await OmniaClient.open(late.url)
    const place = await ready(client, Buffer.alloc(3))
    await expect.poll(() => Date.now() > Date.parse(place.expires_at)).toBe(true)
    expect(await code(await put(place.upload_url, 'one'))).toEqual([410, 'UPLOAD_FAILED'])

    const { url } = await start({ limits: { mediaMs: 2_000 } })
    const other = await OmniaClient.open(url)
    const kept = await ready(other, Buffer.alloc(3))
    expect((await put(kept.upload_url, 'one')).status).toBe(204)
    const download = () => fetch(`${url}/media/download/${placeOf(kept)}`)
    await expect.poll(async () => (await download()).status, { timeout: 10_000 }).toBe(410)
    const parts = [{ type: 'image', media: { storage_ref: kept.storage_ref, mime_type: 'image/jpeg' } }]
    expect((await other.fails({ type: 'message', session_id: other.sessionId, parts })).code).toBe('INVALID_MESSAGE')
  })

  verifies('omnia.storage-ref-owner', 'is there for its owner alone, and in its session alone', async () => {
    const { url, seen } = await start({}, { alice: 'a-0123456789abcdef', bob: 'b-0123456789abcdef' })
    const [a, b] = [{ authorization: 'Bearer a-0123456789abcdef' }, { authorization: 'Bearer b-0123456789abcdef' }]
    const alice = await OmniaClient.open(url, { headers: a })
    const place = await ready(alice, Buffer.alloc(3))
    expect((await put(place.upload_url, 'one')).status).toBe(204)
    for (const what of ['info', 'download']) {
      expect((await fetch(`${url}/media/${what}/${placeOf(place)}`, { headers: b })).status).toBe(404)
      expect((await fetch(`${url}/media/${what}/${placeOf(place)}`, { headers: a })).status).toBe(200)
      const elsewhere = placeOf(place).replace(alice.sessionId, 'other')
      expect((await fetch(`${url}/media/${what}/${elsewhere}`, { headers: a })).status).toBe(404)
    }
    expect((await fetch(`${url}/media/confirm-upload/${place.upload_id}`, { method: 'POST', headers: b })).status).toBe(404)

    const parts = [{ type: 'image', media: { storage_ref: place.storage_ref, mime_type: 'image/jpeg' } }]
    const bob = await OmniaClient.open(url, { headers: b })
    const second = await OmniaClient.open(url, { headers: a })
    for (const client of [bob, second]) {
      expect(await client.fails({ type: 'message', session_id: client.sessionId, parts })).toMatchObject({ code: 'INVALID_MESSAGE' })
      const renamed = [
        { type: 'image', media: { storage_ref: place.storage_ref.replace(alice.sessionId, client.sessionId), mime_type: 'image/jpeg' } },
      ]
      expect(await client.fails({ type: 'message', session_id: client.sessionId, parts: renamed })).toMatchObject({
        code: 'INVALID_MESSAGE',
      })
    }
    expect(seen).toEqual([])
    await alice.say('', { parts })
    expect(seen).toHaveLength(1)
  })

  test('one principal has so many', async () => {
    const { url } = await start({ limits: { uploadsPerPrincipal: 2 } })
    const client = await OmniaClient.open(url)
    for (let count = 0; count < 2; count++) await ready(client, Buffer.alloc(3))
    expect((await client.fails({ type: 'upload_request', upload_request: { ...JPEG, size_bytes: 3 } })).code).toBe('RATE_LIMITED')
  })

  verifies('omnia.upload-http', 'for a session under the name that its client knows was refused', async () => {
    const { url } = await start()
    const client = await OmniaClient.open(url)
    await client.say('hi', { session_id: 'sess-of-yesterday' })
    const body = JSON.stringify({ session_id: 'sess-of-yesterday', ...JPEG, size_bytes: 3 })
    const asked = await fetch(`${url}/media/request-upload`, { method: 'POST', body })
    const place = (await asked.json()) as Ready
    expect([asked.status, place.storage_ref]).toEqual([200, expect.stringContaining(client.sessionId)])
    await put(place.upload_url, 'abc')
    await client.say('', { parts: [{ type: 'image', media: { storage_ref: place.storage_ref, mime_type: 'image/jpeg' } }] })
  })

  verifies('omnia.upload-http', 'for a session that is not there is refused', async () => {
    const { url } = await start()
    const body = JSON.stringify({ session_id: 'none', ...JPEG, size_bytes: 3 })
    expect(await code(await fetch(`${url}/media/request-upload`, { method: 'POST', body }))).toEqual([404, 'SESSION_NOT_FOUND'])
  })

  verifies('omnia.media-off', 'is not possible without storage', async () => {
    const { blobs: _, ...off } = { blobs: undefined }
    const { url } = await startServer(demo(), { omnia: { ...off, blobs: undefined as never } })
    const client = await OmniaClient.open(url)
    const upload_request = { ...JPEG, size_bytes: 3 }
    expect((await client.fails({ type: 'upload_request', upload_request })).code).toBe('MEDIA_NOT_ENABLED')
    const parts = [{ type: 'image', media: { storage_ref: 'omnia://sessions/a/media/med-b', mime_type: 'image/jpeg' } }]
    expect((await client.fails({ type: 'message', parts })).code).toBe('MEDIA_NOT_ENABLED')
    const body = JSON.stringify({ session_id: client.sessionId, ...upload_request })
    expect(await code(await fetch(`${url}/media/request-upload`, { method: 'POST', body }))).toEqual([501, 'MEDIA_NOT_ENABLED'])
  })
})
