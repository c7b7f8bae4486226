import { expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { checkEvents, client, fn, typesOf, type Json, type Told } from './responses-wire.ts'

const start = async () => {
  const { url } = await startServer(demo())
  return { api: client(url) }
}

const SAID = ['output_item.added', 'content_part.added', 'output_text.delta', 'output_text.done', 'content_part.done', 'output_item.done']
/** Repeated deltas are one. */
const shapeOf = (events: readonly Told[]): string[] => typesOf(events).filter((type, index, all) => type !== all[index - 1])

interface Row {
  readonly verifies: Parameters<typeof verifies>[0]
  readonly say: string
  readonly with?: object
  readonly shape: readonly string[]
  readonly output: readonly object[]
}

const message = (said: string): object => ({
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: said, annotations: [] }],
})

/** What the demo's commands are in this protocol: the order of the events, and the items of the answer. */
const transcripts: readonly Row[] = [
  {
    verifies: ['openai-responses.stream-order', 'openai-responses.text'],
    say: '/count 5',
    shape: ['created', 'in_progress', ...SAID, 'completed'],
    output: [message('1 2 3 4 5')],
  },
  {
    verifies: 'openai-responses.text',
    say: 'hi\n"there" \\ \u{1F40E}',
    shape: ['created', 'in_progress', ...SAID, 'completed'],
    output: [message('You said: hi\n"there" \\ \u{1F40E}')],
  },
  {
    verifies: 'openai-responses.reasoning',
    say: '/think tea',
    shape: [
      'created',
      'in_progress',
      'output_item.added',
      'reasoning_summary_part.added',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.done',
      'reasoning_summary_part.done',
      'output_item.done',
      ...SAID,
      'completed',
    ],
    output: [
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Someone wants me to think about "tea". I have thought about it.' }] },
      message('I thought about: tea'),
    ],
  },
  {
    verifies: 'openai-responses.server-tools',
    say: '/tool add {"a":1,"b":2}',
    shape: [
      'created',
      'in_progress',
      'output_item.added',
      'mcp_call.in_progress',
      'mcp_call_arguments.delta',
      'mcp_call_arguments.done',
      'mcp_call.completed',
      'output_item.done',
      ...SAID,
      'completed',
    ],
    output: [
      {
        type: 'mcp_call',
        server_label: 'demo',
        name: 'add',
        arguments: '{"a":1,"b":2}',
        output: '{"sum":3}',
        error: null,
        status: 'completed',
      },
      message('add answered: {"sum":3}'),
    ],
  },
  {
    verifies: 'openai-responses.server-tools',
    say: '/tool add {}',
    shape: [
      'created',
      'in_progress',
      'output_item.added',
      'mcp_call.in_progress',
      'mcp_call_arguments.delta',
      'mcp_call_arguments.done',
      'mcp_call.failed',
      'output_item.done',
      ...SAID,
      'completed',
    ],
    output: [
      { type: 'mcp_call', name: 'add', output: null, status: 'failed', error: { type: 'mcp_tool_execution_error' } },
      { type: 'message' },
    ],
  },
  {
    verifies: 'openai-responses.function-call',
    say: '/tool weather {"city":"Oslo"}',
    with: { tools: [fn('weather')] },
    shape: [
      'created',
      'in_progress',
      'output_item.added',
      'function_call_arguments.delta',
      'function_call_arguments.done',
      'output_item.done',
      'completed',
    ],
    output: [{ type: 'function_call', name: 'weather', arguments: '{"city":"Oslo"}', status: 'completed' }],
  },
  {
    verifies: 'openai-responses.approval',
    say: '/approve launch',
    shape: ['created', 'in_progress', 'output_item.added', 'output_item.done', 'completed'],
    output: [{ type: 'mcp_approval_request', server_label: 'demo', name: 'approval', arguments: '{"message":"launch"}' }],
  },
  {
    verifies: 'openai-responses.text',
    say: '/progress 2',
    shape: ['created', 'in_progress', ...SAID, 'completed'],
    output: [message('Done in 2 steps.')],
  },
  {
    verifies: 'openai-responses.media',
    say: '/image',
    shape: [
      'created',
      'in_progress',
      'output_item.added',
      'image_generation_call.in_progress',
      'image_generation_call.completed',
      'output_item.done',
      ...SAID,
      'completed',
    ],
    output: [
      {
        type: 'image_generation_call',
        status: 'completed',
        output_format: 'png',
        result: expect.stringMatching(/^iVBOR/),
        uamp: { alt_text: 'One orange pixel' },
      },
      message('Here is an image.'),
    ],
  },
  {
    verifies: 'openai-responses.media',
    say: '/file',
    shape: ['created', 'in_progress', 'output_item.added', 'output_item.done', ...SAID, 'completed'],
    output: [
      { type: 'message', content: [], uamp: { content_items: [{ type: 'file', filename: 'demo.csv', mime_type: 'text/csv' }] } },
      message('Here is a file.'),
    ],
  },
  {
    verifies: 'openai-responses.media',
    say: '/video',
    shape: ['created', 'in_progress', 'output_item.added', 'output_item.done', ...SAID, 'completed'],
    output: [{ type: 'message', content: [], uamp: { content_items: [{ type: 'video', format: 'mp4' }] } }, message('Here is a video.')],
  },
  {
    verifies: 'openai-responses.media',
    say: '/audio 0.1',
    shape: ['created', 'in_progress', 'audio.delta', 'audio.transcript.delta', 'audio.done', 'audio.transcript.done', ...SAID, 'completed'],
    output: [
      {
        type: 'message',
        content: [{ type: 'output_text', text: 'A tone of 0.1 s.' }],
        uamp: { content_items: [{ type: 'audio', format: 'pcm16', transcript: 'A tone of 0.1 s.' }] },
      },
    ],
  },
  {
    verifies: 'openai-responses.structured',
    say: '/json',
    with: {
      text: {
        format: {
          type: 'json_schema',
          name: 'answer',
          schema: { type: 'object', properties: { n: { type: 'integer', minimum: 7 } } },
          strict: true,
        },
      },
    },
    shape: ['created', 'in_progress', ...SAID, 'completed'],
    output: [message('{"n":7}')],
  },
  {
    verifies: 'openai-responses.text',
    say: '/state',
    shape: ['created', 'in_progress', ...SAID, 'completed'],
    output: [message('The state went from 0 to 3.')],
  },
  {
    verifies: 'openai-responses.text',
    say: '/history',
    shape: ['created', 'in_progress', ...SAID, 'completed'],
    output: [message('user: /history')],
  },
  {
    verifies: 'openai-responses.text',
    say: '/big 200000',
    shape: ['created', 'in_progress', ...SAID, 'completed'],
    output: [message('x'.repeat(200_000))],
  },
]

for (const { verifies: ids, say, with: more, shape, output } of transcripts) {
  verifies(ids, `${say.slice(0, 40)}: streamed, whole and fetched again it is the same`, async () => {
    const { api } = await start()
    const asked = { model: 'demo', input: say, ...more }
    const events = await api.stream(asked)
    expect(shapeOf(events)).toEqual(shape)
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index))
    checkEvents(events)
    const streamed = events.at(-1)?.['response'] as Json
    expect(streamed['output']).toMatchObject(output)
    expect(streamed['output']).toHaveLength(output.length)

    const fetched = (await api.get(streamed['id'] as string)).body
    expect({ ...fetched, completed_at: 0 }).toEqual({ ...streamed, completed_at: 0 })
    expect(withoutTime(await api.replay(streamed['id'] as string))).toEqual(withoutTime(events))

    const { status, body } = await api.ask(asked)
    expect(status).toBe(200)
    expect(body['output']).toMatchObject(output)
  })
}

/** The second in which it ended may be told a second apart. */
function withoutTime(events: readonly Told[]): object[] {
  return events.map((event) => (event['response'] ? { ...event, response: { ...event['response'], completed_at: 0 } } : event))
}
