import { describe, expect } from 'vitest'
import { mirror, type Mirrored } from '../support/agents.ts'
import { demo } from '../../src/agents/demo/index.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { BOTH, connect, DIALECTS, says, type Heard, type RealtimeWire } from './realtime-wire.ts'

const start = () => startServer(mirror)
const PCM = Buffer.from([1, 0, 2, 0, 3, 0]).toString('base64')

const create = (item: object, previous_item_id?: string) => ({
  type: 'conversation.item.create',
  item,
  ...(previous_item_id && { previous_item_id }),
})
const message = (id: string) => ({ id, type: 'message', role: 'user', content: [{ type: 'input_text', text: id }] })
/** What the agent is given, without leaving a trace. */
const given = async (wire: RealtimeWire): Promise<Mirrored['messages']> => {
  wire.send({ type: 'response.create', response: { conversation: 'none' } })
  const { response } = await wire.next('response.done')
  return (JSON.parse(response.output[0].content[0].text as string) as Mirrored).messages
}
const texts = async (wire: RealtimeWire) => (await given(wire)).map(({ content }) => content)
const refusal = async (wire: RealtimeWire, event: object): Promise<Heard> => {
  wire.send({ ...event, event_id: 'mine' })
  return (await wire.next('error'))['error'] as Heard
}

describe.each(BOTH)('%s', (dialect) => {
  const words = DIALECTS[dialect]
  const open = async () => connect((await start()).url, words.options)

  verifies('openai-realtime.item-create', 'items stand where they are put', async () => {
    const wire = await open()
    const added: string[] = []
    for (const [id, after] of [['b'], ['d'], ['c', 'b'], ['a', 'root']] as const) {
      const shown = { ...message(id), object: 'realtime.item', status: 'completed' }
      wire.send(create(message(id), after))
      for (const type of words.added) {
        const event = await wire.next((heard) => heard.type.startsWith('conversation.item.'))
        expect(event).toMatchObject({ type, item: shown })
        added.push(`${event['previous_item_id']} ${id}`)
      }
    }
    expect([...new Set(added)]).toEqual(['null b', 'b d', 'b c', 'null a'])
    expect(await texts(wire)).toEqual(['a', 'b', 'c', 'd'])
  })

  verifies('openai-realtime.item-kinds', 'every kind of item reaches the agent', async () => {
    const wire = await open()
    const items = [
      { type: 'message', role: 'system', content: [{ type: 'input_text', text: 'Be kind.' }] },
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'Look and listen.' },
          { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'low' },
          { type: 'input_audio', audio: PCM, transcript: 'one two three' },
        ],
      },
      { type: 'message', role: 'assistant', content: [{ type: words.textPart, text: 'I see.' }] },
      { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"a":1}' },
      { type: 'function_call_output', call_id: 'c1', output: '2' },
      { type: 'message', role: 'assistant', content: [{ type: words.audioPart, transcript: 'Two.' }] },
    ]
    for (const item of items) wire.send(create(item))
    expect(await given(wire)).toEqual([
      { role: 'system', content: 'Be kind.', content_items: [{ type: 'text', text: 'Be kind.' }] },
      {
        role: 'user',
        content: 'Look and listen.',
        content_items: [
          { type: 'text', text: 'Look and listen.' },
          { type: 'image', image: 'AAAA', format: 'png', detail: 'low', content_id: expect.any(String) },
          { type: 'audio', audio: PCM, format: 'pcm16', transcript: 'one two three', content_id: expect.any(String) },
        ],
      },
      {
        role: 'assistant',
        content: 'I see.',
        content_items: [
          { type: 'text', text: 'I see.' },
          { type: 'tool_call', tool_call: { id: 'c1', name: 'f', arguments: '{"a":1}' } },
        ],
        tool_calls: [{ id: 'c1', name: 'f', arguments: '{"a":1}' }],
      },
      { role: 'tool', tool_call_id: 'c1', content: '2' },
      { role: 'assistant', content: 'Two.', content_items: [{ type: 'text', text: 'Two.' }] },
    ])
    expect(wire.heard.filter(({ type }) => type === 'error')).toEqual([])
  })

  verifies('openai-realtime.item-retrieve', 'an item is shown whole, with its audio', async () => {
    const wire = await open()
    const item = { id: 'spoken', type: 'message', role: 'user', content: [{ type: 'input_audio', audio: PCM }] }
    const added = await wire.ask(create(item), words.added[0])
    expect(added['item'].content).toEqual([{ type: 'input_audio', transcript: null }])
    const retrieved = await wire.ask({ type: 'conversation.item.retrieve', item_id: 'spoken' }, 'conversation.item.retrieved')
    expect(retrieved['item']).toMatchObject({
      id: 'spoken',
      role: 'user',
      content: [{ type: 'input_audio', transcript: null, audio: PCM }],
    })
  })

  verifies('openai-realtime.item-delete', 'a deleted item is gone', async () => {
    const wire = await open()
    for (const id of ['a', 'b']) wire.send(create(message(id)))
    const deleted = await wire.ask({ type: 'conversation.item.delete', item_id: 'a' }, 'conversation.item.deleted')
    expect(deleted['item_id']).toBe('a')
    expect(await texts(wire)).toEqual(['b'])
    expect(await refusal(wire, { type: 'conversation.item.delete', item_id: 'a' })).toMatchObject({ code: 'item_delete_invalid_item_id' })
  })

  verifies('openai-realtime.item-truncate', 'an answer is cut where it was heard', async () => {
    const { url } = await startServer(demo())
    const wire = await connect(url, words.options)
    const events = await wire.respond(says('/audio 0.5'))
    const { id } = events.at(-1)?.['response'].output[0] as { id: string }
    const cut = { type: 'conversation.item.truncate', item_id: id, content_index: 0, audio_end_ms: 120 }
    const truncated = await wire.ask(cut, 'conversation.item.truncated')
    expect(truncated).toEqual({
      event_id: expect.any(String),
      type: 'conversation.item.truncated',
      item_id: id,
      content_index: 0,
      audio_end_ms: 120,
    })
    const { item } = await wire.ask({ type: 'conversation.item.retrieve', item_id: id }, 'conversation.item.retrieved')
    expect(item.content).toEqual([{ type: words.audioPart, transcript: null, audio: expect.any(String) }])
    expect(Buffer.from(item.content[0].audio as string, 'base64')).toHaveLength(120 * 48)
    expect(await refusal(wire, { ...cut, audio_end_ms: 121 })).toMatchObject({
      code: 'invalid_value',
      param: 'audio_end_ms',
      event_id: 'mine',
    })
    expect(await refusal(wire, { ...cut, content_index: 1 })).toMatchObject({ code: 'item_truncate_invalid_content' })
  })

  verifies(['openai-realtime.item-unknown', 'openai-realtime.error'], 'items that are not there', async () => {
    const wire = await open()
    wire.send(create(message('a')))
    const wrong: readonly [object, string, string][] = [
      [{ type: 'conversation.item.retrieve', item_id: 'x' }, 'item_id', 'item_retrieve_invalid_item_id'],
      [{ type: 'conversation.item.delete', item_id: 'x' }, 'item_id', 'item_delete_invalid_item_id'],
      [{ type: 'conversation.item.truncate', item_id: 'x', content_index: 0, audio_end_ms: 0 }, 'item_id', 'item_truncate_invalid_item_id'],
      [
        { type: 'conversation.item.truncate', item_id: 'a', content_index: 0, audio_end_ms: 0 },
        'content_index',
        'item_truncate_invalid_content',
      ],
      [create(message('b'), 'x'), 'previous_item_id', 'item_create_invalid_previous_item_id'],
      [create(message('a')), 'item.id', 'item_create_duplicate_item_id'],
    ]
    for (const [event, param, code] of wrong) {
      expect(await refusal(wire, event)).toEqual({
        type: 'invalid_request_error',
        code,
        param,
        message: expect.any(String),
        event_id: 'mine',
      })
    }
    expect(await texts(wire)).toEqual(['a'])
  })
})

verifies('openai-realtime.item-bounds', 'a conversation without end is forgotten from its beginning', async () => {
  const wire = await connect((await start()).url)
  for (let number = 1; number <= 600; number++) wire.send(create(message(`m${number}`)))
  const left = await texts(wire)
  expect([left.length, left[0], left.at(-1)]).toEqual([512, 'm89', 'm600'])
})
