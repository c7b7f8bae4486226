import { expect } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { caller, chooser } from './agents.ts'
import { Client, overSocket, overStdio, type Heard } from './wire.ts'

const ALL = { fs: { readTextFile: true, writeTextFile: true }, terminal: true }

const offered = (client: Client): string[] => (JSON.parse(client.text) as { tools?: string[] }).tools ?? []

async function asked(capabilities: object): Promise<Client> {
  const client = await Client.connect(overStdio([chooser]))
  await client.initialize(capabilities)
  await client.say(await client.open(), 'go')
  return client
}

verifies('acp-1.client-capabilities', 'only what a client has is offered to the agent', async () => {
  expect(offered(await asked({}))).toEqual([])
  expect(offered(await asked({ fs: { readTextFile: true } }))).toEqual(['read_text_file'])
  expect(offered(await asked({ fs: null, terminal: true }))).toEqual(['run_command'])
  expect(offered(await asked(ALL))).toEqual(['read_text_file', 'write_text_file', 'run_command'])
})

verifies('acp-1.client-capabilities', 'a tool of the same name that the agent has itself is its own', async () => {
  const agent = defineAgent(
    'own',
    async function* ({ config }) {
      yield text(JSON.stringify({ tools: config.tools?.map((tool) => tool.function.name) }))
    },
    {
      // prettier-ignore
      capabilities: { tools: { built_in_tools: ['read_text_file'] } },
    },
  )
  const client = await Client.connect(overStdio([agent]))
  await client.initialize(ALL)
  await client.say(await client.open(), 'go')
  expect(offered(client)).toEqual(['write_text_file', 'run_command'])
})

verifies('acp-1.client-tools', 'files of the user are read and written, and the change is shown', async () => {
  const calls: Heard[] = []
  const client = await Client.connect(overStdio([caller()]), {
    'fs/read_text_file': (params) => (
      calls.push(params),
      params['path'] === '/project/none' ? Promise.reject(new Error('no such file')) : { content: 'let a' }
    ),
    'fs/write_text_file': (params) => (calls.push(params), {}),
  })
  await client.initialize(ALL)
  const sessionId = await client.open()
  await client.say(sessionId, 'read_text_file {"path":"/project/a.ts","line":2,"limit":5}')
  expect(client.text).toBe('gave: let a')
  await client.say(sessionId, 'write_text_file {"path":"/project/a.ts","content":"let b"}')
  await client.say(sessionId, 'read_text_file {"path":"/project/none"}')
  expect(client.text).toContain('failed: {"error":{"message":"Error: no such file"}}')
  expect(calls).toEqual([
    { sessionId, path: '/project/a.ts', line: 2, limit: 5 },
    { sessionId, path: '/project/a.ts', content: 'let b' },
    { sessionId, path: '/project/none' },
  ])
  const [, written] = client.updates.filter(({ status }) => status === 'completed')
  expect(written).toMatchObject({ content: [{ type: 'diff', path: '/project/a.ts', newText: 'let b' }] })
})

function terminal(exit: (params: Heard) => unknown) {
  const calls: string[] = []
  const note = (name: string, result: (params: Heard) => unknown) => (params: Heard) => (calls.push(name), result(params))
  return {
    calls,
    answers: {
      'terminal/create': note('create', () => ({ terminalId: 't1' })),
      'terminal/wait_for_exit': note('wait', exit),
      'terminal/output': note('output', () => ({ output: 'ok', truncated: false })),
      'terminal/release': note('release', () => ({})),
    },
  }
}

verifies('acp-1.client-tools', 'a command runs in a terminal of the user, which is shown and let go of', async () => {
  const { calls, answers } = terminal(() => ({ exitCode: 3 }))
  const client = await Client.connect(overStdio([caller()]), answers)
  await client.initialize(ALL)
  await client.say(await client.open(), 'run_command {"command":"npm","args":["test"]}')
  expect(client.text).toBe('gave: ok\n[exit code 3]')
  await client.next(({ method }) => method === 'terminal/release')
  expect(calls).toEqual(['create', 'wait', 'output', 'release'])
  expect(client.heard.find(({ method }) => method === 'terminal/create')?.['params']).toMatchObject({
    command: 'npm',
    args: ['test'],
    cwd: '/project',
  })
  expect(client.updates).toContainEqual(expect.objectContaining({ content: [{ type: 'terminal', terminalId: 't1' }] }))
})

verifies(['acp-1.client-tools', 'acp-1.cancel'], 'a cancel lets go of the terminal', async () => {
  // It never ends.
  const { answers } = terminal(() => undefined)
  const client = await Client.connect(overStdio([caller()]), answers)
  await client.initialize(ALL)
  const sessionId = await client.open()
  const prompt = client.say(sessionId, 'run_command {"command":"sleep"}')
  await client.next(({ method }) => method === 'terminal/wait_for_exit')
  client.send({ method: 'session/cancel', params: { sessionId } })
  expect((await prompt)['result']).toEqual({ stopReason: 'cancelled' })
  await client.next(({ method }) => method === 'terminal/release')
})

verifies('acp-1.client-tools', 'of two clients of one session, the one that asked is asked', async () => {
  const { url } = await startServer(caller())
  const written: string[] = []
  const writing = (name: string) => ({ 'fs/write_text_file': () => (written.push(name), {}) })
  const [first, second] = await Promise.all([
    Client.connect(overSocket(url), writing('first')),
    Client.connect(overSocket(url), writing('second')),
  ])
  await Promise.all([first.initialize(ALL), second.initialize(ALL)])
  const sessionId = await first.open()
  await second.ask('session/resume', { sessionId, cwd: '/project' })
  await first.say(sessionId, 'write_text_file {"path":"/project/a","content":""}')
  await second.say(sessionId, 'write_text_file {"path":"/project/a","content":""}')
  expect(written).toEqual(['first', 'second'])
})

verifies('acp-1.client-tools', 'arguments of the model went to the client as they were, over the fields of the protocol', async () => {
  const { answers } = terminal(() => ({ exitCode: 0 }))
  const client = await Client.connect(overStdio([caller()]), {
    ...answers,
    'fs/read_text_file': () => ({ content: 'x' }),
    'fs/write_text_file': () => ({}),
  })
  await client.initialize(ALL)
  const sessionId = await client.open()
  const others = { sessionId: 'another', _meta: { a: 1 }, env: [], outputByteLimit: 1 }
  await client.say(sessionId, `read_text_file ${JSON.stringify({ path: './src/a.ts', line: null, limit: 3, ...others })}`)
  await client.say(sessionId, `write_text_file ${JSON.stringify({ path: 'b.ts', content: '', ...others })}`)
  await client.say(sessionId, `run_command ${JSON.stringify({ command: 'ls', cwd: 'src', ...others })}`)
  const asked = client.heard.filter(({ method }) => /^fs|create$/.test(String(method))).map(({ params }) => params as Heard)
  expect(asked).toEqual([
    { sessionId, path: '/project/src/a.ts', limit: 3 },
    { sessionId, path: '/project/b.ts', content: '' },
    { sessionId, command: 'ls', args: [], cwd: '/project/src', outputByteLimit: 256 * 1024 },
  ])
  const before = client.heard.filter(({ method, id }) => method !== undefined && id !== undefined).length
  for (const [call, told] of [
    ['read_text_file {"path":5}', '"path" must be a string'],
    ['read_text_file {"path":""}', '"path" must be at least 1'],
    ['read_text_file {"path":"/a","line":0}', '"line" must be at least 1'],
    ['read_text_file {"path":"/a","limit":1.5}', '"limit" must be a whole number'],
    ['write_text_file {"path":"/a","content":{}}', '"content" must be a string'],
    ['run_command {"command":["ls"]}', '"command" must be a string'],
    ['run_command {"command":"ls","args":"-l"}', '"args" must be an array'],
    ['run_command {"command":"ls","cwd":7}', '"cwd" must be a string'],
  ] as const) {
    const from = client.text.length
    await client.say(sessionId, call)
    expect(JSON.parse(client.text.slice(from).replace('failed: ', ''))).toMatchObject({
      error: { message: expect.stringContaining(told) as string },
    })
  }
  await client.next(({ method }) => method === 'terminal/release')
  expect(client.heard.filter(({ method, id }) => method !== undefined && id !== undefined)).toHaveLength(before)
})

verifies('acp-1.diffs', 'paths that are not absolute and lines that are none were told as locations and diffs', async () => {
  const client = await Client.connect(overStdio([caller([{ name: 'edit_file', run: () => 'ok' }])]))
  await client.initialize()
  const sessionId = await client.open()
  const wrong: readonly (readonly [args: object, locations: unknown])[] = [
    [{ path: 'a.ts', content: 'x' }, undefined],
    [{ path: '/a.ts', line: -1 }, [{ path: '/a.ts' }]],
    [{ path: '/a.ts', line: 2 ** 40 }, [{ path: '/a.ts' }]],
    [{ path: 'C:\\a.ts', line: 2 }, [{ path: 'C:\\a.ts', line: 2 }]],
  ]
  for (const [args, locations] of wrong) {
    const from = client.updates.length
    await client.say(sessionId, `edit_file ${JSON.stringify(args)}`)
    const told = client.updates.slice(from).filter(({ rawInput }) => rawInput !== undefined)
    expect(told.map((update) => update['locations'] as unknown)).toEqual([locations])
    expect(JSON.stringify(client.updates.slice(from))).not.toContain('"diff"')
  }
})

verifies('acp-1.json-rpc', 'an answer with a null error, or one that nests too deep, left the agent waiting for ever', async () => {
  const client = await Client.connect(overStdio([caller()]), { 'fs/read_text_file': () => undefined })
  await client.initialize(ALL)
  const sessionId = await client.open()
  const answered = async (rest: string): Promise<void> => {
    const from = client.heard.length
    const prompt = client.say(sessionId, 'read_text_file {"path":"/a"}')
    const { id } = await client.next((message) => message['method'] === 'fs/read_text_file' && client.heard.indexOf(message) >= from)
    client.send(`{"jsonrpc":"2.0","id":${id},${rest}}`)
    await prompt
  }
  await answered('"result":{"content":"hello"},"error":null')
  expect(client.text).toBe('gave: hello')
  await answered(`"result":{"content":${'['.repeat(100)}${']'.repeat(100)}}`)
  expect(client.text).toContain('at most 64 levels')
})

const SERVER = { name: 'adder', command: process.execPath, args: ['test/agents/mcp/stdio.js'], env: [] }

verifies('acp-1.mcp', 'the tools of an MCP server that the client names', async () => {
  const client = await Client.connect(overStdio([caller()]))
  await client.initialize()
  const sessionId = await client.open({ mcpServers: [SERVER, { ...SERVER, name: 'broken', command: '/nowhere/at/all' }] })
  await client.say(sessionId, 'add {"a":2,"b":3}')
  expect(client.text).toContain('5')
})

verifies('acp-1.mcp', 'over the network no program is started, and no address in our network is called', async () => {
  const server = await startServer(chooser)
  const client = await Client.connect(overSocket(server.url))
  await client.initialize({ session: { notices: {} } })
  const near = { type: 'http', name: 'near', url: 'http://127.0.0.1:1/mcp', headers: [] }
  const sessionId = await client.open({ mcpServers: [SERVER, near] })
  await client.say(sessionId, 'go')
  // `session/new` failed for the program, so that an IDE with one could not use the agent at all.
  expect(client.updates.filter(({ sessionUpdate }) => sessionUpdate === 'notice')).toEqual([
    {
      sessionUpdate: 'notice',
      severity: 'warning',
      title: 'The MCP server "adder" was left out',
      description: 'Programs are not started for clients over the network',
    },
    expect.objectContaining({ title: 'The MCP server "near" was left out' }),
  ])
  expect(offered(client)).toEqual([])
  expect(server.logged).toContainEqual(expect.objectContaining({ message: 'Left out an MCP server of a client' }))
})

verifies('acp-1.mcp', 'tools that the client runs itself are called by a method of ours', async () => {
  const server = await startServer(caller())
  const calls: Heard[] = []
  const client = await Client.connect(overSocket(server.url), {
    '_uamp/tool': (params) => (
      calls.push(params),
      params['arguments'].a === 1 ? { result: 'one' } : { result: 'only one', is_error: true }
    ),
  })
  const { agentCapabilities } = await client.initialize()
  expect(agentCapabilities._meta.uamp.tools).toBe('_uamp/tool')
  const tools = [{ server: 's', name: 'count', description: 'Counts', parameters: { type: 'object' } }]
  const sessionId = await client.open({ _meta: { uamp: { tools } } })
  await client.say(sessionId, 'count {"a":1}')
  await client.say(sessionId, 'count {"a":2}')
  expect(client.text).toBe('gave: onefailed: {"error":{"message":"only one"}}')
  expect(calls[0]).toEqual({ sessionId, server: 's', name: 'count', arguments: { a: 1 } })
  const { error } = await client.ask('session/new', { cwd: '/', mcpServers: [], _meta: { uamp: { tools: [{ name: 1 }] } } })
  expect(error).toMatchObject({ code: -32602, data: { field: 'tools.0.name' } })
})
