import { expect, test, vi } from 'vitest'
import { memoryStore } from '../../stores/memory.ts'
import { AgentRegistry } from '../engine/agent-registry.ts'
import { defineAgent } from '../agent-kit/define-agent.ts'
import { text } from '../agent-kit/drafts.ts'
import { createGateway } from '../engine/gateway.ts'
import { CORE_LIMITS, limitsFrom } from './limits.ts'

const DAY = 24 * 3_600_000

test('a time longer than a timer can be was a millisecond', async () => {
  const agents = new AgentRegistry()
  agents.add(
    defineAgent('slow', async function* () {
      await new Promise((resolve) => setTimeout(resolve, 50))
      yield text('done')
    }),
  )
  const store = memoryStore()
  const tidied = vi.spyOn(store, 'tidy')
  const limits = { turnTimeoutMs: 30 * DAY, sweepMs: 30 * DAY, parkMs: 1e15 }
  const gateway = createGateway({ agents, store, limits })
  const session = await gateway.open({
    transport: 'test',
    agent: 'slow',
    principal: { tenant: 'default', id: 'someone', scopes: [] },
    config: { modalities: ['text'] },
    duplex: true,
    persist: true,
    onDetach: 'continue',
  })
  const reader = session.read()
  await session.send({ type: 'response.create', event_id: 'e1' })
  const types: string[] = []
  for await (const batch of reader) {
    for (const { event } of batch) types.push(event.type)
    if (batch.has(new Set(['response.done', 'response.error']))) break
  }
  expect(types.at(-1)).toBe('response.done')
  expect(tidied).not.toHaveBeenCalled()
  await gateway.close()
})

test('how long a session is kept may be longer than that', () => {
  expect(limitsFrom(CORE_LIMITS, { sessionTtlMs: 3650 * DAY, unloadMs: 5 })).toEqual({
    ...CORE_LIMITS,
    sessionTtlMs: 3650 * DAY,
    unloadMs: 5,
  })
})
