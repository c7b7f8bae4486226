import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Cli, project, type Serving } from '../../cli/run.ts'
import { startUpstream } from '../../providers/upstream/index.ts'

interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly status?: { readonly code?: number }
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[]
}

/** A receiver of OTLP over HTTP, as small as it can be. */
async function receiver(): Promise<{ readonly url: string; readonly spans: Span[] }> {
  const spans: Span[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (piece: string) => (text += piece))
    request.on('end', () => {
      const { resourceSpans } = JSON.parse(text) as { resourceSpans: { scopeSpans: { spans: Span[] }[] }[] }
      spans.push(...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)))
      response.setHeader('content-type', 'application/json').end('{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans }
}

const SETUP = pathToFileURL(fileURLToPath(new URL('setup.js', import.meta.url))).href

/** `uamp serve` in a folder that has OpenTelemetry, as in a user's project. */
async function traced(config: string, otlp: string): Promise<Serving> {
  const file = join(await project(), 'uamp.config.yaml')
  await writeFile(file, config)
  const cli = new Cli(['serve', file, '--port', '0'], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    env: { UAMP_DATA: 'memory', OTEL_EXPORTER_OTLP_ENDPOINT: otlp, NODE_OPTIONS: `--import ${SETUP}` },
  })
  const [, url = ''] = await cli.prints(/ at (http:\/\/\S+)[^]*npx uamp chat/)
  return { cli, url }
}

const messages = [{ role: 'user', content: 'Hello' }]

test('a request through a gateway, a remote agent and a model is one trace, whose id is in every log line', async () => {
  const { url: otlp, spans } = await receiver()
  const upstream = await startUpstream()
  const behind = await traced(
    `agents: [{ name: model, model: ollama/echo }]\nproviders: { ollama: { baseUrl: "${upstream.url}/ollama/v1" } }\n`,
    otlp,
  )
  const before = await traced(`agents: [{ name: remote, remote: { url: "${behind.url}", protocol: a2a } }]\n`, otlp)
  spans.length = 0
  const answer = await fetch(`${before.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'x-request-id': 'mine' },
    body: JSON.stringify({ model: 'remote', messages, stream: true }),
  })
  expect(await answer.text()).toContain('[DONE]')
  const names = () => spans.map(({ name }) => name)
  await expect
    .poll(names)
    .toEqual(expect.arrayContaining(['POST /v1/chat/completions', 'invoke_agent remote', 'invoke_agent model', 'chat echo']))
  await expect.poll(() => names().filter((name) => name.startsWith('POST /')).length).toBe(2)
  const [first] = spans
  expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([first?.traceId]))
  // One root, and every other span is within one that was received.
  const ids = new Set(spans.map(({ spanId }) => spanId))
  expect(spans.filter(({ parentSpanId }) => !parentSpanId).map(({ name }) => name)).toEqual(['POST /v1/chat/completions'])
  for (const { parentSpanId } of spans) if (parentSpanId) expect(ids).toContain(parentSpanId)
  // Not one for each delta.
  expect(spans.length).toBeLessThan(12)
  const chat = spans.find(({ name }) => name === 'chat echo')
  const attributes = Object.fromEntries(chat?.attributes.map(({ key, value }) => [key, Object.values(value)[0]]) ?? [])
  expect(attributes).toMatchObject({ 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'ollama', 'gen_ai.request.model': 'echo' })
  expect(upstream.requests.at(-1)?.headers).toMatchObject({
    'x-request-id': 'mine',
    traceparent: expect.stringContaining(first?.traceId ?? '-'),
  })
  for (const { cli } of [before, behind]) {
    await cli.prints(/"request_id":"mine"/)
    const lines = cli.stderr.split('\n').filter((line) => line.includes('"mine"'))
    for (const line of lines) expect(JSON.parse(line)).toMatchObject({ trace_id: first?.traceId })
  }
})

test('a failure is told in its span', async () => {
  const { url: otlp, spans } = await receiver()
  const upstream = await startUpstream()
  const { url } = await traced(
    `agents: [{ name: model, model: ollama/error-400 }]\nproviders: { ollama: { baseUrl: "${upstream.url}/ollama/v1" } }\n`,
    otlp,
  )
  await fetch(`${url}/v1/chat/completions`, { method: 'POST', body: JSON.stringify({ model: 'model', messages }) })
  const ERROR = 2
  await expect.poll(() => spans.find(({ name }) => name.startsWith('invoke_agent'))).toMatchObject({ status: { code: ERROR } })
  expect(spans.find(({ name }) => name.startsWith('chat '))).toMatchObject({ status: { code: ERROR } })
})
