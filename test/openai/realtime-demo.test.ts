import { describe, expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { BOTH, connect, DIALECTS, says, type Heard } from './realtime-wire.ts'

/** What frames every answer is tested elsewhere; here it is what stands between. */
const FRAME = /^(response\.(created|done|output_item\.\w+|content_part\.\w+)|rate_limits\.updated|conversation\.item\.\w+)$/

interface Row {
  readonly say: string
  readonly verifies:
    'openai-realtime.text' | 'openai-realtime.audio' | 'openai-realtime.extras' | 'openai-realtime.own-tools' | 'openai-realtime.failed'
  /** The events, in the words of the beta, each with what it brings. */
  readonly hear: readonly (readonly [type: string, field?: string, value?: unknown])[]
  readonly status?: string
}

const text = (...deltas: readonly string[]) => [
  ...deltas.map((delta) => ['response.text.delta', 'delta', delta] as const),
  ['response.text.done', 'text', deltas.join('')] as const,
]

const rows: readonly Row[] = [
  { say: 'hello', verifies: 'openai-realtime.text', hear: text('You', ' said:', ' hello') },
  { say: '/count 3', verifies: 'openai-realtime.text', hear: text('1', ' 2', ' 3') },
  { say: '/json', verifies: 'openai-realtime.text', hear: text('{"answer":"demo"', ',"ok":true}') },
  {
    say: '/think life',
    verifies: 'openai-realtime.extras',
    hear: [
      ['thinking', 'content', 'Someone wants me to think about'],
      ['thinking', 'content', ' "life".'],
      ['thinking', 'content', ' I have thought about it.'],
      ...text('I', ' thought', ' about:', ' life'),
    ],
  },
  {
    say: '/progress 2',
    verifies: 'openai-realtime.extras',
    hear: [['progress', 'percent', 50], ['progress', 'percent', 100], ...text('Done', ' in', ' 2', ' steps.')],
  },
  {
    say: '/image',
    verifies: 'openai-realtime.extras',
    hear: [
      ['response.delta', 'delta', expect.objectContaining({ type: 'image', format: 'png' })],
      ...text('Here', ' is', ' an', ' image.'),
    ],
  },
  // Nobody who speaks Realtime can approve.
  { say: '/approve it', verifies: 'openai-realtime.text', hear: text('Denied:', ' it', ' (approval_unavailable)') },
  { say: '/tool add {"a":1,"b":2}', verifies: 'openai-realtime.own-tools', hear: text('add', ' answered:', ' {"sum":3}') },
  { say: '/state', verifies: 'openai-realtime.text', hear: text('The', ' state', ' went', ' from', ' 0', ' to', ' 3.') },
  {
    say: '/audio 0.2',
    verifies: 'openai-realtime.audio',
    hear: [
      ['response.audio.delta', 'delta', expect.any(String)],
      ['response.audio_transcript.delta', 'delta', 'A'],
      ['response.audio.delta', 'delta', expect.any(String)],
      ['response.audio_transcript.delta', 'delta', ' tone'],
      ['response.audio_transcript.delta', 'delta', ' of 0.2 s.'],
      ['response.audio.done'],
      ['response.audio_transcript.done', 'transcript', 'A tone of 0.2 s.'],
    ],
  },
  { say: '/error provider_error', verifies: 'openai-realtime.failed', hear: [], status: 'failed' },
]

describe.each(BOTH)('%s', (dialect) => {
  const { names, options } = { names: DIALECTS[dialect], options: DIALECTS[dialect].options }
  const said = (type: string): string =>
    type
      .replace(/^response\.text\b/, names.text)
      .replace(/^response\.audio_transcript\b/, names.transcript)
      .replace(/^response\.audio\b/, names.audio)

  for (const row of rows) {
    verifies(row.verifies, row.say, async () => {
      const { url } = await startServer(demo())
      const events = await (await connect(url, options)).respond(says(row.say))
      const between = events.filter(({ type }: Heard) => !FRAME.test(type))
      expect(between.map((event, index) => [event.type, ...fieldOf(event, row.hear[index]?.[1])])).toEqual(
        row.hear.map(([type, ...field]) => [said(type), ...field]),
      )
      expect(events.at(-1)?.['response'].status).toBe(row.status ?? 'completed')
    })
  }
})

const fieldOf = (event: Heard, name: string | undefined): unknown[] => (name === undefined ? [] : [name, event[name]])
