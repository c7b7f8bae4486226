import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { expect, onTestFinished, test } from 'vitest'
import { llmAgent, modelOf } from '../../src/agents/llm/index.ts'
import { mcpSkill, type McpOptions } from '../../src/skills/mcp/index.ts'
import { scriptedProvider, type ScriptedTurn } from '../../src/testing/scripted-provider.ts'
import { isAlive, place } from '../remotes/acp/started.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { overWebSocket, type Heard } from '../support/wire.ts'
import { testServer } from './mcp/server.js'
import { call, said } from './provider.ts'
import { verifies } from '../support/verifies.ts'

const STDIO = fileURLToPath(new URL('mcp/stdio.js', import.meta.url))

/** The test server as a program of its own. */
const program = (env: Record<string, string> = {}) => ({ command: process.execPath, args: [STDIO], env })

/** The test server over HTTP; `forget` ends its sessions, as a restart would. */
async function overHttp() {
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  const seen: IncomingMessage['headers'][] = []
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    seen.push(request.headers)
    if (request.url === '/moved' || request.url === '/loop') {
      response.writeHead(307, { location: request.url === '/moved' ? '/mcp' : '/loop' }).end()
      return
    }
    const known = request.headers['mcp-session-id']
    let transport = sessions.get(String(known))
    if (known !== undefined && !transport) {
      response.writeHead(404).end()
      return
    }
    if (!transport) {
      const opened = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => void sessions.set(id, opened),
      })
      transport = opened
      await testServer().connect(opened as Transport)
    }
    await transport.handleRequest(request, response)
  }
  const server = createServer((request, response) => void handle(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, seen, forget: () => sessions.clear() }
}

/** Sends everything elsewhere, by this status. */
async function redirecting(to: (path: string) => string, status = 307) {
  const server = createServer((request, response) => response.writeHead(status, { location: to(request.url ?? '') }).end())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('a redirect takes the headers of a server to no other origin', async () => {
  const elsewhere = await overHttp()
  const headers = { authorization: 'Bearer the-token', 'x-api-key': 'the-key' }
  for (const status of [301, 302, 307, 308]) {
    const url = `${await redirecting(() => elsewhere.url, status)}/mcp`
    await expect(connect({ server: { url, headers } })).rejects.toThrow('could not be reached')
  }
  expect(elsewhere.seen).toEqual([])
})

test('a redirect within its origin is followed, and not for ever', async () => {
  const there = await overHttp()
  const { origin } = new URL(there.url)
  const skill = await connect({ server: { url: `${origin}/moved`, headers: { 'x-api-key': 'the-key' } } })
  expect(skill.tools.length).toBeGreaterThan(0)
  expect(there.seen.every((seen) => seen['x-api-key'] === 'the-key')).toBe(true)
  await expect(connect({ server: { url: `${origin}/loop` } })).rejects.toThrow('could not be reached')
})

async function connect(options: Omit<McpOptions, 'name'>) {
  const skill = await mcpSkill({ name: 'test', ...options })
  onTestFinished(() => skill.close())
  return skill
}

/** A conversation with an agent whose tools are those of a server. */
async function talk(options: Omit<McpOptions, 'name'>, turns: readonly ScriptedTurn[]) {
  const skill = await connect(options)
  const provider = scriptedProvider(turns)
  const wire = await overWebSocket((await startServer(llmAgent({ name: 'bot', model: modelOf(provider, 'm'), skills: [skill] }))).url)
  await wire.open()
  return { skill, provider, wire }
}

const resultsIn = (events: readonly Heard[]) =>
  events.flatMap((event) => (event.type === 'response.delta' && event['delta'].type === 'tool_result' ? [event['delta'].tool_result] : []))

for (const [kind, server] of [
  ['stdio', async () => program()],
  ['streamable HTTP', async () => ({ url: (await overHttp()).url })],
] as const) {
  verifies('mcp.tools', `a model calls the tools of a server over ${kind}`, async () => {
    const { provider, wire } = await talk({ server: await server() }, [
      [call('c1', 'add', { a: 2, b: 3 }), call('c2', 'fails', {}), call('c3', 'media_all', {}), call('c4', 'add', { a: 'x' })],
      [said('done')],
    ])
    const events = await say(wire, 'go')
    expect(textOf(events)).toBe('done')
    const [request] = provider.requests
    expect(request?.config.instructions).toBe('Ask the test server for everything.')
    expect(request?.config.tools?.find((tool) => tool.function.name === 'add')?.function).toMatchObject({
      description: 'The sum',
      parameters: { type: 'object', properties: { a: { type: 'number' } }, required: ['a', 'b'] },
    })
    const results = Object.fromEntries(resultsIn(events).map((result) => [result.call_id, result]))
    expect(results['c1']).toMatchObject({ result: '5', data: { sum: 5 }, is_error: false })
    expect(results['c2']).toMatchObject({ is_error: true, result: expect.stringContaining('out of ink') })
    expect(results['c3'].result).toBe('look\nin a file\nd: https://example.com/d')
    expect(results['c3'].content_items).toMatchObject([
      { type: 'image', image: 'aGk=', format: 'png', content_id: expect.stringMatching(/^[0-9a-f-]{36}$/) },
      { type: 'audio', format: 'wav' },
      { type: 'file', filename: 'b.bin', mime_type: 'application/x-b' },
    ])
    expect(results['c4'].result).toContain('\\"b\\" is missing')
  })
}

verifies('mcp.environment', 'a program inherits no secrets, and gets what it is given', async () => {
  process.env['UAMP_TEST_SECRET'] = 'secret'
  onTestFinished(() => void delete process.env['UAMP_TEST_SECRET'])
  const { wire } = await talk({ server: program({ GIVEN: 'given' }) }, [
    [call('c1', 'env', { name: 'UAMP_TEST_SECRET' }), call('c2', 'env', { name: 'GIVEN' })],
    [said('ok')],
  ])
  expect(resultsIn(await say(wire, 'go')).map(({ result }) => result)).toEqual(['unset', 'given'])
})

verifies('mcp.progress', 'a call tells its progress, and a cancel ends it', async () => {
  const { wire } = await talk({ server: program() }, [[call('c1', 'slow', {})]])
  const saying = say(wire, 'go')
  const news = await wire.next((event) => event['delta']?.type === 'tool_progress')
  expect(news['delta'].tool_progress.text).toBe('half')
  await wire.send({ type: 'response.cancel' })
  expect((await saying).at(-1)?.type).toBe('response.cancelled')
})

verifies('mcp.progress', 'a call that takes too long is given up', async () => {
  const { wire } = await talk({ server: program(), timeoutMs: 50 }, [[call('c1', 'slow', {})], [said('ok')]])
  const events = await say(wire, 'go')
  expect(resultsIn(events)[0]).toMatchObject({ is_error: true })
  expect(textOf(events)).toBe('ok')
})

verifies('mcp.list-changed', 'tools that the server gets later are there, under the prefix', async () => {
  const { skill, wire, provider } = await talk({ server: program(), prefix: 'srv-' }, [
    [call('c1', 'srv-grow', {})],
    [said('ok')],
    [call('c2', 'srv-grown', {})],
    [said('ok')],
  ])
  await say(wire, 'go')
  await expect.poll(() => skill.tools.map(({ name }) => name)).toContain('srv-grown')
  expect(resultsIn(await say(wire, 'go'))[0].result).toBe('tall')
  expect(provider.requests).toHaveLength(4)
})

verifies('mcp.chosen', 'only some tools, some of them with approval', async () => {
  const skill = await connect({ server: program(), only: ['add', 'env'], needsApproval: ['env'] })
  expect(skill.tools.map(({ name, needsApproval }) => [name, needsApproval])).toEqual([
    ['add', false],
    ['env', true],
  ])
})

verifies('mcp.again', 'a program that dies is started again by the next call', async () => {
  const { wire } = await talk({ server: program() }, [
    [call('c1', 'die', {})],
    [said('ok')],
    [call('c2', 'add', { a: 1, b: 1 })],
    [said('ok')],
    [call('c3', 'add', { a: 1, b: 1 })],
    [said('ok')],
  ])
  await say(wire, 'go')
  // The call that finds it dying may be lost with it; the one after that is not.
  await say(wire, 'go')
  expect(resultsIn(await say(wire, 'go'))[0].result).toBe('2')
})

verifies('mcp.bounds', 'a result of 10 MiB is cut, or more than its program may say at once: either way the next call works', async () => {
  for (const server of [program(), { url: (await overHttp()).url }]) {
    const { wire } = await talk({ server }, [
      [call('c1', 'flood', { length: 10 * 1024 * 1024 })],
      [said('ok')],
      [call('c2', 'add', { a: 1, b: 1 })],
      [said('ok')],
    ])
    const [flooded] = resultsIn(await say(wire, 'go'))
    if ('url' in server) expect(flooded.result).toContain('[cut off: this is the beginning, 262144 of 10485760 characters]')
    else expect(flooded).toMatchObject({ is_error: true })
    expect(resultsIn(await say(wire, 'go'))[0].result).toBe('2')
  }
})

verifies('mcp.bounds', 'a list of tools without an end is given up', async () => {
  const endless = `
    let buffer = ''
    let page = 0
    process.stdin.on('data', (chunk) => {
      const lines = (buffer += chunk).split('\\n')
      buffer = lines.pop()
      for (const { id, method } of lines.map((line) => JSON.parse(line))) {
        const result = method === 'initialize'
          ? { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'endless', version: '1' } }
          : { tools: [{ name: 'tool' + ++page, inputSchema: { type: 'object' } }], nextCursor: String(page) }
        if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result }))
      }
    })`
  await expect(connect({ server: { command: process.execPath, args: ['-e', endless] } })).rejects.toThrow(/"test" could not be reached/)
})

verifies('mcp.again', 'a session that the server has forgotten is opened again, and headers are sent', async () => {
  const server = await overHttp()
  const { wire } = await talk({ server: { url: server.url, headers: { authorization: 'Bearer key' } } }, [
    [call('c1', 'add', { a: 1, b: 1 })],
    [said('ok')],
  ])
  server.forget()
  expect(resultsIn(await say(wire, 'go'))[0].result).toBe('2')
  expect(server.seen.every(({ authorization }) => authorization === 'Bearer key')).toBe(true)
})

verifies('mcp.unreachable', 'a server that is not there, or is none, is named', async () => {
  await expect(connect({ server: { command: '/no/such/program' } })).rejects.toThrow('The MCP server "test" could not be reached')
  const complains = { command: process.execPath, args: ['-e', 'console.error("no licence"); process.exit(1)'] }
  await expect(connect({ server: complains })).rejects.toThrow('no licence')
  await expect(connect({ server: { url: 'http://127.0.0.1:9/mcp' } })).rejects.toThrow('The MCP server "test" could not be reached')
})

test('what a server had started went on when it was closed, and so did one that does not want to end', async () => {
  const file = join(await place(), 'pids')
  const script = `trap "" TERM; sleep 1000 & echo $$ $! > "$0"; "$1" "$2"; sleep 1000`
  const skill = await connect({ server: { command: 'sh', args: ['-c', script, file, process.execPath, STDIO] } })
  const pids = (await readFile(file, 'utf8')).trim().split(' ').map(Number)
  expect(pids.map(isAlive)).toEqual([true, true])
  await skill.close()
  await expect.poll(() => pids.map(isAlive)).toEqual([false, false])
})
