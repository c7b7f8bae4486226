import { expect, test } from 'vitest'
import { memoryStore } from '../stores/memory.ts'
import { AgentRegistry } from './agent-registry.ts'
import { defineAgent } from './define-agent.ts'
import { text } from './drafts.ts'
import { exchange } from './exchange.ts'
import { createGateway } from './gateway.ts'

test('an answer that never ends is stopped where its whole would be too large, and its generator cleans up', async () => {
  let stopped = false
  const agents = new AgentRegistry()
  agents.add(
    defineAgent('endless', async function* () {
      try {
        for (;;) yield text('x'.repeat(100))
      } finally {
        stopped = true
      }
    }),
  )
  const gateway = createGateway({ agents, store: memoryStore(), limits: { outputBytes: 100_000 } })
  const principal = { tenant: 't', id: 'p', scopes: ['*'] }
  let last: unknown
  let length = 0
  for await (const event of exchange(gateway, { agent: 'endless', principal, messages: [{ role: 'user', content: 'go' }] })) {
    if (event.type === 'response.delta' && event.delta.type === 'text') length += event.delta.text.length
    last = event
  }
  expect(last).toMatchObject({ type: 'response.error', error: { code: 'too_large', details: { limit: 100_000 } } })
  expect(length).toBeLessThan(110_000)
  expect(stopped).toBe(true)
  await gateway.close()
})
