import { expect, test } from 'vitest'
import { startServer } from '../support/server.ts'
import { demo } from './agents.ts'

const INITIALIZE = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: 1 } }
const LIST = { jsonrpc: '2.0', id: 2, method: 'session/list', params: {} }

async function server() {
  const { url } = await startServer(demo())
  const call = (method: string, body?: object, headers: Record<string, string> = {}) =>
    fetch(`${url}/acp`, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body && { body: JSON.stringify(body) }),
    })
  const initialize = async () => {
    const answer = await call('POST', INITIALIZE)
    await answer.text()
    return { status: answer.status, headers: { 'acp-connection-id': answer.headers.get('acp-connection-id') ?? '' } }
  }
  const read = async (headers: Record<string, string>) => {
    const answer = await call('GET', undefined, { ...headers, accept: 'text/event-stream' })
    expect(answer.status).toBe(200)
    return answer
  }
  /** So many at once that they neither take long nor fill the machine. */
  const repeat = async <T>(count: number, run: () => Promise<T>): Promise<T[]> => {
    const all: T[] = []
    while (all.length < count) all.push(...(await Promise.all(Array.from({ length: 50 }, run))))
    return all
  }
  const isThere = async (headers: Record<string, string>) => (await call('POST', LIST, headers)).status === 202
  return { initialize, read, isThere, repeat, call }
}

test('connections that were opened and left alone keep nobody out', async () => {
  const { initialize, read, isThere, repeat, call } = await server()
  const mine = await initialize()
  const stream = await read(mine.headers)
  const working = await initialize()
  const opened = await call('POST', { jsonrpc: '2.0', id: 3, method: 'session/new', params: { cwd: '/', mcpServers: [] } }, working.headers)
  expect(opened.status).toBe(202)
  const abandoned = await initialize()
  for (const { status } of await repeat(600, initialize)) expect(status).toBe(200)
  expect(await isThere(abandoned.headers)).toBe(false)
  // Somebody reads the one, and the other has done more than to begin.
  expect([await isThere(mine.headers), await isThere(working.headers)]).toEqual([true, true])
  const fresh = await initialize()
  expect(await isThere(fresh.headers)).toBe(true)
  await stream.body?.cancel()
})

test('connections that somebody reads stay, and beyond 500 of them no more are opened', { timeout: 60_000 }, async () => {
  const { initialize, read, repeat } = await server()
  // Whole answers, as `fetch` cancels the stream of one that nobody holds.
  const answers = await repeat(500, async () => read((await initialize()).headers))
  expect((await initialize()).status).toBe(429)
  await answers[0]?.body?.cancel()
  // The server learns of it when it does.
  await expect.poll(async () => (await initialize()).status).toBe(200)
  await Promise.all(answers.map(({ body }) => body?.cancel()))
})
