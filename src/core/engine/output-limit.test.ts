import { expect, test } from 'vitest'
import { memoryStore } from '../../stores/memory.ts'
import { AgentRegistry } from './agent-registry.ts'
import { defineAgent } from '../agent-kit/define-agent.ts'
import { text } from '../agent-kit/drafts.ts'
import { exchange } from '../agent-kit/exchange.ts'
import { createGateway } from './gateway.ts'
import type { Draft, ServerEvent } from '../../protocol/events.ts'
import type { Delta } from '../../protocol/server-events.ts'

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

const big = 'x'.repeat(10_000)
test.each<[string, (n: number) => Draft]>([
  ['results of tools', (n) => delta({ type: 'tool_result', tool_result: { call_id: `c${n}`, result: big } })],
  ['items in results of tools', (n) => delta({ type: 'tool_result', tool_result: { call_id: `c${n}`, result: '', data: { big } } })],
  ['calls', (n) => delta({ type: 'tool_call', tool_call: { id: `c${n}`, name: 'look', arguments: big } })],
  ['pictures at an address', () => delta({ type: 'image', image: { url: `data:image/png;base64,${big}` } })],
  ['thoughts', () => ({ type: 'thinking', content: big })],
  ['words that are spoken', () => ({ type: 'transcript.delta', transcript: big })],
])('%s count as what an answer holds', async (_, draft) => {
  let yielded = 0
  const agents = new AgentRegistry()
  agents.add(
    defineAgent('large', async function* () {
      while (yielded < 100) yield draft(yielded++)
    }),
  )
  const gateway = createGateway({ agents, store: memoryStore(), limits: { outputBytes: 100_000 } })
  const heard: ServerEvent[] = []
  const principal = { tenant: 't', id: 'p', scopes: ['*'] }
  for await (const event of exchange(gateway, { agent: 'large', principal, messages: [{ role: 'user', content: 'go' }] })) heard.push(event)
  expect(heard.at(-1)).toMatchObject({ type: 'response.error', error: { code: 'too_large' } })
  expect(yielded).toBeLessThan(15)
  await gateway.close()
})

function delta(item: Delta): Draft {
  return { type: 'response.delta', delta: item }
}
