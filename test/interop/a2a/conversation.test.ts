import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { demo } from '../../../src/agents/demo/index.ts'
import { serve, type RunningServer } from '../../../src/serve/index.ts'
import { Gated } from './agents.ts'
import { artifactText, assembled, collect, firstTask, say, statesOf, taskOf, textOf, type Update } from './client.ts'
import { generations } from './generations.ts'

/** One for all generations. */
let server: RunningServer
const gated = new Gated()

beforeAll(async () => void (server = await serve([demo(), gated.agent], { port: 0, data: 'memory', log: () => undefined })))
afterAll(() => server.close({ graceMs: 0 }))

describe.each(generations)('@a2a-js/sdk $name', ({ connect, loses }) => {
  const atDemo = () => connect(server.url)
  const atGated = () => connect(`${server.url}/agents/gated`)

  test('finds the card', async () => {
    const { card } = await atDemo()
    expect(card).toEqual({ name: 'demo', description: demo().description, streaming: true, push: true })
    expect((await atGated()).card.name).toBe('gated')
  })

  test('sends, and waits for the task to be over', async () => {
    const client = await atDemo()
    const messageId = randomUUID()
    const task = taskOf(await client.send({ ...say('Hello'), messageId }))
    expect(task).toMatchObject({ state: 'completed', artifacts: [{ parts: [{ text: 'You said: Hello' }] }] })
    expect(task.history).toEqual([{ id: messageId, role: 'user', parts: [{ text: 'Hello' }] }])
    expect(await client.get(task.id)).toEqual(task)
  })

  test('asks for as much of the history as it wants', async () => {
    const client = await atDemo()
    const { id, history } = taskOf(await client.send(say('Hello'), { historyLength: 0 }))
    expect(history).toHaveLength(loses ? 1 : 0)
    expect((await client.get(id, 0)).history).toEqual([])
    expect((await client.get(id, 1)).history).toHaveLength(1)
  })

  test('streams: the task, the chunks of one artifact, the end', async () => {
    const client = await atDemo()
    const updates = await collect(client.stream(say('/count 20')))
    expect(Object.keys(updates[0] as Update)).toEqual(['task'])
    expect(updates.at(-1)).toMatchObject({ status: { state: 'completed' } })
    expect(statesOf(updates)).toEqual(['submitted', 'working', 'completed'])
    expect(assembled(updates)).toBe(Array.from({ length: 20 }, (_, i) => i + 1).join(' '))
    const chunks = updates.flatMap((update) => ('chunk' in update ? [update] : []))
    expect(new Set(chunks.map(({ chunk }) => chunk.id)).size).toBe(1)
    if (!loses) expect(chunks.map(({ append }) => append)).toEqual([false, ...chunks.slice(1).map(() => true)])
    expect(chunks.map(({ last }) => last)).toEqual([...chunks.slice(1).map(() => false), true])
    // The status does not say again what the chunks have said.
    expect(updates.at(-1)).not.toHaveProperty('status.says')
    const { id } = firstTask(updates)
    expect(artifactText(await client.get(id))).toBe(assembled(updates))
  })

  test('is told at once where it does not want to wait, and cancels', async () => {
    const client = await atGated()
    const name = randomUUID()
    const { id, state } = taskOf(await client.send(say(name), { wait: false }))
    expect(state).toMatch(/submitted|working/)
    expect(await client.cancel(id)).toMatchObject({ id, state: 'canceled' })
    await gated.stopped(name)
    expect(await client.get(id)).toMatchObject({ id, state: 'canceled' })
  })

  test('a cancel ends the stream of others', async () => {
    const client = await atGated()
    const name = randomUUID()
    const updates: Update[] = []
    for await (const update of client.stream(say(name))) {
      updates.push(update)
      if ('chunk' in update && !update.last && textOf(update.chunk.parts) !== '') {
        const { id } = firstTask(updates)
        await client.cancel(id)
      }
    }
    expect(updates.at(-1)).toMatchObject({ status: { state: 'canceled' } })
    expect(assembled(updates)).toBe('begin ')
  })

  test('subscribes again after it lost its stream', async () => {
    const client = await atGated()
    const name = randomUUID()
    let id = ''
    for await (const update of client.stream(say(name))) {
      if ('task' in update) id = update.task.id
      if ('chunk' in update) break
    }
    const updates: Update[] = []
    for await (const update of client.subscribe(id)) {
      updates.push(update)
      if (updates.length === 1) gated.open(name)
    }
    const [first, ...rest] = updates
    expect(first).toMatchObject({ task: { id, state: 'working', artifacts: [{ parts: [{ text: 'begin ' }] }] } })
    const more = rest.flatMap((update) => ('chunk' in update ? [update] : []))
    if (!loses) expect(more.map(({ append }) => append)).toEqual(more.map(() => true))
    expect(textOf(more.flatMap(({ chunk }) => chunk.parts))).toBe('end')
    expect(rest.at(-1)).toMatchObject({ status: { state: 'completed' } })
    expect(artifactText(await client.get(id))).toBe('begin end')
  })

  test('two streams of a task get the same', async () => {
    const client = await atGated()
    const name = randomUUID()
    const { id } = taskOf(await client.send(say(name), { wait: false }))
    const streams = [client.subscribe(id), client.subscribe(id)]
    const both = await Promise.all(
      streams.map(async (stream) => {
        const updates: Update[] = []
        for await (const update of stream) {
          updates.push(update)
          gated.open(name)
        }
        const known = updates.flatMap((update) => ('task' in update ? update.task.artifacts.flatMap(({ parts }) => parts) : []))
        return textOf([...known, ...updates.flatMap((update) => ('chunk' in update ? update.chunk.parts : []))])
      }),
    )
    expect(both).toEqual(['begin end', 'begin end'])
  })

  test('goes on with a context', async () => {
    const client = await atDemo()
    const first = taskOf(await client.send(say('My name is Ada')))
    const second = taskOf(await client.send({ ...say('/history'), context: first.context }))
    expect(second.id).not.toBe(first.id)
    expect(second.context).toBe(first.context)
    expect(artifactText(second)).toBe('user: My name is Ada\nassistant: You said: My name is Ada\nuser: /history')
  })

  test('brings a context of its own', async () => {
    const client = await atDemo()
    const context = randomUUID()
    expect(taskOf(await client.send({ ...say('Hello'), context })).context).toBe(context)
  })

  test('is told why a task failed', async () => {
    const client = await atDemo()
    const task = taskOf(await client.send(say('/error overloaded')))
    expect(task).toMatchObject({ state: 'failed', says: { role: 'agent', parts: [{ text: 'You asked me to fail with "overloaded"' }] } })
  })
})

test('a task of one generation is the same for another', async () => {
  const clients = await Promise.all(generations.map(({ connect }) => connect(server.url)))
  for (const maker of clients) {
    const task = taskOf(await maker.send(say('Hello')))
    for (const reader of clients) expect(await reader.get(task.id)).toEqual(task)
  }
})
