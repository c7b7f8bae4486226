import { expect, test } from 'vitest'
import { remoteA2a } from '../../src/remotes/a2a/index.ts'
import { ask } from '../openai/support.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket } from '../support/wire.ts'
import { behind, chunk, peer, streams } from './a2a/peer.ts'
import { v1JsonRpc } from './a2a/v1.ts'
import type { Call } from './a2a/wire.ts'

const HELLO = streams({ task: 'working' }, chunk('Hello', false), { status: 'completed' })
const shown = (calls: readonly Call[]) => calls.map(({ texts, contextId, taskId }) => ({ texts, contextId, taskId }))
const first = (...texts: string[]) => ({ texts, contextId: undefined, taskId: undefined })
const next = (...texts: string[]) => ({ texts, contextId: 'context-1', taskId: undefined })
const SO_FAR = 'The conversation so far:\n\nUser: one\n\nAssistant: Hello'

verifies('a2a-remote.context', 'a session goes on in the context that the agent named, and another one in its own', async () => {
  const { client, there } = await behind(v1JsonRpc, HELLO)
  await say(client, 'one')
  await say(client, 'two')
  const session = await client.open()
  await say(client, 'three', { session })
  expect(shown(there.calls)).toEqual([first('one'), next('two'), first('three')])
})

verifies('a2a-remote.context', 'requests that bring the conversation along go on in the context in which it was held', async () => {
  const { here, there } = await behind(v1JsonRpc, HELLO)
  const url = `${here.url}/v1/chat/completions`
  const one = { role: 'user', content: 'one' }
  const { body } = await ask(url, { messages: [one] })
  const history = [one, body.choices[0].message]
  await ask(url, { messages: [...history, { role: 'user', content: 'two' }] })
  // From the same point a second time: the agent has heard more by now, so it is another conversation.
  await ask(url, { messages: [...history, { role: 'user', content: 'other' }] })
  // One that never was.
  await ask(url, {
    messages: [
      { role: 'user', content: 'uno' },
      { role: 'assistant', content: 'Hola' },
      { role: 'user', content: 'dos' },
    ],
  })
  expect(shown(there.calls)).toEqual([
    first('one'),
    next('two'),
    first(SO_FAR, 'other'),
    first('The conversation so far:\n\nUser: uno\n\nAssistant: Hola', 'dos'),
  ])
})

test('over Responses the next one goes on where the one before ended', async () => {
  const { here, there } = await behind(v1JsonRpc, HELLO)
  const url = `${here.url}/v1/responses`
  const { body } = await ask(url, { model: 'far', input: 'one' })
  const two = [
    { role: 'user', content: 'two' },
    { role: 'user', content: 'three' },
  ]
  await ask(url, { model: 'far', previous_response_id: body.id, input: two })
  expect(shown(there.calls)).toEqual([first('one'), next('two', 'three')])
})

test('whoever else says the same has a context of his own', async () => {
  const there = await peer(v1JsonRpc, HELLO)
  const here = await startServer(remoteA2a({ name: 'far', url: there.url }), {
    tokens: { alice: 'a-0123456789abcdef', bob: 'b-0123456789abcdef' },
  })
  const talk = (token: string, messages: object[]) =>
    ask(`${here.url}/v1/chat/completions`, { messages }, { authorization: `Bearer ${token}` })
  const one = { role: 'user', content: 'one' }
  const { body } = await talk('a-0123456789abcdef', [one])
  await talk('b-0123456789abcdef', [one, body.choices[0].message, { role: 'user', content: 'two' }])
  await talk('a-0123456789abcdef', [one, body.choices[0].message, { role: 'user', content: 'two' }])
  expect(shown(there.calls)).toEqual([first('one'), first(SO_FAR, 'two'), next('two')])
})

test('after a restart the agent is told what was said', async () => {
  const there = await peer(v1JsonRpc, HELLO)
  const remote = () => remoteA2a({ name: 'far', url: there.url })
  const here = await startServer(remote())
  const client = await overWebSocket(here.url)
  await client.open()
  await say(client, 'one')
  // A new one under the same name knows nothing of the contexts of the old one.
  here.agents.add(remote())
  await say(client, 'two')
  await say(client, 'three')
  expect(shown(there.calls)).toEqual([first('one'), first(SO_FAR, 'two'), next('three')])
})

test('a message that was cut short was heard, and is not sent again', async () => {
  let endless = true
  const { client, there } = await behind(v1JsonRpc, ({ op }, reply) => {
    if (op === 'cancel') return reply.whole({ task: 'canceled' })
    reply.tell({ task: 'working' }, chunk('Hel', false))
    if (endless) return
    reply.tell({ status: 'completed' })
    reply.end()
  })
  await client.send({ type: 'input.text', text: 'one' })
  await client.send({ type: 'response.create' })
  await client.next('response.delta')
  await client.send({ type: 'response.cancel' })
  await client.next('response.cancelled')
  endless = false
  await say(client, 'two')
  expect(shown(there.of('stream'))).toEqual([first('one'), next('two')])
})

test('a task that asked and is gone is begun anew, and so is a context', async () => {
  let forgotten: 'task' | 'context' | undefined
  const { client, there } = await behind(v1JsonRpc, ({ op, taskId, contextId, texts }, reply) => {
    if (op === 'get' && forgotten) return reply.refuse(-32001, 'Task not found')
    if (op === 'get') return reply.whole({ task: 'input-required' })
    if (forgotten === 'context' && contextId !== undefined) return reply.refuse(-32602, 'No such context')
    if (texts[0] === 'ended' && taskId !== undefined) return reply.refuse(-32004, 'The task has ended')
    reply.tell({ task: 'working' }, { status: 'input-required', said: { parts: [{ text: 'And?' }] } })
    reply.end()
  })
  expect(textOf(await say(client, 'one'))).toBe('And?')
  expect(textOf(await say(client, 'ended'))).toBe('And?')
  forgotten = 'task'
  expect(textOf(await say(client, 'two'))).toBe('And?')
  forgotten = 'context'
  expect(textOf(await say(client, 'three'))).toBe('And?')
  expect(shown(there.of('stream'))).toEqual([
    first('one'),
    { ...next('ended'), taskId: 'task-1' },
    next('ended'),
    next('two'),
    next('three'),
    first(`${SO_FAR.replace('Hello', 'And?')}\n\nUser: ended\n\nAssistant: And?\n\nUser: two\n\nAssistant: And?`, 'three'),
  ])
})
