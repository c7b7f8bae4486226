import { describe, expect, test } from 'vitest'
import { demo } from '../../../src/agents/demo/index.ts'
import { defineAgent } from '../../../src/core/agent-kit/define-agent.ts'
import { text } from '../../../src/core/agent-kit/drafts.ts'
import type { Turn } from '../../../src/core/ports/agent.ts'
import { toolRunner } from '../../../src/core/tools/tool-loop.ts'
import { startServer } from '../../support/server.ts'
import { clientOf, collect, user, versions, type OpenAI } from './clients.ts'

const call = (turn: Turn, number: number, city: string) => ({
  id: `call_${turn.id}_${number}`,
  name: 'weather',
  arguments: JSON.stringify({ city }),
})

/** Asks for one city, then for the next. */
const oneByOne = defineAgent('one-by-one', async function* (turn) {
  const run = toolRunner(turn, { tools: [] })
  yield text('Let me see. ')
  const [first] = yield* run([call(turn, 1, 'Oslo')])
  const [second] = yield* run([call(turn, 2, 'Rome')])
  yield text(`${first?.result}; ${second?.result}`)
})

const atOnce = defineAgent('at-once', async function* (turn) {
  const results = yield* toolRunner(turn, { tools: [] })([call(turn, 1, 'Oslo'), call(turn, 2, 'Rome')])
  yield text(results.map(({ result }) => result).join('; '))
})

/** As a model does it: it reads what it was told, and calls for the rest, with arguments in pieces. */
const piecemeal = defineAgent('piecemeal', async function* (turn) {
  const { messages } = turn
  const told = messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1).filter(({ role }) => role === 'tool')
  const results = told.map(({ content }) => content)
  for (const city of ['Oslo', 'Rome'].slice(results.length)) {
    const { id, name, arguments: args } = call(turn, results.length, city)
    for (const piece of args.match(/.{1,4}/g) ?? []) {
      yield { type: 'response.delta', delta: { type: 'tool_call', tool_call: { id, name, arguments: piece } } }
    }
    results.push((await turn.ask('tool.call', { call_id: id, name, arguments: args })).result)
  }
  yield text(results.join('; '))
})

const parameters = { type: 'object' as const, properties: { city: { type: 'string' as const } }, required: ['city'] }
const weather = { type: 'function' as const, function: { name: 'weather', description: 'The weather in a city', parameters } }

/** The tool as `runTools` takes it; `asked` gathers the cities. */
const runnable = (asked: string[]) => ({
  type: 'function' as const,
  function: {
    ...weather.function,
    parse: (given: string) => JSON.parse(given) as { city: string },
    function: ({ city }: { city: string }) => {
      asked.push(city)
      return `${city}: sun`
    },
  },
})

interface Said {
  readonly role: string
  readonly content?: unknown
  readonly tool_calls?: readonly { id: string; function: { name: string; arguments: string } }[]
  readonly tool_call_id?: string
}

/** Every call has an id of its own, and its answer bears it. */
function expectPaired(messages: readonly Said[]): void {
  const ids = messages.flatMap(({ tool_calls }) => tool_calls ?? []).map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
  expect(messages.flatMap(({ tool_call_id }) => tool_call_id ?? [])).toEqual(ids)
}

describe.each(versions)('openai $version', (version) => {
  const connect = async (options = {}): Promise<OpenAI> => {
    const { url } = await startServer([demo(), oneByOne, atOnce, piecemeal], options)
    return clientOf(version, url).openai
  }

  describe.each([
    ['one after the other', 'one-by-one', ['assistant', 'tool', 'assistant', 'tool', 'assistant']],
    ['both at once', 'at-once', ['assistant', 'tool', 'tool', 'assistant']],
    ['with arguments in pieces', 'piecemeal', ['assistant', 'tool', 'assistant', 'tool', 'assistant']],
  ] as const)('two calls, %s', (_, model, roles) => {
    const check = (content: string | null, messages: readonly unknown[], asked: readonly string[]): void => {
      expect(content).toMatch(/Oslo: sun; Rome: sun$/)
      expect(asked).toEqual(['Oslo', 'Rome'])
      const said = messages as Said[]
      expect(said.map(({ role }) => role)).toEqual(['user', ...roles])
      expectPaired(said)
    }

    test('runTools', async () => {
      const asked: string[] = []
      const openai = await connect()
      const runner = openai.chat.completions.runTools({ ...user('Weather?'), model, tools: [runnable(asked)] })
      check(await runner.finalContent(), runner.messages, asked)
      expect(await runner.finalFunctionToolCallResult()).toBe('Rome: sun')
    })

    test('runTools, streamed', async () => {
      const asked: string[] = []
      const openai = await connect()
      const runner = openai.chat.completions.runTools({ ...user('Weather?'), model, stream: true, tools: [runnable(asked)] })
      const names: string[] = []
      runner.on('functionToolCall', ({ name }) => names.push(name))
      check(await runner.finalContent(), runner.messages, asked)
      expect(names).toEqual(['weather', 'weather'])
    })
  })

  test('a tool loop over three requests keeps its ids and streams the arguments', async () => {
    const openai = await connect()
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Weather?' }]
    for (const city of ['Oslo', 'Rome']) {
      const chunks = await collect(await openai.chat.completions.create({ model: 'piecemeal', messages, tools: [weather], stream: true }))
      const deltas = chunks.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? [])
      const [first] = deltas
      expect(first).toMatchObject({ index: 0, id: expect.any(String), type: 'function', function: { name: 'weather' } })
      for (const { index, id = first?.id } of deltas) expect([index, id]).toEqual([0, first?.id])
      expect(deltas.filter((delta) => delta.function?.arguments).length).toBeGreaterThan(2)
      const args = deltas.map((delta) => delta.function?.arguments ?? '').join('')
      expect(JSON.parse(args)).toEqual({ city })
      expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe('tool_calls')
      const id = first?.id ?? ''
      messages.push(
        { role: 'assistant', content: null, tool_calls: [{ id, type: 'function', function: { name: 'weather', arguments: args } }] },
        { role: 'tool', tool_call_id: id, content: `${city}: sun` },
      )
    }
    const last = await openai.chat.completions.create({ model: 'piecemeal', messages, tools: [weather] })
    expect(last.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'Oslo: sun; Rome: sun' } })
    expect(last.choices[0]?.message.tool_calls).toBeUndefined()
    expectPaired(messages as Said[])
  })

  test('.stream() tells of a call when its arguments are complete', async () => {
    const openai = await connect()
    const stream = openai.chat.completions.stream({ ...user('Weather?'), model: 'piecemeal', tools: [weather] })
    const pieces: string[] = []
    const complete: string[] = []
    stream.on('tool_calls.function.arguments.delta', ({ arguments_delta }) => pieces.push(arguments_delta))
    stream.on('tool_calls.function.arguments.done', (done) => complete.push(done.arguments))
    const { choices } = await stream.finalChatCompletion()
    expect(choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: { tool_calls: [{ type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } }] },
    })
    expect(pieces.join('')).toBe('{"city":"Oslo"}')
    expect(pieces.length).toBeGreaterThan(1)
    expect(complete).toEqual(['{"city":"Oslo"}'])
  })

  test('the demo calls a tool of the client', async () => {
    const openai = await connect()
    const asked: string[] = []
    const runner = openai.chat.completions.runTools({ ...user('/tool weather {"city":"Bonn"}'), tools: [runnable(asked)] })
    expect(await runner.finalContent()).toBe('weather answered: Bonn: sun')
    expect(asked).toEqual(['Bonn'])
  })

  test('tools that ran on the server are not for the client to run', async () => {
    const openai = await connect()
    const whole = await openai.chat.completions.create({ ...user('/tool add {"a":1,"b":2}'), tools: [weather] })
    const streamed = await openai.chat.completions.stream({ ...user('/tool add {"a":1,"b":2}'), tools: [weather] }).finalChatCompletion()
    for (const { choices } of [whole, streamed]) {
      expect(choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'add answered: {"sum":3}' } })
      expect(choices[0]?.message.tool_calls).toBeUndefined()
    }
  })

  test('a question goes on in the history: a second user message begins a new turn', async () => {
    const openai = await connect()
    const asked: string[] = []
    const runner = openai.chat.completions.runTools({ ...user('Weather?'), model: 'at-once', tools: [runnable(asked)] })
    await runner.done()
    const again = openai.chat.completions.runTools({
      model: 'at-once',
      messages: [...(runner.messages as OpenAI.ChatCompletionMessageParam[]), { role: 'user', content: 'And now?' }],
      tools: [runnable(asked)],
    })
    expect(await again.finalContent()).toBe('Oslo: sun; Rome: sun')
    expect(asked).toEqual(['Oslo', 'Rome', 'Oslo', 'Rome'])
    expectPaired(again.messages as Said[])
  })

  test('arguments that the client cannot read, and a tool that nobody has', async () => {
    const openai = await connect()
    const failing = runnable([])
    failing.function.parse = () => {
      throw new Error('No signal')
    }
    const runner = openai.chat.completions.runTools({ ...user('/tool weather {"city":"Bonn"}'), tools: [failing] })
    expect(await runner.finalContent()).toContain('No signal')
    const { choices } = await openai.chat.completions.create({ ...user('/tool telescope'), tools: [weather] })
    expect(choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: expect.stringContaining('There is no tool') } })
  })
})
