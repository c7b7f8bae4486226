/** A server with a certificate, as clients see it that nobody here wrote. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { get } from 'node:https'
import type { IncomingMessage } from 'node:http'
import { connect as connectTls } from 'node:tls'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { demo } from '../../src/agents/demo/index.ts'
import { Authority } from '../support/certificates.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'

const run = promisify(execFile)
const authority = new Authority()
const tls = authority.issue()

const start = () => startServer(demo(), { tls })

async function curl(...args: string[]): Promise<string> {
  return (await run('curl', ['-sS', '-N', '--cacert', authority.cert, ...args])).stdout
}

const ASKED = JSON.stringify([{ type: 'session.create' }, { type: 'input.text', text: '/count 5' }, { type: 'response.create' }])
const COMPLETION = JSON.stringify({ model: 'demo', stream: true, messages: [{ role: 'user', content: '/count 5' }] })

verifies(
  ['tls.alpn', 'tls.transports'],
  'curl gets HTTP/2 and HTTP/1.1 on one port, with streams of events and of completions',
  async () => {
    const { url } = await start()
    for (const [flag, version] of [
      ['--http2', '2'],
      ['--http1.1', '1.1'],
    ] as const) {
      // prettier-ignore
      expect(await curl(flag, `${url}/health`, '-w', '%{http_version}')).toBe(`{"status":"ok"}${version}`)
      const events = await curl(flag, `${url}/events`, '-d', ASKED, '-H', 'accept: text/event-stream')
      expect(events).toContain('"type":"response.done"')
      expect(events.match(/"delta":\{"type":"text"/g)).toHaveLength(5)
      const completion = await curl(flag, `${url}/v1/chat/completions`, '-d', COMPLETION, '-H', 'content-type: application/json')
      expect(completion).toMatch(/data: \[DONE\]\n\n$/)
    }
    // Who names no protocol speaks HTTP/1.1.
    expect(await curl('--no-alpn', `${url}/health`, '-w', '%{http_version}')).toBe('{"status":"ok"}1.1')
  },
)

verifies('tls.version', 'TLS 1.2 is refused', async () => {
  const { url, port } = await start()
  await expect(curl('--tls-max', '1.2', `${url}/health`)).rejects.toThrow(/protocol version|alert/)
  const socket = connectTls({ port, host: '127.0.0.1', ca: authority.pem, servername: 'localhost' })
  await once(socket, 'secureConnect')
  expect(socket.getProtocol()).toBe('TLSv1.3')
  socket.destroy()
})

verifies('tls.https', 'addresses in answers are https, even if the request says otherwise', async () => {
  const { url } = await start()
  for (const flag of ['--http2', '--http1.1']) {
    const card = JSON.parse(await curl(flag, `${url}/.well-known/agent-card.json`)) as { supportedInterfaces: { url: string }[] }
    expect(card.supportedInterfaces.map((each) => each.url)).toEqual(card.supportedInterfaces.map(() => expect.stringMatching(/^https:/)))
  }
  const session = connectHttp2(url, { ca: authority.pem })
  onTestFinished(() => session.destroy())
  const request = session.request({ ':path': '/.well-known/agent-card.json', ':scheme': 'http' })
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += String(chunk)
  expect(text).toContain(`"${url}/a2a"`)
  expect(text).not.toContain('http://127.0.0.1')
})

test('https of Node and a WebSocket of ws need nothing but the certificate of the authority', async () => {
  const { url, port } = await start()
  const [response] = (await once(get(`${url}/health`, { ca: authority.pem }), 'response')) as [IncomingMessage]
  expect([response.statusCode, response.httpVersion]).toEqual([200, '1.1'])
  response.resume()
  const socket = new WebSocket(`wss://localhost:${port}/uamp`, { ca: authority.pem })
  onTestFinished(() => socket.terminate())
  await once(socket, 'open')
  socket.send(JSON.stringify({ type: 'session.create', uamp_version: '1.0', session: { modalities: ['text'] } }))
  const [message] = (await once(socket, 'message')) as [Buffer]
  expect(JSON.parse(message.toString())).toMatchObject({ type: 'session.created' })
})

test('each request has its id, and a line in the log of requests', async () => {
  const { url, logged } = await startServer(demo(), { tls, accessLog: true })
  const headers = await curl('--http2', '-i', `${url}/agents`, '-H', 'x-request-id: mine-1')
  expect(headers).toMatch(/^x-request-id: mine-1\r$/m)
  await expect.poll(() => logged).toContainEqual({ level: 'info', message: 'Request', fields: expect.objectContaining({ method: 'GET', path: '/agents', status: 200, request_id: 'mine-1' }) }) // prettier-ignore
  expect(await curl('--http2', `${url}/metrics`)).toContain(
    'uamp_http_requests_total{transport="server",route="/agents",method="GET",status="200"} 1',
  )
})

test('a page of another origin is refused, and one of this machine is let in', async () => {
  const { url } = await start()
  const status = (origin: string) => curl('--http2', '-o', '/dev/null', '-w', '%{http_code}', `${url}/agents`, '-H', `origin: ${origin}`)
  expect([await status('https://evil.example'), await status('https://localhost:1')]).toEqual(['403', '200'])
  expect(await curl('--http2', '-o', '/dev/null', '-w', '%{http_code}', `${url}/agents`, '--connect-to', `evil.example:443:${new URL(url).host}`, '-k', 'https://evil.example/agents')).toMatch(/421$/) // prettier-ignore
})
