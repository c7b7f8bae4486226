import { fileURLToPath } from 'node:url'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { beforeAll, expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { Connection } from '../../src/cli/chat/connection.ts'
import { EXIT, exitCode } from '../../src/cli/chat/exit-codes.ts'
import { once } from '../../src/cli/chat/input/pipe.ts'
import { Page } from '../../src/cli/chat/page.ts'
import { State } from '../../src/cli/chat/state.ts'
import { ChatPayments } from '../../src/cli/chat/payments.ts'
import { Talk } from '../../src/cli/chat/talk.ts'
import { serve } from '../../src/serve/index.ts'
import { Cli, finished, project, serving, type RunOptions } from './run.ts'

/** One for all that only talk to it. */
let url = ''
beforeAll(async () => {
  const server = await serve(demo(), { port: 0, data: 'memory', log: () => undefined })
  url = server.url
  return () => server.close({ graceMs: 0 })
})

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const AGENT = `import { defineAgent, text } from 'uamp'
export default defineAgent('file', async function* (turn) {
  console.log('printed by the agent')
  if (turn.messages.at(-1)?.content === 'fail') throw new Error('kaboom')
  if (turn.messages.at(-1)?.content === 'no') yield { type: 'response.delta', delta: { type: 'text', text: 'I would rather not', refusal: true } }
  else yield text('I am in a file')
})`

async function asked(args: readonly string[], options: RunOptions = {}) {
  const cwd = options.cwd ?? (await project())
  return finished(['chat', ...args], { ...options, cwd, env: { HOME: cwd, ...options.env } })
}

test('a question is answered, and what is piped in goes with it', async () => {
  expect(await asked([url, 'how', 'are you?'])).toMatchObject({ code: 0, stdout: 'You said: how are you?\n', stderr: '' })
  const { stdout } = await asked([url, 'Summarize'], { input: 'a text\nwith ``` in it\n' })
  expect(stdout).toBe('You said: Summarize\n\nstandard input:\n````\na text\nwith ``` in it\n````\n')
  const cwd = await project({ 'a b.txt': 'spaces' })
  expect((await asked([url, 'see @"a b.txt"'], { cwd })).stdout).toContain('a b.txt:\n```txt\nspaces\n```')
  expect((await asked([url, '/think x', '--quiet'])).stderr).toBe('')
})

test('a program that leaves standard input open and silent gets its answer', async () => {
  const cli = new Cli(['chat', url, 'hello'])
  expect(await cli.exit()).toBe(0)
  expect(cli.stdout).toBe('You said: hello\n')
  expect(cli.stderr).toContain('going on without it')
})

test('--json prints every event as a line, and an error as one, too', async () => {
  const { stdout, code } = await asked([url, '--json', 'hello'])
  const events = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { type: string })
  expect(code).toBe(0)
  expect(events.map(({ type }) => type)).toEqual(
    expect.arrayContaining(['session.created', 'response.created', 'response.delta', 'response.done']),
  )
  const failed = await asked(['http://127.0.0.1:1', '--json', 'hello'])
  expect(failed.code).toBe(4)
  expect(JSON.parse(failed.stdout)).toMatchObject({ type: 'error', error: { code: 'unreachable' } })
})

test('an agent in a file answers without a server, and only its answer is on standard output', async () => {
  const cwd = await project({ 'agent.ts': AGENT })
  expect(await asked(['agent.ts', '-q', 'hello'], { cwd })).toMatchObject({ code: 0, stdout: 'I am in a file\n' })
  expect(await asked(['.', '-q', 'hello'], { cwd })).toMatchObject({ code: 0, stdout: 'I am in a file\n' })
  expect((await asked(['agent.ts', 'hello'], { cwd })).stderr).toContain('printed by the agent')
})

test.each(['--quiet', '--json'])('why an agent in a file fails is told with %s, too', async (option) => {
  const cwd = await project({ 'agent.ts': AGENT })
  const { code, stderr } = await asked(['agent.ts', option, 'fail'], { cwd })
  expect(code).toBe(1)
  expect(stderr).toContain('(The agent failed: kaboom)')
})

test('agents that speak other protocols answer, too', async () => {
  const cases: readonly (readonly string[])[] = [
    [`a2a+${url}`],
    [url, '--protocol', 'a2a'],
    [`ag-ui+${url}/ag-ui`],
    [`completions+${url}/v1`, '--model', 'demo'],
    [`acp:"${process.execPath}" "${MAIN}" acp --data memory`],
  ]
  for (const args of cases) {
    const [target = '', ...flags] = args
    expect(await asked([target, ...flags, '-q', 'hello there']), target).toMatchObject({ code: 0, stdout: 'You said: hello there\n' })
  }
})

const AWAY = 'agents: [{ name: away, model: mine/m }]\nproviders: { mine: { baseUrl: "http://127.0.0.1:1/v1", retries: 0 } }\n'

test('the exit code tells why there is no answer, and the message what to do', async () => {
  const cwd = await project({ 'agent.ts': AGENT, 'broken.ts': 'export default 1', 'away.yaml': AWAY })
  const cases: readonly (readonly [args: readonly string[], code: number, told: RegExp])[] = [
    [[url, '/error kaput'], 1, /kaput: You asked me to fail/],
    [[url], 2, /There is nothing to send\. Ask something: npx uamp chat "a question"/],
    [['none.ts', 'hello'], 2, /There is no file .*none\.ts/],
    [['broken.ts', 'hello'], 2, /exports no agent/],
    [['gopher://x', 'hello'], 2, /is not the address of an agent: write it like/],
    [[`completions+${url}/v1`, 'hello'], 2, /--model <name>/],
    [[url, '--agent', 'nobody', 'hello'], 3, /Choose one: --agent demo/],
    [[url, '--session', 'sess_none', 'hello'], 3, /Leave --session out/],
    [[`${url}/nothing`, 'hello'], 3, /does not speak UAMP.*uamp chat a2a\+/],
    [[url, '/error forbidden'], 3, /forbidden: /],
    [['agent.ts', 'no'], 3, /^/],
    [
      ['acp:no-such-program', 'hello'],
      1,
      /could not be started: spawn no-such-program ENOENT\)\n\(install no-such-program, or check how it is written\)/,
    ],
    [['http://127.0.0.1:1', 'hello'], 4, /There is no server at .* Start one with `npx uamp serve`/],
    [['away.yaml', 'hello'], 4, /`npx uamp doctor away\.yaml` checks its keys[^]*What away\.yaml calls does not answer\. Start it/],
    [['a2a+http://127.0.0.1:1', 'hello'], 4, /Nobody answers at a2a\+http:\/\/127\.0\.0\.1:1\. Check the address/],
  ]
  for (const [args, code, told] of cases) {
    const ended = await asked(args, { cwd, input: '' })
    expect(ended, args.join(' ')).toMatchObject({ code, stderr: expect.stringMatching(told) })
  }
})

test('a server that goes away for good is named, with the command to go on with', async () => {
  const server = await serving()
  const stdout = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY: false }) as PassThrough & NodeJS.WriteStream
  const page = new Page({ stdout, stderr: stdout, paint: () => (_, text) => text })
  const connection = new Connection({ url: server.url, name: server.url, reconnect: { attempts: 2, minMs: 10 } })
  const console = once('/count 1000000 5', () => undefined)
  const talk = new Talk({
    connection,
    page,
    console,
    payments: new ChatPayments({ console, page, token: undefined, budget: undefined }),
    state: new State({ folder: undefined, secrets: [] }),
    show: (event) => {
      if (event.type === 'response.delta') server.cli.signal('SIGKILL')
    },
    target: server.url,
    agent: undefined,
    session: undefined,
    attached: [],
    mentions: false,
    left: new AbortController(),
  })
  const thrown: unknown = await talk.run().catch((error: unknown) => error)
  expect(exitCode(thrown)).toBe(EXIT.unreachable)
  expect((thrown as Error).message).toMatch(/does not answer any more \(.+\)\. When it is back: npx uamp chat http:\S+ --session sess_/)
})

test('a server that takes connections and says nothing can be left', async () => {
  const sockets: Socket[] = []
  const silent = createServer((socket) => void sockets.push(socket)).listen(0, '127.0.0.1')
  await new Promise((resolve) => silent.once('listening', resolve))
  const cli = new Cli(['chat', `http://127.0.0.1:${(silent.address() as AddressInfo).port}`, '-q', 'hello'], { input: '' })
  await new Promise((resolve) => silent.once('connection', resolve))
  expect(await cli.signalUntilExit('SIGINT')).toBe(130)
  for (const socket of sockets) socket.destroy()
  silent.close()
})
