import { once } from 'node:events'
import { describe, expect, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { demo } from './agents.ts'
import { CARRIERS, Client, overSocket, overStdio, type Heard } from './wire.ts'

/** Whatever was sent, the connection goes on. */
async function lives(client: Client): Promise<void> {
  expect((await client.say(await client.open(), 'well'))['result']).toMatchObject({ stopReason: 'end_turn' })
}

const errorOf = (message: Heard): unknown => [message['id'], message['error']?.code]

for (const name of ['stdio', 'WebSocket']) {
  const connect = CARRIERS[name] as (typeof CARRIERS)[string]

  verifies('acp-1.json-rpc', `what is no message: ${name}`, async () => {
    const client = await Client.connect(await connect([demo()]))
    await client.initialize()
    const cases: readonly (readonly [text: string, id: unknown, code: number])[] = [
      ['{"jsonrpc":"2.0"', null, -32700],
      ['null', null, -32600],
      ['"hello"', null, -32600],
      ['[]', null, -32600],
      ['[{"jsonrpc":"2.0","id":1,"method":"session/list"}]', null, -32600],
      ['{"jsonrpc":"1.0","id":"a","method":"session/list"}', 'a', -32600],
      ['{"id":"b","method":"session/list"}', 'b', -32600],
      ['{"jsonrpc":"2.0","id":"c","method":7}', 'c', -32600],
      ['{"jsonrpc":"2.0","id":{},"method":"session/list"}', null, -32600],
      ['{"jsonrpc":"2.0","id":"d","method":"session/list","params":"x"}', 'd', -32602],
      ['{"jsonrpc":"2.0","id":"e","method":"session/cancel","params":{"sessionId":"x"}}', 'e', -32600],
      [`{"jsonrpc":"2.0","id":"${'f'.repeat(300)}","method":"session/list"}`, null, -32600],
      [`{"jsonrpc":"2.0","id":"g","method":"session/list","params":${'['.repeat(100)}${']'.repeat(100)}}`, 'g', -32600],
      ['{"jsonrpc":"2.0","id":"h","method":"constructor"}', 'h', -32601],
    ]
    for (const [text, id, code] of cases) {
      const from = client.heard.length
      client.send(text)
      expect(errorOf(await client.next((message) => client.heard.indexOf(message) >= from && 'error' in message))).toEqual([id, code])
    }
    // Answers to nothing, and notifications that nobody knows: no word to them.
    const from = client.heard.length
    client.send({ id: 99, result: {} })
    client.send({ id: 98, error: { code: 1, message: 'no' } })
    client.send('{"jsonrpc":"2.0","id":null,"result":1,"error":2}')
    client.send({ method: 'session/weather', params: {} })
    client.send({ method: 'session/prompt', params: { sessionId: 'x', prompt: [] } })
    client.send({ method: 'session/cancel', params: { sessionId: 'nobody' } })
    client.send({ method: '$/cancel_request', params: { requestId: 5 } })
    await client.ask('session/list')
    expect(client.heard.slice(from)).toHaveLength(1)
    await lives(client)
  })
}

verifies('acp-1.version', 'versions that are not spoken', async () => {
  for (const protocolVersion of [0, 2, 65_535]) {
    const client = await Client.connect(overStdio([demo()]))
    expect((await client.ask('initialize', { protocolVersion }))['result'].protocolVersion).toBe(1)
    await lives(client)
  }
})

verifies(['acp-1.initialize', 'acp-1.extensibility', 'acp-1.authenticate'], 'out of order, twice, unknown', async () => {
  const client = await Client.connect(overStdio([demo()]))
  expect((await client.ask('session/new', { cwd: '/project', mcpServers: [] }))['error'].code).toBe(-32600)
  const { authMethods } = await client.initialize()
  expect((await client.ask('initialize', { protocolVersion: 1 }))['error'].code).toBe(-32600)
  expect((await client.ask('authenticate', { methodId: authMethods[0].id }))['result']).toEqual({})
  expect((await client.ask('authenticate', { methodId: 'magic' }))['error'].code).toBe(-32602)
  expect((await client.ask('_someone/thing'))['error'].code).toBe(-32601)
  expect((await client.ask('session/set_model', { sessionId: 'x', modelId: 'y' }))['error'].code).toBe(-32601)
  await lives(client)
})

describe('parameters', () => {
  const wrong: readonly (readonly [method: string, params: object, field: string])[] = [
    ['session/new', { cwd: null, mcpServers: [] }, 'cwd'],
    ['session/new', { cwd: 'relative/path', mcpServers: [] }, 'cwd'],
    ['session/new', { cwd: '/project' }, 'mcpServers'],
    ['session/new', { cwd: '/project', mcpServers: [{ name: 'x' }] }, 'mcpServers.0'],
    ['session/new', { cwd: '/project', mcpServers: [], additionalDirectories: ['x'] }, 'additionalDirectories.0'],
    ['session/prompt', { prompt: 'hello' }, 'prompt'],
    ['session/prompt', { prompt: [{ type: 'video' }] }, 'prompt.0.type'],
    ['session/prompt', { prompt: [{ type: 'text' }] }, 'prompt.0.text'],
    ['session/prompt', { prompt: [{ type: 'image', data: 'not base64!', mimeType: 'image/png' }] }, 'prompt.0.data'],
    ['session/prompt', { prompt: [{ type: 'image', data: 'aaaa', mimeType: 'nonsense' }] }, 'prompt.0.mimeType'],
    ['session/prompt', { prompt: [{ type: 'audio', data: 'aaaa', mimeType: 'image/png' }] }, 'prompt.0.mimeType'],
    ['session/prompt', { prompt: [{ type: 'resource', resource: { uri: 'file:///a', blob: '%' } }] }, 'prompt.0.resource.blob'],
    ['session/prompt', { sessionId: 7, prompt: [] }, 'sessionId'],
    ['session/load', { cwd: '/project', mcpServers: 'x' }, 'mcpServers'],
    ['session/set_mode', { modeId: 7 }, 'modeId'],
    ['session/list', { cursor: 7 }, 'cursor'],
    ['initialize', { protocolVersion: 1, clientCapabilities: { fs: 'yes' } }, 'clientCapabilities.fs'],
  ]
  for (const [method, params, field] of wrong) {
    verifies('acp-1.json-rpc', `${method} ${JSON.stringify(params)}`, async () => {
      const client = await Client.connect(overStdio([demo()]))
      if (method !== 'initialize') await client.initialize()
      const sessionId = method === 'initialize' ? '' : await client.open()
      const { error } = await client.ask(method, { sessionId, ...params })
      expect(error).toMatchObject({ code: -32602, data: { field } })
      if (method === 'initialize') await client.initialize()
      await lives(client)
    })
  }
})

verifies(['acp-1.json-rpc', 'acp-1.stdio'], 'a line that is too long', async () => {
  const client = await Client.connect(overStdio([demo()]))
  await client.initialize()
  client.send(`{"jsonrpc":"2.0","id":1,"method":"${'x'.repeat(33 * 1024 * 1024)}"}`)
  expect((await client.next((message) => message['id'] === null))['error']).toMatchObject({
    code: -32600,
    message: expect.stringContaining('bytes') as string,
  })
  await lives(client)
})

verifies('acp-1.websocket', 'a message in a binary frame was refused, though it was UTF-8', async () => {
  const { url } = await startServer(demo())
  const socket = new WebSocket(`${url.replace('http', 'ws')}/acp`)
  onTestFinished(() => socket.terminate())
  await once(socket, 'open')
  const ask = async (frame: Buffer): Promise<unknown> => {
    const answer = once(socket, 'message') as Promise<[Buffer]>
    socket.send(frame, { binary: true })
    return JSON.parse(String((await answer)[0]))
  }
  const message = { jsonrpc: '2.0', id: 'ä', method: 'initialize', params: { protocolVersion: 1 } }
  expect(await ask(Buffer.from(JSON.stringify(message)))).toMatchObject({ id: 'ä', result: { protocolVersion: 1 } })
  expect(await ask(Buffer.from([0xff, 0xfe, 0x00]))).toMatchObject({ id: null, error: { code: -32600 } })
})

verifies('acp-1.websocket', 'a frame that is no JSON', async () => {
  const server = await startServer(demo(), { limits: { messageBytes: 10_000 } })
  const client = await Client.connect(overSocket(server.url))
  await client.initialize()
  client.send('   ')
  expect((await client.next((message) => message['id'] === null))['error'].code).toBe(-32700)
  await lives(client)
})
