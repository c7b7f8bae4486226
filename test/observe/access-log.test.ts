import { expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { finished, project, serving } from '../cli/run.ts'
import { startServer } from '../support/server.ts'
import { overWebSocket } from '../support/wire.ts'

const SECRET = 'wonderland-7b1f9c04'
const messages = [{ role: 'user', content: 'Hello' }]
const headers = { authorization: `Bearer ${SECRET}` }

type Logged = readonly { readonly message: string; readonly fields?: Readonly<Record<string, unknown>> | undefined }[]
const requestsIn = (logged: Logged) => logged.filter(({ message }) => message === 'Request').map(({ fields }) => fields)

test('one line for each request says who asked for what, and what became of it', async () => {
  const { url, logged } = await startServer(demo(), { tokens: { alice: SECRET }, accessLog: true })
  const post = (stream: boolean, id: string) =>
    fetch(`${url}/agents/demo/v1/chat/completions?key=hidden-in-the-query`, {
      method: 'POST',
      headers: { ...headers, 'x-request-id': id },
      body: JSON.stringify({ model: 'demo', messages, stream }),
    }).then((answer) => answer.text())
  await post(false, 'first')
  await post(true, 'second')
  await fetch(`${url}/nowhere`)
  await fetch(`${url}/v1/models`)
  for (const path of ['/health', '/ready', '/metrics']) await (await fetch(url + path, { headers })).text()
  await expect.poll(() => requestsIn(logged).length).toBe(4)
  const known = { method: 'POST', path: '/agents/demo/v1/chat/completions', transport: 'completions', agent: 'demo', principal: 'alice' }
  expect(requestsIn(logged)).toMatchObject([
    { ...known, status: 200, ms: expect.any(Number), request_id: 'first' },
    { ...known, status: 200, request_id: 'second' },
    { method: 'GET', path: '/nowhere', status: 404 },
    { method: 'GET', path: '/v1/models', status: 401 },
  ])
  expect(requestsIn(logged)[3]).not.toHaveProperty('principal')
  expect(JSON.stringify(logged)).not.toMatch(/hidden-in-the-query|wonderland/)
})

test('a connection has its line when it ends, and an upgrade that is refused has one, too', async () => {
  const { url, logged } = await startServer(demo(), { tokens: { alice: SECRET }, accessLog: true })
  const wire = await overWebSocket(url, { token: SECRET })
  await wire.open()
  expect(requestsIn(logged)).toEqual([])
  wire.close()
  await expect.poll(() => requestsIn(logged)).toMatchObject([{ method: 'WS', path: '/uamp', status: 101, principal: 'alice' }])
  await expect(overWebSocket(url, { path: '/v1/realtime' })).rejects.toThrow()
  await expect.poll(() => requestsIn(logged).at(1)).toMatchObject({ method: 'WS', path: '/v1/realtime', status: 401 })
})

test('a program gets these lines if it asks for them', async () => {
  const { url, logged } = await startServer(demo())
  await (await fetch(`${url}/v1/models`)).text()
  await (await fetch(`${url}/v1/models`)).text()
  expect(requestsIn(logged)).toEqual([])
})

test('a path that is a credential is told as its pattern', async () => {
  const agent = defineAgent('one', async function* () {})
  const { url, logged } = await startServer(agent, { accessLog: true })
  await fetch(`${url}/media/upload/a-secret-of-its-own`, { method: 'PUT', body: 'x' })
  await expect.poll(() => requestsIn(logged)).toMatchObject([{ path: '/media/upload/:id', method: 'PUT', status: 404 }])
})

test('the command logs JSON where there is no terminal, and text if that is asked for', async () => {
  const json = await serving()
  await fetch(`${json.url}/agents`)
  await json.cli.prints(/"path":"\/agents"/)
  const line = json.cli.stderr.split('\n').find((each) => each.includes('"/agents"'))
  expect(JSON.parse(line ?? '')).toMatchObject({ level: 30, msg: 'Request', method: 'GET', status: 200, request_id: expect.any(String) })
  const text = await serving(['--log-format', 'text'])
  await fetch(`${text.url}/agents`)
  await text.cli.prints(/^\d\d:\d\d:\d\d info {2}GET \/agents 200 [\d.]+ms {2}transport=server request_id=req_\S+$/m)
})

test.each([['--no-access-log'], ['--log-level', 'warn']])('the command can be quiet: %s %s', async (...flags) => {
  const { url, cli } = await serving(flags.filter((flag) => flag !== undefined))
  await fetch(`${url}/agents`)
  await cli.signalUntilExit('SIGTERM')
  expect(cli.stderr).toBe('')
})

test('the config says it, and a flag has the last word', async () => {
  const cwd = await project({
    'uamp.config.yaml': 'agents: [./one.js]\nlog: { access: false }\n',
    'one.js': `import { defineAgent } from 'uamp'\nexport default defineAgent('one', async function* () { throw new Error('on purpose') })`,
  })
  const ask = (url: string) => fetch(`${url}/v1/chat/completions`, { method: 'POST', body: JSON.stringify({ model: 'one', messages }) })
  const quiet = await serving([], { cwd })
  await ask(quiet.url)
  await quiet.cli.prints(/The agent failed/)
  expect(quiet.cli.stderr).not.toContain('"Request"')
  const silent = await serving(['--log-level', 'silent'], { cwd })
  await ask(silent.url)
  await silent.cli.signalUntilExit('SIGTERM')
  expect(silent.cli.stderr).toBe('')
  const wrong = await finished(['serve', '--log-level', 'loud'])
  expect(wrong.code).not.toBe(0)
  expect(wrong.stderr).toMatch(/Allowed choices are debug, info, warn, error, silent/)
})
