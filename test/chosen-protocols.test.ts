/** An agent that is offered through some protocols only: the others do not know it, whichever way they are asked. */
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { Agent } from '../src/agents/agent.ts'
import { defineAgent } from '../src/core/agent-kit/define-agent.ts'
import { text } from '../src/core/agent-kit/drafts.ts'
import type { Skill } from '../src/core/ports/skill.ts'
import { PROTOCOLS } from '../src/serve/protocols.ts'
import { ask, user } from './openai/support.ts'
import { startServer } from './support/server.ts'
import { say, textOf } from './support/talk.ts'
import { verifies } from './support/verifies.ts'
import { overWebSocket } from './support/wire.ts'

const named = (name: string, protocols?: readonly string[]) =>
  defineAgent(
    name,
    async function* () {
      yield text(`I am ${name}`)
    },
    protocols && { protocols },
  )

type Protocol = (typeof PROTOCOLS)[number]

/** Where each protocol is found. */
const DOORS: Readonly<Record<Protocol, readonly string[]>> = {
  events: ['POST /events', 'WS /uamp', 'WS /ws'],
  completions: ['POST /v1/chat/completions', 'POST /chat/completions', 'GET /v1/chat/completions'],
  responses: ['POST /v1/responses', 'WS /v1/responses'],
  realtime: ['WS /realtime', 'WS /v1/realtime'],
  a2a: ['POST /a2a', 'POST /tasks', 'GET /.well-known/agent-card.json', 'GET /.well-known/agent.json'],
  'ag-ui': ['POST /ag-ui'],
  acp: ['POST /acp', 'WS /acp', 'WS /acp/stream'],
  omnia: ['WS /omnia'],
}

/** The status of an answer; 101 for an upgrade. */
async function knock(url: string, door: string): Promise<number> {
  const [method = '', path = ''] = door.split(' ')
  if (method !== 'WS') return (await fetch(url + path, { method, ...(method === 'POST' && { body: '{}' }) })).status
  const socket = new WebSocket(url.replace('http', 'ws') + path)
  return new Promise((resolve) => {
    socket.once('open', () => {
      socket.terminate()
      resolve(101)
    })
    socket.once('unexpected-response', (request, response) => {
      request.destroy()
      resolve(response.statusCode ?? 0)
    })
    socket.on('error', () => undefined)
  })
}

async function openDoors(url: string): Promise<string[]> {
  const doors = Object.values(DOORS).flat()
  const statuses = await Promise.all(doors.map((door) => knock(url, door)))
  return doors.filter((_, index) => statuses[index] !== 404)
}

const json = async (url: string) => (await fetch(url)).json() as Promise<any> // eslint-disable-line

verifies('uamp-transports.chosen', 'an agent has the protocols that it was given, and no others; other agents have all', async () => {
  const { url } = await startServer([...PROTOCOLS.map((protocol) => named(protocol, [protocol])), named('whole')])
  for (const protocol of PROTOCOLS) expect(await openDoors(`${url}/agents/${protocol}`), protocol).toEqual(DOORS[protocol])
  expect(await openDoors(`${url}/agents/whole`)).toEqual(Object.values(DOORS).flat())
})

verifies('uamp-transports.chosen', 'at the root too, where nothing names what the agent lacks', async () => {
  for (const protocol of PROTOCOLS) {
    const { url, close } = await startServer(named('only', [protocol]))
    expect(await openDoors(url), protocol).toEqual(DOORS[protocol])
    const { routes, agents } = await json(`${url}/`)
    const told = new Set((routes as string[]).flatMap((route) => /\((.*)\)$/.exec(route)?.[1] ?? []))
    expect([...told].filter((name) => (PROTOCOLS as readonly string[]).includes(name))).toEqual([protocol])
    expect(agents).toEqual([{ name: 'only', path: '/agents/only', protocols: [protocol] }])
    expect((await json(`${url}/agents`)).agents).toEqual(agents)
    expect(await json(`${url}/capabilities`)).toMatchObject({ id: 'only' })
    await close({ graceMs: 0 })
  }
})

test('a refusal has the form of the protocol', async () => {
  const { url } = await startServer([named('only', ['events']), named('whole')])
  const completion = await ask(`${url}/agents/only/v1/chat/completions`, { messages: [user('x')] })
  expect(completion).toMatchObject({
    status: 404,
    body: { error: { type: expect.any(String), message: expect.any(String), code: 'not_found' } },
  })
  expect((await fetch(`${url}/agents/only/a2a`, { method: 'OPTIONS' })).status).toBe(404)
  expect((await fetch(`${url}/agents/only/a2a`, { method: 'GET' })).status).toBe(404)
})

test('a body at the root cannot name an agent that its protocol lacks, and names those that it has', async () => {
  const { url } = await startServer([named('hidden', ['events', 'a2a']), named('open', ['completions', 'responses', 'realtime'])], {
    defaultAgent: 'hidden',
  })
  expect((await json(`${url}/v1/models`)).data.map(({ id }: { id: string }) => id)).toEqual(['open'])
  expect((await fetch(`${url}/v1/models/hidden`)).status).toBe(404)
  expect((await fetch(`${url}/agents/hidden/v1/models`)).status).toBe(404)

  const completion = (model: string) => ask(`${url}/v1/chat/completions`, { model, messages: [user('x')] })
  expect(await completion('open')).toMatchObject({ status: 200, body: { choices: [{ message: { content: 'I am open' } }] } })
  expect(await completion('hidden')).toMatchObject({ status: 404, body: { error: { code: 'model_not_found' } } })
  expect(await completion('gpt-5')).toMatchObject({ status: 404, body: { error: { code: 'model_not_found' } } })

  const wire = await overWebSocket(url)
  await expect(wire.open({ agent: 'open' })).rejects.toThrow(/not offered through this protocol/)
  const other = await overWebSocket(url)
  await other.open({ agent: 'hidden' })
  expect(textOf(await say(other, 'x'))).toBe('I am hidden')
})

test('a stored response of an agent does not exist for a protocol that the agent lacks', async () => {
  const { url, agents } = await startServer([named('one'), named('two')])
  const { body } = await ask(`${url}/v1/responses`, { model: 'one', input: 'x' })
  expect((await fetch(`${url}/v1/responses/${body.id}`)).status).toBe(200)
  const other = await overWebSocket(url)
  const session = await other.open({ agent: 'one' })
  agents.add(named('one', ['completions']))
  expect((await fetch(`${url}/v1/responses/${body.id}`)).status).toBe(404)
  expect((await fetch(`${url}/v1/responses/${body.id}`, { method: 'DELETE' })).status).toBe(404)
  const next = await ask(`${url}/v1/responses`, { model: 'two', input: 'x', previous_response_id: body.id })
  expect(next).toMatchObject({ status: 400, body: { error: { code: 'previous_response_not_found' } } })
  expect((await fetch(`${url}/events/stream?session_id=${session}`, { headers: { accept: 'text/event-stream' } })).status).toBe(404)

  agents.add(named('one'))
  expect((await fetch(`${url}/v1/responses/${body.id}`)).status).toBe(200)
})

verifies('uamp-transports.chosen', 'an unknown protocol is refused at the start, and where an agent is added', async () => {
  const refused = {
    code: 'invalid_request',
    message: expect.stringMatching(/"odd" names the protocol "grpc", but there are: .*completions.*omnia/),
  }
  await expect(startServer(named('odd', ['events', 'grpc']))).rejects.toMatchObject(refused)
  const { agents } = await startServer(named('fine', ['events']))
  expect(() => agents.add(named('odd', ['grpc']))).toThrow(expect.objectContaining(refused))
  expect(agents.names()).toEqual(['fine'])
})

test('an agent without any protocol still has the routes of its skills, and a protocol of the user counts as one', async () => {
  const bell: Skill = {
    name: 'bell',
    routes: () => [{ method: 'GET', path: '/ring', access: 'request', handle: async () => new Response('ding') }],
  }
  const mine = (name: string) => ({
    name,
    routes: () => [{ method: 'GET', path: `/${name}`, access: 'request', handle: async () => new Response(name) } as const],
  })
  const agent = new Agent({ name: 'bare', skills: [bell], protocols: ['mine'] })
  const { url } = await startServer(agent, { transports: [mine('mine'), mine('yours')] })
  expect(await (await fetch(`${url}/agents/bare/ring`)).text()).toBe('ding')
  expect(await (await fetch(`${url}/ring`)).text()).toBe('ding')
  expect((await fetch(`${url}/mine`)).status).toBe(200)
  expect((await fetch(`${url}/yours`)).status).toBe(404)
  expect(await openDoors(url)).toEqual([])
})
