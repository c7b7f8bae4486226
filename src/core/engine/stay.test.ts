import { expect, test } from 'vitest'
import { memoryStore } from '../../stores/memory.ts'
import { AgentRegistry } from './agent-registry.ts'
import { defineAgent } from '../agent-kit/define-agent.ts'
import { text } from '../agent-kit/drafts.ts'
import { createGateway } from './gateway.ts'
import type { Session, SessionInit } from '../ports/session.ts'
import { ResponseBatches } from '../reading/response-batches.ts'

const principal = { tenant: 'default', id: 'someone', scopes: [] }
const init: SessionInit = {
  transport: 'test',
  agent: 'counter',
  principal,
  config: { modalities: ['text'] },
  duplex: true,
  persist: true,
  onDetach: 'continue',
}

function setUp() {
  const agents = new AgentRegistry()
  agents.add(
    defineAgent('counter', async function* ({ messages }) {
      yield text(`${messages.filter(({ role }) => role === 'user').length}`)
    }),
  )
  let time = 1_000_000
  const complaints: string[] = []
  const log = (level: string, message: string): void => void (level === 'error' && complaints.push(message))
  const gateway = createGateway({ agents, store: memoryStore(), monotonic: () => time, log })
  return { gateway, complaints, pass: (ms: number) => (time += ms) }
}

let count = 0

/** How many inputs the agent has heard in the session, with this one. */
async function say(session: Session): Promise<string> {
  const reader = session.read()
  const batches = new ResponseBatches(reader)
  try {
    await session.say([{ type: 'input.text', event_id: `i${++count}`, text: 'hello' }], {
      type: 'response.create',
      event_id: `c${++count}`,
    })
    let heard = ''
    for (let batch = await batches.take(); batch; batch = await batches.take()) {
      batch.visit({ text: (piece) => (heard += piece), event: () => undefined })
    }
    return heard
  } finally {
    reader.close()
  }
}

test('a session stays in memory for a caller that has found it, until that caller releases it', async () => {
  const { gateway, complaints } = setUp()
  const opened = await gateway.open(init)
  expect(await say(opened)).toBe('1')
  const second = (await gateway.attach(opened.id, principal)) as Session
  await opened.release()
  // Others that come and go meanwhile must find the same one: two that act for one session would overwrite each other.
  const third = (await gateway.attach(opened.id, principal)) as Session
  expect(await say(third)).toBe('2')
  await third.release()
  expect(await say(second)).toBe('3')
  await second.release()
  expect(gateway.openSessions).toBe(0)
  expect(await say((await gateway.attach(opened.id, principal)) as Session)).toBe('4')
  expect(complaints).toEqual([])
})

test('a caller that never releases a session keeps it for ten seconds, and is then told to send again', async () => {
  const { gateway, pass, complaints } = setUp()
  const opened = await gateway.open(init)
  expect(await say(opened)).toBe('1')
  const forgotten = (await gateway.attach(opened.id, principal)) as Session
  await opened.release()
  await gateway.sweep()
  expect(gateway.openSessions).toBe(1)
  pass(10_000)
  await gateway.sweep()
  expect(gateway.openSessions).toBe(0)
  await expect(say(forgotten)).rejects.toMatchObject({ code: 'overloaded', details: { retry_after: 1 } })
  // Its end, too, leaves the one that acts for the session now alone.
  const found = (await gateway.attach(opened.id, principal)) as Session
  await forgotten.end()
  expect(await say(found)).toBe('2')
  expect(complaints).toEqual([])
})
