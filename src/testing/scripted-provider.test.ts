import { expect, test } from 'vitest'
import { startServer } from '../../test/support/server.ts'
import { say, textOf } from '../../test/support/talk.ts'
import { overWebSocket } from '../../test/support/wire.ts'
import { defineAgent } from '../core/agent-kit/define-agent.ts'
import { text } from '../core/agent-kit/drafts.ts'
import { fetchHttp } from '../core/http/fetch-http.ts'
import type { ModelRequest } from '../core/ports/provider.ts'
import { UampError } from '../protocol/errors.ts'
import type { Draft } from '../protocol/events.ts'
import { scriptedProvider } from './scripted-provider.ts'

const asking = (question: string): ModelRequest => ({
  model: 'm',
  messages: [{ role: 'user', content: question }],
  config: { modalities: ['text'] },
})

async function collect(drafts: AsyncIterable<Draft>): Promise<Draft[]> {
  const all: Draft[] = []
  for await (const draft of drafts) all.push(draft)
  return all
}

const context = (signal = new AbortController().signal) => ({ signal, http: fetchHttp(), sessionId: 's' })

test('gives its turns in order, and keeps what it was asked', async () => {
  const provider = scriptedProvider([
    [text('one')],
    ({ messages }) => [text(`You asked ${String(messages.at(-1)?.content)}`)],
    async function* () {
      yield text('three')
    },
  ])
  const messages = [...asking('first').messages]
  expect(await collect(provider.generate({ ...asking(''), messages }, context()))).toEqual([text('one')])
  messages.push({ role: 'assistant', content: 'one' })
  expect(await collect(provider.generate(asking('second'), context()))).toEqual([text('You asked second')])
  expect(await collect(provider.generate(asking('third'), context()))).toEqual([text('three')])
  expect(provider.requests).toEqual([asking('first'), asking('second'), asking('third')])
})

test('fails when the script is over, and where the script fails', async () => {
  const limited = new UampError('rate_limited', 'Slow down')
  const provider = scriptedProvider([
    () => {
      throw limited
    },
  ])
  await expect(collect(provider.generate(asking('x'), context()))).rejects.toBe(limited)
  await expect(collect(provider.generate(asking('x'), context()))).rejects.toMatchObject({
    code: 'provider_error',
    message: "The script of 'scripted' has 1 turns, and one more was asked for",
  })
})

test('stops when the turn is aborted', async () => {
  const aborting = new AbortController()
  const provider = scriptedProvider([[text('a'), text('b')]])
  const said: Draft[] = []
  const reading = (async () => {
    for await (const draft of provider.generate(asking('x'), context(aborting.signal))) {
      said.push(draft)
      aborting.abort()
    }
  })()
  await expect(reading).rejects.toMatchObject({ name: 'AbortError' })
  expect(said).toEqual([text('a')])
})

test('has the capabilities that it is given', async () => {
  const provider = scriptedProvider([], { name: 'mine', capabilities: { context_window: 100, supports_thinking: false } })
  expect(await provider.capabilities('m')).toMatchObject({ id: 'm', provider: 'mine', context_window: 100, supports_thinking: false })
})

test('speaks through a server', async () => {
  const provider = scriptedProvider([[text('Hello '), text('you')]])
  const agent = defineAgent('scripted', (turn) => provider.generate({ model: 'm', ...turn }, turn))
  const { url } = await startServer(agent)
  const wire = await overWebSocket(url)
  await wire.open()
  expect(textOf(await say(wire, 'hi'))).toBe('Hello you')
  expect(provider.requests[0]?.messages.at(-1)).toMatchObject({ role: 'user' })
})
