import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { remoteStorage } from '../src/serve/storage/control.ts'
import { defineAgent } from '../src/core/agent-kit/define-agent.ts'
import { text } from '../src/core/agent-kit/drafts.ts'
import { startServer } from './support/server.ts'

const MIB = 1024 * 1024
const ALICE = 'alice-has-a-long-secret'
const BOB = 'bob-has-a-long-secret-too'

const brief = defineAgent('brief', async function* () {
  yield text('yes')
})

/** What protocols keep beside a session, by what each is asked. */
const ASKED: readonly (readonly [string, string, (n: number, said: string) => object, string])[] = [
  [
    'tasks of A2A',
    '/a2a',
    (n, said) => ({
      jsonrpc: '2.0',
      id: 1,
      method: 'SendMessage',
      params: { message: { messageId: `m${n}`, role: 'ROLE_USER', parts: [{ text: said }] } },
    }),
    'a2a-task',
  ],
  [
    'runs of AG-UI',
    '/ag-ui',
    (n, said) => ({ threadId: `t${n}`, runId: `r${n}`, messages: [{ id: 'u', role: 'user', content: said }] }),
    'alias',
  ],
]

test.each(ASKED)('%s stayed when their sessions went for want of room, and took that of everybody else', async (_, path, body, kind) => {
  const data = mkdtempSync(join(tmpdir(), 'uamp-test-'))
  onTestFinished(() => rmSync(data, { recursive: true, force: true, maxRetries: 5 }))
  const limits = { unloadMs: 0, storedBytes: 4 * MIB }
  const server = await startServer(brief, { data, tokens: { alice: ALICE, bob: BOB }, limits })
  const call = async (token: string, to: string, said: object): Promise<string> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'a2a-version': '1.0' }
    const response = await fetch(server.url + to, { method: 'POST', headers, body: JSON.stringify(said) })
    expect(response.status).toBe(200)
    return response.text()
  }
  for (let n = 0; n < 8; n++) await call(ALICE, path, body(n, 'x'.repeat(MIB)))
  const { id } = JSON.parse(await call(BOB, '/v1/responses', { model: 'brief', input: 'is it so?' })) as { id: string }
  // Nobody uses the sessions any more once their last readers have gone.
  await expect.poll(() => server.gateway.openResponses).toBe(0)
  await server.gateway.sweep()
  const found = await fetch(`${server.url}/v1/responses/${id}`, { headers: { authorization: `Bearer ${BOB}` } })
  expect(found.status).toBe(200)
  const { bytes, kinds } = await remoteStorage(data).show()
  expect(bytes).toBeLessThanOrEqual(limits.storedBytes)
  // A part of what alice has is there still, and each is as whole as it was.
  expect(kinds['session']?.count).toBeGreaterThan(1)
  expect(kinds[kind]?.count).toBe((kinds['session']?.count ?? 0) - 1)
})
