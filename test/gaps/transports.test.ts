/** What UAMP transports asks for beyond single protocols: what works, and what is not built. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { createAgentApp } from '../../src/serve/index.ts'
import { ask, user } from '../openai/support.ts'
import { connect } from '../openai/realtime-wire.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { expectedFailure, verifies } from '../support/verifies.ts'
import { overWebSocket } from '../support/wire.ts'

const named = (name: string) =>
  defineAgent(name, async function* () {
    yield text(`I am ${name}`)
  })

/** What the agent under a path says, over one protocol after the other. */
async function everywhere(url: string): Promise<Record<string, string>> {
  const wire = await overWebSocket(url)
  await wire.open()
  const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'hello' }] }
  const rpc = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }
  const agUi = await fetch(`${url}/ag-ui`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ threadId: 't', runId: 'r', messages: [{ id: 'u', role: 'user', content: 'hello' }] }),
  })
  const realtime = await connect(url)
  realtime.send({ type: 'response.create' })
  const acp = new WebSocket(`${url.replace('http', 'ws')}/acp/stream`)
  await new Promise((resolve) => acp.once('open', resolve))
  acp.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'prompt/submit', params: { messages: [user('hello')] } }))
  const submitted = await new Promise<string>((resolve) =>
    acp.on('message', (data: Buffer) => data.toString().includes('"result"') && resolve(data.toString())),
  )
  acp.close()
  return {
    events: textOf(await say(wire, 'hello')),
    completions: (await ask(`${url}/chat/completions`, { messages: [user('hello')] })).body.choices[0].message.content as string,
    responses: JSON.stringify((await ask(`${url}/v1/responses`, { input: 'hello' })).body.output),
    a2a: JSON.stringify((await ask(`${url}/a2a`, rpc, { 'a2a-version': '1.0' })).body.result),
    agUi: await agUi.text(),
    realtime: JSON.stringify((await realtime.next('response.done'))['response'].output),
    acp: submitted,
  }
}

verifies('uamp-transports.dotted-names', 'an agent with dots in its name answers under it on every protocol', async () => {
  const name = 'alice.my-bot.helper'
  const { url } = await startServer([demo(), named(name)])
  for (const [protocol, said] of Object.entries(await everywhere(`${url}/agents/${name}`))) {
    expect(said, protocol).toContain(`I am ${name}`)
  }
})

verifies('uamp-transports.many-agents', 'each of two agents answers under its own name on every protocol', async () => {
  const { url } = await startServer([named('one'), named('two')])
  for (const name of ['one', 'two']) {
    for (const [protocol, said] of Object.entries(await everywhere(`${url}/agents/${name}`)))
      expect(said, protocol).toContain(`I am ${name}`)
  }
})

verifies('uamp-transports.card-fields', 'agent.json has all that its readers look for', async () => {
  const { url } = await startServer(demo())
  expect(await (await fetch(`${url}/agents/demo/.well-known/agent.json`)).json()).toMatchObject({
    name: 'demo',
    description: expect.stringMatching(/./),
    version: expect.stringMatching(/^\d/),
    protocolVersion: '0.2.1',
    capabilities: { streaming: true, pushNotifications: expect.any(Boolean) },
    defaultInputModes: expect.arrayContaining(['text/plain']),
    defaultOutputModes: expect.arrayContaining(['text/plain']),
    skills: expect.arrayContaining([expect.objectContaining({ id: expect.any(String) })]),
  })
})

verifies('uamp-transports.agent-app', 'an app and its upgrades work in a server of somebody else', async () => {
  const { app, handleUpgrade, close } = createAgentApp(named('mine'), { data: 'memory', log: () => undefined })
  const server = createServer((request, response) => {
    void (async () => {
      const answer = await app.fetch(new Request(`http://localhost${request.url ?? '/'}`, { method: request.method ?? 'GET' }))
      response.writeHead(answer.status).end(await answer.text())
    })()
  }).on('upgrade', handleUpgrade)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    await close({ graceMs: 0 })
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  expect((await fetch(`${url}/health`)).status).toBe(200)
  const wire = await overWebSocket(url)
  await wire.open()
  expect(textOf(await say(wire, 'hello'))).toBe('I am mine')
  wire.close()
})

expectedFailure('uamp-transports.portal-connect', 'an agent connects to a platform and answers there', async () => {
  const platform = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(platform, 'listening')
  onTestFinished(() => platform.close())
  const first = new Promise<string>((resolve) =>
    platform.on('connection', (socket) => socket.once('message', (data: Buffer) => resolve(data.toString()))),
  )
  const portal = `ws://127.0.0.1:${(platform.address() as AddressInfo).port}/ws`
  await startServer(demo(), { portal } as object)
  const nothing = new Promise<string>((resolve) => setImmediate(() => resolve('{}')))
  expect(JSON.parse(await Promise.race([first, nothing]))).toMatchObject({ type: 'session.create', session: { agent: 'demo' } })
})
expectedFailure('uamp-transports.jwks', 'the keys of signatures are published', async () => {
  const { url } = await startServer(demo())
  expect(await (await fetch(`${url}/.well-known/jwks.json`)).json()).toMatchObject({ keys: [{ kty: 'RSA' }] })
})
