import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoryStore } from '../../stores/memory.ts'
import { AgentRegistry } from '../engine/agent-registry.ts'
import { defineAgent } from '../agent-kit/define-agent.ts'
import { text } from '../agent-kit/drafts.ts'
import { createGateway } from '../engine/gateway.ts'
import type { Reader } from '../ports/session.ts'

const principal = { tenant: 'default', id: 'someone', scopes: [] }
const ENDS = new Set(['response.done'])
const pause = (ms: number): Promise<void> => new Promise((resolve) => (ms === 0 ? setImmediate(resolve) : setTimeout(resolve, ms)))

/** Reads to the end of the response at its own pace, and returns the numbers it saw. */
async function read(reader: Reader, pauses: readonly number[]): Promise<number[]> {
  const seen: number[] = []
  let turn = 0
  for await (const batch of reader) {
    batch.eachText((_, seq) => seq !== undefined && seen.push(seq))
    if (batch.has(ENDS)) break
    const ms = pauses[turn++ % pauses.length]
    if (ms !== undefined) await pause(ms)
  }
  return seen
}

const paces = fc.array(fc.array(fc.integer({ min: 0, max: 6 }), { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 4 })

async function opened(deltas: number, { persist, large }: { persist: boolean; large: number }) {
  const agents = new AgentRegistry()
  agents.add(
    defineAgent('long', async function* () {
      for (let n = 1; n <= deltas; n++) {
        if (n % 1000 === 0) yield { type: 'progress', target: 'response' }
        else yield text(n % 100 === 0 ? 'x'.repeat(large) : `${n} `)
      }
    }),
  )
  const gateway = createGateway({ agents, store: memoryStore() })
  await gateway.start()
  const config = { modalities: ['text'] }
  const session = await gateway.open({
    transport: 'test',
    agent: 'long',
    principal,
    config,
    duplex: true,
    persist,
    onDetach: 'continue',
  })
  return { gateway, session }
}

const upTo = (last: number): number[] => Array.from({ length: last }, (_, n) => n + 1)

test('readers at any pace and from any place see every event once, in order, from memory or from the store', async () => {
  await fc.assert(
    fc.asyncProperty(paces, fc.integer({ min: 1, max: 6000 }), async (pauses, deltas) => {
      const { gateway, session } = await opened(deltas, { persist: true, large: 4 })
      const early = [read(session.read({ after: 0 }), []), ...pauses.map((each) => read(session.read({ after: 0 }), each))]
      await session.send({ type: 'response.create', event_id: 'e1' })
      await pause(2)
      const from = Math.floor(session.lastSeq / 2)
      const late = read(session.read({ after: from }), pauses[0] ?? [])
      const last = 2 + 1 + deltas + 1
      for (const seen of await Promise.all(early)) expect(seen).toEqual(upTo(last))
      expect(await late).toEqual(upTo(last).slice(from))
      await gateway.close()
    }),
    { numRuns: 30 },
  )
})

test('without a store, attached readers at any pace see every event once, in order, however large', async () => {
  const larges = fc.integer({ min: 0, max: 1_500_000 })
  await fc.assert(
    fc.asyncProperty(paces, fc.integer({ min: 1, max: 3000 }), larges, async (pauses, deltas, large) => {
      const { gateway, session } = await opened(deltas, { persist: false, large })
      const readers = [[], ...pauses].map((each) => read(session.read({ after: 0 }), each))
      await session.send({ type: 'response.create', event_id: 'e1' })
      for (const seen of await Promise.all(readers)) expect(seen).toEqual(upTo(2 + 1 + deltas + 1))
      await gateway.close()
    }),
    { numRuns: 12 },
  )
})

test('an agent that passes on events of another session brings nothing of its stamp, live or read again', async () => {
  const foreign = { session_id: 'sess_other', response_id: 'resp_other', event_id: 'other', seq: 99, output_of: 'resp_other' }
  const agents = new AgentRegistry()
  agents.add(
    defineAgent('echo', async function* () {
      yield { type: 'progress', target: 'tool', stage: 'half', ...foreign }
      yield text('done')
    }),
  )
  const gateway = createGateway({ agents, store: memoryStore() })
  const config = { modalities: ['text'] }
  const session = await gateway.open({
    transport: 't',
    agent: 'echo',
    principal,
    config,
    duplex: false,
    persist: true,
    onDetach: 'continue',
  })
  const heard = async () => {
    const texts: string[] = []
    for await (const batch of session.read({ after: 0 })) {
      batch.eachText((each) => texts.push(each))
      if (batch.has(ENDS)) return texts
    }
    return texts
  }
  const live = heard()
  await session.send({ type: 'response.create', event_id: 'c' })
  const told = await live
  expect(await heard()).toEqual(told)
  const [progress] = told.flatMap((each) => (each.includes('"progress"') ? [each] : []))
  expect(progress?.match(/"(?:session_id|response_id|event_id|seq)"/g)).toHaveLength(4)
  expect(JSON.parse(progress ?? '')).toMatchObject({ session_id: session.id, response_id: session.lastResponse, stage: 'half' })
  expect(progress).not.toMatch(/other/)
  await gateway.close()
})

test('text beside speech is said once, though the end repeats the whole output', async () => {
  const agents = new AgentRegistry()
  agents.add(
    defineAgent('voice', async function* () {
      yield { type: 'audio.delta', audio: 'AAAA' }
      yield { type: 'transcript.delta', transcript: 'Hello.' }
      yield text('See the list.')
      const output = [
        { type: 'audio' as const, audio: 'AAAA' },
        { type: 'text' as const, text: 'See the list.' },
      ]
      yield { type: 'response.done', response: { id: 'r', status: 'completed', output } }
    }),
  )
  const gateway = createGateway({ agents, store: memoryStore() })
  const init = { transport: 't', agent: 'voice', principal, config: { modalities: ['text'] }, duplex: false, persist: false }
  const session = await gateway.open({ ...init, onDetach: 'continue' })
  const reader = session.read({ after: 0 })
  await session.send({ type: 'response.create', event_id: 'c' })
  const said: string[] = []
  for await (const batch of reader) {
    batch.visit({ text: (each) => void said.push(each), event: () => undefined })
    if (batch.has(ENDS)) break
  }
  expect(said).toEqual(['See the list.'])
  await gateway.close()
})

test('a reader of what is committed sees it when it is, and everything at the end', async () => {
  const store = memoryStore()
  let release: () => void = () => undefined
  const held = new Promise<void>((resolve) => (release = resolve))
  let appended = 0
  const slow = { ...store, append: async (...given: Parameters<typeof store.append>) => (appended++, await held, store.append(...given)) }
  const agents = new AgentRegistry()
  let goOn: () => void = () => undefined
  const heard = new Promise<void>((resolve) => (goOn = resolve))
  agents.add(
    defineAgent('two', async function* () {
      yield 'one'
      await heard
      yield 'two'
    }),
  )
  const gateway = createGateway({ agents, store: slow })
  await gateway.start()
  const init = { transport: 'test', agent: 'two', principal, config: { modalities: ['text'] }, duplex: true, persist: true }
  const session = await gateway.open({ ...init, onDetach: 'finish' })
  const [early, safe]: [string[], string[]] = [[], []]
  const follow = async (reader: Reader, seen: string[]): Promise<void> => {
    for await (const batch of reader) {
      batch.visit({ text: (piece) => seen.push(piece), event: () => undefined })
      if (batch.has(ENDS)) return
    }
  }
  const both = [follow(session.read({ after: 0 }), early), follow(session.read({ after: 0, committed: true }), safe)]
  await session.send({ type: 'response.create', event_id: '1' })
  await expect.poll(() => [early.join(), appended]).toEqual(['one', 1])
  expect(safe).toEqual([])
  release()
  await expect.poll(() => safe.join()).toBe('one')
  goOn()
  await Promise.all(both)
  expect(safe).toEqual(['one', 'two'])
})
