import { expect, test } from 'vitest'
import type { Frame } from '../../core/ports/transport.ts'
import { restLines, rpcLines, streamFrames, type Lines } from './stream.ts'
import type { StreamBatch, TaskStream } from './model.ts'

function streamOf(steps: readonly StreamBatch[], last?: StreamBatch): TaskStream & { left: () => boolean } {
  let left = false
  const batches = (async function* () {
    try {
      for (const step of steps) yield step
      return last
    } finally {
      left = true
    }
  })()
  return { taskId: 't', contextId: 'c "text":"" c', batches, left: () => left }
}

function textsOf(frame: Frame | void): string[] {
  const texts: string[] = []
  if (typeof frame === 'object' && 'eachText' in frame) frame.eachText((text) => texts.push(text))
  return texts
}

const said = (text: string, first: boolean, seq?: string): StreamBatch => ({
  visit: (visitor) => visitor.text(text, { artifactId: 'a', first, seq }),
})

async function written(stream: TaskStream, lines: Lines): Promise<string[]> {
  const frames = streamFrames(stream, lines)[Symbol.asyncIterator]()
  const texts: string[] = []
  for (;;) {
    const { done, value } = await frames.next()
    texts.push(...textsOf(value))
    if (done) return texts
  }
}

/** What the whole event would be if it were no template. */
const chunk = (text: string, append: boolean): object => ({
  artifactUpdate: { taskId: 't', contextId: 'c "text":"" c', artifact: { artifactId: 'a', parts: [{ text }] }, append },
})

test('a chunk from the template is what the whole event would be', async () => {
  const texts = ['plain', '"quoted"\n', '', '\u2028 \ud83d\udc0e', 'x'.repeat(100)]
  const stream = streamOf(texts.map((text, index) => said(text, index === 0, String(index))))
  const lines = await written(
    stream,
    rpcLines('i"d', (event) => [event]),
  )
  expect(lines).toEqual(
    texts.map((text, index) => {
      const response = { jsonrpc: '2.0', id: 'i"d', result: chunk(text, index > 0) }
      return `id: ${index}\ndata: ${JSON.stringify(response)}\n\n`
    }),
  )
})

test('what is returned last belongs to the stream, and events without a number have no id', async () => {
  const status = { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED', timestamp: '' } } as const
  const stream = streamOf([said('a', true)], { visit: (visitor) => visitor.event({ statusUpdate: status }, undefined) })
  expect(
    await written(
      stream,
      restLines((event) => [event]),
    ),
  ).toEqual([`data: ${JSON.stringify(chunk('a', false))}\n\n`, `data: ${JSON.stringify({ statusUpdate: status })}\n\n`])
})

test('what a generation has nothing for is left out', async () => {
  const stream = streamOf([
    said('a', true, '1'),
    { visit: (visitor) => visitor.event({ message: { messageId: 'm', role: 'ROLE_AGENT', parts: [] } }, '2') },
  ])
  expect(
    await written(
      stream,
      restLines(() => []),
    ),
  ).toEqual([])
})

test('who leaves runs the finally of the stream', async () => {
  const stream = streamOf([said('a', true), said('b', false)])
  const frames = streamFrames(stream, () => 'data: {"text":""}\n\n')[Symbol.asyncIterator]()
  await frames.next()
  await frames.return?.()
  expect(stream.left()).toBe(true)
})
