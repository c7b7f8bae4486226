import { beforeAll, expect, test } from 'vitest'
import { startProxy } from '../client/proxy.ts'
import { verifies } from '../support/verifies.ts'
import { Cli, finished, project, serving, type RunOptions } from './run.ts'

const ONE = 'one-0123456789abcdef'
const TWO = 'two-0123456789abcdef'
const THREE = 'three-0123456789abcdef'
const CALLER = 'caller-0123456789abcdef'

const AGENTS = `import { defineAgent } from 'uamp'
export const [one, two, three, four] = ['team.one', 'team.two', 'three', 'four'].map((name) =>
  defineAgent(name, async function* (turn) {
    yield name + ' hears ' + turn.messages.at(-1).content
    if (turn.messages.at(-1).content !== 'wait') return
    console.log('waiting')
    await new Promise((resolve) => process.stdin.once('data', resolve))
    yield ' to the end'
  }),
)`

const HOST = `agents: [./local.mjs]
tokens: { one: ${ONE}, two: ${TWO}, three: ${THREE}, caller: ${CALLER} }
grants: { one: ['host:team.one', 'host:four'], two: ['host:team.*'], three: ['host:three', 'host:local'] }
`
const LOCAL = `import { defineAgent } from 'uamp'
export default defineAgent('local', async function* () { yield 'here' })`

async function startHost() {
  const { url } = await serving(['--log-level', 'error'], { cwd: await project({ 'local.mjs': LOCAL, 'uamp.config.yaml': HOST }) })
  return { url, ws: `${url.replace('http', 'ws')}/ws` }
}

async function ask(url: string, agent: string, content: string): Promise<string> {
  const response = await fetch(`${url}/agents/${agent}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${CALLER}` },
    body: JSON.stringify({ model: agent, messages: [{ role: 'user', content }] }),
  })
  const { choices, error } = (await response.json()) as { choices?: { message: { content: string } }[]; error?: { message: string } }
  return choices?.[0]?.message.content ?? `${response.status} ${error?.message}`
}

const CONFIG = `agents: [./agents.mjs]
connect:
  - { url: "\${HOST_URL}", agents: [team.one], token: "\${ONE_TOKEN}" }
  - { url: "\${HOST_URL}", agents: [team.two], tokenEnv: TWO_TOKEN }
  - { url: "\${HOST_URL}", agents: [three], tokenFile: secrets/three }
`

verifies('connect.config', 'a config offers several agents over one socket, each with its own token from elsewhere', async () => {
  const { url, ws } = await startHost()
  const cwd = await project({ 'agents.mjs': AGENTS, 'secrets/three': `${THREE}\n`, 'uamp.config.yaml': CONFIG })
  const cli = new Cli(['connect'], { cwd, env: { HOST_URL: ws, ONE_TOKEN: ONE, TWO_TOKEN: TWO } })
  for (const name of ['team.one', 'team.two', 'three']) {
    await cli.prints(new RegExp(`^${name} is at ${url}/agents/${name}$`, 'm'))
    expect(await ask(url, name, 'hello')).toBe(`${name} hears hello`)
  }
  // It is not offered: no entry names it.
  expect(await ask(url, 'four', 'hello')).toMatch(/^404 /)
  const metrics = await (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${CALLER}` } })).text()
  expect(metrics).toMatch(/^uamp_open_sockets 1$/m)
  expect(cli.output).not.toMatch(/0123456789abcdef/)
})

verifies('connect.config', 'with --agent, only this one is offered; a config in another folder has its token file beside it', async () => {
  const { url, ws } = await startHost()
  const cwd = await project({ 'deep/agents.mjs': AGENTS, 'deep/secrets/three': THREE, 'deep/uamp.config.yaml': CONFIG })
  const cli = new Cli(['connect', 'deep', '--agent', 'three'], { cwd, env: { HOST_URL: ws, ONE_TOKEN: ONE, TWO_TOKEN: TWO } })
  await cli.prints(/three is at/)
  expect(await ask(url, 'three', 'hello')).toBe('three hears hello')
  expect(await ask(url, 'team.two', 'hello')).toMatch(/^404 /)
})

const MISTAKES = `agents: [./agents.mjs]
connect:
  - { url: ftp://host/ws, agents: [team.one], token: "\${ONE_TOKEN}" }
  - { url: wss://host/ws, agents: [team.on], token: a, tokenFile: b }
  - { url: https://host, agents: [team.on] }
  - { url: wss://host/ws, tokenEnv: TWO_TOKEN }
  - { url: host, agents: [three], secret: x }
`

test('mistakes in `connect` are told with their lines', async () => {
  const cwd = await project({ 'agents.mjs': AGENTS, 'uamp.config.yaml': MISTAKES.replace(/.*secret: x.*\n/, '') })
  const { code, stderr } = await finished(['connect'], { cwd })
  expect(code).toBe(2)
  expect(
    stderr
      .trim()
      .replace(/^error: /, '')
      .split('\n'),
  ).toEqual([
    expect.stringMatching(/^uamp\.config\.yaml:3: connect\[0\]\.token needs ONE_TOKEN, which the environment lacks/),
    expect.stringMatching(/^uamp\.config\.yaml:3: connect\[0\]\.url cannot be used: A host is reached over wss:\/\/, not ftp:\/\//),
    expect.stringMatching(/^uamp\.config\.yaml:4: connect\[1\]\.tokenFile contradicts "token": keep one of them$/),
    expect.stringMatching(
      /^uamp\.config\.yaml:4: connect\[1\]\.agents\[0\] is "team\.on", but the agents are: .*did you mean "team\.one"\?/,
    ),
    expect.stringMatching(
      /^uamp\.config\.yaml:5: connect\[2\]\.agents\[0\] is "team\.on", which an entry before it offers to the same host$/,
    ),
    expect.stringMatching(/^uamp\.config\.yaml:5: connect\[2\]\.agents\[0\] is "team\.on", but the agents are/),
    expect.stringMatching(/^uamp\.config\.yaml:6: connect\[3\]\.tokenEnv needs TWO_TOKEN/),
    expect.stringMatching(/^uamp\.config\.yaml:6: connect\[3\] names the same host as an entry before it: say with "agents"/),
  ])
  const unknown = await finished(['connect'], { cwd: await project({ 'agents.mjs': AGENTS, 'uamp.config.yaml': MISTAKES }) })
  expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('connect[4].secret is unknown here') })
})

/** One for all that are refused. */
let host: Awaited<ReturnType<typeof startHost>>
beforeAll(async () => {
  const { serve } = await import('../../src/serve/index.ts')
  const { defineAgent } = await import('../../src/core/agent-kit/define-agent.ts')
  const local = defineAgent('three', async function* () {
    yield 'here'
  })
  const server = await serve(local, {
    port: 0,
    data: 'memory',
    log: () => undefined,
    tokens: { one: ONE, three: THREE, caller: CALLER },
    grants: { one: ['host:team.one'], three: ['host:three'] },
  })
  host = { url: server.url, ws: `${server.url.replace('http', 'ws')}/ws` }
  return () => server.close({ graceMs: 0 })
})

interface Refusal {
  readonly args: (ws: string) => readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly code?: number
  readonly told: RegExp
}

const REFUSALS: Readonly<Record<string, Refusal>> = {
  'an address of another kind': { args: () => ['ftp://host/ws', 'agents.mjs'], told: /A host is reached over wss:\/\/, not ftp:\/\// },
  'an address that is none': {
    args: () => ['ws://', 'agents.mjs'],
    told: /"ws:\/\/" is not the address of a host: write wss:\/\/host\/ws/,
  },
  'a path where nobody is': {
    args: (ws) => [`${ws}/nowhere`, 'agents.mjs'],
    told: /Nobody hosts agents at ws:\/\/\S+\/ws\/nowhere\/ws: it answered 404\. A uamp server does at \/ws/,
  },
  'the file before the address': {
    args: (ws) => ['agents.mjs', ws],
    told: /Write the address of the host first, and then the file: uamp connect ws:/,
  },
  'a host and its port alone': {
    args: () => ['localhost:8787', 'agents.mjs'],
    told: /"localhost:8787" is not the address of a host: write ws:\/\/localhost:8787\/ws/,
  },
  'a host and its port alone, and no file': {
    args: () => ['localhost:8787'],
    told: /"localhost:8787" is not the address of a host: write ws:\/\/localhost:8787\/ws/,
  },
  'no address at all': {
    args: () => ['agents.mjs'],
    told: /Name the host, as in `uamp connect wss:\/\/host\/ws`, or put it into the config as `connect`/,
  },
  'no such file': { args: (ws) => [ws, 'gone.mjs'], told: /There is no file .*gone\.mjs/ },
  'no such agent': {
    args: (ws) => [ws, 'agents.mjs', '--agent', 'five'],
    told: /There is no agent "five"\. Choose one: .*--agent team\.one/,
  },
  'no such token file': {
    args: (ws) => [ws, 'agents.mjs', '--token-file', 'gone'],
    told: /The token file gone cannot be read: there is no such file/,
  },
  'a wrong token': {
    args: (ws) => [ws, 'agents.mjs', '--agent', 'team.one'],
    env: { UAMP_TOKEN: 'wrong-0123456789abcdef' },
    told: /The host refused the agent "team\.one": .*token.*\. Give the token of the agent at the host in \$UAMP_TOKEN/i,
  },
  'no token': {
    args: (ws) => [ws, 'agents.mjs', '--agent', 'team.one'],
    told: /The host refused the agent "team\.one": Credentials are missing\. Give the token/,
  },
  'a name that the token may not host': {
    args: (ws) => [ws, 'agents.mjs', '--agent', 'team.two'],
    env: { UAMP_TOKEN: ONE },
    told: /The host refused the agent "team\.two": .*may not host team\.two\. The token needs the right host:<name> there: by `grants` of the host, or in the scope/,
  },
  'one name of several that the token may not host': {
    args: (ws) => [ws, 'agents.mjs', '--agent', 'team.one', '--agent', 'team.two'],
    env: { UAMP_TOKEN: ONE },
    told: /The host refused the agent "team\.two": .*may not host team\.two\. The token needs the right host:<name> there/,
  },
  'a name that is taken': {
    args: (ws) => [ws, 'agents.mjs', '--agent', 'three'],
    env: { UAMP_TOKEN: THREE },
    told: /The host refused the agent "three": The name "three" is taken: host the agent under another/,
  },
  'an option that is none': { args: (ws) => [ws, '--tokn', 'x'], told: /unknown option '--tokn'/ },
}

test.each(Object.entries(REFUSALS))('says why it cannot connect: %s', async (_, { args, env = {}, code = 1, told }) => {
  const cwd = await project({ 'agents.mjs': AGENTS })
  const ended = await finished(['connect', ...args(host.ws)], { cwd, env })
  expect(ended).toMatchObject({ code, stderr: expect.stringMatching(told) })
  expect(ended.stdout + ended.stderr).not.toMatch(/0123456789abcdef|^ {4}at /m)
  // Whoever was accepted before another was refused has left, too.
  const { agents } = (await (await fetch(`${host.url}/agents`)).json()) as { agents: { online?: boolean }[] }
  expect(agents.filter(({ online }) => online)).toEqual([])
})

async function connecting(ws: string, options: RunOptions = {}): Promise<Cli> {
  const cwd = await project({ 'agents.mjs': AGENTS })
  return new Cli(['connect', ws, 'agents.mjs', '--agent', 'team.one'], { cwd, env: { UAMP_TOKEN: ONE }, ...options })
}

verifies('connect.reconnect', 'a host that cannot be reached is named, and tried until it can', async () => {
  const { url } = await startHost()
  const proxy = await startProxy(Number(new URL(url).port))
  proxy.door = 'shut'
  const cli = await connecting(`${proxy.url.replace('http', 'ws')}/ws?token=in-the-address-0123456789abcdef`)
  await cli.prints(/Not connected to ws:\/\/127\.0\.0\.1:\d+\/ws: .+\. Trying again/)
  proxy.door = 'open'
  await cli.prints(/team\.one is at/)
  expect(await ask(url, 'team.one', 'hello')).toBe('team.one hears hello')
  expect(cli.output).not.toContain('in-the-address')
  await proxy.close()
  const nobody = await connecting('ws://127.0.0.1:1')
  await nobody.prints(/Not connected to ws:\/\/127\.0\.0\.1:1\/ws: connect ECONNREFUSED 127\.0\.0\.1:1\. Trying again/)
  nobody.signal('SIGTERM')
  expect(await nobody.exit()).toBe(0)
  const secured = await connecting(url.replace('http', 'wss'))
  await secured.prints(/Not connected to wss:\S+: no TLS is spoken there; a host without it has an address with ws:\/\/\. Trying again\n/)
  secured.signal('SIGTERM')
  expect(await secured.exit()).toBe(0)
})

verifies('connect.drain', 'a signal lets the running answer finish, and takes no new request', async () => {
  const { url, ws } = await startHost()
  const cli = await connecting(ws)
  await cli.prints(/is at/)
  const answer = ask(url, 'team.one', 'wait')
  await cli.prints(/^waiting$/m)
  cli.signal('SIGTERM')
  await cli.prints(/Leaving: running answers are being finished/)
  await expect.poll(() => ask(url, 'team.one', 'hello')).toMatch(/^404 .*offline/)
  cli.write('go\n')
  expect(await answer).toBe('team.one hears wait to the end')
  expect(await cli.exit()).toBe(0)
})

verifies('connect.takeover', 'a second process takes over, and the first one says so and leaves with 1', async () => {
  const { url, ws } = await startHost()
  const first = await connecting(ws)
  await first.prints(/is at/)
  const answer = ask(url, 'team.one', 'wait')
  await first.prints(/^waiting$/m)
  const second = await connecting(ws)
  await second.prints(/is at/)
  expect(await ask(url, 'team.one', 'hello')).toBe('team.one hears hello')
  first.write('go\n')
  expect(await answer).toBe('team.one hears wait to the end')
  expect(await first.exit()).toBe(1)
  expect(first.stderr).toContain('Other processes host all agents now')
})

test('`uamp serve` says that it connects nowhere', async () => {
  const config = 'agents: [./agents.mjs]\nconnect: [{ url: "ws://127.0.0.1:1/ws", agents: [three] }]\n'
  const { cli, url } = await serving([], { cwd: await project({ 'agents.mjs': AGENTS, 'uamp.config.yaml': config }) })
  expect(await ask(url, 'three', 'hello')).toBe('three hears hello')
  expect(cli.stderr).toContain('This server connects to no host')
})

test('--help has examples, the right that a token needs, and the exit codes', async () => {
  const { stdout, code } = await finished(['connect', '--help'])
  expect(code).toBe(0)
  for (const told of [/uamp connect wss:\/\//, /host:<name>/, /\$UAMP_TOKEN/, /Exit codes: 0 /, /no port is opened/])
    expect(stdout).toMatch(told)
})
