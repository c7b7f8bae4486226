import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { mcpSkill } from '../../src/skills/mcp/index.ts'
import { startServer } from '../support/server.ts'
import { chooser } from './agents.ts'
import { Client, overSocket } from './wire.ts'

const MEGABYTE = 1024 * 1024

type Asked = { readonly id?: number; readonly method?: string }
type Answer = (asked: Asked, response: ServerResponse) => void

/** An MCP server that answers as it likes, and counts the bytes that were taken from it. */
async function mcpServer(answer: Answer) {
  let taken = 0
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const { socket } = response
    response.on('close', () => (taken += socket?.bytesWritten ?? 0))
    if (request.method !== 'POST') response.writeHead(405).end()
    else answer(JSON.parse(body) as Asked, response)
  }
  const server = createServer({ keepAlive: false }, (request, response) => void handle(request, response).catch(() => undefined))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, taken: () => taken }
}

function endlessly(response: ServerResponse, piece: string): void {
  const write = (): void => {
    while (!response.destroyed && response.write(piece));
  }
  response.on('drain', write)
  write()
}

const INITIALIZED = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'endless', version: '1' } }

const JSON_TYPE = { 'content-type': 'application/json', connection: 'close' }

/** Answers everything but this method as a server should. */
const but =
  (method: string, then: Answer): Answer =>
  (asked, response) => {
    if (asked.method === method) then(asked, response)
    else if (asked.id === undefined) response.writeHead(202, { connection: 'close' }).end()
    else response.writeHead(200, JSON_TYPE).end(JSON.stringify({ jsonrpc: '2.0', id: asked.id, result: INITIALIZED }))
  }

const ENDLESS: [string, Answer][] = [
  ['a body', (_, response) => endlessly(response.writeHead(200, JSON_TYPE), ' '.repeat(100_000))],
  [
    'a line of a stream',
    (_, response) => endlessly(response.writeHead(200, { 'content-type': 'text/event-stream' }), `data: ${'x'.repeat(100_000)}`),
  ],
  [
    'events of a stream',
    (_, response) => endlessly(response.writeHead(200, { 'content-type': 'text/event-stream' }), `: ${'x'.repeat(100_000)}\n\n`),
  ],
  ['brackets', (_, response) => void response.writeHead(200, JSON_TYPE).end('['.repeat(3 * MEGABYTE))],
  [
    'brackets in a stream',
    (_, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`data: ${'['.repeat(3 * MEGABYTE)}\n\n`),
  ],
  [
    'pages of tools',
    but('tools/list', ({ id }, response) => {
      const tool = { name: `t${id}`, description: 'x'.repeat(3 * MEGABYTE), inputSchema: { type: 'object' } }
      response.writeHead(200, JSON_TYPE).end(JSON.stringify({ jsonrpc: '2.0', id, result: { tools: [tool], nextCursor: String(id) } }))
    }),
  ],
]

test.each(ENDLESS)('%s without an end: an MCP server that a client names is left out', async (_, answer) => {
  const { url, taken } = await mcpServer(answer)
  const { url: here, logged } = await startServer(chooser, { outbound: { allow: ['127.0.0.1'] } })
  const client = await Client.connect(overSocket(here))
  await client.initialize()
  const sessionId = await client.open({ mcpServers: [{ type: 'http', name: 'endless', url, headers: [] }] })
  await client.say(sessionId, 'go')
  expect((JSON.parse(client.text) as { tools?: string[] }).tools ?? []).toEqual([])
  const told = logged.find(({ message }) => message === 'Left out an MCP server of a client')
  expect(String(told?.fields?.['error'])).toMatch(/more than \d+ (bytes|levels)|too much/)
  // What the kernel holds of it is counted too.
  expect(taken()).toBeLessThan(48 * MEGABYTE)
})

test.each(ENDLESS.slice(0, 2))('%s without an end: an MCP server of our own fails', async (_, answer) => {
  const { url, taken } = await mcpServer(answer)
  await expect(mcpSkill({ name: 'endless', server: { url } })).rejects.toThrow(/more than \d+ bytes/)
  await expect.poll(taken).toBeGreaterThan(0)
  expect(taken()).toBeLessThan(48 * MEGABYTE)
})
