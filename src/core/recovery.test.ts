import { expect, test } from 'vitest'
import { memoryStore } from '../stores/memory.ts'
import { AgentRegistry } from './agent-registry.ts'
import { defineAgent } from './define-agent.ts'
import { text } from './drafts.ts'
import { createGateway } from './gateway.ts'
import type { Store } from './ports/store.ts'

const principal = { tenant: 't', id: 'p', scopes: ['*'] }

/** A gateway on a store that a process left in the middle of an answer. */
function gatewayOn(store: Store) {
  const agents = new AgentRegistry()
  agents.add(
    defineAgent('endless', async function* (turn) {
      yield text('a word')
      await new Promise((resolve) => turn.signal.addEventListener('abort', resolve))
    }),
  )
  return createGateway({ agents, store })
}

test('an answer that cannot be put together after a kill keeps nobody from starting', async () => {
  const store = memoryStore()
  const killed = gatewayOn(store)
  const session = await killed.open({
    transport: 'test',
    agent: 'endless',
    principal,
    config: { modalities: ['text'] },
    duplex: true,
    persist: true,
    onDetach: 'continue',
  })
  await session.send({ type: 'input.text', event_id: '1', text: 'go' })
  await session.send({ type: 'response.create', event_id: '2' })
  await expect.poll(() => store.last(`t/log/${session.id}`)).toBeGreaterThan(2)
  // As V8 does where the text of a record would be longer than a string can be.
  const tooLong: Store = {
    ...store,
    batch: (operations, options) =>
      JSON.stringify(operations).includes('"text":"a word"')
        ? Promise.reject(new RangeError('Invalid string length'))
        : store.batch(operations, options),
  }
  const next = gatewayOn(tooLong)
  await next.start()
  const id = session.turn as string
  expect(await next.turn(id, principal)).toMatchObject({ status: 'failed', error: { code: 'interrupted' }, output: [] })
  await next.close()
})
