import { describe, expect, test } from 'vitest'
import { demo } from '../../../src/agents/demo/index.ts'
import { defineAgent } from '../../../src/core/agent-kit/define-agent.ts'
import { toolRunner } from '../../../src/core/tools/tool-loop.ts'
import type { Tool } from '../../../src/core/ports/skill.ts'
import { text } from '../../../src/core/agent-kit/drafts.ts'
import { startServer } from '../../support/server.ts'
import { isEnd, say, textOf } from '../../support/talk.ts'
import { verifies } from '../../support/verifies.ts'
import type { Connect, Heard } from '../../support/wire.ts'
import type { Draft } from '../../../src/protocol/events.ts'

const ID = '550e8400-e29b-41d4-a716-446655440000'
const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/

const offered = (...names: string[]) => ({
  session: { modalities: ['text'], tools: names.map((name) => ({ type: 'function', function: { name, parameters: { type: 'object' } } })) },
})

/** Calls every tool that the message names, at once, and answers with the results as JSON. */
function caller(tools: readonly Tool[] = []) {
  return defineAgent('caller', async function* (turn) {
    const names = (turn.messages.at(-1)?.content ?? '').split(' ')
    const calls = names.map((name, index) => ({ id: `call_${index}`, name, arguments: JSON.stringify({ index }) }))
    const results = yield* toolRunner(turn, { tools, timeoutMs: 300 })(calls)
    yield text(JSON.stringify(results))
  })
}

/** Tools of the client and of the server, in either binding. */
export function toolsContract(binding: string, connect: Connect): void {
  const open = async (agent: Parameters<typeof startServer>[0], create: object = {}) => {
    const server = await startServer(agent)
    const wire = await connect(server.url)
    await wire.open(create)
    return { ...server, wire }
  }

  describe(`tools over ${binding}`, () => {
    verifies(
      [
        'uamp:tools:call',
        'uamp:tools:call-id',
        'uamp:tools:result',
        'uamp:tools:result-order',
        'uamp:tools:result-error',
        'uamp:tools:result-media',
      ],
      'tools of the client are called at once and answered in any order',
      async () => {
        const { wire } = await open(caller(), offered('a', 'b', 'c'))
        await wire.send({ type: 'input.text', text: 'a b c' })
        await wire.send({ type: 'response.create' })
        const calls = [await wire.next('tool.call'), await wire.next('tool.call'), await wire.next('tool.call')]
        expect(calls.map((call) => [call['name'], JSON.parse(call['arguments'] as string)])).toEqual([
          ['a', { index: 0 }],
          ['b', { index: 1 }],
          ['c', { index: 2 }],
        ])
        const [a, b, c] = calls.map((call) => call['call_id'] as string)
        expect(new Set([a, b, c]).size).toBe(3)
        const image = { type: 'image', image: { url: 'https://example.com/x.png' }, content_id: 'i1' }
        await wire.send({ type: 'tool.result', call_id: c, result: '"third"', content_items: [image] })
        await wire.send({ type: 'tool.result', call_id: b, result: '"broken"', is_error: true })
        await wire.send({ type: 'tool.result', call_id: a, result: '"first"' })
        const end = await wire.next(isEnd)
        expect(end.type).toBe('response.done')
        expect(JSON.parse(textOf(wire.heard))).toMatchObject([
          { call_id: a, result: '"first"', status: 'completed', is_error: false },
          { call_id: b, result: '"broken"', status: 'failed', is_error: true },
          { call_id: c, result: '"third"', content_items: [image] },
        ])
      },
    )

    verifies(
      ['uamp:tools:call-done', 'uamp:tools:server-result', 'uamp:tools:server-progress'],
      'tools of the server run at once; one that fails is told to the agent',
      async () => {
        let running = 0
        let most = 0
        const meet: Tool = {
          name: 'meet',
          run: async (_, { progress }) => {
            most = Math.max(most, ++running)
            progress('here')
            await new Promise((resolve) => setTimeout(resolve, 20))
            running--
            return { met: true }
          },
        }
        const fail: Tool = { name: 'fail', run: () => Promise.reject(new Error('no luck')) }
        const hang: Tool = { name: 'hang', run: () => new Promise(() => undefined) }
        const { wire } = await open(caller([meet, fail, hang]))
        const events = await say(wire, 'meet meet fail hang missing')
        expect(most).toBe(2)
        expect(events.at(-1)?.type).toBe('response.done')
        expect(JSON.parse(textOf(events))).toMatchObject([
          { result: '{"met":true}', status: 'completed' },
          { result: '{"met":true}', status: 'completed' },
          { status: 'failed', is_error: true, result: expect.stringContaining('no luck') },
          { status: 'failed', is_error: true, result: expect.stringContaining('timeout') },
          { status: 'failed', is_error: true, result: expect.stringContaining('not_found') },
        ])
        const done = events.filter(({ type }) => type === 'tool.call_done').map((event) => event['call_id'] as string)
        expect(done.sort()).toEqual(['call_0', 'call_1', 'call_2', 'call_3', 'call_4'])
        const deltas = events.filter(({ type }) => type === 'response.delta').map((event) => event['delta'])
        expect(deltas.filter(({ type }) => type === 'tool_progress')[0]).toEqual({
          type: 'tool_progress',
          tool_progress: { call_id: 'call_0', text: 'here' },
        })
        expect(deltas.find(({ type }) => type === 'tool_result').tool_result).toMatchObject({
          status: expect.any(String),
          is_error: expect.any(Boolean),
        })
      },
    )

    verifies('uamp:content:id-everywhere', 'media in a result has a content id, whoever ran the tool', async () => {
      const image = { type: 'image' as const, image: 'AAAA' }
      const camera: Tool = { name: 'camera', run: () => ({ text: 'click', content_items: [image] }) }
      const remote: Draft = {
        type: 'response.delta',
        delta: { type: 'tool_result', tool_result: { call_id: 'elsewhere', result: '1', content_items: [image] } },
      }
      const agent = defineAgent('photographer', async function* (turn) {
        yield remote
        const calls = ['camera', 'phone'].map((name) => ({ id: name, name, arguments: '{}' }))
        const results = yield* toolRunner(turn, { tools: [camera] })(calls)
        yield text(JSON.stringify(results.map(({ content_items }) => content_items)))
      })
      const { wire } = await open(agent, offered('phone'))
      await wire.send({ type: 'input.text', text: 'go' })
      await wire.send({ type: 'response.create' })
      const { call_id } = await wire.next('tool.call')
      await wire.send({
        type: 'tool.result',
        call_id,
        result: '"snap"',
        content_items: [{ ...image, image: { url: `/api/content/${ID}` } }],
      })
      const { output } = (await wire.next(isEnd))['response']
      const results = output.filter(({ type }: { type: string }) => type === 'tool_result')
      const ids = Object.fromEntries(
        results.map(({ tool_result }: { tool_result: Heard }) => [tool_result['call_id'], tool_result['content_items'][0].content_id]),
      )
      expect(ids).toEqual({ elsewhere: expect.stringMatching(UUID), camera: expect.stringMatching(UUID), phone: ID })
      const told = JSON.parse(textOf(wire.heard)) as { content_id: string }[][]
      expect(told.map((items) => items[0]?.content_id)).toEqual([ids['camera'], ID])
    })

    test('a turn has a budget of tool calls', async () => {
      const agent = defineAgent('spender', async function* (turn) {
        const noop: Tool = { name: 'noop', run: () => 'ok' }
        const run = toolRunner(turn, { tools: [noop], budget: 2 })
        const calls = [1, 2, 3].map((n) => ({ id: `c${n}`, name: 'noop', arguments: '{}' }))
        yield text(JSON.stringify(yield* run(calls)))
      })
      const { wire } = await open(agent)
      expect(JSON.parse(textOf(await say(wire, 'go')))).toMatchObject([
        { result: 'ok' },
        { result: 'ok' },
        { result: expect.stringContaining('tool_budget_exceeded') },
      ])
    })

    verifies('uamp:tools:history', 'calls and results stay in the conversation', async () => {
      const { wire } = await open(demo())
      await say(wire, '/tool add {"a":2,"b":3}')
      expect(textOf(await say(wire, '/history')).split('\n')).toEqual([
        'user: /tool add {"a":2,"b":3}',
        'assistant: [call add {"a":2,"b":3}]',
        'tool: {"sum":5}',
        'assistant: add answered: {"sum":5}',
        'user: /history',
      ])
    })

    test('a result that nobody waits for is refused', async () => {
      const { wire } = await open(demo())
      expect(await wire.send({ type: 'tool.result', call_id: 'call_none', result: '1' })).toMatchObject({ code: 'not_found' })
    })

    test('of two answers the first counts', async () => {
      const { wire } = await open(caller(), offered('a', 'b'))
      await wire.send({ type: 'input.text', text: 'a b' })
      await wire.send({ type: 'response.create' })
      const a = await wire.next('tool.call')
      const b = await wire.next('tool.call')
      await wire.send({ type: 'tool.result', call_id: a['call_id'], result: '"one"' })
      expect(await wire.send({ type: 'tool.result', call_id: a['call_id'], result: '"two"' })).toMatchObject({ code: 'not_found' })
      await wire.send({ type: 'tool.result', call_id: b['call_id'], result: '"b"' })
      await wire.next(isEnd)
      expect(JSON.parse(textOf(wire.heard))[0].result).toBe('"one"')
    })

    test('a cancel ends a response that waits for a tool', async () => {
      const { wire } = await open(caller(), offered('a'))
      await wire.send({ type: 'input.text', text: 'a' })
      await wire.send({ type: 'response.create' })
      await wire.next('tool.call')
      await wire.send({ type: 'response.cancel' })
      expect((await wire.next(isEnd)).type).toBe('response.cancelled')
    })

    test('an approval is asked for and answered', async () => {
      const { wire } = await open(demo())
      await wire.send({ type: 'input.text', text: '/approve rm -rf' })
      await wire.send({ type: 'response.create' })
      const { approval_id, message } = await wire.next('x.approval.request')
      expect(message).toBe('rm -rf')
      await wire.send({ type: 'x.approval.response', approval_id, approved: false, reason: 'too risky' })
      await wire.next(isEnd)
      expect(textOf(wire.heard)).toBe('Denied: rm -rf (too risky)')
    })

    test('an approval that nobody there can give is denied at once', async () => {
      const { wire } = await open(demo(), {
        client_capabilities: { id: 't', provider: 't', modalities: ['text'], extensions: { uamp: { ack: true } } },
      })
      expect(textOf(await say(wire, '/approve it'))).toBe('Denied: it (approval_unavailable)')
    })
  })
}
