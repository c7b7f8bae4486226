import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { demo } from '../src/agents/demo/index.ts'
import { startServer } from './support/server.ts'

/** Not closed: parsed first, it would be refused for that, after a second in which nobody is served. */
const DEEP = '['.repeat(100_000)

/** 4 MB of a million objects: parsed first, they hold up everybody for seconds. Not closed either. */
const DENSE = `[${'{},'.repeat(1_390_000)}`

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

test.each(ROUTES)('POST %s refuses what has too many members before it is parsed', async (path, headers = {}) => {
  const { url } = await startServer(demo())
  for (const body of [DENSE, `{"id":1,"jsonrpc":"2.0","method":"x","params":${DENSE}`]) {
    const response = await fetch(url + path, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } })
    expect([path, response.status < 500, await response.text()]).toEqual([path, true, expect.stringContaining('members')])
  }
})

const SOCKETS = ['/uamp', '/ws', '/acp', '/v1/realtime?model=demo', '/v1/responses', '/omnia?agent=demo']

test.each(SOCKETS)('a message to %s that is too much to be parsed is refused before it is', async (path) => {
  const { url } = await startServer(demo())
  for (const [much, told] of [
    [DEEP, 'levels'],
    [DENSE, 'members'],
    // Omnia takes messages of 16 MB, for media.
    ...(path.startsWith('/omnia') ? [[DENSE.repeat(3), 'members'] as const] : []),
  ] as const) {
    const socket = new WebSocket(url.replace('http', 'ws') + path)
    const heard: string[] = []
    socket.on('message', (data) => heard.push(String(data)))
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
    socket.send(`{"type":"x","params":${much}`)
    await expect.poll(() => heard.join('\n')).toContain(told)
    socket.terminate()
  }
})

test('what is large and has few members is taken', async () => {
  const { url } = await startServer(demo())
  const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(3_000_000)}` } }
  // As many messages as a conversation may have, with all that belongs to one.
  const message = {
    role: 'user',
    name: 'n',
    content: [
      { type: 'text', text: 'a, {b}, [c]' },
      { type: 'text', text: ',' },
    ],
  }
  const messages = [...Array.from({ length: 8_000 }, () => message), { role: 'user', content: [image, { type: 'text', text: 'hi' }] }]
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: 'demo', messages }),
    headers: { 'content-type': 'application/json' },
  })
  expect([response.status, (await response.text()).slice(0, 200)]).toEqual([200, expect.any(String)])
})
