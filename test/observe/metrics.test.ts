import { expect, test } from 'vitest'
import { llmAgent } from '../../src/agents/llm/index.ts'
import { openaiCompatible } from '../../src/providers/openai-compatible/index.ts'
import { Metrics } from '../../src/server/metrics.ts'
import { startUpstream } from '../providers/upstream/index.ts'
import { startServer } from '../support/server.ts'

test('what models, tools and agents did is counted under the names of OpenTelemetry', async () => {
  const upstream = await startUpstream()
  const provider = openaiCompatible({ name: 'some', baseUrl: `${upstream.url}/compatible/v1`, apiKey: 'key', retries: 1 })
  const price = { input: 1_000_000, output: 1_000_000 }
  const weather = { name: 'weather', description: 'The weather', run: () => 'rain' }
  const { url } = await startServer([
    llmAgent({ name: 'one', model: { provider, model: 'tools', price }, tools: [weather], maxSteps: 2 }),
    llmAgent({ name: 'broken', model: { provider, model: 'error-500' } }),
  ])
  for (const model of ['one', 'broken']) {
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] })
    await (await fetch(`${url}/v1/chat/completions`, { method: 'POST', body })).text()
  }
  const text = await (await fetch(`${url}/metrics`)).text()
  const lines = text.split('\n')
  const has = (name: string, ...labels: string[]) =>
    lines.some((line) => line.startsWith(name) && labels.every((label) => line.includes(label)) && Number(line.split(' ').at(-1)) > 0)
  const duration = 'gen_ai_client_operation_duration_seconds_count'
  expect(has(duration, 'gen_ai_operation_name="chat"', 'gen_ai_provider_name="some"', 'gen_ai_request_model="tools"')).toBe(true)
  expect(has(duration, 'gen_ai_operation_name="execute_tool"', 'gen_ai_tool_name="weather"')).toBe(true)
  expect(has(duration, 'gen_ai_operation_name="invoke_agent"', 'gen_ai_agent_name="broken"', 'error_type="provider_error"')).toBe(true)
  expect(has('gen_ai_client_token_usage_sum', 'gen_ai_operation_name="chat"', 'gen_ai_token_type="input"')).toBe(true)
  expect(has('gen_ai_client_token_usage_sum', 'gen_ai_operation_name="chat"', 'gen_ai_token_type="output"')).toBe(true)
  expect(has('uamp_cost_total', 'gen_ai_request_model="tools"', 'currency="USD"')).toBe(true)
  expect(has('uamp_upstream_requests_total', 'error_type="provider_error"')).toBe(true)
  expect(has('uamp_upstream_retries_total')).toBe(true)
})

test('names that clients invent do not become labels without end', () => {
  const metrics = new Metrics()
  const labels = new Set(Array.from({ length: 1_000 }, (_, i) => metrics.label('gen_ai.request.model', `model-${i}`)))
  expect(labels.size).toBe(65)
  expect(labels).toContain('other')
  expect(metrics.label('gen_ai.request.model', 'model-1')).toBe('model-1')
  expect(metrics.label('gen_ai.tool.name', 'x'.repeat(10_000)).length).toBe(100)
})

test('what nobody asks for does not gather', () => {
  const metrics = new Metrics()
  for (let i = 0; i < 10_000; i++) metrics.observeWork('chat', {}, { ms: 1, error: undefined })
  expect(metrics.takeWork().length).toBeLessThan(1_000)
})
