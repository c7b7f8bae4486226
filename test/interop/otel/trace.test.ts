import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Cli, project, type Serving } from '../../cli/run.ts'
import { startUpstream } from '../../providers/upstream/index.ts'
import { say } from '../../support/talk.ts'
import { overWebSocket } from '../../support/wire.ts'

interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly status?: { readonly code?: number }
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[]
  /** Which process sent it. */
  from: string
}

const KINDS = ['', 'internal', 'server', 'client']

/** A receiver of OTLP over HTTP, as small as it can be. Whoever sends spans is told apart by the path. */
async function receiver(): Promise<{ readonly url: string; readonly spans: Span[] }> {
  const spans: Span[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (piece: string) => (text += piece))
    request.on('end', () => {
      const [, from = ''] = /^\/(\w+)\/v1\/traces$/.exec(request.url ?? '') ?? []
      const { resourceSpans } = JSON.parse(text) as { resourceSpans: { scopeSpans: { spans: Span[] }[] }[] }
      spans.push(
        ...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans.map((span) => ({ ...span, from })))),
      )
      response.setHeader('content-type', 'application/json').end('{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans }
}

const SETUP = pathToFileURL(fileURLToPath(new URL('setup.js', import.meta.url))).href

/** `uamp serve`, a process of its own, in a folder that has OpenTelemetry, as in a user's project. */
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

/** Each span as the way to it from the root: `process: name (kind)`, one in the other. */
function ways(spans: readonly Span[]): string[] {
  const known = new Map(spans.map((span) => [span.spanId, span]))
  const way = ({ parentSpanId, from, name, kind }: Span): string => {
    const step = `${from}: ${name} (${KINDS[kind]})`
    if (!parentSpanId) return step
    const parent = known.get(parentSpanId)
    return `${parent ? way(parent) : 'unknown'} > ${step}`
  }
  return spans.map(way).toSorted()
}

const attributesOf = ({ attributes }: Span) => Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

const messages = [{ role: 'user', content: 'Hello' }]

test('a request through a gateway, a remote agent and a model is one trace, whose id is in every log line', async () => {
  const { url: otlp, spans } = await receiver()
  const upstream = await startUpstream()
  const behind = await traced(
    `agents: [{ name: model, model: ollama/error-400, fallbacks: [ollama/echo] }]
providers: { ollama: { baseUrl: "${upstream.url}/ollama/v1" } }\n`,
    `${otlp}/behind`,
  )
  const before = await traced(`agents: [{ name: remote, remote: { url: "${behind.url}", protocol: a2a } }]\n`, `${otlp}/before`)
  const said = [before, behind].map(({ cli }) => cli.stderr.length)
  spans.length = 0
  upstream.requests.length = 0
  const body = JSON.stringify({ model: 'remote', messages, stream: true })
  const answer = await fetch(`${before.url}/v1/chat/completions`, { method: 'POST', body })
  expect(await answer.text()).toContain('[DONE]')
  const id = answer.headers.get('x-request-id')
  expect(id).toMatch(/^req_/)

  // The request, the response, the call to the other server with its agent card before it, and the same once more there.
  const request = 'before: POST /v1/chat/completions (server)'
  const remote = `${request} > before: invoke_agent remote (internal)`
  const task = `${remote} > before: POST remote (client) > behind: POST /a2a (server)`
  const model = `${task} > behind: invoke_agent model (internal)`
  await expect
    .poll(() => ways(spans))
    .toEqual(
      [
        request,
        remote,
        `${remote} > before: GET remote (client)`,
        `${remote} > before: GET remote (client) > behind: GET /.well-known/agent-card.json (server)`,
        `${remote} > before: POST remote (client)`,
        task,
        model,
        `${model} > behind: chat error-400 (client)`,
        `${model} > behind: chat error-400 (client) > behind: POST ollama (client)`,
        `${model} > behind: chat echo (client)`,
        `${model} > behind: chat echo (client) > behind: POST ollama (client)`,
      ].toSorted(),
    )
  const traces = new Set(spans.map(({ traceId }) => traceId))
  expect(traces.size).toBe(1)
  const [trace = ''] = traces
  expect(trace).toMatch(/^[0-9a-f]{32}$/)

  // The model is asked within its own span.
  const asked = spans.filter(({ name }) => name === 'POST ollama').map(({ spanId }) => `00-${trace}-${spanId}-01`)
  expect(upstream.requests.map(({ headers }) => String(headers['traceparent'])).toSorted()).toEqual(asked.toSorted())
  for (const { headers } of upstream.requests) expect(headers['x-request-id']).toBe(id)
  const chat = spans.find(({ name }) => name === 'chat echo') as Span
  expect(attributesOf(chat)).toMatchObject({
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'ollama',
    'gen_ai.request.model': 'echo',
  })
  for (const span of spans.filter(({ kind }) => KINDS[kind] === 'server'))
    expect(attributesOf(span)).toMatchObject({ 'uamp.request_id': id })

  // Nothing else was asked of these servers, so every line is of this request.
  const lines = await Promise.all(
    [before, behind].map(async ({ cli }, index) => {
      const told = () => cli.stderr.slice(said[index]).split('\n').slice(0, -1)
      await expect.poll(() => told().some((line) => /"method":"POST"/.test(line))).toBe(true)
      return told().map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
    }),
  )
  for (const line of lines.flat()) expect(line).toMatchObject({ request_id: id, trace_id: trace })
  expect(lines.map((of) => of.map(({ msg, path }) => path ?? msg))).toEqual([
    ['/v1/chat/completions'],
    [
      '/.well-known/agent-card.json',
      'A model failed, the next one is asked',
      expect.stringContaining('The price of a model is not known'),
      '/a2a',
    ],
  ])
})

test('a trace that a client began goes on, and one that is not sampled is not recorded', async () => {
  const { url: otlp, spans } = await receiver()
  const { url, cli } = await traced('agents: [{ name: model, model: ollama/echo }]\n', `${otlp}/one`)
  const trace = '0af7651916cd43dd8448eb211c80319c'
  const ask = (flags: string) =>
    fetch(`${url}/v1/models`, { headers: { traceparent: `00-${trace}-b7ad6b7169203331-${flags}`, 'x-request-id': `sampled-${flags}` } })
  await (await ask('00')).text()
  await (await ask('01')).text()
  await expect.poll(() => spans).toHaveLength(1)
  expect(spans).toMatchObject([{ name: 'GET /v1/models', traceId: trace, parentSpanId: 'b7ad6b7169203331' }])
  // Whether it is recorded or not, it is found in the log.
  await cli.prints(/"request_id":"sampled-00","trace_id":"0af7651916cd43dd8448eb211c80319c"[^]*"sampled-01","trace_id":"0af7/)
})

test('a connection is a span, and each response on it is one within', async () => {
  const { url: otlp, spans } = await receiver()
  const upstream = await startUpstream()
  const config = `agents: [{ name: model, model: ollama/echo }]\nproviders: { ollama: { baseUrl: "${upstream.url}/ollama/v1" } }\n`
  const { url } = await traced(config, `${otlp}/one`)
  const wire = await overWebSocket(url)
  await wire.open()
  await say(wire, 'Hello')
  await say(wire, 'again')
  wire.close()
  const socket = 'one: WS /uamp (server)'
  const response = [`${socket} > one: invoke_agent model (internal)`]
  response.push(`${response[0]} > one: chat echo (client)`, `${response[0]} > one: chat echo (client) > one: POST ollama (client)`)
  await expect.poll(() => ways(spans)).toEqual([socket, ...response, ...response].toSorted())
})

test('a failure is told in its span', async () => {
  const { url: otlp, spans } = await receiver()
  const upstream = await startUpstream()
  const { url } = await traced(
    `agents: [{ name: model, model: ollama/error-400 }]\nproviders: { ollama: { baseUrl: "${upstream.url}/ollama/v1" } }\n`,
    `${otlp}/one`,
  )
  await fetch(`${url}/v1/chat/completions`, { method: 'POST', body: JSON.stringify({ model: 'model', messages }) })
  const ERROR = 2
  await expect.poll(() => spans.find(({ name }) => name.startsWith('invoke_agent'))).toMatchObject({ status: { code: ERROR } })
  expect(spans.find(({ name }) => name.startsWith('chat '))).toMatchObject({ status: { code: ERROR } })
})
