import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import type { Tool } from '../../src/core/ports/skill.ts'
import { caller } from '../acp/agents.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { overWebSocket } from '../support/wire.ts'

const TIMEOUTS = { firstByteMs: 5_000, idleMs: 5_000, totalMs: 5_000 }

/** Reads what is at a URL that the caller names. */
const read: Tool = {
  name: 'read',
  direct: true,
  run: async ({ url }, { http, signal }) => {
    const { body } = await http.request({ url: String(url), method: 'GET', headers: {}, signal, maxBytes: 65_536, timeouts: TIMEOUTS })
    let text = ''
    for await (const bytes of body) text += new TextDecoder().decode(bytes)
    return text
  },
}

/** Something on this machine that is not for strangers. */
async function inside(): Promise<{ url: string; host: string; calls: () => number }> {
  let calls = 0
  const server = createServer((_, response) => {
    calls++
    response.end('a secret')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url: `http://${host}/`, host, calls: () => calls }
}

test('a tool reaches the outside by the host’s client, and nothing on this machine unless that is allowed', async () => {
  const { url, host, calls } = await inside()
  const ask = async (server: string) => {
    const wire = await overWebSocket(server)
    await wire.open()
    const said = textOf(await say(wire, `read ${JSON.stringify({ url })}`))
    wire.close()
    return said
  }
  const closed = await startServer(caller([read]))
  expect(await ask(closed.url)).toContain('failed: {"error":{"code":"forbidden","message":"This URL may not be called')
  expect(calls()).toBe(0)
  const open = await startServer(caller([read]), { outbound: { allow: [host] } })
  expect(await ask(open.url)).toBe('gave: a secret')
})

test('also where a client calls the tool directly', async () => {
  const { url, calls } = await inside()
  const server = await startServer(caller([read]))
  const response = await fetch(`${server.url}/acp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read', arguments: { url } } }),
  })
  expect(await response.json()).toMatchObject({ result: { isError: true, content: [{ text: expect.stringContaining('forbidden') }] } })
  expect(calls()).toBe(0)
})
