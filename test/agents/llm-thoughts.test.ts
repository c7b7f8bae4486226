import { expect } from 'vitest'
import { llmAgent } from '../../src/agents/llm/index.ts'
import { modelOf } from '../../src/agents/llm/model.ts'
import { scriptedProvider } from '../../src/testing/scripted-provider.ts'
import { startServer } from '../support/server.ts'
import { say } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket } from '../support/wire.ts'
import { said } from './provider.ts'

verifies(
  'model.own-thoughts',
  'a model sees the thoughts that it signed, and not those of another that the client chose before',
  async () => {
    const turn = (word: string) => [
      { type: 'thinking' as const, content: word, is_delta: true, signature: `signed by ${word}` },
      said(`I am ${word}`),
    ]
    const a = scriptedProvider([turn('a'), turn('a')], { name: 'a' })
    const b = scriptedProvider([turn('b'), turn('b')], { name: 'b' })
    const { url } = await startServer(llmAgent({ name: 'bot', model: modelOf(a, 'm'), fallbacks: [modelOf(b, 'm')] }))
    const wire = await overWebSocket(url)
    await wire.open({ session: { modalities: ['text'] } })
    for (const model of ['a/m', 'b/m', 'a/m', 'b/m']) {
      await wire.send({ type: 'session.update', session: { extensions: { uamp: { model } } } })
      expect((await say(wire, 'Who are you?')).at(-1)).toMatchObject({ type: 'response.done' })
    }
    const thoughts = (provider: typeof a, at: number) =>
      provider.requests[at]?.messages.flatMap(({ content_items = [] }) =>
        content_items.flatMap((item) => (item.type === 'thinking' ? [[item.thinking, item.signature]] : [])),
      )
    expect(thoughts(b, 0)).toEqual([])
    expect(thoughts(a, 1)).toEqual([['a', 'signed by a']])
    expect(thoughts(b, 1)).toEqual([['b', 'signed by b']])
  },
)
