import { zodTextFormat } from 'openai7/helpers/zod'
import type { Response as OpenAIResponse, ResponseStreamEvent } from 'openai7/resources/responses/responses'
import { ResponsesWS } from 'openai7/resources/responses/ws'
import { describe, expect, onTestFinished, test } from 'vitest'
import * as z from 'zod'
import { demo } from '../../../src/agents/demo/index.ts'
import { defineAgent } from '../../../src/core/agent-kit/define-agent.ts'
import { text } from '../../../src/core/agent-kit/drafts.ts'
import { startProxy } from '../../client/proxy.ts'
import { startServer } from '../../support/server.ts'
import { clientOf, collect, versions } from './clients.ts'

const server = () => startServer(demo())

const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false }
const weather = { type: 'function' as const, name: 'weather', parameters, strict: true }

const Event = z.object({ name: z.string(), day: z.number(), people: z.array(z.string()) })

for (const version of versions) {
  describe(`openai ${version.version}`, () => {
    const start = async () => {
      const { url, gateway } = await server()
      return { ...clientOf(version, url), gateway, url }
    }

    test('creates, and gives the text', async () => {
      const { openai, attempts } = await start()
      const response = await openai.responses.create({ model: 'demo', input: 'hello' })
      expect(response.output_text).toBe('You said: hello')
      expect(response.usage?.total_tokens).toBeGreaterThanOrEqual(0)
      expect(attempts()).toBe(1)
    })

    test('streams raw events', async () => {
      const { openai } = await start()
      const events: ResponseStreamEvent[] = await collect(
        await openai.responses.create({ model: 'demo', input: '/count 50', stream: true }),
      )
      const said = events.map((event) => (event.type === 'response.output_text.delta' ? event.delta : '')).join('')
      expect(said.split(' ')).toHaveLength(50)
      expect(events.at(-1)?.type).toBe('response.completed')
    })

    for (const say of [
      '/count 20',
      '/think x',
      '/tool add {"a":1,"b":2}',
      '/tool add {}',
      '/image',
      '/file',
      '/audio 0.2',
      '/video',
      '/state',
      '/approve x',
    ]) {
      test(`.stream() gathers ${say}`, async () => {
        const { openai } = await start()
        const stream = openai.responses.stream({ model: 'demo', input: say })
        const final = await stream.finalResponse()
        expect(final.status).toBe('completed')
        const kept = await openai.responses.retrieve(final.id)
        // The helper adds what it parsed.
        expect(final.output).toMatchObject(kept.output as object[])
      })
    }

    test('a tool loop by previous_response_id', async () => {
      const { openai } = await start()
      const stream = openai.responses.stream({ model: 'demo', input: '/tool weather {"city":"Oslo"}', tools: [weather] })
      const one = await stream.finalResponse()
      const [call] = one.output
      if (call?.type !== 'function_call') throw new Error('It did not call')
      expect(JSON.parse(call.arguments)).toEqual({ city: 'Oslo' })
      const two = await openai.responses.create({
        model: 'demo',
        previous_response_id: one.id,
        input: [{ type: 'function_call_output', call_id: call.call_id, output: 'sun' }],
        tools: [weather],
      })
      expect(two.output_text).toBe('weather answered: sun')
      expect(two.previous_response_id).toBe(one.id)
    })

    test('parses what fits a schema', async () => {
      const { openai } = await start()
      const format =
        version.version[0] === '7'
          ? zodTextFormat(Event, 'event')
          : { type: 'json_schema' as const, name: 'event', strict: true, schema: z.toJSONSchema(Event) }
      const response = await openai.responses.parse({ model: 'demo', input: '/json', text: { format } })
      const parsed: unknown = response.output_parsed ?? JSON.parse(response.output_text)
      expect(Event.parse(parsed)).toEqual(parsed)
    })

    test('retrieves, lists the input, deletes', async () => {
      const { openai } = await start()
      const input = Array.from({ length: 30 }, (_, n) => ({ role: 'user' as const, content: `m${n}` }))
      const { id } = await openai.responses.create({ model: 'demo', input, metadata: { a: 'b' } })
      const kept = await openai.responses.retrieve(id)
      expect([kept.output_text, kept.metadata]).toEqual(['You said: m29', { a: 'b' }])
      const items = await collect(openai.responses.inputItems.list(id, { order: 'asc', limit: 7 }))
      expect(items).toHaveLength(30)
      expect(new Set(items.map((item) => item.id)).size).toBe(30)
      await openai.responses.delete(id)
      await expect(openai.responses.retrieve(id)).rejects.toMatchObject({ status: 404, name: 'Error' })
    })

    test('runs in the background, is streamed again, and cancelled', async () => {
      const { openai } = await start()
      const begun = await openai.responses.create({ model: 'demo', input: '/count 1000000 20', background: true })
      expect(begun.status).toBe('in_progress')
      const events = await openai.responses.retrieve(begun.id, { stream: true, starting_after: 3 })
      let seen = 0
      for await (const event of events) {
        expect(event.sequence_number).toBe(4 + seen)
        if (++seen === 10) break
      }
      const cancelled = (await openai.responses.cancel(begun.id)) as OpenAIResponse
      expect(cancelled.status).toBe('cancelled')
      expect((await openai.responses.retrieve(begun.id)).status).toBe('cancelled')
    })

    test('leaving the loop stops the agent', async () => {
      const { openai, gateway } = await start()
      const stream = await openai.responses.create({ model: 'demo', input: '/count 1000000 5', stream: true })
      for await (const event of stream) if (event.type === 'response.output_text.delta') break
      await expect.poll(() => [gateway.openResponses, gateway.openSessions]).toEqual([0, 0])
    })

    test('errors have their class and are not repeated where that would be paid for', async () => {
      const { openai, attempts } = await start()
      await expect(openai.responses.create({ model: 'demo', input: 'x', previous_response_id: 'resp_1' })).rejects.toMatchObject({
        status: 400,
        code: 'previous_response_not_found',
        param: 'previous_response_id',
      })
      await expect(openai.responses.create({ model: 'demo', input: '/error provider_error' })).rejects.toMatchObject({ status: 502 })
      expect(attempts()).toBe(2)
    })

    test('20 streams in a row use at most 2 connections, and none is cut off', async () => {
      const ends: boolean[] = []
      const counting = defineAgent('counting', async function* ({ signal }) {
        try {
          for (const word of ['1', ' 2', ' 3']) yield text(word)
        } finally {
          ends.push(signal.aborted)
        }
      })
      const proxy = await startProxy((await startServer(counting)).port)
      onTestFinished(() => proxy.close())
      const { openai } = clientOf(version, proxy.url)
      for (let n = 0; n < 20; n++) {
        const events = await collect(await openai.responses.create({ model: 'x', input: 'x', stream: true }))
        expect(events.at(-1)?.type).toBe('response.completed')
      }
      expect(ends).toEqual(Array.from({ length: 20 }, () => false))
      expect(proxy.accepted).toBeLessThanOrEqual(2)
    })
  })
}

describe('ResponsesWS of openai 7.53.0', () => {
  const [newest] = versions
  const connect = async (url: string) => {
    if (!newest) throw new Error('There is no client')
    const socket = new ResponsesWS(clientOf(newest, url).openai)
    onTestFinished(() => socket.close())
    const heard: { type: string; [field: string]: any }[] = [] // eslint-disable-line
    let wake = (): void => undefined
    socket.on('event', (event) => {
      heard.push(event as never)
      wake()
    })
    socket.on('error', () => wake())
    const ask = async (event: object) => {
      const from = heard.length
      socket.send({ type: 'response.create', ...event } as never)
      const isEnd = ({ type }: { type: string }): boolean => type === 'response.completed' || type === 'error'
      while (!heard.slice(from).some(isEnd)) await new Promise<void>((resolve) => (wake = resolve))
      return heard.slice(from)
    }
    return { socket, ask }
  }

  test('several responses in sequence, each going on from the last', async () => {
    const { url } = await server()
    const { ask } = await connect(url)
    const first = await ask({ model: 'demo', input: 'one' })
    const response = first.at(-1)?.['response'] as OpenAIResponse
    expect(first[0]?.type).toBe('response.created')
    const second = await ask({ model: 'demo', input: '/history', previous_response_id: response.id })
    const said = second.map((event) => (event.type === 'response.output_text.delta' ? (event['delta'] as string) : '')).join('')
    expect(said).toBe('user: one\nassistant: You said: one\nuser: /history')
  })

  test('an error is an event, and the socket goes on', async () => {
    const { url } = await startServer(
      defineAgent('plain', async function* () {
        yield text('fine')
      }),
    )
    const { ask } = await connect(url)
    expect((await ask({ model: 'x', input: 'x', previous_response_id: 'resp_1' })).at(-1)).toMatchObject({ type: 'error', status: 400 })
    expect((await ask({ model: 'x', input: 'x' })).at(-1)).toMatchObject({ type: 'response.completed' })
  })
})
