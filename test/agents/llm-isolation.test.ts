import { expect, vi } from 'vitest'
import { llmAgent } from '../../src/agents/llm/index.ts'
import type { Tool } from '../../src/core/ports/skill.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket, type Heard } from '../support/wire.ts'
import { answering, call, said, used } from './provider.ts'

vi.setConfig({ testTimeout: 120_000 })

const CLIENTS = 50
const TURNS = 20

/** A turn of the event loop, so that turns overtake each other. */
const later = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

verifies('model.isolated', '1,000 turns with parallel tools, 50 at a time, never see each other', async () => {
  let running = 0
  let most = 0
  const mark: Tool = {
    name: 'mark',
    parameters: { type: 'object', properties: { word: { type: 'string' }, n: { type: 'integer' } }, required: ['word', 'n'] },
    run: async ({ word, n }, { turn, progress }) => {
      most = Math.max(most, ++running)
      for (let times = Number(n); times > 0; times--) await later()
      progress(`${String(word)} ${String(n)}`)
      running--
      return `${turn.messages.at(-1)?.content} ${turn.sessionId} ${String(word)} ${String(n)}`
    },
  }
  const model = answering(async function* ({ messages }) {
    const asked = messages.findLast(({ role }) => role === 'user')?.content ?? ''
    await later()
    if (messages.at(-1)?.role === 'user') {
      // The ids are the same in every turn, as some models have it.
      for (const n of [3, 1, 2]) yield call(`call_${n}`, 'mark', `{"word":"${asked}",`)
      await later()
      for (const n of [3, 1, 2]) yield call(`call_${n}`, 'mark', `"n":${n}}`)
    } else {
      for (const { content } of messages.slice(-3)) yield said(`[${content}]`)
    }
    yield used({ input_tokens: 1, output_tokens: 1 })
  })
  const { url, logged } = await startServer(llmAgent({ name: 'bot', model, tools: [mark] }))

  const one = async (client: number): Promise<void> => {
    const wire = await overWebSocket(url)
    const session = await wire.open()
    for (let turn = 0; turn < TURNS; turn++) {
      const word = `w${client}x${turn}`
      const events = await say(wire, word)
      expect(textOf(events)).toBe([3, 1, 2].map((n) => `[${word} ${session} ${word} ${n}]`).join(''))
      expect(shape(events)).toEqual({ calls: 3, results: 3, progress: 3, done: 3, first: 'response.created', last: 'response.done' })
      expect(events.at(-1)?.['response'].usage).toMatchObject({ input_tokens: 2, output_tokens: 2 })
    }
    // Every event of the log, once and in order.
    const numbers = wire.heard.flatMap((event) =>
      event['session_id'] === session && event['seq'] !== undefined ? [event['seq'] as number] : [],
    )
    expect(numbers).toEqual(numbers.map((_, index) => (numbers[0] as number) + index))
    wire.close()
  }
  await Promise.all(Array.from({ length: CLIENTS }, (_, client) => one(client)))
  expect(running).toBe(0)
  expect(most).toBeGreaterThan(3)
  expect(logged.filter(({ level }) => level === 'error')).toEqual([])
})

function shape(events: readonly Heard[]) {
  const deltas = (type: string) => events.filter((event) => event.type === 'response.delta' && event['delta'].type === type)
  return {
    calls: new Set(deltas('tool_call').map((event) => event['delta'].tool_call.id as string)).size,
    results: deltas('tool_result').length,
    progress: deltas('tool_progress').length,
    done: events.filter(({ type }) => type === 'tool.call_done').length,
    first: events[0]?.type,
    last: events.at(-1)?.type,
  }
}
