import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { demo } from '../../agents/demo/index.ts'
import { startServer } from '../../../test/support/server.ts'
import { testServer } from '../../../test/support/test-server.ts'
import type { HttpRoute } from '../../core/ports/transport.ts'

/** A client that announces more than it sends, and is gone. */
async function breakOff(port: number, path: string, header: string): Promise<void> {
  const client = connect(port, '127.0.0.1')
  await once(client, 'connect')
  client.write(`POST ${path} HTTP/1.1\r\nhost: localhost\r\n${header}\r\n\r\n5\r\nabcde\r\n`)
  // Only once the route has begun to read: before that there is nothing to break off.
  await new Promise((resolve) => setTimeout(resolve, 50))
  client.destroy()
}

const READERS: Record<string, (request: Request) => Promise<unknown>> = {
  text: (request) => request.text(),
  json: (request) => request.json(),
  bytes: (request) => request.arrayBuffer(),
  stream: async (request) => {
    for await (const _ of request.body ?? []);
  },
}

for (const header of ['content-length: 1000', 'transfer-encoding: chunked', 'content-length: 5000000']) {
  test.each(Object.keys(READERS))(`an upload that breaks off (${header}) is not our failure, read as %s`, async (name) => {
    const thrown: unknown[] = []
    const route: HttpRoute = {
      method: 'POST',
      path: '/upload',
      access: 'request',
      bodyBytes: 10_000_000,
      async handle(request) {
        try {
          await READERS[name]?.(request)
        } catch (error) {
          thrown.push(error)
          throw error
        }
        return new Response()
      },
    }
    const { port, logged, metrics } = await testServer({ routes: [route] })
    await breakOff(port, '/upload', header)
    await expect.poll(() => metrics.errors.get('test')?.get('cancelled')).toBe(1)
    expect(thrown).toHaveLength(1)
    expect(logged.filter(({ level }) => level === 'error')).toEqual([])
  })
}

const PATHS = [
  '/events',
  '/v1/chat/completions',
  '/v1/responses',
  '/a2a',
  '/a2a/rest/message:send',
  '/a2a/rest/v1/message:send',
  '/tasks',
  '/ag-ui',
  '/acp',
  '/media/request-upload',
]

test.each(PATHS)('so it is on every protocol: %s', async (path) => {
  const { port, logged } = await startServer(demo())
  for (const header of ['content-length: 1000', 'transfer-encoding: chunked'])
    await breakOff(port, path, `content-type: application/json\r\n${header}`)
  // Answered after what was broken off before.
  await fetch(`http://127.0.0.1:${port}/health`)
  expect(logged.filter(({ level }) => level === 'error')).toEqual([])
})

const MESSAGE = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: '/count 1000 100' }] }
/** Requests that are answered only when the agent has said everything. */
const WHOLE: Record<string, object> = {
  '/v1/chat/completions': { model: 'demo', messages: [{ role: 'user', content: '/count 1000 100' }] },
  '/v1/responses': { model: 'demo', input: '/count 1000 100' },
  '/a2a': { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message: MESSAGE } },
  '/a2a/rest/message:send': { message: MESSAGE },
}

test.each(Object.keys(WHOLE))('a client that leaves before its whole answer is not our failure: %s', async (path) => {
  const { url, logged, gateway } = await startServer(demo())
  const leave = new AbortController()
  const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' }
  const asked = fetch(url + path, { method: 'POST', body: JSON.stringify(WHOLE[path]), headers, signal: leave.signal })
  await expect.poll(() => gateway.openResponses).toBe(1)
  leave.abort()
  await expect(asked.then((answer) => answer.text())).rejects.toThrow()
  await new Promise((resolve) => setTimeout(resolve, 100))
  expect(logged.filter(({ level }) => level === 'error')).toEqual([])
})
