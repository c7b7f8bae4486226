import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { memoryStore } from '../../stores/memory.ts'
import { AgentRegistry } from './agent-registry.ts'
import { defineAgent } from '../agent-kit/define-agent.ts'
import { text } from '../agent-kit/drafts.ts'
import { createGateway } from './gateway.ts'
import type { Session, SessionInit } from '../ports/session.ts'
import type { Store } from '../ports/store.ts'
import { ResponseBatches } from '../reading/response-batches.ts'

const principal = { tenant: 'default', id: 'someone', scopes: [] }
const init: SessionInit = {
  transport: 'test',
  agent: 'parrot',
  principal,
  config: { modalities: ['text'] },
  duplex: true,
  persist: true,
  onDetach: 'continue',
}

/** Every write and read takes a moment, as on a disk. */
function slowly(store: Store): Store {
  const after =
    <A extends unknown[], R>(run: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      await sleep(2)
      return run(...args)
    }
  return { ...store, get: after(store.get), keys: after(store.keys), batch: after(store.batch), append: after(store.append) }
}

function setUp() {
  const agents = new AgentRegistry()
  agents.add(
    defineAgent('parrot', async function* ({ messages, signal }) {
      const said = messages.at(-1)?.content ?? ''
      yield text(said)
      if (said === 'long') await sleep(10_000, undefined, { signal })
    }),
  )
  const complaints: string[] = []
  const log = (level: string, message: string): void => void (level === 'error' && complaints.push(message))
  return { gateway: createGateway({ agents, store: slowly(memoryStore()), log }), complaints }
}

let count = 0

/** Says this, and resolves with the end of the response: its type, or the code of the refusal. */
async function say(session: Session, said: string): Promise<string> {
  const reader = session.read()
  const batches = new ResponseBatches(reader)
  try {
    await session.say([{ type: 'input.text', event_id: `i${++count}`, text: said }], { type: 'response.create', event_id: `c${++count}` })
    let end = 'none'
    for (let batch = await batches.take(); batch; batch = await batches.take()) {
      batch.visit({ text: () => undefined, event: ({ type }) => (end = type.startsWith('response.') ? type : end) })
    }
    return end
  } catch (thrown) {
    return (thrown as { code: string }).code
  } finally {
    reader.close()
  }
}

const found = async (finding: Promise<Session | undefined>, said: string): Promise<string> => {
  const session = await finding
  if (!session) return 'not found'
  const end = await say(session, said)
  await session.release()
  return end
}

test('a session that is found while it is removed is not found, or is not removed', async () => {
  for (let ms = 0; ms < 8; ms++) {
    const { gateway, complaints } = setUp()
    const session = await gateway.open(init)
    expect(await say(session, 'first')).toBe('response.done')
    await session.release()
    const removing = gateway.removeUnused('default', session.id)
    await sleep(ms)
    const end = await found(gateway.attach(session.id, principal), 'second')
    expect(end).toBe((await removing) ? 'not found' : 'response.done')
    expect(complaints).toEqual([])
    await gateway.close()
  }
})

test('a session whose only response is deleted goes with it, unless the next one has begun', async () => {
  for (let ms = 0; ms < 8; ms++) {
    const { gateway, complaints } = setUp()
    const session = await gateway.open(init)
    expect(await say(session, 'first')).toBe('response.done')
    const deleting = gateway.forget(session.lastResponse ?? '', principal)
    await sleep(ms)
    const [mine, others] = await Promise.all([say(session, 'second'), found(gateway.attach(session.id, principal), 'third')])
    expect(await deleting).toBe(true)
    const ends = [mine, others].filter((end) => end !== 'response_in_progress')
    const isKept = (await gateway.attach(session.id, principal)) !== undefined
    for (const end of ends) expect(isKept ? ['response.done'] : ['not_found', 'not found']).toContain(end)
    expect(complaints).toEqual([])
    await gateway.close()
  }
})

test('a session that is ended and removed several times at once ends once', async () => {
  for (const ways of [
    ['remove', 'remove'],
    ['end', 'remove'],
    ['remove', 'end'],
  ] as const) {
    const { gateway, complaints } = setUp()
    const session = await gateway.open(init)
    const running = say(session, 'long')
    await expect.poll(() => gateway.openResponses).toBe(1)
    const over = ways.map((way) => (way === 'end' ? session.end().then(() => true) : gateway.remove(session.id, principal)))
    expect((await Promise.all(over))[0]).toBe(true)
    expect(await running).toBe('response.cancelled')
    expect(await gateway.attach(session.id, principal)).toBeUndefined()
    expect(gateway.openSessions).toBe(0)
    expect(complaints).toEqual([])
    await gateway.close()
  }
})
