import { describe, expect } from 'vitest'
import { demo } from '../../../src/agents/demo/index.ts'
import { defineAgent } from '../../../src/core/agent-kit/define-agent.ts'
import { text } from '../../../src/core/agent-kit/drafts.ts'
import { scripted } from '../../support/agents.ts'
import { startServer } from '../../support/server.ts'
import { say, textOf } from '../../support/talk.ts'
import { verifies } from '../../support/verifies.ts'
import type { Connect, Heard } from '../../support/wire.ts'

const ACK = { uamp: { ack: true } }
const MODALITIES = ['text', 'image', 'audio', 'video', 'file']
const client = (said: object) => ({ client_capabilities: { id: 'me', provider: 'me', modalities: MODALITIES, extensions: ACK, ...said } })

const outputOf = (events: readonly Heard[]): { type: string; text?: string }[] => events.at(-1)?.['response'].output
const typesOf = (events: readonly Heard[]): string[] => [
  ...new Set(events.map(({ type, delta }) => (type === 'response.delta' ? `delta ${delta.type}` : type))),
]

const everything = defineAgent('everything', async function* () {
  yield { type: 'thinking', content: 'Let me see.' }
  yield { type: 'response.delta', delta: { type: 'tool_call', tool_call: { id: 'c1', name: 'look', arguments: '{}' } } }
  const shot = { type: 'image' as const, image: 'aGk=', content_id: 'shot-1' }
  const tool_result = { call_id: 'c1', result: '"done"', content_items: [shot] }
  yield { type: 'response.delta', delta: { type: 'tool_result', tool_result } }
  yield text('Here: ')
  yield {
    type: 'response.delta',
    delta: { type: 'image', image: { url: 'https://example.com/cat.png' }, alt_text: 'a cat', content_id: 'cat-1' },
  }
  yield text('bye')
})

/** What a client gets that says what it cannot do, in either binding. */
export function viewsContract(binding: string, connect: Connect): void {
  describe(`views over ${binding}`, () => {
    verifies('uamp:capabilities:streaming', 'without streaming the answer comes in one piece', async () => {
      const { url } = await startServer(demo())
      const wire = await connect(url)
      await wire.open(client({ supports_streaming: false }))
      const events = await say(wire, '/count 300')
      expect(typesOf(events)).toEqual(['response.created', 'response.done'])
      expect(outputOf(events)[0]?.text).toContain('300')
      // What is not said is not forbidden.
      const other = await connect(url)
      await other.open(client({}))
      expect(typesOf(await say(other, '/count 3'))).toContain('delta text')
    })

    verifies('uamp:capabilities:streaming', 'a question is asked all the same', async () => {
      const { url } = await startServer(demo())
      const wire = await connect(url)
      const tools = [{ type: 'function', function: { name: 'mine', parameters: { type: 'object' } } }]
      await wire.open({
        ...client({ supports_streaming: false, tools: { supports_tools: false } }),
        session: { modalities: ['text'], tools },
      })
      await wire.send({ type: 'input.text', text: '/tool mine {}' })
      await wire.send({ type: 'response.create' })
      const { call_id } = await wire.next('tool.call')
      await wire.send({ type: 'tool.result', call_id, result: '"yes"' })
      await wire.next('response.done')
    })

    verifies('uamp:capabilities:thinking', 'without thinking there is none, neither streamed nor in the output', async () => {
      const { url } = await startServer(everything)
      const wire = await connect(url)
      await wire.open(client({ supports_thinking: false }))
      const events = await say(wire, 'go')
      expect(typesOf(events)).not.toContain('thinking')
      expect(outputOf(events).map(({ type }) => type)).toEqual(['tool_call', 'tool_result', 'text', 'image', 'text'])
      const other = await connect(url)
      await other.open(client({}))
      const all = await say(other, 'go')
      expect(typesOf(all)).toContain('thinking')
      expect(outputOf(all)[0]?.type).toBe('thinking')
    })

    verifies('uamp:capabilities:tools', 'without tools the calls of the agent are not shown', async () => {
      const { url } = await startServer(everything)
      const wire = await connect(url)
      await wire.open(client({ tools: { supports_tools: false } }))
      const events = await say(wire, 'go')
      expect(typesOf(events)).toEqual(['response.created', 'thinking', 'delta text', 'delta image', 'response.done'])
      expect(outputOf(events).map(({ type }) => type)).toEqual(['thinking', 'text', 'image', 'text'])
    })

    verifies('uamp:capabilities:modalities', 'an image is told in words to a client that takes only text', async () => {
      const { url } = await startServer(everything)
      const wire = await connect(url)
      await wire.open(client({ modalities: ['text'] }))
      const events = await say(wire, 'go')
      const told = '[image "a cat", content_id cat-1: it cannot be shown here] https://example.com/cat.png'
      expect(textOf(events)).toBe(`Here: ${told}bye`)
      expect(
        outputOf(events)
          .filter(({ type }) => type === 'text')
          .map(({ text }) => text),
      ).toEqual(['Here: ', told, 'bye'])
      expect(JSON.stringify(events)).not.toContain('aGk=')
      expect(JSON.stringify(events)).toContain('shot-1')
    })

    verifies('uamp:capabilities:modalities', 'speech is told by its words, once, to a client that cannot hear', async () => {
      const piece = { audio: 'AAAA', format: 'pcm16' }
      const { url } = await startServer(
        scripted([
          { type: 'audio.delta', ...piece },
          { type: 'transcript.delta', transcript: 'Good day' },
          { type: 'audio.done' },
          { type: 'response.delta', delta: { type: 'audio', ...piece, transcript: 'Good day', content_id: 'voice-1' } },
        ]),
      )
      const wire = await connect(url)
      await wire.open(client({ modalities: ['text'] }))
      const events = await say(wire, 'go')
      expect(typesOf(events)).toEqual(['response.created', 'transcript.delta', 'response.done'])
      expect(outputOf(events)).toEqual([{ type: 'text', text: 'Good day' }])
    })

    verifies('uamp:capabilities:thinking', 'the log has all of it, for who supports it', async () => {
      const { url } = await startServer(everything)
      const wire = await connect(url)
      const id = await wire.open(client({ supports_thinking: false }))
      await say(wire, 'go')
      const { client_capabilities: capabilities } = client({ supports_thinking: true })
      expect(await wire.send({ type: 'client.capabilities', session_id: id, capabilities })).toBeUndefined()
      const again = await connect(url)
      // Over a socket the next event counts; a stream that begins later has it from its beginning.
      await again.follow(id, 0)
      await again.next('thinking')
    })
  })
}
