import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocketServer } from 'ws'
import { windowsOf } from '../../src/serve/windows.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { Cli, finished, project } from '../cli/run.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { caller, chooser, demo } from './agents.ts'
import type { Heard } from './wire.ts'

const line = (id: number, method: string, params: object = {}): string => `${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`
const INITIALIZE = line(1, 'initialize', { protocolVersion: 1, clientCapabilities: {} })
const NEW = line(2, 'session/new', { cwd: '/project', mcpServers: [] })

const messages = ({ stdout }: Pick<Cli, 'stdout'>): Heard[] =>
  stdout.split('\n').flatMap((text) => (text === '' ? [] : [JSON.parse(text) as Heard]))

/** Says one thing and gives what was answered, as text. */
async function talk(cli: Cli, text: string): Promise<string> {
  cli.write(INITIALIZE + NEW)
  const [, session = ''] = await cli.prints(/"sessionId":"(sess_[^"]+)"/)
  cli.write(line(3, 'session/prompt', { sessionId: session, prompt: [{ type: 'text', text }] }))
  await cli.prints(/"id":3,/)
  return messages(cli)
    .flatMap(({ params }) => (params?.update?.sessionUpdate === 'agent_message_chunk' ? [params.update.content.text as string] : []))
    .join('')
}

const NOISY = `
  import { defineAgent } from 'uamp'
  console.log('loaded')
  process.stdout.write('raw\\n')
  export default defineAgent('noisy', async function* () {
    console.log('thinking')
    console.info({ deep: true })
    yield { type: 'response.delta', delta: { type: 'text', text: 'quiet' } }
  })`

verifies('acp-1.stdio', 'nothing but the protocol is on standard output, whatever an agent prints', async () => {
  const cwd = await project({ 'agent.js': NOISY })
  const cli = new Cli(['acp', 'agent.js', '--data', 'memory'], { cwd })
  expect(await talk(cli, 'go')).toBe('quiet')
  expect(messages(cli).every(({ jsonrpc }) => jsonrpc === '2.0')).toBe(true)
  expect(cli.stderr).toContain('loaded')
  expect(cli.stderr).toContain('thinking')
})

verifies('acp-1.stdio', 'an agent that is not offered through acp is refused', async () => {
  const agent = (name: string, protocols: string) => `defineAgent('${name}', async function* () { yield text('Hi') }, { ${protocols} })`
  const shy = agent('shy', "protocols: ['events', 'a2a']")
  const cwd = await project({
    'one.js': `import { defineAgent, text } from 'uamp'\nexport default ${shy}`,
    'two.js': `import { defineAgent, text } from 'uamp'\nexport default [${shy}, ${agent('open', '')}]`,
  })
  const only = await finished(['acp', 'one.js', '--data', 'memory'], { cwd })
  expect(only).toMatchObject({ code: 1, stdout: '' })
  expect(only.stderr).toContain('The agent "shy" is not offered through acp. Add acp to its protocols')
  const chosen = await finished(['acp', 'two.js', '--agent', 'shy', '--data', 'memory'], { cwd })
  expect(chosen.stderr).toContain('not offered through acp. Add acp to its protocols, or choose another: --agent open')
  // The only one that is left.
  expect(await talk(new Cli(['acp', 'two.js', '--data', 'memory'], { cwd }), 'go')).toBe('Hi')
})

verifies('acp-1.stdio', 'it ends when its input does, also in mid-answer, and when it is told to', async () => {
  expect(await finished(['acp', '--data', 'memory'])).toEqual({ code: 0, stdout: '', stderr: '' })
  const all = await finished(['acp', '--data', 'memory'], { input: INITIALIZE.trimEnd() })
  expect(all.code).toBe(0)
  expect(messages(all)).toMatchObject([{ id: 1, result: { protocolVersion: 1 } }])
  const busy = new Cli(['acp', '--data', 'memory'])
  await talk(busy, 'hello')
  const [, session] = /"sessionId":"(sess_[^"]+)"/.exec(busy.stdout) ?? []
  busy.write(line(4, 'session/prompt', { sessionId: session, prompt: [{ type: 'text', text: '/count 1000000 1' }] }))
  await busy.prints(/"text":" 5"/)
  busy.end()
  expect(await busy.exit()).toBe(0)
  const told = new Cli(['acp', '--data', 'memory'])
  told.write(INITIALIZE)
  await told.prints(/"id":1/)
  told.signal('SIGTERM')
  expect(await told.exit()).toBe(0)
})

const sessionIn = ({ stdout }: Cli): string => /"sessionId":"(sess_[^"]+)"/.exec(stdout)?.[1] ?? ''

async function loaded(cli: Cli, sessionId: string): Promise<string> {
  cli.write(INITIALIZE + line(2, 'session/load', { sessionId, cwd: '/project', mcpServers: [] }))
  await cli.prints(/"id":2,"result"/)
  return cli.stdout
}

verifies(['acp-1.load', 'acp-1.stdio'], 'of two windows of an IDE, the second remembered nothing', async () => {
  const data = await project()
  const first = new Cli(['acp', '--data', data])
  await talk(first, 'remember me')
  const second = new Cli(['acp', '--data', data])
  expect(await talk(second, 'me too')).toBe('You said: me too')
  expect(second.stderr).toContain(`the sessions of this window are kept in ${join(data, 'windows', '2')}`)
  // The first window crashes, and the second one goes on.
  first.signal('SIGKILL')
  await first.exit()
  second.write(line(4, 'session/prompt', { sessionId: sessionIn(second), prompt: [{ type: 'text', text: 'still here' }] }))
  await second.prints(/"id":4,"result"/)
  expect(second.stdout).toContain('still')
  // Who comes back takes the folder that is free.
  const again = new Cli(['acp', '--data', data])
  expect(await loaded(again, sessionIn(first))).toContain('"text":"You said: remember me"')
  second.end()
  expect(await second.exit()).toBe(0)
  const beside = new Cli(['acp', '--data', data])
  expect(await loaded(beside, sessionIn(second))).toContain('"text":"You said: still here"')
})

verifies('acp-1.stdio', 'where no folder can be used, it works and says that it keeps nothing', async () => {
  const data = await project({ 'uamp.db/x': '' })
  const cli = new Cli(['acp', '--data', data])
  expect(await talk(cli, 'hello')).toBe('You said: hello')
  expect(cli.stderr).toContain('Sessions are not kept')
})

verifies('acp-1.stdio', 'with the wrong key, it works and says that it keeps nothing', async () => {
  const data = await project()
  const first = new Cli(['acp', '--data', data])
  await talk(first, 'remember me')
  first.end()
  expect(await first.exit()).toBe(0)
  const key = Buffer.alloc(32, 7).toString('base64')
  const wrong = new Cli(['acp', '--data', data], { env: { UAMP_KEY: key } })
  expect(await talk(wrong, 'hello')).toBe('You said: hello')
  expect(wrong.stderr).toMatch(/^error: Sessions are not kept: The secrets in this data folder were sealed with the key .*\n$/)
  // The folder stays free for who has the key.
  const again = new Cli(['acp', '--data', data])
  expect(await loaded(again, sessionIn(first))).toContain('"text":"You said: remember me"')
  expect(again.stderr).toBe('')
})

verifies('acp-1.stdio', 'a damaged folder of a window does not keep the next one from being used', async () => {
  const data = await project({ 'windows/2/uamp.db': 'no database'.repeat(1000) })
  const first = new Cli(['acp', '--data', data])
  await talk(first, 'hello')
  const second = new Cli(['acp', '--data', data])
  expect(await talk(second, 'me too')).toBe('You said: me too')
  expect(second.stderr).toContain(`${join(data, 'windows', '2')} is skipped: `)
  expect(second.stderr).toContain(`the sessions of this window are kept in ${join(data, 'windows', '3')}`)
})

verifies('acp-1.stdio', 'a ninth window works, and says that there is room for eight', async () => {
  const data = await project()
  for (const folder of windowsOf(data)) {
    const store = sqliteStore({ path: join(folder, 'uamp.db') })
    onTestFinished(() => store.close())
  }
  const ninth = new Cli(['acp', '--data', data])
  expect(await talk(ninth, 'hello')).toBe('You said: hello')
  expect(ninth.stderr).toMatch(/^error: Sessions are not kept: .* has room for 8 windows at a time.*--data\n$/)
})

verifies('acp-1.stdio', 'a bridge to an agent elsewhere, over every protocol that it speaks', async () => {
  const { url } = await startServer(demo())
  const ways: readonly (readonly string[])[] = [
    ['--url', url],
    ['--url', `${url}/agents/demo`, '--protocol', 'a2a'],
    ['--url', `a2a+${url}/agents/demo`],
    ['--url', `ag-ui+${url}/ag-ui`],
    ['--url', `${url}/v1`, '--protocol', 'completions', '--model', 'demo'],
    ['--url', `${url.replace('http', 'ws')}/acp`],
  ]
  for (const way of ways) {
    const cli = new Cli(['acp', '--data', 'memory', ...way])
    expect([way, await talk(cli, 'across')]).toEqual([way, 'You said: across'])
    cli.end()
    expect(await cli.exit()).toBe(0)
  }
})

verifies(['acp-1.stdio', 'acp-1.modes'], 'an agent at a URL told its modes and commands with the first answer only', async () => {
  const { url } = await startServer(chooser)
  const cli = new Cli(['acp', '--data', 'memory', '--url', url])
  cli.write(INITIALIZE + NEW)
  await cli.prints(/available_commands_update/)
  expect(messages(cli)).toContainEqual(
    expect.objectContaining({ id: 2, result: expect.objectContaining({ modes: expect.objectContaining({ currentModeId: 'ask' }) }) }),
  )
})

verifies('acp-1.stdio', 'a wrong token, and an agent that is not there, were told with the first prompt only', async () => {
  const { url } = await startServer(demo(), { tokens: { someone: 'a-long-secret-of-someone' } })
  const wrong = new Cli(['acp', '--data', 'memory', '--url', url], { env: { UAMP_TOKEN: 'another-secret' } })
  expect(await wrong.exit()).toBe(1)
  expect(wrong.stderr).toMatch(/answered 401: check --token/)
  expect(wrong.stdout + wrong.stderr).not.toContain('another-secret')
  const nobody = new Cli(['acp', '--data', 'memory', '--url', `${url}/agents/nobody`], { env: { UAMP_TOKEN: 'a-long-secret-of-someone' } })
  expect(await nobody.exit()).toBe(1)
  expect(nobody.stderr).toMatch(/check --url and --agent/)
  const away = new Cli(['acp', '--data', 'memory', '--url', 'http://127.0.0.1:1'])
  away.write(INITIALIZE)
  await away.prints(/"id":1/)
  expect(away.stderr).toMatch(/asked again with the first prompt/)
})

verifies(['acp-1.mcp', 'acp-1.stdio'], 'an IDE with an MCP server that is a program could not use an agent elsewhere', async () => {
  const { url } = await startServer(caller())
  const cli = new Cli(['acp', '--url', `${url.replace('http', 'ws')}/acp`])
  cli.write(line(1, 'initialize', { protocolVersion: 1, clientCapabilities: { session: { notices: {} } } }))
  await cli.prints(/"id":1,/)
  const adder = {
    name: 'adder',
    command: process.execPath,
    args: [fileURLToPath(new URL('../agents/mcp/stdio.js', import.meta.url))],
    env: [],
  }
  const broken = { ...adder, name: 'broken', command: '/nowhere/at/all' }
  cli.write(line(2, 'session/new', { cwd: '/project', mcpServers: [adder, broken] }))
  const [, session] = await cli.prints(/"sessionId":"(sess_[^"]+)"/)
  await cli.prints(/The MCP server \\"broken\\" was left out/)
  const prompt = [{ type: 'text', text: 'add {"a":2,"b":3}' }]
  cli.write(line(3, 'session/prompt', { sessionId: session, prompt }))
  await cli.prints(/"id":3,/)
  expect(cli.stdout).toContain('gave: 5')
  // The call is for the relay: the IDE does not know its method.
  expect(messages(cli).filter(({ method }) => method === '_uamp/tool')).toEqual([])
  cli.end()
  expect(await cli.exit()).toBe(0)
})

test('what is wrong with the command line is told on standard error', async () => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [['acp', '--agent', 'nobody'], /There is no agent "nobody".*--agent demo/],
    [['acp', 'nothing.ts'], /There is no file/],
    [['acp', '--url', 'ftp://x'], /must begin with/],
    [['acp', '--url', 'ws://127.0.0.1:1/acp'], /There is no agent at ws:/],
  ]
  for (const [args, told] of cases) {
    const cli = new Cli([...args, '--data', 'memory'])
    expect(await cli.exit()).not.toBe(0)
    expect(cli.stdout).toBe('')
    expect(cli.stderr).toMatch(told)
  }
})

verifies('acp-1.stdio', 'a bridge that was connecting could not be ended', async () => {
  // It takes connections, and says nothing.
  const heard: (() => void)[] = []
  const hole = createServer(() => heard.shift()?.())
  await once(hole.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void hole.close())
  const url = `ws://127.0.0.1:${(hole.address() as AddressInfo).port}/acp`
  const connecting = async (): Promise<Cli> => {
    const reached = new Promise<void>((resolve) => heard.push(resolve))
    const cli = new Cli(['acp', '--url', url])
    cli.write(INITIALIZE)
    await reached
    return cli
  }
  const ended = await connecting()
  ended.end()
  expect(await ended.exit()).toBe(0)
  const told = await connecting()
  told.signal('SIGTERM')
  expect(await told.exit()).toBe(0)
})

verifies('acp-1.stdio', 'a message of many lines from an agent elsewhere was many lines here', async () => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  onTestFinished(() => server.close())
  await once(server, 'listening')
  server.on('connection', (socket) =>
    socket.on('message', () => socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { a: '\n' } }, null, 2))),
  )
  const cli = new Cli(['acp', '--url', `ws://127.0.0.1:${(server.address() as AddressInfo).port}`])
  cli.write(INITIALIZE)
  await cli.prints(/\}\s*\}\n/)
  expect(messages(cli)).toEqual([{ jsonrpc: '2.0', id: 1, result: { a: '\n' } }])
  cli.end()
  expect(await cli.exit()).toBe(0)
})

/** Says who it is in a file, and listens to nobody. */
const DEAF = `require('node:fs').writeFileSync(process.argv[1], String(process.pid)); setInterval(() => undefined, 1000)`

verifies(['acp-1.mcp', 'acp-1.stdio'], 'an MCP server that was starting when the client left went on for ever', async () => {
  const file = join(await project(), 'pid')
  const cli = new Cli(['acp', '--data', 'memory'])
  const server = { name: 'deaf', command: process.execPath, args: ['-e', DEAF, file], env: [] }
  cli.write(INITIALIZE + line(2, 'session/new', { cwd: '/project', mcpServers: [server] }))
  await expect.poll(() => readFile(file, 'utf8').catch(() => ''), { timeout: 20_000 }).toMatch(/^\d+$/)
  const pid = Number(await readFile(file, 'utf8'))
  cli.end()
  expect(await cli.exit()).toBe(0)
  expect(() => process.kill(pid, 0)).toThrow('ESRCH')
})

verifies('acp-1.stdio', 'when its terminal went, it went without a word to what it had started', async () => {
  const cli = new Cli(['acp', '--data', 'memory'])
  cli.write(INITIALIZE)
  await cli.prints(/"id":1/)
  cli.signal('SIGHUP')
  expect(await cli.exit()).toBe(0)
})

/** Fills standard output, which is a pipe of less than that, again and again, and counts who listens to it. */
const LONG = `
  import { defineAgent } from 'uamp'
  export default defineAgent('long', async function* () {
    for (let n = 0; n < 12; n++) {
      yield { type: 'response.delta', delta: { type: 'text', text: 'x'.repeat(500_000) } }
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    yield { type: 'response.delta', delta: { type: 'text', text: ' ' + process.stdout.listenerCount('close') } }
  })`

verifies('acp-1.stdio', 'a listener was left on standard output each time that it was full', async () => {
  const cli = new Cli(['acp', 'agent.js', '--data', 'memory'], { cwd: await project({ 'agent.js': LONG }) })
  const text = await talk(cli, 'go')
  expect(text.length).toBeGreaterThan(6_000_000)
  expect(Number(text.split(' ')[1])).toBeLessThan(5)
  expect(cli.stderr).toBe('')
})
