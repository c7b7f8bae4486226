/** Media that an agent streams: it comes in pieces, and `done` says where the whole is found. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import type { Draft } from '../../src/protocol/events.ts'
import { memoryBlobs } from '../../src/stores/memory-blobs.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { flags, OmniaClient, type Heard, type HeardFrame } from './omnia-client.ts'

const tokens = { alice: 'alice-0123456789abcdef', bob: 'bob-0123456789abcdef' }
const ALICE = { authorization: `Bearer ${tokens.alice}` }
const BOB = { authorization: `Bearer ${tokens.bob}` }
/** The header of a WAV file. */
const WAV = 44

function speaker(drafts: readonly Draft[]) {
  const agent = async function* () {
    yield* drafts
  }
  return defineAgent('demo', agent, { capabilities: { modalities: ['text', 'audio', 'video'] } })
}

const chunksIn = (messages: readonly Heard[]) =>
  messages.flatMap((message) => (message.type === 'media_chunk' ? [message['media_chunk'] as Heard['media_chunk']] : []))
const joined = (chunks: readonly { data: string }[]) => Buffer.concat(chunks.map(({ data }) => Buffer.from(data, 'base64')))
/** The part of `done` that is of this type, if there is one. */
const partOf = (done: Heard | undefined, type: string) =>
  (done?.['parts'] as { type: string; media: Record<string, string> }[] | undefined)?.find((part) => part.type === type)?.media

describe('speech', () => {
  verifies('omnia.replay', 'that was streamed is found again, whole, by its owner alone', async () => {
    const { url } = await startServer(demo(), { tokens })
    const client = await OmniaClient.open(url, { headers: ALICE })
    const answer = await client.say('/audio 0.3')
    const media = partOf(answer.at(-1), 'audio')
    expect(media).toEqual({
      url: expect.stringContaining(`${url}/media/download/${client.sessionId}/`),
      mime_type: 'audio/wav',
      duration_ms: 300,
    })
    expect(answer.at(-1)?.['parts'][0]).toEqual({ type: 'text', text: 'A tone of 0.3 s.' })
    const file = await fetch(media?.['url'] ?? '', { headers: ALICE })
    expect([file.status, file.headers.get('content-type')]).toEqual([200, 'audio/wav'])
    const bytes = Buffer.from(await file.arrayBuffer())
    expect(bytes.subarray(WAV).equals(joined(chunksIn(answer)))).toBe(true)
    expect((await fetch(media?.['url'] ?? '', { headers: { ...ALICE, range: 'bytes=0-3' } })).status).toBe(206)
    expect((await fetch(media?.['url'] ?? '', { headers: BOB })).status).toBe(404)
    expect((await fetch(media?.['url'] ?? '')).status).toBe(401)
    // It is no upload: nobody can send bytes to it.
    const id = media?.['url']?.replace(/.*med-/, '')
    expect((await fetch(`${url}/media/upload/upl-${id}?tenant=default&key=`, { method: 'PUT', body: 'x' })).status).toBe(404)
  })

  verifies('omnia.replay', 'is kept once for all connections of its session, and over a restart', async () => {
    const data = mkdtempSync(join(tmpdir(), 'uamp-replays-'))
    onTestFinished(() => rmSync(data, { recursive: true, force: true, maxRetries: 5 }))
    const first = await startServer(demo(), { data })
    const client = await OmniaClient.open(first.url)
    await client.say('hello')
    const other = await OmniaClient.open(first.url, { path: `/omnia?agent=demo&resume=${client.sessionId}` })
    // What this one missed.
    expect((await other.next('done'))['content']).toBe('You said: hello')
    const told = (await client.say('/audio 0.1')).at(-1)
    const place = partOf(told, 'audio')?.['url'] ?? ''
    expect(partOf(await other.next('done'), 'audio')?.['url']).toBe(place)
    const before = await (await fetch(place)).arrayBuffer()
    await first.close({ graceMs: 0 })
    const second = await startServer(demo(), { data })
    const after = await (await fetch(second.url + new URL(place).pathname)).arrayBuffer()
    expect(Buffer.from(after).equals(Buffer.from(before))).toBe(true)
    expect(before.byteLength).toBe(WAV + 0.1 * 48_000)
  })

  verifies('omnia.replay', 'is told without a place where nothing is kept', async () => {
    const { url } = await startServer(demo(), { omnia: { blobs: undefined as never } })
    const client = await OmniaClient.open(url)
    const answer = await client.say('/audio 0.3')
    expect(chunksIn(answer)).toHaveLength(3)
    expect(answer.at(-1)).not.toHaveProperty('parts')
  })

  test('that is too long, or one too many, or finds no room, is told without a place, and takes none from uploads', async () => {
    const placesOf = async (omnia: object, ...said: string[]) => {
      const server = await startServer(demo(), { omnia })
      const client = await OmniaClient.open(server.url)
      const places: boolean[] = []
      for (const each of said) places.push(partOf((await client.say(each)).at(-1), 'audio') !== undefined)
      return { places, client, logged: server.logged }
    }
    const long = await placesOf({ limits: { uploadBytes: 10_000 } }, '/audio 0.3', '/audio 0.1')
    expect(long.places).toEqual([false, true])
    const many = await placesOf({ limits: { uploadsPerPrincipal: 1 } }, '/audio 0.1', '/audio 0.1')
    expect(many.places).toEqual([true, false])
    const upload_request = { filename: 'a.txt', mime_type: 'text/plain', size_bytes: 3 }
    await many.client.ask({ type: 'upload_request', session_id: many.client.sessionId, upload_request }, 'upload_ready')
    const full = await placesOf({ blobs: memoryBlobs({ mostBytes: 1000 }) }, '/audio 0.1')
    expect(full.places).toEqual([false])
    expect(full.logged).toContainEqual(expect.objectContaining({ level: 'warn', message: 'Streamed media could not be kept' }))
  })

  verifies('omnia.replay', 'is kept for as long as uploads are', async () => {
    const { url } = await startServer(demo(), { omnia: { limits: { mediaMs: 1_000 } } })
    const client = await OmniaClient.open(url)
    const place = partOf((await client.say('/audio 0.1')).at(-1), 'audio')?.['url'] ?? ''
    expect((await fetch(place)).status).toBe(200)
    await expect.poll(async () => (await fetch(place)).status, { timeout: 10_000 }).toBe(410)
  })
})

describe('a video', () => {
  const film = randomBytes(150_000)
  const video: Draft = { type: 'response.delta', delta: { type: 'video', video: film.toString('base64'), format: 'mp4', content_id: 'v' } }
  const words: Draft = { type: 'response.delta', delta: { type: 'text', text: 'Look.' } }

  verifies(['omnia.media-chunk', 'omnia.replay'], 'comes in pieces, each of which can be decoded, and is found again', async () => {
    const { url } = await startServer(speaker([video, words]))
    const client = await OmniaClient.open(url)
    const answer = await client.say('go')
    const chunks = chunksIn(answer)
    expect(chunks.map(({ sequence, is_last, mime_type }) => [sequence, is_last, mime_type])).toEqual([
      [0, false, 'video/mp4'],
      [1, false, 'video/mp4'],
      [2, false, 'video/mp4'],
      [3, true, 'video/mp4'],
    ])
    expect(new Set(chunks.map(({ media_id }) => media_id as string)).size).toBe(1)
    expect(joined(chunks).equals(film)).toBe(true)
    const media = partOf(answer.at(-1), 'video')
    expect(media).toEqual({ url: expect.any(String), mime_type: 'video/mp4' })
    expect(Buffer.from(await (await fetch(media?.['url'] ?? '')).arrayBuffer()).equals(film)).toBe(true)
  })

  verifies(['omnia.binary-out', 'omnia.media-chunk'], 'comes as binary frames to who wants these', async () => {
    const { url } = await startServer(speaker([video, words]))
    const client = await OmniaClient.open(url, { path: '/omnia?agent=demo&binary=true' })
    await client.say('go')
    const frames = client.heard.filter((each): each is HeardFrame => each.type === 'binary')
    expect(frames.map((each) => [each.sequence, each.flags])).toEqual([
      [0, 0],
      [1, 0],
      [2, 0],
      [3, flags.last],
    ])
    expect(frames[0]?.meta).toEqual({ session_id: client.sessionId, mime_type: 'video/mp4' })
    expect(Buffer.concat(frames.map(({ payload }) => payload)).equals(film)).toBe(true)
  })

  test('is in done itself where nothing is kept, and one that is elsewhere is told by its address alone', async () => {
    const off = await startServer(speaker([video, words]), { omnia: { blobs: undefined as never } })
    const done = (await (await OmniaClient.open(off.url)).say('go')).at(-1)
    expect(partOf(done, 'video')).toEqual({ data: film.toString('base64'), mime_type: 'video/mp4' })
    const there = { type: 'video', video: { url: 'https://example.com/film.mp4' }, content_id: 'v' } as const
    const elsewhere = await startServer(speaker([{ type: 'response.delta', delta: there }, words]))
    const answer = await (await OmniaClient.open(elsewhere.url)).say('go')
    expect(chunksIn(answer)).toEqual([])
    expect(partOf(answer.at(-1), 'video')).toEqual({ url: 'https://example.com/film.mp4', mime_type: 'video/mp4' })
  })
})
