import { expect, test } from 'vitest'
import { startServer } from '../../test/support/server.ts'
import { say, textOf } from '../../test/support/talk.ts'
import { verifies } from '../../test/support/verifies.ts'
import { overSse, overWebSocket } from '../../test/support/wire.ts'
import type { RoutedEvent, Skill } from '../core/ports/skill.ts'
import type { Draft } from '../protocol/events.ts'
import { Agent } from './agent.ts'

const said = (text: string): Draft => ({ type: 'response.delta', delta: { type: 'text', text } })

function calculator(notes: string[] = []): Agent {
  const arithmetic: Skill = {
    name: 'arithmetic',
    tools: [{ name: 'double', run: ({ n }) => ({ n: Number(n) * 2 }) }],
    prompts: [{ priority: 2, text: () => 'Second.' }],
  }
  const manners: Skill = {
    name: 'manners',
    prompts: [{ priority: 1, text: (turn) => `First, ${turn.principal.id}.` }],
    hooks: { onStart: () => void notes.push('start'), onEnd: () => void notes.push('end') },
    observers: [{ name: 'notes', subscribes: ['sum.asked'], observe: () => void notes.push('asked') }],
    handlers: [
      {
        name: 'reader',
        subscribes: ['input.text'],
        produces: ['sum.asked', 'response.delta'],
        async *process(event, turn) {
          yield said(`${turn.config.instructions} `)
          yield { type: 'sum.asked', n: Number('text' in event ? event.text : 0) }
        },
      },
      {
        name: 'doubler',
        subscribes: [/^sum\./],
        async *process(event, turn) {
          const n = 'n' in event ? event.n : 0
          const [result] = yield* turn.runTools([{ id: 'c1', name: 'double', arguments: JSON.stringify({ n }) }])
          yield said(result?.result ?? '')
        },
      },
    ],
  }
  return new Agent({ name: 'calculator', instructions: 'Zeroth.', skills: [arithmetic, manners] })
}

for (const [binding, connect] of [
  ['WebSocket', overWebSocket],
  ['HTTP + SSE', overSse],
] as const) {
  test(`an agent of several handlers works over ${binding}`, async () => {
    const notes: string[] = []
    const { url } = await startServer(calculator(notes))
    const wire = await connect(url)
    await wire.open({ session: { modalities: ['text'], instructions: 'Last.' } })
    expect((await wire.next('capabilities'))['capabilities'].tools).toMatchObject({ supports_tools: true, built_in_tools: ['double'] })
    const events = await say(wire, '21')
    expect(textOf(events)).toBe('Zeroth.\n\nFirst, anonymous.\n\nSecond.\n\nLast. {"n":42}')
    expect(events.map(({ type }) => type)).toContain('tool.call_done')
    expect(notes).toEqual(['start', 'asked', 'end'])
  })
}

test('hooks end also where the turn fails', async () => {
  const notes: string[] = []
  const agent = new Agent({
    name: 'broken',
    skills: [{ name: 'h', hooks: { onEnd: () => void notes.push('end') } }],
    handlers: [
      {
        name: 'broken',
        subscribes: ['input.text'],
        // eslint-disable-next-line require-yield
        async *process() {
          throw new Error('ouch')
        },
      },
    ],
  })
  const { url } = await startServer(agent)
  const wire = await overWebSocket(url)
  await wire.open()
  expect((await say(wire, 'go')).at(-1)?.type).toBe('response.error')
  expect(notes).toEqual(['end'])
})

test('a skill brings routes of its own, and they come before the built-in ones', async () => {
  const agent = new Agent({
    name: 'host',
    skills: [
      {
        name: 'pages',
        routes: () => [
          {
            method: 'GET',
            path: '/hello/:who',
            access: 'public',
            handle: async (_, { params }) => Response.json({ hello: params['who'] }),
          },
          {
            method: 'GET',
            path: '/count',
            access: 'public',
            async *handle() {
              yield 'data: 1\n\n'
              yield 'data: 2\n\n'
            },
          },
          { method: 'GET', path: '/schemas/events.json', access: 'public', handle: async () => Response.json('mine') },
        ],
      },
    ],
  })
  const { url } = await startServer(agent)
  expect(await (await fetch(`${url}/hello/you`)).json()).toEqual({ hello: 'you' })
  expect(await (await fetch(`${url}/agents/host/hello/me`)).json()).toEqual({ hello: 'me' })
  const streamed = await fetch(`${url}/count`)
  expect(streamed.headers.get('content-type')).toContain('text/event-stream')
  expect(await streamed.text()).toBe('data: 1\n\ndata: 2\n\n')
  expect(await (await fetch(`${url}/schemas/events.json`)).json()).toBe('mine')
})

verifies('uamp:routing:whole-event', 'a handler gets the whole of what the client sent', async () => {
  const seen: RoutedEvent[] = []
  const agent = new Agent({
    name: 'whole',
    handlers: [
      {
        name: 'any',
        subscribes: [/^input\./],
        async *process(event) {
          seen.push(event)
          yield said('ok')
        },
      },
    ],
  })
  const { url } = await startServer(agent)
  const wire = await overWebSocket(url)
  await wire.open()
  await wire.send({ type: 'input.text', text: 'Rule.', role: 'system', context: { chat_id: 'c1' } })
  await wire.send({ type: 'input.image', image: 'AAAA', format: 'png' })
  await wire.send({ type: 'input.file', file: 'AAAA', filename: 'a.txt', mime_type: 'text/plain', metadata: { m: 1 } })
  await say(wire, 'Look')
  await wire.send({ type: 'input.image', image: 'BBBB', metadata: { chat_id: 'c2' } })
  await wire.send({ type: 'response.create' })
  await wire.next((event) => event.type === 'response.done' && seen.length === 2)
  const image = { type: 'image', image: 'AAAA', format: 'png' }
  const file = { type: 'file', file: 'AAAA', filename: 'a.txt' }
  expect(seen[0]).toMatchObject({
    type: 'input.text',
    text: 'Look',
    role: 'user',
    metadata: { m: 1 },
    content_items: [image, file, { type: 'text', text: 'Look' }],
    messages: [{ role: 'system', content: 'Rule.', context: { chat_id: 'c1' } }, { role: 'user' }],
  })
  expect(seen[1]).toMatchObject({ type: 'input.image', image: 'BBBB', role: 'user', metadata: { chat_id: 'c2' } })
  expect((seen[1] as { messages: object[] }).messages).toHaveLength(4)
})
