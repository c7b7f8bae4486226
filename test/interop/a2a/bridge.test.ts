import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { project, serving } from '../../cli/run.ts'
import { Child, ROOT } from '../../docs/child.ts'
import { remoteA2a } from '../../../src/remotes/a2a/index.ts'
import { cutting } from '../../remotes/a2a/cutting.ts'
import { begin } from '../../remotes/plain.ts'
import { startServer } from '../../support/server.ts'
import { say as sayOver, textOf as textOver } from '../../support/talk.ts'
import { overWebSocket } from '../../support/wire.ts'
import { artifactText, collect, firstTask, say, taskOf, textOf } from './client.ts'
import { jsonRpc02 } from './generation-02.ts'
import { jsonRpc03, rest03 } from './generation-03.ts'
import { jsonRpc1 } from './generation-1.ts'
import { officialServer } from './servers.ts'

const INTEROP = join(ROOT, 'test/interop/node_modules')

/** The example, as somebody has it who has installed what it needs. */
async function counter(binding: 'JSONRPC' | 'HTTP+JSON') {
  const folder = mkdtempSync(join(tmpdir(), 'uamp-peer-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  cpSync(join(ROOT, 'examples/a2a-peer'), folder, { recursive: true, filter: (file) => !file.includes('node_modules') })
  mkdirSync(join(folder, 'node_modules/@a2a-js'), { recursive: true })
  symlinkSync(join(INTEROP, 'a2a1'), join(folder, 'node_modules/@a2a-js/sdk'), 'junction')
  symlinkSync(join(INTEROP, 'express'), join(folder, 'node_modules/express'), 'junction')
  const peer = Child.node('server.js', { cwd: folder, env: { PORT: '0', BINDING: binding } })
  onTestFinished(() => peer.stop())
  const [, url = ''] = await peer.printed(/Listening at (\S+)/)
  return { peer, url }
}

/** `uamp serve` with that agent behind it. */
async function bridge(binding: 'JSONRPC' | 'HTTP+JSON' = 'JSONRPC') {
  const { peer, url } = await counter(binding)
  const cwd = await project({ 'uamp.config.yaml': `agents:\n  - name: counter\n    remote: a2a+${url}\n` })
  const here = await serving([], { cwd })
  return { peer, url: here.url }
}

describe.each(['JSONRPC', 'HTTP+JSON'] as const)('the official server over %s, behind `uamp serve`', (binding) => {
  test('over UAMP events it streams, asks back, and a cancel reaches it', async () => {
    const { peer, url } = await bridge(binding)
    const client = await overWebSocket(url)
    await client.open()
    const counted = await sayOver(client, 'count 5')
    expect(textOver(counted)).toBe('1 2 3 4 5')
    expect(counted.filter(({ type }) => type === 'response.delta')).toHaveLength(5)
    expect((await sayOver(client, 'ask')).at(-1)).toMatchObject({ response: { extensions: { uamp: { stop_reason: 'input_required' } } } })
    expect(textOver(await sayOver(client, 'hello'))).toBe('You said: hello')
    await begin(client, 'count 100000 20')
    await client.next((event) => event.type === 'response.delta' && event['delta'].text === ' 3')
    await client.send({ type: 'response.cancel' })
    await client.next('response.cancelled')
    await peer.printed(/Cancelled \S+/)
  })

  test.each([jsonRpc03, rest03, jsonRpc02, jsonRpc1])('over A2A, with the client $name', async ({ connect }) => {
    const { peer, url } = await bridge(binding)
    const client = await connect(url)
    expect(client.card).toMatchObject({ name: 'counter', streaming: true })
    const updates = await collect(client.stream(say('count 5')))
    const chunks = updates.flatMap((update) => ('chunk' in update ? [textOf(update.chunk.parts)] : []))
    expect(chunks.filter((chunk) => chunk !== '')).toEqual(['1', ' 2', ' 3', ' 4', ' 5'])
    expect(updates.at(-1)).toMatchObject({ status: { state: 'completed' } })
    expect(artifactText(await client.get(firstTask(updates).id))).toBe('1 2 3 4 5')

    const asked = taskOf(await client.send(say('ask')))
    expect(asked).toMatchObject({ state: 'input-required', says: { parts: [{ text: 'What shall I say?' }] } })
    const answered = taskOf(await client.send({ ...say('hello'), task: asked.id, context: asked.context }))
    expect(answered).toMatchObject({ id: asked.id, state: 'completed' })
    expect(artifactText(answered)).toContain('You said: hello')

    let running = ''
    for await (const update of client.stream(say('count 100000 20'))) {
      if ('task' in update) running = update.task.id
      if ('chunk' in update) break
    }
    expect(await client.cancel(running)).toMatchObject({ id: running, state: 'canceled' })
    await peer.printed(/Cancelled \S+/)
  })
})

test.each(['0.3.14', '0.2.5'] as const)('the official server of %s, over UAMP events', async (version) => {
  const { url, cancelled } = await officialServer(version)
  const cwd = await project({ 'uamp.config.yaml': `agents:\n  - name: counter\n    remote: { url: "${url}", protocol: a2a }\n` })
  const client = await overWebSocket((await serving([], { cwd })).url)
  await client.open()
  expect(textOver(await sayOver(client, 'count 5'))).toBe('1 2 3 4 5')
  expect((await sayOver(client, 'ask')).at(-1)).toMatchObject({ response: { extensions: { uamp: { stop_reason: 'input_required' } } } })
  expect(textOver(await sayOver(client, 'hello'))).toBe('You said: hello')
  await begin(client, 'count 100000')
  await client.next((event) => event.type === 'response.delta' && event['delta'].text === ' 3')
  await client.send({ type: 'response.cancel' })
  await client.next('response.cancelled')
  await cancelled
})

test.each(['0.3.14', '0.2.5'] as const)(
  'a line to the official server of %s that breaks costs nothing, and nothing comes twice',
  async (version) => {
    let there = ''
    const line = await cutting(() => there, { after: 8_000, times: 2 })
    there = (await officialServer(version, { via: () => line.url })).url
    const here = await startServer(remoteA2a({ name: 'counter', url: line.url }))
    const client = await overWebSocket(here.url)
    await client.open()
    expect(textOver(await sayOver(client, 'count 100'))).toBe(Array.from({ length: 100 }, (_, n) => n + 1).join(' '))
    expect(line.cuts()).toBeGreaterThan(0)
  },
)
