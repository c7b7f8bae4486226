import { expect, test } from 'vitest'
import { transport } from '../../test/support/test-server.ts'
import { staticTokens } from '../auth/static-tokens.ts'
import { AgentRegistry } from '../core/engine/agent-registry.ts'
import { createGateway } from '../core/engine/gateway.ts'
import type { HttpRoute } from '../core/ports/transport.ts'
import { memoryStore } from '../stores/memory.ts'
import { createApp } from './app.ts'

/** The app as a runtime without Node would call it. */
function fetchHandler(handle: HttpRoute['handle']) {
  const [agents, store] = [new AgentRegistry(), memoryStore()]
  const { app } = createApp({
    gateway: createGateway({ agents, store }),
    store,
    agents,
    transports: [transport('test', [{ method: 'GET', path: '/stream', access: 'request', handle }])],
    access: staticTokens({ tokens: {}, anonymous: true }),
    log: () => {},
    loopback: true,
  })
  return app
}

test('elsewhere a stream is a web stream', async () => {
  const app = fetchHandler(async function* () {
    yield 'data: 1\n\n'
    yield 'data: zwölf\n\n'
  })
  const response = await app.request('/stream', { headers: { origin: 'http://localhost' } })
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  expect(response.headers.get('access-control-allow-origin')).toBe('http://localhost')
  expect(await response.text()).toBe('data: 1\n\ndata: zwölf\n\n')
})

test('its frames are pulled one by one, and its finally runs when it is cancelled', async () => {
  let pulled = 0
  let ended = false
  const app = fetchHandler(async function* () {
    try {
      for (;;) yield `data: ${++pulled}\n\n`
    } finally {
      ended = true
    }
  })
  const reader = (await app.request('/stream')).body?.getReader()
  await reader?.read()
  await reader?.read()
  await reader?.cancel()
  expect([pulled, ended]).toEqual([2, true])
})

test('there are no metrics where nothing can show them', async () => {
  const app = fetchHandler(async () => new Response())
  expect((await app.request('/metrics')).status).toBe(404)
})
