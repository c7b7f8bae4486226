import { expect } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { counter } from '../support/agents.ts'
import { textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket } from '../support/wire.ts'
import { CALLER, complete, counted, host, network, startHost } from './hosts.ts'

const local = defineAgent('local', async function* () {
  yield 'I live here'
})

/** Says as many numbers as it is asked for, and waits where it is told to. */
function paced() {
  const gates = new Map<
    number,
    { readonly open: Promise<void>; readonly go: () => void; readonly reached: Promise<void>; reach: () => void }
  >()
  const gateAt = (n: number) => {
    let [go, reach] = [() => {}, () => {}]
    const gate = {
      open: new Promise<void>((resolve) => (go = resolve)),
      reached: new Promise<void>((resolve) => (reach = resolve)),
      go: () => go(),
      reach: () => reach(),
    }
    gates.set(n, gate)
    return gate
  }
  const runs = { count: 0 }
  const agent = defineAgent('counter', async function* ({ messages }) {
    runs.count++
    const last = Number(messages.at(-1)?.content)
    for (let n = 1; n <= last; n++) {
      yield n === 1 ? '1' : ` ${n}`
      gates.get(n)?.reach()
      await gates.get(n)?.open
    }
  })
  return { agent, gateAt, runs }
}

async function asked(url: string, prompt: string) {
  const wire = await overWebSocket(url, { token: CALLER })
  await wire.open({ agent: 'counter' })
  await wire.send({ type: 'input.text', text: prompt })
  await wire.send({ type: 'response.create' })
  return wire
}

verifies(['connect.resume', 'connect.reconnect'], 'an answer goes on after cuts, exactly once and in order', async () => {
  const server = await startHost([local])
  const net = await network(server.url)
  const { agent, gateAt, runs } = paced()
  const gates = [1, 40, 2000, 3500].map((n) => gateAt(n))
  await host(net.url, agent)
  const wire = await asked(server.url, '4000')
  for (const gate of gates) {
    await gate.reached
    // What is on its way is lost with the socket.
    net.cut()
    gate.go()
  }
  await wire.next('response.done')
  expect(textOf(wire.heard)).toBe(counted(4000))
  expect(wire.heard.filter(({ type }) => type === 'response.created')).toHaveLength(1)
  expect(runs.count).toBe(1)
  wire.close()
})

verifies('connect.resume', 'an answer that is cut while it is streamed at full speed loses nothing', async () => {
  const server = await startHost([local])
  const net = await network(server.url)
  const connected = await host(net.url, counter)
  const response = await complete(server.url, 'counter', { prompt: '10000', stream: true })
  let body = ''
  let cuts = 0
  const decoder = new TextDecoder()
  for await (const bytes of response.body ?? []) {
    body += decoder.decode(bytes, { stream: true })
    if (body.length < (cuts + 1) * 200_000) continue
    cuts++
    net.cut()
  }
  const text = [...body.matchAll(/^data: (\{.*)$/gm)]
    .map(([, data]) => (JSON.parse(data ?? '') as { choices: { delta: { content?: string } }[] }).choices[0]?.delta.content ?? '')
    .join('')
  expect(text).toBe(counted(10_000))
  expect(cuts).toBeGreaterThan(2)
  expect(connected.statuses).toContain('offline')
})

verifies('connect.resume-answers', 'a request that is lost with the socket is sent again, and an answer too', async () => {
  const server = await startHost([local])
  const net = await network(server.url)
  let runs = 0
  const agent = defineAgent('counter', async function* (turn) {
    runs++
    const { result } = await turn.ask('tool.call', { name: 'weather', arguments: '{}' })
    yield result
  })
  const connected = await host(net.url, agent)
  net.freeze()
  const wire = await asked(server.url, 'Go')
  net.cut()
  const call = await wire.next('tool.call')
  net.freeze()
  await wire.send({ type: 'tool.result', call_id: call['call_id'], result: '"sunny"' })
  net.cut()
  await wire.next('response.done')
  expect(textOf(wire.heard)).toBe('"sunny"')
  expect(runs).toBe(1)
  expect(connected.statuses).toContain('offline')
  wire.close()
})

verifies('connect.window', 'an answer of an agent that does not come back ends with agent_offline', async () => {
  const server = await startHost([local], { limits: { resumeWindowMs: 500 } })
  const net = await network(server.url)
  const { agent, gateAt } = paced()
  const gate = gateAt(5)
  await host(net.url, agent)
  const wire = await asked(server.url, '10')
  await gate.reached
  await wire.next(({ delta }) => delta?.text === ' 5')
  net.down()
  const { error } = await wire.next('response.error')
  expect(error).toMatchObject({ code: 'agent_offline', details: { agent: 'counter', retry_after: 5 } })
  expect(textOf(wire.heard)).toBe(counted(5))
  wire.close()
})

verifies('connect.restarted', 'a process that is started anew does not answer for the one before', async () => {
  const server = await startHost([local])
  const net = await network(server.url)
  const { agent, gateAt } = paced()
  const gate = gateAt(5)
  await host(net.url, agent)
  const wire = await asked(server.url, '10')
  await gate.reached
  net.down()
  await host(server.url, counter)
  const { error } = await wire.next('response.error')
  expect(error).toMatchObject({ code: 'agent_offline' })
  wire.close()
})

verifies('connect.resume', 'a cancel while the socket is gone stops the agent when it is back', async () => {
  const server = await startHost([local])
  const net = await network(server.url)
  let stop: () => void = () => undefined
  const stopped = new Promise<void>((resolve) => (stop = resolve))
  const agent = defineAgent('counter', async function* ({ signal }) {
    yield 'a'
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
    stop()
  })
  await host(net.url, agent)
  const wire = await asked(server.url, 'Go')
  await wire.next('response.delta')
  net.down()
  await expect.poll(() => server.agents.get('counter')?.hosted?.online).toBe(false)
  await wire.send({ type: 'response.cancel' })
  await wire.next('response.cancelled')
  net.up()
  await stopped
  wire.close()
})
