/** What many requests for uploads, and messages that refer to them, can take at once. */
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { startServer } from '../support/server.ts'
import { OmniaClient } from './omnia-client.ts'

const MIB = 1024 * 1024
const JPEG = { filename: 'photo.jpg', mime_type: 'image/jpeg' }

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'uamp-uploads-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

const ask = (url: string, session_id: string, size_bytes: number): Promise<Response> =>
  fetch(`${url}/media/request-upload`, { method: 'POST', body: JSON.stringify({ ...JPEG, session_id, size_bytes }) })

test('of uploads that are asked for at once, as many are granted as one principal may have', async () => {
  const { url, port } = await startServer(demo(), { data: folder(), omnia: { limits: { uploadsPerPrincipal: 5 } } })
  const { sessionId } = await OmniaClient.open(url)
  const body = JSON.stringify({ ...JPEG, session_id: sessionId, size_bytes: 3 })
  const request = `POST /media/request-upload HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${body.length}\r\n\r\n${body}`
  const client = connect(port, '127.0.0.1')
  onTestFinished(() => void client.destroy())
  let heard = ''
  client.setEncoding('latin1').on('data', (chunk: string) => (heard += chunk))
  const answers = (): string[] => heard.match(/HTTP\/1\.1 \d+/g) ?? []
  client.write(request)
  await expect.poll(answers).toHaveLength(1)
  // In one piece, so that all are looked at before the first is granted.
  client.write(request.repeat(60))
  await expect.poll(answers).toHaveLength(61)
  expect(answers().filter((answer) => answer.endsWith('200')).length).toBeLessThanOrEqual(5)
  // Nobody is in the way of those that are asked for later.
  for (let n = 0; n < 5; n++) await ask(url, sessionId, 3)
  const later = await ask(url, sessionId, 3)
  expect(later.status).toBe(429)
})

test('an upload counts as held memory while it is read for a message', async () => {
  const { url } = await startServer(demo(), { limits: { heldBytesPerPrincipal: 8 * MIB } })
  const client = await OmniaClient.open(url)
  const refer = async (bytes: number) => {
    const place = (await (await ask(url, client.sessionId, bytes)).json()) as { upload_url: string; storage_ref: string }
    expect((await fetch(place.upload_url, { method: 'PUT', body: Buffer.alloc(bytes) })).status).toBe(204)
    const { storage_ref } = place
    return { session_id: client.sessionId, parts: [{ type: 'image', media: { storage_ref, mime_type: 'image/jpeg' } }] }
  }
  // Its bytes, the same in one piece, and their base64.
  const { message } = await client.fails({ type: 'message', ...(await refer(3 * MIB)) })
  expect(message).toContain('too much in memory')
  await client.say('', await refer(MIB))
})
