import { describe, expect, test } from 'vitest'
import { demo } from '../../../src/agents/demo/index.ts'
import { defineAgent } from '../../../src/core/agent-kit/define-agent.ts'
import type { Draft } from '../../../src/protocol/events.ts'
import { text } from '../../../src/core/agent-kit/drafts.ts'
import { endless, mirror, scripted } from '../../support/agents.ts'
import { startServer } from '../../support/server.ts'
import { isEnd, mirrored, say, textOf } from '../../support/talk.ts'
import { verifies } from '../../support/verifies.ts'
import type { Connect, Heard } from '../../support/wire.ts'

/** Responses and their ends, in either binding. */
export function responsesContract(binding: string, connect: Connect): void {
  const open = async (agent: Parameters<typeof startServer>[0], create: object = {}) => {
    const server = await startServer(agent)
    const wire = await connect(server.url)
    await wire.open(create)
    return { ...server, wire }
  }

  describe(`responses over ${binding}`, () => {
    verifies(
      [
        'uamp:response:start',
        'uamp:response:created',
        'uamp:response:id',
        'uamp:response:order',
        'uamp:response:one-end',
        'uamp:response:done-output',
        'uamp:response:done-status',
      ],
      'a response is created, streamed and done',
      async () => {
        const { wire } = await open(scripted(['one', ' two', ' three'].map(text)))
        await wire.send({ type: 'input.text', text: 'go' })
        expect(wire.heard.some(({ type }) => type.startsWith('response.'))).toBe(false)
        const events = await say(wire, 'now')
        expect(events.map(({ type }) => type)).toEqual([
          'response.created',
          'response.delta',
          'response.delta',
          'response.delta',
          'response.done',
        ])
        expect(new Set(events.map((event) => event['response_id'])).size).toBe(1)
        expect(textOf(events)).toBe('one two three')
        expect(events.at(-1)?.['response']).toMatchObject({
          id: events[0]?.['response_id'],
          status: 'completed',
          output: [{ type: 'text', text: 'one two three' }],
        })
        const seqs = events.map((event) => event['seq'] as number)
        expect(seqs).toEqual(seqs.map((_, index) => (seqs[0] as number) + index))
      },
    )

    verifies(['uamp:response:done-usage', 'uamp:response:usage-delta', 'uamp:response:usage-total'], 'usage is summed up', async () => {
      const { wire } = await open(
        scripted([
          { type: 'usage.delta', delta: { input_tokens: 20, output_tokens: 2 } },
          text('x'),
          { type: 'usage.delta', delta: { output_tokens: 5, cost: { total_cost: 0.5, currency: 'USD' } } },
        ]),
      )
      const events = await say(wire, 'go')
      expect(events.at(-1)?.['response'].usage).toEqual({
        input_tokens: 20,
        output_tokens: 7,
        total_tokens: 27,
        cost: { total_cost: 0.5, currency: 'USD' },
      })
      expect(events.filter(({ type }) => type === 'usage.delta')).toHaveLength(2)
    })

    verifies('uamp:response:error', 'an agent that fails gives response.error, and what it said stays inside', async () => {
      const { wire, logged } = await open(
        defineAgent('broken', async function* () {
          yield text('so far')
          throw new Error('password=hunter2')
        }),
      )
      const events = await say(wire, 'go')
      expect(events.at(-1)).toMatchObject({
        type: 'response.error',
        response_id: events[0]?.['response_id'],
        error: { code: 'internal', message: 'Internal error' },
      })
      expect(JSON.stringify(wire.heard)).not.toContain('hunter2')
      expect(logged.some(({ level, fields }) => level === 'error' && String(fields?.['error']).includes('hunter2'))).toBe(true)
      expect((await say(wire, 'again')).at(-1)?.type).toBe('response.error')
    })

    verifies(
      ['uamp:response:cancel-current', 'uamp:response:cancelled', 'uamp:response:partial-output'],
      'a cancel stops an agent that never waits; nothing follows',
      async () => {
        const { agent, stopped } = endless()
        const { wire } = await open(agent)
        await wire.send({ type: 'input.text', text: 'go' })
        await wire.send({ type: 'response.create' })
        await wire.next((event) => event.type === 'response.delta' && textOf([event]) === '20 ')
        expect(await wire.send({ type: 'response.cancel' })).toBeUndefined()
        const end = await wire.next('response.cancelled')
        await stopped
        const said = textOf(wire.heard)
        expect(end['partial_output']).toEqual([{ type: 'text', text: said }])
        await wire.send({ type: 'capabilities.query' })
        await wire.next((event) => event.type === 'capabilities' && wire.heard.indexOf(event) > wire.heard.indexOf(end))
        expect(wire.heard.slice(wire.heard.indexOf(end) + 1).filter(({ type }) => type.startsWith('response.'))).toEqual([])
      },
    )

    verifies(
      ['uamp:response:cancel-by-id', 'uamp:response:cancel-other-id'],
      'a cancel may name its response, and touches no other',
      async () => {
        const { agent, stopped } = endless()
        const { wire } = await open(agent)
        await wire.send({ type: 'response.create' })
        const { response_id } = await wire.next('response.created')
        expect(await wire.send({ type: 'response.cancel', response_id: 'resp_other' })).toMatchObject({ code: 'not_found' })
        const heard = wire.heard.length
        await wire.next((event) => event.type === 'response.delta' && wire.heard.indexOf(event) >= heard)
        await wire.send({ type: 'response.cancel', response_id })
        expect(await wire.next('response.cancelled')).toMatchObject({ response_id })
        await stopped
      },
    )

    test('one response at a time: a second request is refused and the first goes on', async () => {
      const { wire } = await open(demo())
      await wire.send({ type: 'input.text', text: '/count 30 10' })
      await wire.send({ type: 'response.create' })
      const { response_id } = await wire.next('response.created')
      expect(await wire.send({ type: 'response.create' })).toMatchObject({ code: 'response_in_progress', details: { response_id } })
      const end = await wire.next((event) => isEnd(event) && event['response_id'] === response_id)
      expect(end.type).toBe('response.done')
      expect(textOf(wire.heard)).toBe(Array.from({ length: 30 }, (_, n) => n + 1).join(' '))
    })

    test('an event that is sent again is without effect', async () => {
      const { wire } = await open(mirror)
      const input = { type: 'input.text', text: 'once', event_id: `twice-${Math.random()}` }
      await wire.send(input)
      await wire.send(input)
      const create = { type: 'response.create', event_id: `again-${Math.random()}` }
      await wire.send(create)
      const end = await wire.next(isEnd)
      await wire.send(create)
      expect(mirrored(wire.heard).messages).toMatchObject([{ role: 'user', content: 'once' }])
      await wire.send({ type: 'capabilities.query' })
      await wire.next((event) => event.type === 'capabilities' && wire.heard.indexOf(event) > wire.heard.indexOf(end))
      expect(wire.heard.filter(({ type }) => type === 'response.created')).toHaveLength(1)
    })

    verifies(
      [
        'uamp:response:override',
        'uamp:response:override-once',
        'uamp:response:format-override',
        'uamp:response:format-session',
        'uamp:session:config-reaches-agent',
        'uamp:tools:offered',
      ],
      'a response.create overrides the session for itself only',
      async () => {
        const tool = (name: string) => ({ type: 'function', function: { name, parameters: { type: 'object', properties: {} } } })
        const session = {
          modalities: ['text'],
          instructions: 'Session.',
          tools: [tool('a')],
          response_format: { type: 'json_object' },
          extensions: { vendor: { deep: [1, { two: 2 }] } },
        }
        const { wire } = await open(mirror, { session })
        const create = {
          response: { modalities: ['text', 'audio'], instructions: 'Once.', tools: [tool('b')] },
          response_format: { type: 'text' },
        }
        expect(mirrored(await say(wire, 'one', { create })).config).toMatchObject({ ...create.response, response_format: { type: 'text' } })
        expect(mirrored(await say(wire, 'two')).config).toEqual(session)
      },
    )

    verifies(
      ['uamp:response:format-default', 'uamp:response:format-json'],
      'the demo answers in the format that is asked for',
      async () => {
        const { wire } = await open(demo())
        expect(textOf(await say(wire, 'hello'))).toBe('You said: hello')
        expect(JSON.parse(textOf(await say(wire, '/json', { create: { response_format: { type: 'json_object' } } })))).toBeTypeOf('object')
        const schema = { type: 'object', properties: { temp: { type: 'number' }, city: { type: 'string' } }, required: ['temp', 'city'] }
        const format = { type: 'json_schema', json_schema: { name: 'weather', schema, strict: true } }
        expect(JSON.parse(textOf(await say(wire, '/json', { create: { response_format: format } })))).toEqual({
          temp: expect.any(Number),
          city: expect.any(String),
        })
      },
    )

    const everyKind: Draft[] = [
      text('t'),
      { type: 'response.delta', delta: { type: 'audio', audio: 'AAAA' } },
      { type: 'response.delta', delta: { type: 'tool_call', tool_call: { id: 'c1', name: 'f', arguments: '{"a":' } } },
      { type: 'response.delta', delta: { type: 'tool_call', tool_call: { id: 'c1', name: 'f', arguments: '1}' } } },
      { type: 'response.delta', delta: { type: 'tool_progress', tool_progress: { call_id: 'c1', text: 'half' } } },
      {
        type: 'response.delta',
        delta: { type: 'tool_result', tool_result: { call_id: 'c1', result: '2', status: 'completed', is_error: false } },
      },
      { type: 'response.delta', delta: { type: 'image', image: { url: 'https://example.com/a.png' }, content_id: 'i1' } },
      { type: 'progress', target: 'tool', target_id: 'c1', stage: 's', message: 'm', percent: 50, step: 1, total_steps: 2 },
      { type: 'audio.delta', audio: 'AAAA' },
      { type: 'audio.done', duration_ms: 10 },
      { type: 'transcript.delta', transcript: 'he' },
      { type: 'transcript.done', transcript: 'hello' },
      { type: 'thinking', content: 'hm', is_delta: true },
    ]
    verifies(
      ['uamp:response:deltas', 'uamp:response:progress', 'uamp:response:audio', 'uamp:response:transcript', 'uamp:response:thinking'],
      'everything an agent yields arrives as it was made',
      async () => {
        const { wire } = await open(scripted(everyKind))
        const events = await say(wire, 'go')
        const stamped = ['session_id', 'event_id', 'timestamp', 'response_id', 'seq']
        const drafts = events
          .slice(1, -1)
          .map((event) => Object.fromEntries(Object.entries(event).filter(([name]) => !stamped.includes(name))))
        expect(drafts).toEqual(everyKind)
        const { output } = events.at(-1)?.['response'] as { output: Heard[] }
        expect(output.map(({ type }) => type)).toEqual(['text', 'audio', 'tool_call', 'tool_result', 'image', 'thinking'])
        expect(output[2]).toMatchObject({ tool_call: { id: 'c1', name: 'f', arguments: '{"a":1}' } })
      },
    )

    verifies(
      [
        'uamp:response:thinking-kept',
        'uamp:response:thinking-merged',
        'uamp:response:thinking-position',
        'uamp:response:thinking-redacted',
      ],
      'thinking is kept in its place, merged, and in the history',
      async () => {
        const drafts: Draft[] = [
          { type: 'thinking', content: 'first ', stage: 'analyzing', is_delta: true },
          { type: 'thinking', content: 'thought', is_delta: true },
          text('said'),
          { type: 'thinking', content: 'whole', is_delta: false },
          { type: 'thinking', content: 'hidden', redacted: true, is_delta: true },
        ]
        const thinker = defineAgent('thinker', async function* (turn) {
          if (turn.messages.length > 1) yield text(JSON.stringify(turn.messages[1]?.content_items))
          else yield* drafts
        })
        const { wire } = await open(thinker)
        const kept = [
          { type: 'thinking', thinking: 'first thought', stage: 'analyzing' },
          { type: 'text', text: 'said' },
          { type: 'thinking', thinking: 'whole' },
          { type: 'thinking', thinking: 'hidden', redacted: true },
        ]
        expect((await say(wire, 'go')).at(-1)?.['response'].output).toEqual(kept)
        expect(JSON.parse(textOf(await say(wire, 'and?')))).toEqual(kept)
      },
    )

    verifies('uamp:session:error-scope', 'what fails for a session is told as such, and so is what fails for a response', async () => {
      const { wire } = await open(demo())
      const refusal = await wire.send({ type: 'input.text', text: 5 as never })
      expect(refusal).toMatchObject({ code: 'invalid_request' })
      expect(['response.error', 400]).toContain(refusal?.as)
      const lost = await wire.send({ type: 'session.update', session_id: 'sess_none' })
      expect(lost).toMatchObject({ code: 'not_found' })
      expect(['session.error', 404]).toContain(lost?.as)
    })
  })
}
