import { chmod, readFile } from 'node:fs/promises'
import { get } from 'node:http'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { answering } from './answering.ts'
import { Cli, finished, project, serving } from './run.ts'

const body = (name: string): string => `{ yield { type: 'response.delta', delta: { type: 'text', text: '${name} here' } } }`
const parrot = (name: string): string => `defineAgent('${name}', async function* (turn) ${body(name)})`
const handler = (name: string): string => `{ name: 'h', subscribes: ['input.text'], async *process() ${body(name)} }`
const IMPORT = `import { Agent, defineAgent, type AgentPort } from 'uamp'`
const JS_IMPORT = `import { defineAgent } from 'uamp'`

async function agentsOf(url: string): Promise<string[]> {
  const { agents } = (await (await fetch(`${url}/agents`)).json()) as { agents: { name: string }[] }
  return agents.map(({ name }) => name)
}

/** Does what the printed curl line does. */
async function curl(text: string, token?: { readonly placeholder: string; readonly secret: string }): Promise<string> {
  const [, address = '', body = ''] = /curl -N (\S+).* -d '(.*)'/.exec(text) ?? []
  const headers = Object.fromEntries([...text.matchAll(/-H '([\w-]+): ([^']*)'/g)].map(([, name = '', value = '']) => [name, value]))
  if (token) headers['authorization'] = (headers['authorization'] ?? '').replace(token.placeholder, token.secret)
  return (await fetch(`http://${address}`, { method: 'POST', headers, body })).text()
}

test('without anything serves the demo, says where everything is, and the line to try works', async () => {
  const folder = await project()
  const { cli, url } = await serving(['--data', 'kept'], { cwd: folder })
  for (const part of [
    url,
    'demo',
    '/uamp',
    'POST /events',
    'GET /events/stream',
    '/v1',
    '/.well-known/agent-card.json',
    '/ag-ui',
    'uamp acp',
    '/omnia?agent=demo',
    '/health',
    '/metrics',
    '/schemas/events.json',
    'in kept',
  ]) {
    expect(cli.stdout).toContain(part)
  }
  expect(cli.stdout.trimEnd().split('\n').length).toBeLessThanOrEqual(15)
  expect(cli.stdout).not.toContain('\u001B')
  const answer = await curl(cli.stdout)
  expect(answer).toContain('"text":" 10"')
  expect(answer).toContain('response.done')
  expect(await readFile(join(folder, 'kept/uamp.db'))).toBeDefined()
})

test.each([
  ['a TypeScript module', { 'a.ts': `${IMPORT}\nconst agent: AgentPort = ${parrot('one')}\nexport default agent` }, ['a.ts'], ['one']],
  [
    'a JavaScript module with named exports',
    { 'a.js': `${JS_IMPORT}\nexport const one = ${parrot('one')}\nexport const two = ${parrot('two')}\nexport const port = 3` },
    ['a.js'],
    ['one', 'two'],
  ],
  ['an array', { 'a.mjs': `${JS_IMPORT}\nexport default [${parrot('one')}, ${parrot('two')}]` }, ['a.mjs'], ['one', 'two']],
  ['an Agent', { 'a.ts': `${IMPORT}\nexport default new Agent({ name: 'one', handlers: [${handler('one')}] })` }, ['a.ts'], ['one']],
  ['a folder with an agent', { 'bot/agent.ts': `${IMPORT}\nexport default ${parrot('one')}` }, ['bot'], ['one']],
  ['a folder with an index', { 'bot/index.js': `${JS_IMPORT}\nexport default ${parrot('one')}` }, ['bot'], ['one']],
  [
    'a config that names modules and folders',
    {
      'my.json': '{ "agents": ["./one.js", "./two"] }',
      'one.js': `${JS_IMPORT}\nexport default ${parrot('one')}`,
      'two/agent.js': `${JS_IMPORT}\nexport default ${parrot('two')}`,
    },
    ['my.json'],
    ['one', 'two'],
  ],
  [
    'a config that holds agents',
    { 'uamp.config.ts': `${IMPORT}\nconst agents: AgentPort[] = [${parrot('one')}]\nexport default { agents }` },
    ['uamp.config.ts'],
    ['one'],
  ],
  [
    'the config of this folder',
    { 'uamp.config.json': '{ "agents": ["./one.js"] }', 'one.js': `${JS_IMPORT}\nexport default ${parrot('one')}` },
    [],
    ['one'],
  ],
])('serves %s', async (_, files, args, names) => {
  const { cli, url } = await serving(args, { cwd: await project(files) })
  expect(await agentsOf(url)).toEqual(names)
  expect(await curl(cli.stdout)).toContain('one here')
})

test('a config sets data, tokens, origins and the agent at the root; options and the environment win', async () => {
  const cwd = await project({
    'conf/uamp.config.json': JSON.stringify({
      agents: ['../one.js', '../two.js'],
      port: 1,
      data: './kept',
      tokens: { alice: '$ALICE', bob: 'bobs-secret-0123', carol: 'replaced-01234567' },
      origins: ['https://app.example'],
      defaultAgent: 'two',
    }),
    'one.js': `${JS_IMPORT}\nexport default ${parrot('one')}`,
    'two.js': `${JS_IMPORT}\nexport default ${parrot('two')}`,
  })
  const env = { ALICE: 'alices-secret-01', UAMP_TOKENS: 'carol:carols-secret-01, dave:daves-secret-012' }
  const { cli, url } = await serving(['conf', '--token', 'eve:eves-secret:with-colon'], { cwd, env })
  expect(cli.stdout).toContain('alice, bob, carol, dave, eve')
  expect(cli.stdout).toContain('in conf/kept'.replaceAll('/', process.platform === 'win32' ? '\\' : '/'))
  expect(await curl(cli.stdout)).toContain('unauthorized')
  const placeholder = '<secret of alice>'
  for (const secret of ['alices-secret-01', 'bobs-secret-0123', 'carols-secret-01', 'daves-secret-012', 'eves-secret:with-colon']) {
    expect(await curl(cli.stdout, { placeholder, secret })).toContain('two here')
    expect(cli.output).not.toContain(secret)
  }
  expect(await curl(cli.stdout, { placeholder, secret: 'replaced-01234567' })).toContain('unauthorized')
  const asked = await fetch(`${url}/health`, { headers: { origin: 'https://app.example' } })
  expect(asked.headers.get('access-control-allow-origin')).toBe('https://app.example')
})

test('tokens come from a file, so that they stand in no list of processes, and names of the server from an option', async () => {
  const cwd = await project({ tokens: '# Who may call\n\nalice:alices-secret-01\n  bob: bobs-secret-0123\r\n' })
  const { cli, url } = await serving(['--token-file', 'tokens', '--allow-host', 'agents.internal'], { cwd })
  expect(cli.stdout).toContain('alice, bob, each by token')
  for (const secret of ['alices-secret-01', 'bobs-secret-0123']) {
    expect((await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${secret}` } })).status).toBe(200)
    expect(cli.output).not.toContain(secret)
  }
  // `fetch` does not let us say the host.
  const status = (host: string) =>
    new Promise((resolve) => get(`${url}/health`, { headers: { host } }, (response) => resolve(response.resume().statusCode)))
  expect([await status('agents.internal'), await status('evil.example')]).toEqual([200, 421])
})

test('several agents without one at the root: the lines to try name one', async () => {
  const cwd = await project({ 'a.js': `${JS_IMPORT}\nexport const one = ${parrot('one')}\nexport const two = ${parrot('two')}` })
  const { cli, url } = await serving(['a.js'], { cwd })
  expect(cli.stdout).toContain('one, two: each at /agents/{name}')
  expect(await curl(cli.stdout)).toContain('one here')
  expect(cli.stdout).toContain(`npx uamp chat ${url} --agent one`)
})

test('other machines need a token, or leave to go without', async () => {
  const { cli } = await serving(['--host', '0.0.0.0', '--allow-anonymous'])
  expect(cli.stdout).toContain('anyone who can reach 0.0.0.0')
  expect(await curl(cli.stdout)).toContain('response.done')
})

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('%s: a running answer is finished, then it leaves with 0', async (signal) => {
  const { cli, url } = await serving()
  const { whole } = await answering(url, '/count 20 20')
  cli.signal(signal)
  const text = await whole
  expect(text).toContain('"text":" 20"')
  expect(text).toContain('response.done')
  expect(await cli.exit()).toBe(0)
  expect(cli.stdout).toContain('Stopping: an answer is being finished')
  const lines = cli.stderr.trimEnd().split('\n')
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([{ msg: 'Request', path: '/events', status: 200 }])
})

test('a second signal stops at once', async () => {
  const { cli, url } = await serving()
  const { whole } = await answering(url, '/count 1000000 20')
  whole.catch(() => undefined)
  cli.signal('SIGINT')
  await cli.prints(/Stopping/)
  expect(await cli.signalUntilExit('SIGINT')).toBe(0)
  expect(cli.stdout).toContain('Stopped at once')
})

test.skipIf(process.platform === 'win32')('--open opens the browser at the address', async () => {
  const script = '#!/bin/sh\necho "$1" > opened.txt\n'
  const cwd = await project({ 'bin/xdg-open': script, 'bin/open': script })
  for (const name of ['xdg-open', 'open']) await chmod(join(cwd, 'bin', name), 0o755)
  const env = { UAMP_DATA: 'memory', PATH: `${join(cwd, 'bin')}:${process.env['PATH']}` }
  const { url } = await serving(['--open'], { cwd, env })
  await vi.waitFor(async () => expect(await readFile(join(cwd, 'opened.txt'), 'utf8')).toBe(`${url}\n`), { timeout: 10_000 })
})

test('shows its version and its help', async () => {
  const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string }
  expect(await finished(['--version'])).toMatchObject({ code: 0, stdout: `${version}\n` })
  expect((await finished(['--help'])).stdout).toMatch(/serve .*chat /s)
  expect((await finished(['serve', '--help'])).stdout).toContain('--allow-anonymous')
  const cli = new Cli(['sreve'])
  expect(await cli.exit()).toBe(1)
  expect(cli.stderr).toContain('Did you mean serve?')
})

test('a data folder without a name is the usual one, and not the folder of the project', async () => {
  const cwd = await project()
  const { cli } = await serving(['--data', ''], { cwd, env: { UAMP_DATA: '' } })
  expect(cli.stdout).toMatch(/Sessions +in \.uamp\n/)
})
