/** A server that cannot sign still answers. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { storeKey } from '../../src/core/basics/store-key.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { ask, stream, user } from '../openai/support.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overSse, overWebSocket } from '../support/wire.ts'

/** A data folder whose keys for responses nobody can open any more. */
async function damaged(): Promise<string> {
  const data = mkdtempSync(join(tmpdir(), 'uamp-unsigned-'))
  onTestFinished(() => rmSync(data, { recursive: true, force: true, maxRetries: 5 }))
  const before = await startServer(demo(), { data })
  const { body } = await ask(`${before.url}/v1/chat/completions`, { messages: [user('x')] }, { 'x-uamp-signature': 'chunk' })
  expect(body).toHaveProperty('signature')
  await before.close({ graceMs: 0 })
  const store = sqliteStore({ path: join(data, 'uamp.db') })
  const key = storeKey('', 'signing-keys', 'responses')
  const ring = (await store.get(key))?.value as { current: object }
  await store.set(key, { ...ring, current: { ...ring.current, sealed: 'damaged' } })
  await store.close()
  return data
}

verifies('uamp:signing:never-lost', 'with keys that are damaged, answers go out without a signature, and the log says so', async () => {
  const { url, logged } = await startServer(demo(), { data: await damaged(), sign: 'always' })
  for (const connect of [overWebSocket, overSse]) {
    const wire = await connect(url)
    await wire.open({ session: { modalities: ['text'], extensions: { uamp: { sign: true } } } })
    const events = await say(wire, 'hello')
    expect(textOf(events)).toBe('You said: hello')
    expect(events.at(-1)).toMatchObject({ type: 'response.done', response: { status: 'completed' } })
    expect(events.at(-1)).not.toHaveProperty('signature')
    wire.close()
  }
  const headers = { 'x-uamp-signature': 'event' }
  const { body } = await ask(`${url}/v1/chat/completions`, { messages: [user('hello')] }, headers)
  expect(body.choices[0].message.content).toBe('You said: hello')
  expect(body).not.toHaveProperty('signature')
  const { raw } = await stream(`${url}/v1/chat/completions`, { messages: [user('hello')] }, headers)
  expect(raw).toMatch(/\[DONE\]\n\n$/)
  const response = await ask(`${url}/v1/responses`, { input: 'hello' }, headers)
  expect(response.body).toMatchObject({ status: 'completed' })
  expect(response.body).not.toHaveProperty('signature')
  expect(logged).toContainEqual(expect.objectContaining({ level: 'error', message: 'A response is not signed' }))
})
