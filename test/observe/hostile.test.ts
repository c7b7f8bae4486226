import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { llmAgent } from '../../src/agents/llm/index.ts'
import { openaiCompatible } from '../../src/providers/openai-compatible/index.ts'
import { serving } from '../cli/run.ts'
import { startUpstream } from '../providers/upstream/index.ts'
import { startServer } from '../support/server.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const SPAN = 'b7ad6b7169203331'

const failing = () =>
  defineAgent('failing', async function* () {
    throw new Error('on purpose')
  })

/** Header values, byte by byte as they go out: each character is one byte. */
const NOT_IDS: Readonly<Record<string, string>> = {
  nothing: '',
  'ten kilobytes': 'x'.repeat(10_240),
  'one character too many': 'x'.repeat(129),
  'a colour': '\x1b[31mred',
  'a control character of two bytes': 'a\xc2\x9b2J',
  'a byte that is no text': 'a\xff',
  'text beyond ASCII': Buffer.from('ümläut', 'utf8').toString('latin1'),
  'a direction': Buffer.from('a\u202eb', 'utf8').toString('latin1'),
  'a tab': 'a\tb',
  several: 'a, b',
  JSON: '","level":60,"msg":"made up',
  'a tag': '<script>',
  'a line break that is escaped': 'a%0d%0ax-injected: 1',
  'a dash first': '-rf',
}

const NOT_TRACES: Readonly<Record<string, string>> = {
  nothing: '',
  'no ids': '00-0-0-01',
  'a trace of zeros': `00-${'0'.repeat(32)}-${SPAN}-01`,
  'a span of zeros': `00-${TRACE}-${'0'.repeat(16)}-01`,
  'a version that is none': `ff-${TRACE}-${SPAN}-01`,
  'capital letters': `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  'more than the version has': `00-${TRACE}-${SPAN}-01-more`,
  'ten kilobytes': `00-${TRACE}-${SPAN}-01-${'x'.repeat(10_240)}`,
  'a control character': `00-${TRACE}-${SPAN}-0\x1b`,
  'another sign': `00_${TRACE}_${SPAN}_01`,
  'space around': `00-${TRACE}-${SPAN}-01 x`,
}

/** Sends a request as it stands, and gives the answer's head. */
async function sent(url: string, lines: readonly string[], body = ''): Promise<string> {
  const { hostname, port, host } = new URL(url)
  const socket = connect(Number(port), hostname)
  onTestFinished(() => void socket.destroy())
  const head = [...lines, `host: ${host}`, `content-length: ${body.length}`, 'connection: close', '', '']
  socket.write(Buffer.from(head.join('\r\n') + body, 'latin1'))
  let text = ''
  socket.setEncoding('latin1').on('data', (piece: string) => (text += piece))
  await once(socket, 'close')
  return text.split('\r\n\r\n')[0] ?? ''
}

const ASK = JSON.stringify({ model: 'failing', messages: [{ role: 'user', content: 'Hello' }] })

test.each(Object.entries(NOT_IDS))('an id that is %s is replaced, in the answer as in the log', async (_, id) => {
  const { url, logged } = await startServer(failing(), { accessLog: true })
  const head = await sent(url, ['POST /v1/chat/completions HTTP/1.1', `x-request-id: ${id}`], ASK)
  // Control characters do not even get past Node's parser.
  const parsed = !head.startsWith('HTTP/1.1 400')
  const [, told] = /\r\nx-request-id: (req_[0-9a-f-]+)(?:\r\n|$)/.exec(head) ?? []
  expect(told).toBeDefined()
  expect(head).not.toMatch(/x-injected/)
  expect(logged).toHaveLength(parsed ? 2 : 0)
  for (const { fields } of logged) expect(fields).toMatchObject({ request_id: told })
  if (id.length > 3) expect(JSON.stringify(logged)).not.toContain(JSON.stringify(id).slice(1, -1))
})

test.each(Object.entries(NOT_TRACES))('a traceparent that is %s is neither logged nor passed on', async (_, traceparent) => {
  const upstream = await startUpstream()
  const provider = openaiCompatible({ name: 'some', baseUrl: `${upstream.url}/compatible/v1`, apiKey: 'key', retries: 0 })
  const { url, logged } = await startServer(llmAgent({ name: 'failing', model: { provider, model: 'echo' } }), { accessLog: true })
  const head = await sent(
    url,
    ['POST /v1/chat/completions HTTP/1.1', `traceparent: ${traceparent}`, 'tracestate: a=b', 'x-request-id: mine'],
    ASK,
  )
  if (head.startsWith('HTTP/1.1 400')) return expect(upstream.requests).toEqual([])
  expect(head).toMatch(/^HTTP\/1\.1 200/)
  expect(upstream.requests).toHaveLength(1)
  expect(upstream.requests[0]?.headers).toMatchObject({ 'x-request-id': 'mine' })
  expect(upstream.requests[0]?.headers).not.toHaveProperty('traceparent')
  expect(upstream.requests[0]?.headers).not.toHaveProperty('tracestate')
  for (const { fields } of logged) expect(fields).not.toHaveProperty('trace_id')
})

test.each([
  ['a later version is told in the words of this one', `cc-${TRACE}-${SPAN}-03-what-will-be`, `00-${TRACE}-${SPAN}-01`],
  ['one that is not sampled stays so', `00-${TRACE}-${SPAN}-00`, `00-${TRACE}-${SPAN}-00`],
])('%s', async (_, traceparent, passed) => {
  const upstream = await startUpstream()
  const provider = openaiCompatible({ name: 'some', baseUrl: `${upstream.url}/compatible/v1`, apiKey: 'key', retries: 0 })
  const { url } = await startServer(llmAgent({ name: 'failing', model: { provider, model: 'echo' } }))
  await sent(url, ['POST /v1/chat/completions HTTP/1.1', `traceparent: ${traceparent}`, `tracestate: ${'a=b,'.repeat(200)}`], ASK)
  expect(upstream.requests[0]?.headers).toMatchObject({ traceparent: passed })
  // It is longer than what has to be passed on.
  expect(upstream.requests[0]?.headers).not.toHaveProperty('tracestate')
})

test('an upgrade with an id that is none gets another one', async () => {
  const { url } = await startServer(failing())
  const upgrade = ['GET /uamp HTTP/1.1', 'upgrade: websocket', 'sec-websocket-version: 13', 'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==']
  const { hostname, port, host } = new URL(url)
  const socket = connect(Number(port), hostname)
  onTestFinished(() => void socket.destroy())
  const lines = [...upgrade, `host: ${host}`, 'connection: upgrade', `x-request-id: ${'x'.repeat(5_000)}\x80`, '', '']
  socket.write(Buffer.from(lines.join('\r\n'), 'latin1'))
  const [answer] = (await once(socket, 'data')) as [Buffer]
  expect(answer.toString('latin1')).toMatch(/^HTTP\/1\.1 101 [^]*\r\nx-request-id: req_[0-9a-f]{16}-\d+\r\n/)
})

test.each(['text', 'json'])('nothing that a stranger sends steers a terminal that shows the log (%s)', async (format) => {
  const { url, cli } = await serving(['--log-format', format])
  const ids = Object.values(NOT_IDS)
  for (const id of ids) await sent(url, [`GET /agents HTTP/1.1`, `x-request-id: ${id}`, `traceparent: ${id}`])
  for (const path of ['/\x9b2J', '/\xe2\x80\xae', '/%1b[2J', '/%0d%0amade-up', '/"quoted"', `/${'x'.repeat(5_000)}`]) {
    await sent(url, [`GET ${path} HTTP/1.1`, 'x-request-id: last'])
  }
  await sent(url, ['GET /end HTTP/1.1', 'x-request-id: end'])
  await cli.prints(/\/end/)
  await cli.signalUntilExit('SIGTERM')
  const lines = cli.stderr.trimEnd().split('\n')
  for (const line of lines) {
    expect(line).toMatch(/^[\x20-\x7e…]+$/)
    expect(line.length).toBeLessThan(1_000)
    if (format === 'json') expect(JSON.parse(line)).toMatchObject({ msg: 'Request', level: 30 })
    else expect(line).toMatch(/^\d\d:\d\d:\d\d info {2}GET \//)
  }
  expect(cli.stderr).not.toMatch(/made up|x-injected/)
})
