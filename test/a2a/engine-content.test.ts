import { expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import type { ContentItem } from '../../src/protocol/content.ts'
import type { Draft } from '../../src/protocol/events.ts'
import { mirror, type Mirrored } from '../support/agents.ts'
import { verifies } from '../support/verifies.ts'
import { answering } from './engine-agents.ts'
import { serveEngine, streamedText, textOf } from './engine-client.ts'

verifies('a2a-1.0.task-parts', 'every kind of part comes to the agent, and back in the history as it was', async () => {
  const { client } = await serveEngine(mirror)
  const parts = [
    { text: 'look' },
    { raw: btoa('png'), mediaType: 'image/png', filename: 'a.png', metadata: { k: 1 } },
    { url: 'https://example.com/a.mp3', mediaType: 'audio/mpeg' },
    { url: 'https://example.com/a.mp4', mediaType: 'video/mp4' },
    { raw: btoa('pdf'), mediaType: 'application/pdf', filename: 'a.pdf' },
    { url: 'https://example.com/x' },
    { data: { a: ['ü'] } },
    { data: null },
  ]
  const task = await client.task({ message: { parts } })
  const { messages } = JSON.parse(textOf(task)) as Mirrored
  const content_id = expect.any(String) as unknown
  expect(messages).toHaveLength(1)
  expect(messages[0]).toMatchObject({ role: 'user', content: 'look' })
  const json = new TextEncoder().encode('{"a":["ü"]}')
  expect(messages[0]?.content_items).toEqual([
    { type: 'text', text: 'look' },
    { type: 'image', image: btoa('png'), format: 'png', description: 'a.png', content_id },
    { type: 'audio', audio: { url: 'https://example.com/a.mp3' }, format: 'mpeg', content_id },
    { type: 'video', video: { url: 'https://example.com/a.mp4' }, format: 'mp4', content_id },
    { type: 'file', file: btoa('pdf'), filename: 'a.pdf', mime_type: 'application/pdf', content_id },
    { type: 'file', file: { url: 'https://example.com/x' }, filename: 'file', mime_type: 'application/octet-stream', content_id },
    { type: 'file', file: btoa(String.fromCharCode(...json)), filename: 'data.json', mime_type: 'application/json', content_id },
    { type: 'file', file: btoa('null'), filename: 'data.json', mime_type: 'application/json', content_id },
  ])
  expect((await client.get(task.id)).history?.[0]?.parts).toEqual(parts)
})

const made: readonly ContentItem[] = [
  { type: 'image', image: btoa('png'), format: 'png', content_id: 'i1', description: 'A picture' },
  { type: 'file', file: { url: 'https://example.com/a.pdf' }, filename: 'a.pdf', mime_type: 'application/pdf', content_id: 'f1' },
  { type: 'file', file: btoa('{"a":1}'), filename: 'a.json', mime_type: 'application/json', content_id: 'f2' },
  { type: 'file', file: btoa('{"a":'), filename: 'b.json', mime_type: 'application/json', content_id: 'f3' },
  { type: 'audio', audio: btoa('mp3'), format: 'mp3', content_id: 'a1' },
  { type: 'file', file: { url: '/api/content/x' }, filename: 'here.txt', mime_type: 'text/plain', content_id: 'f4' },
]

const artifacts = [
  { artifactId: 'i1', description: 'A picture', parts: [{ raw: btoa('png'), mediaType: 'image/png' }] },
  { artifactId: 'f1', name: 'a.pdf', parts: [{ url: 'https://example.com/a.pdf', mediaType: 'application/pdf', filename: 'a.pdf' }] },
  { artifactId: 'f2', name: 'a.json', parts: [{ data: { a: 1 }, mediaType: 'application/json', filename: 'a.json' }] },
  { artifactId: 'f3', name: 'b.json', parts: [{ raw: btoa('{"a":'), mediaType: 'application/json', filename: 'b.json' }] },
  { artifactId: 'a1', parts: [{ raw: btoa('mp3'), mediaType: 'audio/mp3' }] },
  { artifactId: 'f4', name: 'here.txt', parts: [{ url: '/api/content/x', filename: 'here.txt' }] },
]

verifies('a2a-1.0.task-parts', 'media is an artifact each, data is data, and text between them is one', async () => {
  const { client } = await serveEngine(
    answering(async function* () {
      yield { type: 'response.delta', delta: { type: 'text', text: 'before' } }
      for (const delta of made) yield { type: 'response.delta', delta } as Draft
      yield { type: 'response.delta', delta: { type: 'text', text: ' after' } }
    }),
  )
  const task = await client.task('x')
  expect(task.artifacts?.slice(1)).toEqual(artifacts)
  expect(task.artifacts?.[0]?.parts).toEqual([{ text: 'before after' }])
  const heard = await (await client.stream('x')).all()
  const whole = heard.flatMap(({ event }) =>
    'artifactUpdate' in event && event.artifactUpdate.artifact.parts[0]?.text === undefined ? [event.artifactUpdate] : [],
  )
  expect(whole.map(({ artifact }) => artifact)).toEqual(artifacts)
  expect(whole.every(({ append, lastChunk }) => append === false && lastChunk === true)).toBe(true)
  const [stored] = (await client.list({ includeArtifacts: true })).tasks
  expect(stored?.artifacts?.slice(1)).toEqual(artifacts)
})

verifies('a2a-1.0.task-parts', 'an agent may say everything with its end', async () => {
  const { client } = await serveEngine(
    answering(async function* () {
      const output: ContentItem[] = [{ type: 'text', text: 'all' }, ...made.slice(0, 2)]
      yield { type: 'response.done', response: { id: '', status: 'completed', output, extensions: { a2a: { metadata: { price: 1 } } } } }
    }),
  )
  const heard = await (await client.stream('x')).all()
  expect(streamedText(heard.slice(0, 4))).toContain('all')
  const [task] = (await client.list({ includeArtifacts: true })).tasks
  expect(task?.artifacts?.slice(1)).toEqual(artifacts.slice(0, 2))
  expect(task && textOf(task)).toContain('all')
  expect(task?.metadata).toEqual({ price: 1 })
  const updates = heard.flatMap(({ event }) => ('artifactUpdate' in event ? [event.artifactUpdate] : []))
  expect(updates.at(-1)).toMatchObject({ append: true, lastChunk: true, artifact: { parts: [{ text: '' }] } })
})

verifies('a2a-1.0.task-parts', 'a recording is one artifact, and its pieces are none', async () => {
  const { client } = await serveEngine(demo())
  const heard = await (await client.stream('/audio 1')).all()
  const updates = heard.flatMap(({ event }) => ('artifactUpdate' in event ? [event.artifactUpdate.artifact] : []))
  expect(updates).toHaveLength(1)
  expect(updates[0]?.parts[0]).toMatchObject({ mediaType: 'audio/wav', raw: expect.stringMatching(/^UklGR/) as unknown })
})
