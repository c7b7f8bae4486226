import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Client as McpClient, StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { expect, onTestFinished } from 'vitest'
import { remoteAcp } from '../../src/remotes/acp/index.ts'
import { Client, overSocket, overStdio } from '../acp/wire.ts'
import { say } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket, type Heard, type Wire } from '../support/wire.ts'
import { AGENT, place, started, told } from './acp/started.ts'

const tool = (name: string) => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: { a: { type: 'number' } } } },
})
const table = (pairs: readonly { name: string; value: string }[]) => Object.fromEntries(pairs.map(({ name, value }) => [name, value]))

/** The way to the server that the agent was given. */
function wayTo({ type, url, headers, command, args, env }: Heard): Transport {
  if (type === 'http') return new StreamableHTTPClientTransport(new URL(url as string), { requestInit: { headers: table(headers) } })
  return new StdioClientTransport({ command, args, env: table(env) })
}

/** `say` reads on with `next`, so this looks at everything that came. */
async function seen(wire: Wire, fits: (event: Heard) => boolean): Promise<Heard> {
  await expect.poll(() => wire.heard.some(fits), { timeout: 20_000 }).toBe(true)
  return wire.heard.find(fits) as Heard
}

const offering = (...names: readonly string[]) => ({ create: { response: { tools: names.map(tool) } } })

/** A prompt that runs with a tool, and the server that the agent got for it. */
async function running(wire: Wire, name: string): Promise<{ server: Heard; over: Promise<Heard[]> }> {
  const over = say(wire, 'servers', offering(name))
  const event = await seen(wire, ({ delta }) => delta?.type === 'text' && String(delta.text).startsWith('[{'))
  const [server] = JSON.parse(event['delta'].text as string) as Heard[]
  return { server: server as Heard, over }
}

async function connected(server: Heard, onChange: () => void = () => undefined): Promise<McpClient> {
  const client = new McpClient({ name: 'agent', version: '1' })
  client.setNotificationHandler('notifications/tools/list_changed', async () => onChange())
  await client.connect(wayTo(server))
  onTestFinished(() => client.close())
  return client
}

for (const how of ['http', 'stdio'] as const) {
  verifies('acp-remote.tools', `tools of our client are called through an MCP server of ours: ${how}`, async () => {
    const { wire, agent } = await started({ args: [AGENT, ...(how === 'http' ? ['--mcp-http'] : [])] })
    const { server, over } = await running(wire, 'add')
    // Others can read the arguments of a program.
    expect(JSON.stringify(server['args'] ?? [])).not.toContain(JSON.stringify(server).match(/[\w-]{43}/)?.[0])
    let changed: () => void = () => undefined
    const change = new Promise<void>((resolve) => (changed = resolve))
    const client = await connected(server, changed)
    expect((await client.listTools()).tools).toMatchObject([{ name: 'add', inputSchema: { properties: { a: { type: 'number' } } } }])
    const calling = client.callTool({ name: 'add', arguments: { a: 1 } })
    const call = await seen(wire, ({ type }) => type === 'tool.call')
    expect(call).toMatchObject({ name: 'add', arguments: '{"a":1}' })
    await wire.send({ type: 'tool.result', call_id: call['call_id'], result: 'two' })
    expect(await calling).toMatchObject({ content: [{ type: 'text', text: 'two' }], isError: false })
    await expect(client.callTool({ name: 'other', arguments: {} })).rejects.toThrow('There is no tool')
    // Nobody waits for a call whose prompt is over.
    const left = client.callTool({ name: 'add', arguments: { a: 2 } })
    await seen(wire, ({ type, arguments: args }) => type === 'tool.call' && args === '{"a":2}')
    await wire.send({ type: 'response.cancel' })
    expect((await over).at(-1)?.type).toBe('response.cancelled')
    expect(await left).toMatchObject({ isError: true })
    expect(await client.callTool({ name: 'add', arguments: {} })).toMatchObject({ isError: true })
    // The next turn brings another tool.
    await say(wire, 'servers end', offering('subtract'))
    await change
    expect((await client.listTools()).tools).toMatchObject([{ name: 'subtract' }])
    await agent.close()
    await expect(client.listTools()).rejects.toThrow()
  })
}

verifies('acp-remote.tools', 'nobody without the secret of the session calls its tools', async () => {
  const { wire, server: ours } = await started({ args: [AGENT, '--mcp-http'] })
  const { server, over } = await running(wire, 'mine')
  const other = await overWebSocket(ours.url)
  await other.open()
  const { server: second, over: overToo } = await running(other, 'theirs')
  const secret = table(server['headers'])['Authorization'] as string
  expect(table(second['headers'])['Authorization']).not.toBe(secret)
  const listed = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
  const post = (headers: Record<string, string>, body = JSON.stringify(listed)) =>
    fetch(server['url'] as string, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body })
  expect(await (await post({ authorization: secret })).json()).toMatchObject({ result: { tools: [{ name: 'mine' }] } })
  expect((await post({})).status).toBe(401)
  expect((await post({ authorization: 'Bearer ' })).status).toBe(401)
  expect((await post({ authorization: `${secret.slice(0, -1)}${secret.endsWith('A') ? 'B' : 'A'}` })).status).toBe(401)
  // A web page.
  expect((await post({ authorization: secret, origin: 'https://evil.example' })).status).toBe(401)
  expect((await post({ authorization: secret }, 'x'.repeat(5_000_000))).status).toBe(413)
  expect(await (await post({ authorization: secret }, '{')).json()).toMatchObject({ error: { code: -32700 } })
  expect(new URL(server['url'] as string).hostname).toBe('127.0.0.1')
  for (const each of [wire, other]) await each.send({ type: 'response.cancel' })
  await Promise.all([over, overToo])
})

verifies('acp-remote.tools', 'a session that was opened without tools is not used for a turn with some', async () => {
  const { wire } = await started()
  const { session } = told(await say(wire, 'hello'))
  const again = told(await say(wire, 'again', offering('add')))
  expect(again.session).not.toBe(session)
  expect(again.prompts).toEqual([expect.stringMatching(/^The conversation so far:\nuser: hello\n[^]*again$/)])
  // From then on it goes on in that one, with tools or without.
  expect(told(await say(wire, 'more', offering('other'))).session).toBe(again.session)
  expect(told(await say(wire, 'and more')).session).toBe(again.session)
})

verifies('acp-remote.editor', 'files that it asks for are those of the editor that asked', async () => {
  const { server, folder, outside } = await started()
  await writeFile(join(folder, 'a.txt'), 'ours')
  const asked: Heard[] = []
  const client = await Client.connect(overSocket(server.url), {
    'fs/read_text_file': (params) => (asked.push(params as Heard), { content: 'of the editor' }),
    'fs/write_text_file': (params) => (asked.push(params as Heard), {}),
  })
  await client.initialize({ fs: { readTextFile: true, writeTextFile: true } })
  const sessionId = await client.open()
  await client.say(sessionId, `read {"path":"${folder}/src/a.txt","line":2}`)
  await client.say(sessionId, `write ${folder}/b.txt new`)
  await client.say(sessionId, `read ${outside}/secret.txt`)
  expect(asked).toEqual([
    { sessionId, path: '/project/src/a.txt', line: 2 },
    { sessionId, path: '/project/b.txt', content: 'new' },
  ])
  expect(client.text).toContain('"result":{"content":"of the editor"}')
  expect(client.text).toContain('"error"')
  // An editor without files gets those of the folder.
  const plain = await Client.connect(overSocket(server.url))
  await plain.initialize()
  await plain.say(await plain.open(), `read ${folder}/a.txt`)
  expect(plain.text).toContain('"result":{"content":"ours"}')
})

verifies('acp-remote.editor', 'the tools of an MCP server that the editor names are there for the agent', async () => {
  const agent = remoteAcp({ name: 'coder', command: process.execPath, args: [AGENT], folder: await place() })
  onTestFinished(() => agent.close())
  const editor = await Client.connect(overStdio([agent]))
  await editor.initialize()
  const adder = { name: 'adder', command: process.execPath, args: ['test/agents/mcp/stdio.js'], env: [] }
  const sessionId = await editor.open({ mcpServers: [adder] })
  const over = editor.say(sessionId, 'servers')
  await editor.update('agent_message_chunk')
  const [server] = JSON.parse(editor.text) as Heard[]
  expect(server).toMatchObject({ name: expect.any(String) })
  const client = await connected(server as Heard)
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('add')
  expect(await client.callTool({ name: 'add', arguments: { a: 2, b: 3 } })).toMatchObject({ content: [{ type: 'text', text: '5' }] })
  editor.send({ method: 'session/cancel', params: { sessionId } })
  expect((await over)['result']).toEqual({ stopReason: 'cancelled' })
})
