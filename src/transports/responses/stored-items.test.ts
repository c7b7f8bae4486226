import { expect, test } from 'vitest'
import { AgentRegistry } from '../../core/engine/agent-registry.ts'
import { defineAgent } from '../../core/agent-kit/define-agent.ts'
import { text } from '../../core/agent-kit/drafts.ts'
import { createGateway } from '../../core/engine/gateway.ts'
import type { StoredResponse } from '../../core/ports/session.ts'
import { memoryStore } from '../../stores/memory.ts'
import { contextOf } from './stored-items.ts'

const principal = { tenant: 'default', id: 'alice', scopes: [] }

/** The last of ten responses, each of which goes on from the one before; and how many others are read. */
async function chain() {
  const agents = new AgentRegistry()
  agents.add(
    defineAgent('a', async function* () {
      yield text('ok')
    }),
  )
  const gateway = createGateway({ agents, store: memoryStore() })
  let parent: string | undefined
  for (let n = 0; n < 10; n++) {
    const session = await gateway.open({
      transport: 'test',
      agent: 'a',
      principal,
      config: { modalities: ['text'] },
      duplex: true,
      persist: true,
      onDetach: 'continue',
      input: [{ role: 'user', content: String(n) }],
      ...(parent !== undefined && { parent }),
    })
    const reader = session.read()
    await session.send({ type: 'response.create', event_id: 'r' })
    for await (const batch of reader) {
      for (const { event } of batch) if (event.type === 'response.done') parent = event.response.id
      if (batch.has(new Set(['response.done']))) break
    }
  }
  const last = (await gateway.response(parent as string, principal)) as StoredResponse
  let reads = 0
  const counting: Pick<typeof gateway, 'response'> = {
    response: (id, asker) => {
      reads++
      return gateway.response(id, asker)
    },
  }
  return { gateway: counting, last, reads: () => reads }
}

test('the newest items are read without the conversation before them', async () => {
  const { gateway, last, reads } = await chain()
  let shown = 0
  for await (const _ of contextOf(gateway, last, { principal, order: 'desc' })) if (++shown === 3) break
  expect(reads()).toBe(1)
})

test('both orders show the same', async () => {
  const { gateway, last } = await chain()
  const ids = async (order: 'asc' | 'desc') => {
    const found: string[] = []
    for await (const { id } of contextOf(gateway, last, { principal, order })) found.push(id)
    return found
  }
  const oldestFirst = await ids('asc')
  expect(oldestFirst).toHaveLength(19)
  expect(await ids('desc')).toEqual(oldestFirst.reverse())
})
