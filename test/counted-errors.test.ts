import { expect, test } from 'vitest'
import { defineAgent } from '../src/core/agent-kit/define-agent.ts'
import { text } from '../src/core/agent-kit/drafts.ts'
import { UampError } from '../src/protocol/errors.ts'
import { startServer } from './support/server.ts'

/** Fails as an agent does whose upstream fails: at once, or in the middle of its answer. */
const failing = (late: boolean) =>
  defineAgent('m', async function* () {
    if (late) yield text('It begins')
    throw new UampError('provider_error', 'The upstream is down')
  })

const messages = [{ role: 'user', content: 'Hello' }]
const rpc = { jsonrpc: '2.0', id: 1, method: 'prompt/submit', params: { messages } }

const REQUESTS: [string, string, string, object][] = [
  ['Chat Completions', 'completions', '/v1/chat/completions', { messages }],
  ['Chat Completions, streamed', 'completions', '/v1/chat/completions', { messages, stream: true }],
  ['Chat Completions, stored', 'completions', '/v1/chat/completions', { messages, store: true }],
  ['Responses', 'responses', '/v1/responses', { input: 'Hello' }],
  ['Responses, streamed', 'responses', '/v1/responses', { input: 'Hello', stream: true }],
  ['Responses, not stored', 'responses', '/v1/responses', { input: 'Hello', store: false }],
  ['a compaction', 'responses', '/v1/responses/compact', { model: 'm', input: 'Hello' }],
  ['older ACP', 'acp', '/acp', rpc],
]

const cases = REQUESTS.flatMap(([name, ...request]) => [
  [`${name}, at once`, false, ...request] as const,
  [`${name}, after the first word`, true, ...request] as const,
])

test.each(cases)('an answer that fails is counted as one error: %s', async (_, late, transport, path, body) => {
  const { url } = await startServer(failing(late))
  const headers = { 'content-type': 'application/json' }
  await (await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })).text()
  const metrics = await (await fetch(`${url}/metrics`)).text()
  expect(metrics.match(/^uamp_errors_total\{.*$/gm)).toEqual([`uamp_errors_total{transport="${transport}",code="provider_error"} 1`])
})

test('an error that no answer is at fault for is still counted', async () => {
  const { url } = await startServer(failing(false))
  for (const path of ['/v1/chat/completions', '/v1/responses']) await (await fetch(`${url}${path}`, { method: 'POST', body: '{' })).text()
  const metrics = await (await fetch(`${url}/metrics`)).text()
  expect(metrics.match(/^uamp_errors_total\{.*$/gm)).toEqual([
    'uamp_errors_total{transport="completions",code="invalid_request"} 1',
    'uamp_errors_total{transport="responses",code="invalid_request"} 1',
  ])
})
