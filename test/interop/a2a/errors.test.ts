import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { demo } from '../../../src/agents/demo/index.ts'
import { serve, type RunningServer } from '../../../src/serve/index.ts'
import { Gated } from './agents.ts'
import { collect, refusal, say, taskOf } from './client.ts'
import { generations } from './generations.ts'

let server: RunningServer
const gated = new Gated()
beforeAll(async () => void (server = await serve([demo(), gated.agent], { port: 0, data: 'memory', log: () => undefined })))
afterAll(() => server.close({ graceMs: 0 }))

describe.each(generations)('@a2a-js/sdk $name throws the error that it has for', ({ connect, version }) => {
  const nobody = randomUUID()

  test('a task that is not there', async () => {
    const client = await connect(server.url)
    expect(await refusal(client, client.get(nobody))).toBe('TaskNotFoundError')
    expect(await refusal(client, client.cancel(nobody))).toBe('TaskNotFoundError')
    expect(await refusal(client, collect(client.subscribe(nobody)))).toBe('TaskNotFoundError')
    expect(await refusal(client, client.send({ ...say('Hello'), task: nobody }))).toBe('TaskNotFoundError')
    expect(await refusal(client, collect(client.stream({ ...say('Hello'), task: nobody })))).toBe('TaskNotFoundError')
    expect(await refusal(client, client.getPush(nobody, '1'))).toBe('TaskNotFoundError')
  })

  test('a task that is over', async () => {
    const client = await connect(server.url)
    const { id } = taskOf(await client.send(say('Hello')))
    expect(await refusal(client, client.cancel(id))).toBe('TaskNotCancelableError')
    expect(await refusal(client, client.send({ ...say('More'), task: id }))).toBe('UnsupportedOperationError')
    const late = await refusal(client, collect(client.subscribe(id)))
    // Before 1.0 nothing forbade it: the task is all there is to tell.
    if (version === '1.0') expect(late).toBe('UnsupportedOperationError')
    else expect(late).toMatch(/^answered: \[\{"task":.*"completed"/)
  })

  test('a task that is at work', async () => {
    const client = await connect(`${server.url}/agents/gated`)
    const name = randomUUID()
    const { id } = taskOf(await client.send(say(name), { wait: false }))
    expect(await refusal(client, client.send({ ...say('More'), task: id }))).toBe('UnsupportedOperationError')
    await client.cancel(id)
  })

  test('a context that is not the task’s', async () => {
    const client = await connect(`${server.url}/agents/gated`)
    const { id } = taskOf(await client.send(say(randomUUID()), { wait: false }))
    const mixed = client.send({ ...say('More'), task: id, context: nobody })
    expect(await refusal(client, mixed)).toMatch(/InvalidParamsError|does not belong/)
    await client.cancel(id)
  })

  test('a message without parts', async () => {
    const client = await connect(server.url)
    expect(await refusal(client, client.send({ parts: [] }))).toMatch(/InvalidParamsError|parts/)
  })
})
