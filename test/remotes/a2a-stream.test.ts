import { once } from 'node:events'
import { expect, test } from 'vitest'
import { say, textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { behind, chunk, made, wires } from './a2a/peer.ts'
import { v03JsonRpc } from './a2a/v03.ts'
import { v1JsonRpc, v1Rest } from './a2a/v1.ts'
import type { Call } from './a2a/wire.ts'
import { begin } from './plain.ts'

for (const wire of wires) {
  verifies(
    'a2a-remote.subscribe',
    `${wire.name}: a stream that breaks is taken up again, whatever its server repeats or leaves out`,
    async () => {
      let gone = 'One two '
      const { client, there } = await behind(wire, ({ op }, reply) => {
        switch (op) {
          case 'stream':
            reply.tell({ task: 'working' }, chunk('One ', false), chunk('two '))
            return reply.cut()
          case 'subscribe':
            // The task has "three " already, and then it is told once more; "four " is never told, but it is in the task.
            gone = 'One two three '
            reply.tell({ task: 'working', ...made(gone) }, chunk('three '))
            gone = 'One two three four five'
            reply.tell(chunk('five'), { status: 'completed' })
            return reply.end()
          default:
            return reply.whole({ task: gone.endsWith('five') ? 'completed' : 'working', ...made(gone) })
        }
      })
      const events = await say(client, 'count')
      expect(textOf(events)).toBe('One two three four five')
      expect(events.at(-1)).toMatchObject({ type: 'response.done', response: { output: [{ text: 'One two three four five' }] } })
      expect(there.of('stream')).toHaveLength(1)
      expect(there.of('subscribe').length).toBeGreaterThan(0)
      expect(there.of('cancel')).toEqual([])
    },
  )
}

verifies('a2a-remote.subscribe', 'a server that goes on behind the last event it is told of is believed', async () => {
  const { client, there } = await behind(v1JsonRpc, ({ op, request }, reply) => {
    if (op === 'stream') {
      reply.tellAs('1', { task: 'working' })
      reply.tellAs('2', chunk('One ', false))
      return reply.cut()
    }
    reply.tellAs('3', chunk(`after ${String(request.headers['last-event-id'])} `))
    if (request.headers['last-event-id'] === '2') return reply.cut()
    reply.tellAs('4', { status: 'completed' })
    reply.end()
  })
  expect(textOf(await say(client, 'go'))).toBe('One after 2 after 3 ')
  expect(there.calls.map(({ op }) => op)).toEqual(['stream', 'subscribe', 'subscribe'])
})

test('a task that ended while nobody listened is looked at', async () => {
  const { client } = await behind(v1JsonRpc, ({ op }, reply) => {
    if (op === 'stream') {
      reply.tell({ task: 'working' }, chunk('Half', false))
      return reply.end()
    }
    // A2A 1.0 §3.1.6.
    if (op === 'subscribe') return reply.refuse(-32004, 'The task has ended')
    reply.whole({ task: 'completed', ...made('Half and whole') })
  })
  expect(textOf(await say(client, 'go'))).toBe('Half and whole')
})

test('over REST the stream is taken up with GET where the server does not know POST', async () => {
  let resumed = ''
  const { client } = await behind(
    v1Rest,
    ({ op, request }, reply) => {
      if (op === 'stream') {
        reply.tell({ task: 'working' })
        return reply.cut()
      }
      if (op === 'subscribe') {
        resumed = request.method ?? ''
        reply.tell({ task: 'working' })
        return reply.end()
      }
      reply.whole({ task: 'completed', ...made('Here') })
    },
    {
      other(request, response) {
        if (request.method !== 'POST' || !request.url?.endsWith(':subscribe')) return false
        response.writeHead(405).end()
        return true
      },
    },
  )
  expect(textOf(await say(client, 'go'))).toBe('Here')
  expect(resumed).toBe('GET')
})

verifies('a2a-remote.capability', 'an agent that streams less than its card says is asked without', async () => {
  const { client, there } = await behind(v03JsonRpc, ({ op }, reply) => {
    if (op === 'stream') return reply.refuse(-32004, 'Streaming is not supported')
    reply.whole({ task: 'completed', ...made('Whole') })
  })
  expect(textOf(await say(client, 'go'))).toBe('Whole')
  expect(there.calls.map(({ op }) => op)).toEqual(['stream', 'send'])
  expect(there.calls[1]?.body['params'].configuration).toMatchObject({ blocking: false })
})

test('a stream that breaks before its task is known is not asked a second time', async () => {
  const { client, there } = await behind(v1JsonRpc, (_, reply) => {
    reply.response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    reply.cut()
  })
  expect((await say(client, 'go')).at(-1)).toMatchObject({
    type: 'response.error',
    error: { code: 'provider_error', message: expect.stringMatching(/cut off/) },
  })
  expect(there.calls).toHaveLength(1)
})

verifies('a2a-remote.cancel', 'a cancel before the task is known waits for its name', async () => {
  let begun: () => void = () => undefined
  const started = new Promise<void>((resolve) => (begun = resolve))
  let told: () => void = () => undefined
  let cancelled: (call: Call) => void = () => undefined
  const cancel = new Promise<Call>((resolve) => (cancelled = resolve))
  const { client } = await behind(v1JsonRpc, (call, reply) => {
    if (call.op === 'cancel') {
      reply.whole({ task: 'canceled' })
      return cancelled(call)
    }
    told = () => reply.tell({ task: 'submitted' })
    begun()
  })
  await begin(client, 'go')
  await started
  await client.send({ type: 'response.cancel' })
  await client.next('response.cancelled')
  told()
  expect((await cancel).taskId).toBe('task-1')
})

test('a cancelled turn leaves no connection behind', async () => {
  let closed: Promise<unknown> = Promise.resolve()
  const { client } = await behind(v1JsonRpc, ({ op }, reply) => {
    if (op === 'cancel') return reply.refuse(-32002, 'It cannot be cancelled')
    closed = once(reply.response, 'close')
    reply.tell({ task: 'working' }, chunk('Well', false))
  })
  await begin(client, 'go')
  await client.next('response.delta')
  await client.send({ type: 'response.cancel' })
  await client.next('response.cancelled')
  await closed
})

verifies('a2a-remote.append', 'an artifact that is told anew adds what is new of it, or is told whole where it is another', async () => {
  const { client } = await behind(v1JsonRpc, ({ texts }, reply) => {
    const said = { growing: ['Hel', 'Hello', 'Hello you'], other: ['Draft', 'Final'], same: ['Once', 'Once'] }[texts[0] ?? ''] ?? []
    reply.tell({ task: 'working' }, ...said.map((text) => chunk(text, false)), { task: 'completed', ...made(said.at(-1) ?? '') })
    reply.end()
  })
  expect(textOf(await say(client, 'growing'))).toBe('Hello you')
  expect(textOf(await say(client, 'other'))).toBe('Draft\n\nFinal')
  expect(textOf(await say(client, 'same'))).toBe('Once')
})

verifies('a2a-remote.append', 'texts of two artifacts are two paragraphs, and a file is told once', async () => {
  const file = { id: 'f', parts: [{ raw: 'aGk=', mediaType: 'application/pdf', filename: 'a.pdf' }] }
  const { client } = await behind(v1JsonRpc, (_, reply) => {
    reply.tell({ task: 'working' }, chunk('One', false), { artifact: { id: 'b', parts: [{ text: 'Two' }] } }, { artifact: file })
    reply.tell({ artifact: file }, { task: 'completed', made: [...made('One').made, { id: 'b', parts: [{ text: 'Two' }] }, file] })
    reply.end()
  })
  expect((await say(client, 'go')).at(-1)?.['response'].output).toMatchObject([
    { type: 'text', text: 'One\n\nTwo' },
    { type: 'file', filename: 'a.pdf' },
  ])
})

test.each([
  ['text that is no JSON', 'data: {"broken\n\n', 'provider_error', /an event is not JSON/],
  ['an error in the stream', 'data: {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Oops"}}\n\n', 'provider_error', /Oops/],
])('%s ends the response as an error', async (_, line, code, message) => {
  const { client, there } = await behind(v1JsonRpc, ({ op }, reply) => {
    if (op === 'cancel') return reply.whole({ task: 'canceled' })
    reply.tell({ task: 'working' }, chunk('Well', false))
    reply.response.end(line)
  })
  const events = await say(client, 'go')
  expect(textOf(events)).toBe('Well')
  expect(events.at(-1)).toMatchObject({ type: 'response.error', error: { code, message: expect.stringMatching(message) } })
  // Nobody follows it any more.
  await expect.poll(() => there.calls.map(({ op }) => op)).toEqual(['stream', 'cancel'])
})

test.each([
  ['a page', 200, '<html>Welcome</html>', 'provider_error', /not JSON: is the address right/],
  ['something else', 200, '{"hello":"world"}', 'provider_error', /not A2A: is the address right/],
  ['a refusal of the key', 401, '{"error":{"code":-32000,"message":"key sk-123 is wrong"}}', 'provider_error', /answered 401$/],
  ['too many requests', 429, '{"message":"later"}', 'rate_limited', /answered 429/],
])('%s where an agent should be is told as an error', async (_, status, body, code, message) => {
  const { client } = await behind(v1JsonRpc, (__, reply) => {
    reply.response.writeHead(status, { 'content-type': 'application/json' }).end(body)
  })
  expect((await say(client, 'go')).at(-1)).toMatchObject({
    type: 'response.error',
    error: { code, message: expect.stringMatching(message) },
  })
})
