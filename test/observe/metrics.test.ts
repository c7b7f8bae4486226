import { expect, test } from 'vitest'
import { llmAgent } from '../../src/agents/llm/index.ts'
import { openaiCompatible } from '../../src/providers/openai-compatible/index.ts'
import { WorkCounts } from '../../src/server/work-counts.ts'
import { startUpstream } from '../providers/upstream/index.ts'
import { startServer } from '../support/server.ts'
import { testServer } from '../support/test-server.ts'

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
  const work = new WorkCounts()
  const labels = new Set(Array.from({ length: 1_000 }, (_, i) => work.label('gen_ai.request.model', `model-${i}`)))
  expect(labels.size).toBe(65)
  expect(labels).toContain('other')
  expect(work.label('gen_ai.request.model', 'model-1')).toBe('model-1')
  expect(work.label('gen_ai.tool.name', 'x'.repeat(10_000)).length).toBe(100)
})

test('nor do their combinations, and nothing is lost', () => {
  const work = new WorkCounts()
  const chats = Array.from({ length: 60 }, (_, a) => Array.from({ length: 60 }, (_, b) => ({ a, b }))).flat()
  for (const { a, b } of chats) {
    const attributes = { 'gen_ai.provider.name': `p${a}`, 'gen_ai.request.model': `m${b}`, 'gen_ai.usage.input_tokens': 5 }
    work.observeWork({ work: 'chat', attributes, ms: 30, error: undefined })
  }
  for (const series of [[...work.durations], [...work.tokens]]) {
    expect(series).toHaveLength(1_001)
    const counts = series.flatMap(({ counted }) => counted.counts)
    expect(counts.reduce((sum, count) => sum + count)).toBe(3_600)
  }
  expect([...work.durations].at(-1)?.labels).toMatchObject({ gen_ai_operation_name: 'other', gen_ai_request_model: 'other' })
})

test('the page has what a histogram has', async () => {
  const { url, metrics } = await testServer()
  const attributes = { 'gen_ai.request.model': 'some', 'gen_ai.usage.output_tokens': 20 }
  for (const ms of [5, 30, 200_000]) metrics.work.observeWork({ work: 'chat', attributes, ms, error: undefined })
  const lines = (await (await fetch(`${url}/metrics`)).text()).split('\n')
  const of = (text: string) => lines.filter((line) => line.startsWith(text))
  const name = 'gen_ai_client_operation_duration_seconds'
  expect(lines).toContain(`# TYPE ${name} histogram`)
  expect(lines).toContain('# TYPE gen_ai_client_token_usage histogram')
  const buckets = of(`${name}_bucket`)
  expect(buckets).toHaveLength(15)
  expect(buckets.map((line) => Number(line.split(' ').at(-1)))).toEqual([1, 1, ...Array.from({ length: 12 }, () => 2), 3])
  expect(buckets[0]).toContain('le="0.01"')
  expect(buckets.at(-1)).toContain('le="+Inf"')
  expect(of(`${name}_sum`)[0]).toMatch(/ 200\.035$/)
  expect(of(`${name}_count`)[0]).toMatch(/ 3$/)
  expect(of('gen_ai_client_token_usage_sum')[0]).toMatch(/gen_ai_token_type="output"\} 60$/)
})
