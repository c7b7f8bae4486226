/** What envelopes lack: each test is the behaviour that its requirement asks for. */
import { expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { company, frames, message, pinned, post, signed, streamOf } from '../envelope/company.ts'
import { startServer } from '../support/server.ts'
import { expectedFailure } from '../support/verifies.ts'

async function world() {
  const client = await company()
  const { url } = await startServer(demo(), { insecureDev: true, envelope: { keys: pinned(client) } })
  const { id: did } = (await (await fetch(`${url}/.well-known/did.json`)).json()) as { id: string }
  return { url, did, client }
}

expectedFailure('envelope:subscribe', 'a subscription to what an agent tells', async () => {
  const { url, did, client } = await world()
  const body = { type: 'application/json', content: '{"topic":"agent"}' }
  const accepted = await post(url, await signed(client, message(client, did, { intent: 'subscribe', body })))
  expect(accepted.status).toBe(202)
  expect(await frames(streamOf(accepted), { most: 1 })).toHaveLength(1)
})
expectedFailure('envelope:grpc', 'a call of gRPC', async () => {
  const { url } = await world()
  const headers = { 'content-type': 'application/grpc-web+json' }
  expect((await fetch(`${url}/uamp.v1.Agent/Send`, { method: 'POST', headers, body: '{}' })).status).toBe(200)
})
expectedFailure('envelope:http3', 'another way is offered', async () => {
  const { url } = await world()
  expect((await fetch(`${url}/.well-known/agent-manifest.json`)).headers.get('alt-svc')).toContain('h3=')
})
