import { expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { Draft } from '../../src/protocol/events.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { answering } from './engine-agents.ts'
import { engineClient, later, serveEngine, statesIn, streamedText, textOf } from './engine-client.ts'
import { engineTransport, type Pushed } from './engine-transport.ts'

verifies('a2a-1.0.context-goes-on', 'the next task of a context knows what was said before', async () => {
  const { client } = await serveEngine(demo())
  const first = await client.task('remember swordfish')
  later(first)
  const second = await client.task({ message: { contextId: first.contextId, parts: [{ text: '/history' }] } })
  expect(second.id).not.toBe(first.id)
  expect(second.contextId).toBe(first.contextId)
  expect(textOf(second)).toBe('user: remember swordfish\nassistant: You said: remember swordfish\nuser: /history')
  const named = await client.task({ message: { contextId: 'mine', parts: [{ text: '/history' }] } })
  expect(textOf(named)).toBe('user: /history')
  const list = await client.list({ contextId: first.contextId })
  expect(list.tasks.map(({ id }) => id)).toEqual([second.id, first.id])
})

verifies('a2a-1.0.context-parallel', 'tasks of one context run side by side', async () => {
  let release: () => void = () => undefined
  const both = new Promise<void>((resolve) => (release = resolve))
  let running = 0
  const { client } = await serveEngine(
    answering(async function* (said, { messages }) {
      if (++running === 2) release()
      if (said !== 'then') await both
      yield text(`${said} ${messages.length}`)
    }),
  )
  const message = (said: string) => ({ message: { contextId: 'c', parts: [{ text: said }] } })
  const [one, two] = await Promise.all([client.task(message('one')), client.task(message('two'))])
  expect([textOf(one), textOf(two)]).toEqual(['one 1', 'two 1'])
  expect(one.id).not.toBe(two.id)
  // It goes on from the one that ended last.
  expect(textOf(await client.task(message('then')))).toBe('then 3')
})

verifies(
  ['a2a-1.0.task-mismatch', 'a2a-1.0.task-unknown', 'a2a-1.0.task-ended-message'],
  'a message to a task that is not there, has ended, runs, or is of another context',
  async () => {
    const { client } = await serveEngine(demo())
    const ended = await client.task('hello')
    const running = await client.task({ returnImmediately: true, message: { parts: [{ text: '/count 100000 5' }] } })
    const waiting = await client.task('/approve x')
    const refusals = [
      [{ taskId: 'none' }, 'TASK_NOT_FOUND'],
      [{ taskId: '\ud800' }, 'TASK_NOT_FOUND'],
      [{ taskId: ended.id }, 'UNSUPPORTED_OPERATION'],
      [{ taskId: running.id }, 'UNSUPPORTED_OPERATION'],
      [{ taskId: waiting.id, contextId: ended.contextId }, 'INVALID_PARAMS'],
      [{ contextId: '\ud800' }, 'INVALID_PARAMS'],
      [{ contextId: 'x'.repeat(257) }, 'INVALID_PARAMS'],
    ] as const
    for (const [message, reason] of refusals) expect(await client.send({ message })).toMatchObject({ error: { reason } })
    expect((await client.list()).totalSize).toBe(3)
    await client.cancel(running.id)
  },
)

verifies('a2a-1.0.task-scope', 'whose task it is not does not find it', async () => {
  const agents = [demo(), answering(async function* () {}, 'other')]
  const { url } = await startServer(agents, {
    transports: [engineTransport()],
    tokens: { ann: 'token-of-ann-0123456789abcdef', bob: 'token-of-bob-0123456789abcdef' },
  })
  const ann = engineClient(url, { token: 'token-of-ann-0123456789abcdef', agent: 'demo' })
  const strangers = [
    engineClient(url, { token: 'token-of-bob-0123456789abcdef', agent: 'demo' }),
    engineClient(url, { token: 'token-of-ann-0123456789abcdef', agent: 'other' }),
  ]
  const waiting = await ann.task('/approve x')
  const running = await ann.task({ returnImmediately: true, message: { parts: [{ text: '/count 100000 5' }] } })
  const ended = await ann.task('hello')
  for (const stranger of strangers) {
    for (const { id } of [waiting, running, ended]) {
      const refused = { error: { reason: 'TASK_NOT_FOUND' } }
      expect(await stranger.get(id)).toMatchObject(refused)
      expect(await stranger.generation(id)).toMatchObject(refused)
      expect(await stranger.cancel(id)).toMatchObject(refused)
      expect(await stranger.send({ message: { taskId: id, parts: [{ text: 'yes' }] } })).toMatchObject(refused)
      await expect(stranger.subscribe(id)).rejects.toMatchObject(refused)
      await expect(stranger.subscribe(id, '0.1')).rejects.toMatchObject(refused)
      await expect(stranger.stream({ message: { taskId: id } })).rejects.toMatchObject(refused)
    }
    expect(await stranger.list()).toMatchObject({ tasks: [], totalSize: 0, nextPageToken: '' })
    expect(await stranger.list({ contextId: ended.contextId })).toMatchObject({ tasks: [], totalSize: 0 })
  }
  // The same name of a context is another context.
  const bob = engineClient(url, { token: 'token-of-bob-0123456789abcdef', agent: 'demo' })
  expect(textOf(await bob.task({ message: { contextId: ended.contextId, parts: [{ text: '/history' }] } }))).toBe('user: /history')
  expect((await ann.get(waiting.id)).status.state).toBe('TASK_STATE_INPUT_REQUIRED')
  expect(await ann.generation(waiting.id)).toBe('1.0')
  await ann.cancel(running.id)
})

const replying = (run: () => AsyncGenerator<Draft, void>) =>
  defineAgent('direct', run, { capabilities: { extensions: { a2a: { messages: true } } } })

verifies('a2a-1.0.direct-message', 'an agent answers with a message, and there is no task', async () => {
  const { client } = await serveEngine(
    replying(async function* () {
      yield { type: 'x.custom', name: 'a2a.message', value: { parts: [{ text: 'hi' }, { data: { a: 1 } }], metadata: { m: 1 } } }
    }),
  )
  const answer = await client.send({ message: { contextId: 'c' } })
  expect(answer).toEqual({
    message: {
      messageId: expect.any(String) as unknown,
      role: 'ROLE_AGENT',
      contextId: 'c',
      parts: [{ text: 'hi' }, { data: { a: 1 } }],
      metadata: { m: 1 },
    },
  })
  const heard = await (await client.stream('x')).all()
  expect(heard.map(({ event }) => event)).toMatchObject([{ message: { role: 'ROLE_AGENT' } }])
  expect((await client.list()).totalSize).toBe(0)
})

verifies('a2a-1.0.direct-message', 'such an agent may make a task all the same', async () => {
  const { client } = await serveEngine(
    replying(async function* () {
      yield text('a')
      yield text('b')
    }),
  )
  expect(textOf(await client.task('x'))).toBe('ab')
  const heard = await (await client.stream('x')).all()
  expect(statesIn(heard)).toEqual(['SUBMITTED', 'WORKING', 'COMPLETED'])
  expect(streamedText(heard)).toBe('ab')
})

verifies('a2a-1.0.task-push', 'a webhook is told the task, each state and each finished artifact', async () => {
  const pushed: Pushed[] = []
  const { client } = await serveEngine(
    answering(async function* () {
      yield text('a')
      yield {
        type: 'response.delta',
        delta: { type: 'file', file: btoa('x'), filename: 'x.txt', mime_type: 'text/plain', content_id: 'f1' },
      }
      yield text('b')
    }),
    { engine: { pushed } },
  )
  const task = await client.task({ push: { url: 'https://example.com/hook' } })
  expect(pushed.every(({ taskId }) => taskId === task.id)).toBe(true)
  expect(pushed.map(({ event }) => event)).toMatchObject([
    { task: { id: task.id, history: [{ messageId: 'm1' }] } },
    { statusUpdate: { status: { state: 'TASK_STATE_WORKING' } } },
    { artifactUpdate: { artifact: { artifactId: 'f1' }, lastChunk: true } },
    { artifactUpdate: { artifact: { parts: [{ text: 'ab' }] }, append: false, lastChunk: true } },
    { statusUpdate: { status: task.status } },
  ])
})

test('a webhook that cannot be: nothing is begun', async () => {
  const { client } = await serveEngine(demo())
  expect(await client.send({ push: { url: 'http://localhost' } })).toMatchObject({ error: {} })
  expect((await client.list()).totalSize).toBe(0)
})

test('an agent knows what came with the message', async () => {
  const { client } = await serveEngine(
    answering(async function* (_, { config }) {
      yield text(JSON.stringify(config.extensions?.['a2a']))
    }),
  )
  const message = { messageId: 'mine', contextId: 'c', metadata: { a: 1 }, extensions: ['https://x'], referenceTaskIds: ['t0'] }
  const task = await client.task({ message, metadata: { b: 2 }, acceptedOutputModes: ['text/plain'] })
  const { contextId, messageId, ...more } = message
  const expected = { contextId, messageId, ...more, taskId: task.id, requestMetadata: { b: 2 }, acceptedOutputModes: ['text/plain'] }
  expect(JSON.parse(textOf(task))).toEqual(expected)
  expect(task.history).toEqual([{ role: 'ROLE_USER', parts: [{ text: 'hello' }], taskId: task.id, ...message }])
})

test('a client that may choose the id of its task goes on with it by that id', async () => {
  const { client } = await serveEngine(demo())
  const [one, two] = await Promise.all([client.send({ chosenId: 'my task' }), client.send({ chosenId: 'my task' })])
  expect([one, two].filter((answer) => 'task' in answer)).toHaveLength(1)
  expect([one, two]).toContainEqual(expect.objectContaining({ task: expect.objectContaining({ id: 'my task' }) as unknown }))
  const waiting = await client.task({ chosenId: 'second', message: { parts: [{ text: '/approve x' }] } })
  const done = await client.task({ chosenId: 'second', message: { parts: [{ text: 'yes' }] } })
  expect(done.id).toBe(waiting.id)
  expect(textOf(done)).toContain('Approved')
})

test('thoughts and tools are told to those who ask for them', async () => {
  const { client } = await serveEngine(demo())
  const extension = 'https://uamp.dev/a2a/events/v1'
  const plain = await (await client.stream('/think hard')).all()
  expect(statesIn(plain)).toEqual(['SUBMITTED', 'WORKING', 'COMPLETED'])
  const heard = await (await client.stream('/think hard', { 'a2a-extensions': `https://x, ${extension}` })).all()
  const thoughts = heard.flatMap(({ event }) => ('statusUpdate' in event ? (event.statusUpdate.status.message?.parts ?? []) : []))
  expect(thoughts[0]?.data).toMatchObject({ type: 'thinking', content: 'Someone wants me to think about' })
  expect(streamedText(heard)).toBe(streamedText(plain))
})
