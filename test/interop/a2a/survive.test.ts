import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { demo } from '../../../src/agents/demo/index.ts'
import { Child } from '../../docs/child.ts'
import { startChild } from '../../support/child.ts'
import { startServer } from '../../support/server.ts'
import { artifactText, firstTask, say, taskOf, textOf, type Update } from './client.ts'
import { jsonRpc1 } from './generation-1.ts'
import { generations } from './generations.ts'

const HERE = fileURLToPath(new URL('.', import.meta.url))
const CHUNKS = 500
const counted = Array.from({ length: CHUNKS }, (_, i) => i + 1).join(' ')

describe.each(generations)('@a2a-js/sdk $name', ({ connect }) => {
  test(`takes over a task of ${CHUNKS} chunks from a client that was killed`, async () => {
    const { url } = await startServer(demo())
    const first = Child.node(join(HERE, 'stay.ts'), { cwd: HERE, args: [url, `/count ${CHUNKS} 4`] })
    onTestFinished(() => first.stop())
    const [, id = ''] = await first.printed(/^task (\S+)$/m)
    await first.printed(/^chunk {2}20$/m)
    await first.stop()

    const client = await connect(url)
    const updates: Update[] = []
    for await (const update of client.subscribe(id)) updates.push(update)
    const task = firstTask(updates)
    const rest = updates.slice(1)
    expect(task).toMatchObject({ id, state: 'working' })
    const known = artifactText(task)
    const more = rest.flatMap((update) => ('chunk' in update ? [textOf(update.chunk.parts)] : []))
    // Nothing twice, nothing missing, and in order.
    expect(known + more.join('')).toBe(counted)
    expect(more.length).toBeGreaterThan(1)
    expect(rest.at(-1)).toMatchObject({ status: { state: 'completed' } })
    expect(artifactText(await client.get(id))).toBe(counted)
  })
})

test('after the server was killed and started again, the task is there: failed, with what there was of it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'uamp-a2a-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  const before = await startChild(folder)
  const client = await jsonRpc1.connect(before.url)
  let id = ''
  let heard = ''
  await expect(async () => {
    for await (const update of client.stream(say('/count 100000 2'))) {
      if ('task' in update) id = update.task.id
      if ('chunk' in update) heard += textOf(update.chunk.parts)
      if (heard.endsWith(' 200')) await before.kill()
    }
  }).rejects.toThrow()

  const after = await startChild(folder)
  const again = await jsonRpc1.connect(after.url)
  const task = await again.get(id)
  expect(task.state).toBe('failed')
  expect(textOf(task.says?.parts ?? [])).toMatch(/interrupted/i)
  const kept = artifactText(task)
  expect(kept).toMatch(/^1 2 3 /)
  expect(heard.startsWith(kept.slice(0, heard.length))).toBe(true)
  const next = taskOf(await again.send({ ...say('Hello'), context: task.context }))
  expect(next).toMatchObject({ state: 'completed', context: task.context })
})
