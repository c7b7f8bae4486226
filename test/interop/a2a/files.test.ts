import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { demo } from '../../../src/agents/demo/index.ts'
import { PNG } from '../../../src/agents/demo/media.ts'
import { serve, type RunningServer } from '../../../src/serve/index.ts'
import { copier } from './agents.ts'
import { collect, say, taskOf, type SeenPart } from './client.ts'
import { generations } from './generations.ts'

let server: RunningServer
beforeAll(async () => void (server = await serve([demo(), copier], { port: 0, data: 'memory', log: () => undefined })))
afterAll(() => server.close({ graceMs: 0 }))

const parts: readonly (readonly [what: string, part: SeenPart])[] = [
  // An image of UAMP has no name.
  ['an image', { bytes: PNG, type: 'image/png' }],
  ['a file', { bytes: btoa('a,b\n1,2\n'), name: 'table.csv', type: 'text/csv' }],
  ['a file that is elsewhere', { url: 'https://example.com/report.pdf', name: 'report.pdf', type: 'application/pdf' }],
  ['data', { data: { city: 'Oslo', degrees: [1, -2.5], open: true, more: null } }],
]

describe.each(generations)('@a2a-js/sdk $name', ({ connect, loses }) => {
  /** As the client can send and show it. */
  const shown = (part: SeenPart): SeenPart => {
    if (!loses || !('name' in part)) return part
    const { name: _, ...rest } = part
    return rest
  }

  test.each(parts)('sends and gets back: %s', async (_, given) => {
    const part = shown(given)
    const client = await connect(`${server.url}/agents/copier`)
    const sent = { parts: [{ text: 'Look: ' }, part] }
    const task = taskOf(await client.send(sent))
    expect(task).toMatchObject({ state: 'completed', artifacts: [{ parts: [{ text: 'Look: ' }] }, { parts: [part] }] })
    expect(task.history).toMatchObject([sent])
    const streamed = await collect(client.stream(sent))
    const chunks = streamed.flatMap((update) => ('chunk' in update ? update.chunk.parts : []))
    expect(chunks).toContainEqual(expect.objectContaining(part))
  })

  test('gets what the agent makes', async () => {
    const client = await connect(server.url)
    const task = taskOf(await client.send(say('/file')))
    const made = task.artifacts.flatMap((artifact) => artifact.parts)
    expect(made).toContainEqual(shown({ bytes: btoa('name,value\ndemo,1\n'), name: 'demo.csv', type: 'text/csv' }))
    expect(made).toContainEqual({ text: 'Here is a file.' })
  })

  test('sends 2 MB', async () => {
    const client = await connect(`${server.url}/agents/copier`)
    const bytes = Buffer.alloc(2_000_000, 7).toString('base64')
    const task = taskOf(await client.send({ parts: [{ bytes, name: 'large.bin', type: 'application/octet-stream' }] }))
    expect(task.artifacts).toMatchObject([{ parts: [{ bytes }] }])
  })
})
