import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { demo } from '../src/agents/demo/index.ts'
import { startServer } from './support/server.ts'

/** Not closed: parsed first, it would be refused for that, after a second in which nobody is served. */
const DEEP = '['.repeat(100_000)

const ROUTES: [path: string, headers?: Record<string, string>][] = [
  ['/events'],
  ['/acp'],
  ['/ag-ui'],
  ['/v1/chat/completions'],
  ['/v1/responses'],
  ['/a2a', { 'a2a-version': '1.0' }],
  ['/a2a', { 'a2a-version': '0.3' }],
  ['/a2a'],
  ['/a2a/rest/message:send', { 'a2a-version': '1.0' }],
  ['/a2a/rest/v1/message:send'],
  ['/tasks'],
  ['/media/request-upload'],
]

test.each(ROUTES)('POST %s refuses what nests too deep before it is parsed', async (path, headers = {}) => {
  const { url } = await startServer(demo())
  for (const body of [DEEP, `{"id":1,"jsonrpc":"2.0","method":"x","params":${DEEP}`]) {
    const response = await fetch(url + path, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } })
    expect([path, response.status < 500, await response.text()]).toEqual([path, true, expect.stringContaining('levels')])
  }
})

const SOCKETS = ['/uamp', '/ws', '/acp', '/v1/realtime?model=demo', '/v1/responses', '/omnia?agent=demo']

test.each(SOCKETS)('a message to %s that nests too deep is refused before it is parsed', async (path) => {
  const { url } = await startServer(demo())
  const socket = new WebSocket(url.replace('http', 'ws') + path)
  const heard: string[] = []
  socket.on('message', (data) => heard.push(String(data)))
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
  socket.send(`{"type":"x","params":${DEEP}`)
  await expect.poll(() => heard.join('\n')).toContain('levels')
  socket.terminate()
})
