/** HTTP/2 without TLS, for test kits. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { connect as connectSocket } from 'node:net'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { demo } from '../../src/agents/demo/index.ts'
import { serve } from '../../src/serve/index.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'

const run = promisify(execFile)
const curl = async (...args: string[]): Promise<string> => (await run('curl', ['-sS', '-w', '%{http_version}', ...args])).stdout

verifies('tls.h2c', 'with insecureDev both versions share the port', async () => {
  const { url, port } = await startServer(demo(), { insecureDev: true })
  expect(await curl('--http2-prior-knowledge', `${url}/health`)).toBe('{"status":"ok"}2')
  expect(await curl(`${url}/health`)).toBe('{"status":"ok"}1.1')
  expect(await curl('--http2-prior-knowledge', `${url}/.well-known/agent-card.json`)).toContain(`"${url}/a2a"`)
  const socket = new WebSocket(`ws://127.0.0.1:${port}/uamp`)
  await once(socket, 'open')
  socket.terminate()
})

verifies('tls.h2c', 'an address that others can reach does not have it', async () => {
  const options = { port: 0, host: '0.0.0.0', data: 'memory', insecureDev: true, allowAnonymous: true }
  await expect(serve(demo(), options)).rejects.toThrow('0.0.0.0 can be reached from other machines, and insecureDev is for this one alone')
})

verifies('tls.h2c-refused', 'without it the client is told what to do', async () => {
  const { port } = await startServer(demo())
  const socket = connectSocket(port, '127.0.0.1')
  socket.end('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  let text = ''
  for await (const chunk of socket.setEncoding('utf8')) text += String(chunk)
  expect(text).toMatch(/^HTTP\/1.1 400 .*This server speaks HTTP\/2 only over TLS: .*--insecure-dev/s)
})

test('the first bytes may come one by one, or not at all', async () => {
  const { port } = await startServer(demo(), { insecureDev: true, limits: { headersTimeoutMs: 300 } })
  const socket = connectSocket(port, '127.0.0.1').setNoDelay()
  await once(socket, 'connect')
  for (const byte of 'POST /nowhere HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\nconnection: close\r\n\r\n') {
    socket.write(byte)
    await new Promise(setImmediate)
  }
  let text = ''
  for await (const chunk of socket.setEncoding('utf8')) text += String(chunk)
  expect(text).toMatch(/^HTTP\/1.1 404/)
  const silent = connectSocket(port, '127.0.0.1').resume()
  await once(silent, 'close')
})
