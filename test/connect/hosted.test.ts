import { expect, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { counter, endless, mirror } from '../support/agents.ts'
import { mirrored, say, textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { coin, earned, left } from '../support/money.ts'
import { overWebSocket } from '../support/wire.ts'
import { answerOf, CALLER, complete, counted, host, LAPTOP, OTHER, startHost } from './hosts.ts'

const local = defineAgent('local', async function* () {
  yield 'I live here'
})

verifies(['connect.host', 'connect.every-protocol'], 'an agent without an address answers callers of the host', async () => {
  const server = await startHost([local])
  await host(server.url, counter)
  expect(await answerOf(await complete(server.url, 'counter', { prompt: '30' }))).toBe(counted(30))
  const { agents } = (await (await fetch(`${server.url}/agents`)).json()) as { agents: object[] }
  expect(agents).toContainEqual({ name: 'counter', path: '/agents/counter', online: true })
})

verifies(['connect.settings', 'connect.interaction'], 'settings, slots and the caller reach a hosted agent', async () => {
  const server = await startHost([local])
  await host(server.url, mirror)
  const wire = await overWebSocket(server.url, { token: CALLER })
  const session = { modalities: ['text'], instructions: 'Be brief', extensions: { mine: { a: 1 } } }
  await wire.open({ agent: 'mirror', chat: 'c1', session })
  await wire.send({ type: 'input.text', text: 'One', context: { page: 3 } })
  const given = mirrored(await say(wire, 'Two', { create: { metadata: { run: 7 } } }))
  expect(given.messages.at(-1)).toMatchObject({ role: 'user', context: { page: 3 } })
  expect(JSON.stringify(given.messages)).not.toContain('connect')
  expect(given.config).toMatchObject(session)
  expect(given).toMatchObject({ chat: 'c1', asked: { metadata: { run: 7 } }, client: { id: 'test' } })
  expect(given.principal.id).toBe('default/caller')
  const again = mirrored(await say(wire, 'Three'))
  expect(again.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
  wire.close()
})

verifies('connect.cancel', 'a cancel here stops the hosted agent there, and so does leaving', async () => {
  for (const leave of [false, true]) {
    const server = await startHost([local])
    const { agent, stopped } = endless()
    await host(server.url, { ...agent, name: 'counter' })
    const wire = await overWebSocket(server.url, { token: CALLER })
    await wire.open({ agent: 'counter', session: { modalities: ['text'], extensions: { uamp: { on_detach: 'cancel' } } } })
    await wire.send({ type: 'input.text', text: 'Go' })
    await wire.send({ type: 'response.create' })
    await wire.next('response.delta')
    if (leave) wire.cut()
    else await wire.send({ type: 'response.cancel' })
    await stopped
    wire.close()
  }
})

const asking = defineAgent('counter', async function* (turn) {
  const { result } = await turn.ask('tool.call', { name: 'weather', arguments: '{"city":"Ulm"}' })
  const { approved } = await turn.ask('x.approval.request', { message: 'Really?' })
  const { payment } = await turn.ask('payment.required', {
    requirements: { amount: '1', currency: 'USD', schemes: [{ scheme: 'token', network: 'x' }] },
  })
  yield `${result} ${approved} ${payment.scheme}`
})

verifies('connect.questions', 'a hosted agent asks for tools, approvals and payments', async () => {
  const server = await startHost([local])
  await host(server.url, asking)
  const wire = await overWebSocket(server.url, { token: CALLER })
  await wire.open({ agent: 'counter' })
  await wire.send({ type: 'input.text', text: 'Go' })
  await wire.send({ type: 'response.create' })
  const call = await wire.next('tool.call')
  expect(call).toMatchObject({ name: 'weather', arguments: '{"city":"Ulm"}' })
  await wire.send({ type: 'tool.result', call_id: call['call_id'], result: '"sunny"' })
  const approval = await wire.next('x.approval.request')
  await wire.send({ type: 'x.approval.response', approval_id: approval['approval_id'], approved: true })
  await wire.next('payment.required')
  const token = await coin(server, '3')
  await wire.send({ type: 'payment.submit', payment: { scheme: 'token', token, amount: '1' } })
  await wire.next('response.done')
  // The token stays with the host, whose ledger has the money.
  expect(textOf(wire.heard)).toBe('"sunny" true paid')
  expect([await left(server, token), await earned(server, 'counter')]).toEqual(['2.00', '1.00'])
  wire.close()
})

verifies('connect.questions', 'a hosted agent tells as its cost what was taken for it', async () => {
  const server = await startHost([local])
  const agent = defineAgent(
    'counter',
    async function* () {
      yield 'Done'
      yield { type: 'usage.delta', delta: { output_tokens: 3000 } }
    },
    { price: { call: '0.02', output: '10' } },
  )
  await host(server.url, agent)
  const wire = await overWebSocket(server.url, { token: CALLER })
  const token = await coin(server, '1')
  await wire.open({ agent: 'counter', payment_token: token })
  await wire.send({ type: 'input.text', text: 'Go' })
  await wire.send({ type: 'response.create' })
  const { response } = await wire.next('response.done')
  expect(response.usage.cost).toEqual({ total_cost: 0.05, currency: 'USD' })
  expect([await left(server, token), await earned(server, 'counter')]).toEqual(['0.95', '0.05'])
  wire.close()
})

verifies('connect.root', 'hosted agents do not change which agent is at the root', async () => {
  const server = await startHost([local])
  const ask = () =>
    fetch(`${server.url}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${CALLER}` },
      body: JSON.stringify({ model: 'gpt', messages: [{ role: 'user', content: 'Hi' }] }),
    }).then(answerOf)
  expect(await ask()).toBe('I live here')
  await host(server.url, counter)
  expect(await ask()).toBe('I live here')
})

verifies('connect.taken-name', 'a name that is taken cannot be hosted', async () => {
  const server = await startHost([local])
  await expect(host(server.url, { ...counter, name: 'local' })).rejects.toThrow('taken')
  await host(server.url, counter)
  await expect(host(server.url, counter, { token: OTHER })).rejects.toThrow('taken')
  expect(await answerOf(await complete(server.url, 'counter', { prompt: '3' }))).toBe('1 2 3')
})

verifies('connect.forbidden', 'a token that may not host a name cannot host it', async () => {
  const server = await startHost([local])
  await expect(host(server.url, counter, { token: CALLER })).rejects.toThrow('may not host counter')
  await expect(host(server.url, { ...counter, name: 'teams' })).rejects.toThrow('may not host teams')
  await expect(host(server.url, counter, { token: 'wrong-0123456789abcdef' })).rejects.toThrow('token')
  await host(server.url, { ...counter, name: 'team.a' })
  expect(JSON.stringify(server.logged)).not.toContain(LAPTOP)
})

test('a client with a token that may host still talks to agents', async () => {
  const server = await startHost([local])
  await host(server.url, counter)
  const wire = await overWebSocket(server.url, { token: LAPTOP })
  await wire.open({ agent: 'counter' })
  expect(textOf(await say(wire, '5'))).toBe('1 2 3 4 5')
  wire.close()
})

verifies('connect.crowd', 'a hundred agents share one socket', async () => {
  const server = await startHost([local])
  const names = Array.from({ length: 100 }, (_, index) => `team.a${index}`)
  const agents = names.map((name) =>
    defineAgent(name, async function* ({ messages }) {
      yield `${name} `
      yield* counter.run({ messages } as never)
    }),
  )
  await host(server.url, agents)
  const answers = await Promise.all(names.map(async (name) => answerOf(await complete(server.url, name, { prompt: '200' }))))
  expect(answers).toEqual(names.map((name) => `${name} ${counted(200)}`))
  const metrics = await (await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${CALLER}` } })).text()
  expect(metrics).toMatch(/^uamp_open_sockets 1$/m)
})
