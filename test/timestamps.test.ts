import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { demo } from '../src/agents/demo/index.ts'
import { serve } from '../src/serve/index.ts'
import { startServer } from './support/server.ts'
import { say } from './support/talk.ts'
import { verifies } from './support/verifies.ts'
import { overSse, overWebSocket } from './support/wire.ts'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'uamp-timestamps-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** The data lines of a stream of events until the end of its response. */
async function linesOf(stream: Response): Promise<string[]> {
  let text = ''
  for await (const bytes of stream.body as ReadableStream<Uint8Array>) {
    text += new TextDecoder().decode(bytes)
    if (/"type":"response\.done".*\n\n/.test(text)) break
  }
  return text.split('\n').filter((line) => line.startsWith('data: ') && line.includes('"seq":'))
}

const replay = async (url: string, session: string): Promise<string[]> =>
  linesOf(await fetch(`${url}/events/stream?after=0`, { headers: { 'x-session-id': session } }))

/** Opens a session and hears an answer that is told in many commits. */
async function live(url: string): Promise<{ session: string; lines: string[] }> {
  const body = [{ type: 'session.create' }, { type: 'input.text', text: '/count 100 3' }, { type: 'response.create' }]
  const stream = await fetch(`${url}/events`, {
    method: 'POST',
    headers: { accept: 'text/event-stream' },
    body: JSON.stringify(body),
  })
  return { session: stream.headers.get('x-session-id') as string, lines: await linesOf(stream) }
}

const timesOf = (lines: readonly string[]): number[] => lines.map((line) => (JSON.parse(line.slice(6)) as { timestamp: number }).timestamp)

describe.each([
  ['WebSocket', overWebSocket],
  ['SSE', overSse],
] as const)('over %s', (_, connect) => {
  verifies('uamp:events:timestamp-stamped', 'every event tells when it happened', async () => {
    const { url } = await startServer(demo())
    const before = Date.now()
    const wire = await connect(url)
    const session = await wire.open()
    await say(wire, '/tool add 1 2')
    await wire.send({ type: 'ping', session_id: session })
    await wire.next(({ type }) => type === 'pong')
    const after = Date.now()
    for (const event of wire.heard) {
      expect(event['timestamp'], event.type).toSatisfy((time) => Number.isInteger(time) && time >= before && time <= after)
    }
  })
})

verifies('uamp:events:timestamp-replayed', 'what is told again has the same bytes, also from the store and after a restart', async () => {
  const data = folder()
  const first = await serve(demo(), { port: 0, data, log: () => undefined })
  const { session, lines } = await live(first.url).finally(() => undefined)
  const fromMemory = await replay(first.url, session)
  await first.close({ graceMs: 0 })
  const second = await serve(demo(), { port: 0, data, log: () => undefined })
  onTestFinished(() => second.close({ graceMs: 0 }))
  const fromStore = await replay(second.url, session)
  expect(lines.length).toBeGreaterThan(100)
  expect(fromMemory).toEqual(lines)
  expect(fromStore).toEqual(lines)
  const times = timesOf(lines)
  expect(times).toEqual(times.toSorted((one, other) => one - other))
  // The answer takes about 300 ms, and a commit gathers 40 of them.
  expect(new Set(times).size).toBeGreaterThan(3)
  expect(new Set(times).size).toBeLessThan(times.length / 2)
})

test('a refusal outside any session tells it too', async () => {
  const { url } = await startServer(demo())
  const before = Date.now()
  const wire = await overWebSocket(url)
  await wire.send({ type: 'input.text', text: 'no session' })
  const refused = await wire.next(({ type }) => type === 'response.error' || type === 'session.error')
  expect(refused['timestamp']).toBeGreaterThanOrEqual(before)
})
