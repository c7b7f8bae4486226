import { expect, test } from 'vitest'
import { llmAgent, modelOf } from '../../src/agents/llm/index.ts'
import type { ModelRequest } from '../../src/core/ports/provider.ts'
import { UampError } from '../../src/protocol/errors.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket } from '../support/wire.ts'
import { answering, said } from './provider.ts'

verifies(
  'uamp:session:provider-extensions',
  "the specification's own example chooses the model, and thinking reaches the other provider",
  async () => {
    const asked: ModelRequest[] = []
    const model = answering(
      (request) => {
        asked.push(request)
        return [said('ok')]
      },
      { name: 'openai' },
    )
    const { url } = await startServer(llmAgent({ name: 'bot', model }))
    const wire = await overWebSocket(url)
    const extensions = { openai: { model: 'gpt-4o', temperature: 0.7 }, anthropic: { thinking: true } }
    await wire.open({ session: { modalities: ['text'], extensions } })
    await say(wire, 'hi')
    await say(wire, 'hi', { create: { response: { extensions: { openai: { model: 'gpt-5-mini' } } } } })
    await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ model: 'bot', messages: [{ role: 'user', content: 'hi' }] }),
    })
    expect(asked.map((request) => request.model)).toEqual(['gpt-4o', 'gpt-5-mini', 'm'])
    expect(asked[0]?.config.extensions).toEqual(extensions)
  },
)

verifies(
  ['uamp:capabilities:model', 'uamp:capabilities:model-change'],
  'a client is told what a model can do, when it asks and when another one answers',
  async () => {
    let down = true
    const broken = answering(
      () => {
        if (down) throw new UampError('provider_error', 'down')
        return [said('back')]
      },
      { name: 'first', able: { context_window: 1000 } },
    )
    const spare = answering(() => [said('ok')], { name: 'second', able: { context_window: 2000 } })
    const { url } = await startServer(llmAgent({ name: 'bot', model: broken, fallbacks: [spare] }))
    const wire = await overWebSocket(url)
    await wire.open()
    const told = () => wire.heard.filter(({ type }) => type === 'capabilities').map((event) => event['capabilities'])
    expect(textOf(await say(wire, 'hi'))).toBe('ok')
    expect(told().at(-1)).toMatchObject({ id: 'second/m', context_window: 2000 })
    const count = told().length
    await say(wire, 'still')
    expect(told()).toHaveLength(count)
    down = false
    expect(textOf(await say(wire, 'and now'))).toBe('back')
    expect(told().at(-1)).toMatchObject({ id: 'bot', context_window: 1000 })
    expect(await wire.send({ type: 'capabilities.query', model: 'first/m' })).toBeUndefined()
    expect(told().at(-1)).toMatchObject({ id: 'first/m', context_window: 1000 })
    expect(await wire.send({ type: 'capabilities.query', model: 'third/m' })).toMatchObject({ code: 'not_found' })
  },
)

verifies(
  'uamp:capabilities:model-change',
  'a model that the client names has its own window and price, and the client is told what it can do, once',
  async () => {
    const asked: ModelRequest[] = []
    const { provider } = answering(
      (request) => {
        asked.push(request)
        return [said('ok'), { type: 'usage.delta', delta: { input_tokens: 1_000_000, input_uncached: 1_000_000 } }]
      },
      { name: 'openai' },
    )
    const windows = new Map([['small', 100]])
    const able = async (model: string) => ({ ...(await provider.capabilities(model)), context_window: windows.get(model) ?? 100_000 })
    const model = modelOf({ ...provider, capabilities: able }, 'large', { price: { input: 9, output: 9 } })
    const prices = { 'openai/small': { input: 1, output: 1 } }
    const { url } = await startServer(llmAgent({ name: 'bot', model, prices }))
    const wire = await overWebSocket(url)
    await wire.open({ session: { modalities: ['text'], extensions: { openai: { model: 'small' } } } })
    const told = () => wire.heard.filter(({ type }) => type === 'capabilities').map((event) => event['capabilities'].id)
    await say(wire, 'long ago '.repeat(200))
    const events = await say(wire, 'hi')
    expect(told()).toEqual(['bot', 'openai/small'])
    expect(events.at(-1)).toMatchObject({ response: { usage: { cost: { total_cost: 1 } } } })
    expect(asked[1]).toMatchObject({ model: 'small', messages: [{ content: 'hi' }] })
    const usual = await say(wire, 'hi', { create: { response: { extensions: { openai: {} } } } })
    expect(told()).toEqual(['bot', 'openai/small', 'bot'])
    expect(usual.at(-1)).toMatchObject({ response: { usage: { cost: { total_cost: 9 } } } })
    expect(asked[2]?.messages).toHaveLength(5)
    for (const name of ['openai/small', 'openai/any']) expect(await wire.send({ type: 'capabilities.query', model: name })).toBeUndefined()
    expect(told().slice(3)).toEqual(['openai/small', 'openai/any'])
    for (const name of ['small', 'openai/']) {
      expect(await wire.send({ type: 'capabilities.query', model: name })).toMatchObject({ code: 'not_found' })
    }
  },
)

test('a model without a known price is named in the log, once', async () => {
  const logged: unknown[] = []
  const usage = { type: 'usage.delta' as const, delta: { input_tokens: 10, output_tokens: 1 } }
  const model = answering(() => [said('ok'), usage], { name: 'nobody' })
  const log = (_level: string, message: string, fields?: object): void => void (message.includes('price') && logged.push(fields))
  const { url } = await startServer(llmAgent({ name: 'bot', model, log }))
  const wire = await overWebSocket(url)
  await wire.open()
  for (const words of ['hi', 'again']) expect((await say(wire, words)).at(-1)).toMatchObject({ response: { usage: { input_tokens: 10 } } })
  expect(logged).toEqual([{ model: 'nobody/m', request_id: expect.stringMatching(/^req_/) as string }])
})
