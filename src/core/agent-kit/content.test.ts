import { expect, onTestFinished, test } from 'vitest'
import { memoryStore } from '../../stores/memory.ts'
import type { ServerEvent } from '../../protocol/events.ts'
import { AgentRegistry } from '../engine/agent-registry.ts'
import { createGateway } from '../engine/gateway.ts'
import type { Said } from '../ports/agent.ts'
import { Agent } from '../../agents/agent.ts'
import { audio, file, image, progress, thinking, video } from './content.ts'
import { defineAgent } from './define-agent.ts'
import { exchange } from './exchange.ts'
import { text } from './drafts.ts'

async function heardOf(agent: Parameters<AgentRegistry['add']>[0]): Promise<ServerEvent[]> {
  const agents = new AgentRegistry()
  agents.add(agent)
  const gateway = createGateway({ agents, store: memoryStore(), log: () => undefined })
  onTestFinished(() => gateway.close())
  const heard: ServerEvent[] = []
  const principal = { tenant: 't', id: 'p', scopes: ['*'] }
  for await (const event of exchange(gateway, { agent: agent.name, principal, messages: [{ role: 'user', content: 'go' }] }))
    heard.push(event)
  return heard
}

const outputOf = (heard: readonly ServerEvent[]) => {
  const end = heard.at(-1)
  return end?.type === 'response.done' ? end.response.output : end
}

test('a text that an agent yields is a piece of its answer, like text()', async () => {
  const saying = (...said: readonly Said[]) =>
    defineAgent('it', async function* () {
      yield* said
    })
  const plain = await heardOf(saying('Hello', '', ' there'))
  const drafted = await heardOf(saying(text('Hello'), text(''), text(' there')))
  expect(outputOf(plain)).toEqual([{ type: 'text', text: 'Hello there' }])
  expect(plain.map(({ type }) => type)).toEqual(drafted.map(({ type }) => type))
})

test('so is one that a handler of a composed agent yields', async () => {
  const agent = new Agent({
    name: 'it',
    handlers: [
      {
        name: 'all',
        subscribes: [/^input\./],
        async *process() {
          yield 'Hello'
        },
      },
    ],
  })
  expect(outputOf(await heardOf(agent))).toEqual([{ type: 'text', text: 'Hello' }])
})

test('every kind of content has a function', async () => {
  const agent = defineAgent('it', async function* () {
    yield progress('Reading', { percent: 10 })
    yield thinking('Hm')
    yield image('AAAA', { format: 'png' })
    yield image(new URL('https://example.com/a.png'))
    yield audio(new Uint8Array([1, 2, 3]), { format: 'wav' })
    yield video('data:video/mp4;base64,AAAA')
    yield file(new TextEncoder().encode('a,b'), 'table.csv', { mime_type: 'text/csv' })
  })
  const heard = await heardOf(agent)
  expect(heard.find(({ type }) => type === 'progress')).toMatchObject({ target: 'response', message: 'Reading', percent: 10 })
  expect(outputOf(heard)).toMatchObject([
    { type: 'thinking', thinking: 'Hm' },
    { type: 'image', image: 'AAAA', format: 'png', content_id: expect.any(String) },
    { type: 'image', image: { url: 'https://example.com/a.png' } },
    { type: 'audio', audio: 'AQID', format: 'wav', content_id: expect.any(String) },
    { type: 'video', video: { url: 'data:video/mp4;base64,AAAA' } },
    { type: 'file', file: 'YSxi', filename: 'table.csv', mime_type: 'text/csv' },
  ])
})
