import { describe, expect, test } from 'vitest'
import { demo } from '../../../src/agents/demo/index.ts'
import { defineAgent } from '../../../src/core/agent-kit/define-agent.ts'
import { text } from '../../../src/core/agent-kit/drafts.ts'
import type { Tool } from '../../../src/core/ports/skill.ts'
import { toolRunner } from '../../../src/core/tools/tool-loop.ts'
import { mirror } from '../../support/agents.ts'
import { startServer } from '../../support/server.ts'
import { isEnd, mirrored, say, textOf } from '../../support/talk.ts'
import { verifies } from '../../support/verifies.ts'
import type { Connect } from '../../support/wire.ts'

const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/

/** What clients say and what becomes of it in the conversation, in either binding. */
export function contentContract(binding: string, connect: Connect): void {
  const open = async (agent: Parameters<typeof startServer>[0]) => {
    const wire = await connect((await startServer(agent)).url)
    await wire.open()
    return wire
  }

  describe(`content over ${binding}`, () => {
    verifies(
      [
        'uamp:content:one-message',
        'uamp:content:from-text',
        'uamp:content:from-image',
        'uamp:content:from-audio',
        'uamp:content:from-video',
        'uamp:content:from-file',
        'uamp:content:id-kept',
        'uamp:content:id-from-url',
        'uamp:content:id-new',
        'uamp:content:id-media-only',
        'uamp:content:unmodified',
        'uamp:content:description',
      ],
      'inputs of all kinds gather into one message',
      async () => {
        const wire = await open(mirror)
        const id = '550e8400-e29b-41d4-a716-446655440000'
        await wire.send({ type: 'input.text', text: 'Look: ' })
        await wire.send({ type: 'input.image', image: { url: `/api/content/${id}` }, format: 'png', detail: 'low' })
        await wire.send({ type: 'input.audio', audio: 'AAAA', format: 'pcm16', is_final: true })
        await wire.send({
          type: 'input.video',
          video: { url: 'https://example.com/v.mp4' },
          format: 'mp4',
          content_id: 'mine',
          description: 'A cat',
        })
        await wire.send({ type: 'input.file', file: 'AAAA', filename: 'a.pdf', mime_type: 'application/pdf' })
        const { messages } = mirrored(await say(wire, 'What is it?'))
        expect(messages).toEqual([
          {
            role: 'user',
            content: 'Look: What is it?',
            content_items: [
              { type: 'text', text: 'Look: ' },
              { type: 'image', image: { url: `/api/content/${id}` }, format: 'png', detail: 'low', content_id: id },
              { type: 'audio', audio: 'AAAA', format: 'pcm16', content_id: expect.stringMatching(UUID) },
              { type: 'video', video: { url: 'https://example.com/v.mp4' }, format: 'mp4', content_id: 'mine', description: 'A cat' },
              { type: 'file', file: 'AAAA', filename: 'a.pdf', mime_type: 'application/pdf', content_id: expect.stringMatching(UUID) },
              { type: 'text', text: 'What is it?' },
            ],
          },
        ])
      },
    )

    verifies('uamp:content:audio-final', 'chunks of audio up to is_final are one recording', async () => {
      const wire = await open(mirror)
      const chunk = (bytes: string) => btoa(bytes)
      await wire.send({ type: 'input.audio', audio: chunk('ab'), format: 'pcm16' })
      await wire.send({ type: 'input.audio', audio: chunk('cd'), format: 'pcm16', is_final: true })
      await wire.send({ type: 'input.audio', audio: chunk('ef'), format: 'pcm16', is_final: true })
      await wire.send({ type: 'response.create' })
      await wire.next(isEnd)
      const items = mirrored(wire.heard).messages[0]?.content_items as unknown as { audio: string }[]
      expect(items.map(({ audio }) => atob(audio))).toEqual(['abcd', 'ef'])
    })

    test('chunks that are no base64 are refused, and what comes next is heard', async () => {
      const wire = await open(mirror)
      await wire.send({ type: 'input.audio', audio: 'AA==', format: 'pcm16' })
      await wire.send({ type: 'input.audio', audio: '%%%%', format: 'pcm16' })
      expect(await wire.send({ type: 'response.create' })).toMatchObject({ code: 'invalid_request' })
      expect(mirrored(await say(wire, 'hello')).messages).toMatchObject([{ role: 'user', content: 'hello' }])
    })

    verifies(['uamp:content:conversation', 'uamp:content:id-in-history'], 'the conversation is kept, with content ids', async () => {
      const wire = await open(mirror)
      await wire.send({ type: 'input.image', image: 'AAAA' })
      const first = mirrored(await say(wire, 'one')).messages
      const second = mirrored(await say(wire, 'two')).messages
      expect(second.slice(0, 1)).toEqual(first)
      expect(second.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
      expect(JSON.parse(second[1]?.content ?? '')).toMatchObject({ messages: first })
    })

    const odd = (name: string) => JSON.parse(`{"__proto__":{"of":"${name}"},"list":[null,{"deep":1}],"name":"${name}"}`) as object

    verifies(
      ['uamp:content:context', 'uamp:content:slots', 'uamp:response:slots', 'uamp:version:extensions'],
      'slots of inputs and of response.create reach the agent and the record exactly as they came',
      async () => {
        const { url, gateway } = await startServer(mirror)
        const wire = await connect(url)
        await wire.open({ session: { modalities: ['text'], extensions: odd('session') } })
        const context = { ...odd('context'), chat_id: 'chat_abc', sender_id: 'user_123' }
        await wire.send({ type: 'input.text', text: 'Look', context, metadata: odd('text') })
        await wire.send({ type: 'input.image', image: 'AAAA', extensions: odd('image'), metadata: { more: true } })
        const asked = { extensions: odd('create'), metadata: odd('created') }
        const message = { context, extensions: odd('image'), metadata: { ...odd('text'), more: true } }
        await wire.send({ type: 'response.create', ...asked })
        const end = await wire.next(isEnd)
        const first = mirrored(wire.heard)
        expect(first.messages).toMatchObject([{ role: 'user', content: 'Look' }])
        expect(first.messages[0]).toMatchObject(message)
        expect(JSON.stringify(first.messages[0]?.context)).toBe(JSON.stringify(context))
        expect(JSON.stringify(first.asked)).toBe(JSON.stringify(asked))
        expect(JSON.stringify(first.config.extensions)).toBe(JSON.stringify(odd('session')))
        const next = mirrored(await say(wire, 'again'))
        expect(next.messages[0]).toEqual(first.messages[0])
        expect(next.asked).toBeUndefined()
        const stored = await gateway.response(end['response_id'] as string, { tenant: 'default', id: 'anonymous', scopes: ['*'] })
        expect(stored?.input[0]).toEqual(first.messages[0])
        expect(stored?.asked).toEqual(asked)
      },
    )

    test('the context of a conversation that the client keeps is that of its newest message', async () => {
      const wire = await open(mirror)
      const messages = [{ role: 'user', content: 'Paris?', metadata: { of: 'message' } }]
      await wire.send({ type: 'input.text', text: 'Paris?', messages, context: { chat_id: 'c' }, metadata: { of: 'event' } })
      await wire.send({ type: 'response.create' })
      await wire.next(isEnd)
      expect(mirrored(wire.heard).messages).toEqual([
        { role: 'user', content: 'Paris?', metadata: { of: 'event' }, context: { chat_id: 'c' } },
      ])
    })

    test('the slots of gathered inputs together have the bound of one', async () => {
      const wire = await open(mirror)
      const half = { filler: 'x'.repeat(40 * 1024) }
      expect(await wire.send({ type: 'input.text', text: 'a', context: half })).toBeUndefined()
      expect(await wire.send({ type: 'input.image', image: 'AAAA', metadata: half })).toMatchObject({ code: 'too_large' })
      const { messages } = mirrored(await say(wire, 'b'))
      expect(messages).toMatchObject([{ content: 'ab', context: half }])
    })

    verifies(
      ['uamp:content:items-win', 'uamp:content:content-is-text', 'uamp:content:openai-calls'],
      'where a message has items, they are the whole of it, and its content is their text',
      async () => {
        const wire = await open(mirror)
        const image = { type: 'image', image: 'AAAA', content_id: 'i1' }
        const call = { id: 'c1', type: 'function', function: { name: 'look', arguments: '{"at":1}' } }
        const messages = [
          { role: 'user', content: 'Ignore me', content_items: [{ type: 'text', text: 'Look ' }, image, { type: 'text', text: 'here' }] },
          { role: 'assistant', content: null, tool_calls: [call] },
          { role: 'tool', tool_call_id: 'c1', content: '{"seen":true}', content_items: [image] },
          { role: 'user', content: 'And this', content_items: [image] },
        ]
        await wire.send({ type: 'input.text', text: '', messages })
        await wire.send({ type: 'response.create' })
        await wire.next(isEnd)
        expect(mirrored(wire.heard).messages).toEqual([
          { ...messages[0], content: 'Look here' },
          { role: 'assistant', tool_calls: [{ id: 'c1', name: 'look', arguments: '{"at":1}' }] },
          messages[2],
          { role: 'user', content: 'And this', content_items: [{ type: 'text', text: 'And this' }, image] },
        ])
      },
    )

    verifies('uamp:content:stateless', '`messages` on input.text is the whole conversation', async () => {
      const wire = await open(mirror)
      await say(wire, 'forgotten')
      const messages = [
        { role: 'system', content: 'You are a weather assistant.' },
        { role: 'user', content: 'Paris?' },
      ]
      await wire.send({ type: 'input.text', text: 'Paris?', messages })
      await wire.send({ type: 'response.create' })
      const end = await wire.next(isEnd)
      expect(JSON.parse(end['response'].output[0].text as string).messages).toEqual(messages)
      const { messages: next } = mirrored(await say(wire, 'London?'))
      expect(next.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user'])
    })

    verifies('uamp:content:role', 'the role of a text is user unless it says otherwise', async () => {
      const wire = await open(mirror)
      await wire.send({ type: 'input.text', text: 'Rule.', role: 'system' })
      const { messages } = mirrored(await say(wire, 'Hi'))
      expect(messages.map(({ role, content }) => [role, content])).toEqual([
        ['system', 'Rule.'],
        ['user', 'Hi'],
      ])
    })

    const media = [
      ['/image', 'image'],
      ['/file', 'file'],
      ['/video', 'video'],
      ['/audio 0.3', 'audio'],
    ] as const
    test.each(media)('the demo sends media with a content id: %s', async (command, type) => {
      const wire = await open(demo())
      const events = await say(wire, command)
      const item = events.find((event) => event.type === 'response.delta' && event['delta'].type === type)?.['delta']
      expect(item.content_id).toMatch(UUID)
      expect(events.at(-1)?.['response'].output[0]).toEqual(item)
      if (type !== 'audio') return
      const chunks = events.filter((event) => event.type === 'audio.delta').map((event) => event['audio'] as string)
      expect(chunks.join('')).toBe(item.audio)
      expect(
        events
          .filter((event) => event.type === 'transcript.delta')
          .map((event) => event['transcript'])
          .join(''),
      ).toBe('A tone of')
      expect(events.find((event) => event.type === 'transcript.done')?.['transcript']).toBe('A tone of 0.3 s.')
      expect(events.find((event) => event.type === 'audio.done')?.['duration_ms']).toBe(300)
    })

    verifies('uamp:content:text-purity', 'no content URL is in the text', async () => {
      const wire = await open(demo())
      for (const [command] of media) expect(textOf(await say(wire, command))).not.toContain('/api/content/')
      const url = `/api/content/550e8400-e29b-41d4-a716-446655440000`
      const camera: Tool = {
        name: 'camera',
        run: () => ({ text: `Done: http://host.example${url}?sig=abc, and more`, content_items: [{ type: 'image', image: { url } }] }),
      }
      const agent = defineAgent('photographer', async function* (turn) {
        const [shot] = yield* toolRunner(turn, { tools: [camera] })([{ id: 'c', name: 'camera', arguments: '{}' }])
        yield text(shot?.result ?? '')
      })
      const photo = await open(agent)
      const events = await say(photo, 'go')
      expect(textOf(events)).toBe('Done: [content 550e8400-e29b-41d4-a716-446655440000], and more')
      const result = events.find((event) => event['delta']?.type === 'tool_result')?.['delta'].tool_result
      expect(result.content_items).toMatchObject([{ image: { url }, content_id: '550e8400-e29b-41d4-a716-446655440000' }])
    })

    const commands: [command: string, check: (text: string, types: string[]) => void][] = [
      ['Hello there', (text) => expect(text).toBe('You said: Hello there')],
      ['/count 5', (text) => expect(text).toBe('1 2 3 4 5')],
      ['/count 3 5', (text) => expect(text).toBe('1 2 3')],
      [
        '/think why',
        (text, types) => expect([text, types.filter((type) => type === 'thinking').length > 1]).toEqual(['I thought about: why', true]),
      ],
      ['/tool clock', (text) => expect(text).toMatch(/^clock answered: \{"time":"20/)],
      ['/tool add {"a":1,"b":2}', (text) => expect(text).toBe('add answered: {"sum":3}')],
      ['/tool add {"a":"x"}', (text) => expect(text).toContain('add failed')],
      ['/tool add [1]', (text) => expect(text).toContain('must be a JSON object')],
      ['/tool slow {"ms":20}', (text) => expect(text).toBe('slow answered: {"waited_ms":20}')],
      ['/progress 4', (text, types) => expect([text, types.filter((type) => type === 'progress').length]).toEqual(['Done in 4 steps.', 4])],
      [
        '/state',
        (_, types) =>
          expect(types.filter((type) => type.startsWith('x.'))).toEqual(['x.state.snapshot', ...Array<string>(3).fill('x.state.delta')]),
      ],
      ['/error too_hot', (_, types) => expect(types.at(-1)).toBe('response.error')],
      ['/delegate a b', (_, types) => expect(types.at(-1)).toBe('response.error')],
      ['/big 300000', (text) => expect(text).toBe('x'.repeat(300_000))],
      ['/nonsense', (text) => expect(text).toContain('/help')],
      ['/help', (text) => expect(text).toContain('/count')],
    ]
    test.each(commands)('the demo answers %s', async (command, check) => {
      const wire = await open(demo())
      const events = await say(wire, command)
      check(
        textOf(events),
        events.map(({ type }) => type),
      )
    })

    test('the demo fails with the code it is told', async () => {
      const wire = await open(demo())
      expect((await say(wire, '/error too_hot')).at(-1)?.['error']).toMatchObject({ code: 'too_hot' })
      expect((await say(wire, '/delegate a b')).at(-1)?.['error']).toMatchObject({ code: 'not_supported' })
    })
  })
}
