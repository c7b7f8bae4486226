import { describe, expect } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { llmAgent, modelOf } from '../../src/agents/llm/index.ts'
import { scriptedProvider } from '../../src/testing/index.ts'
import { endless } from '../support/agents.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket } from '../support/wire.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { caller, chooser, demo, paid } from './agents.ts'
import { CARRIERS, Client, overHttp, overSocket, overStdio, type Heard } from './wire.ts'

async function ready(connect: Awaited<ReturnType<(typeof CARRIERS)[string]>>, capabilities: object = {}): Promise<Client> {
  const client = await Client.connect(connect)
  await client.initialize(capabilities)
  return client
}

describe.each(Object.keys(CARRIERS))('over %s', (name) => {
  const connect = CARRIERS[name] as (typeof CARRIERS)[string]

  verifies(['acp-1.load', 'acp-1.close', 'acp-1.resume'], `closed, loaded, resumed: ${name}`, async () => {
    const client = await ready(await connect([demo()]))
    const sessionId = await client.open()
    await client.say(sessionId, 'one')
    await client.say(sessionId, '/tool add {"a":1,"b":2}')
    expect((await client.ask('session/close', { sessionId }))['result']).toEqual({})
    expect((await client.say(sessionId, 'two'))['error'].code).toBe(-32002)
    const before = client.updates.length
    const loading = client.begin('session/load', { sessionId, cwd: '/project', mcpServers: [] })
    const answer = await client.next((message) => message['id'] === loading)
    expect(answer['result']).toEqual({})
    const at = client.heard.indexOf(answer)
    const replayed = client.heard.slice(0, at).flatMap(({ method, params }) => (method === 'session/update' ? [params.update as Heard] : [])).slice(before) // prettier-ignore
    expect(replayed.map(({ sessionUpdate, content, status }) => [sessionUpdate, content?.text ?? status])).toEqual([
      ['user_message_chunk', 'one'],
      ['agent_message_chunk', 'You said: one'],
      ['user_message_chunk', '/tool add {"a":1,"b":2}'],
      ['tool_call', 'pending'],
      ['tool_call_update', 'in_progress'],
      ['tool_call_update', 'completed'],
      ['agent_message_chunk', 'add answered: {"sum":3}'],
    ])
    await client.say(sessionId, 'three')
    expect(client.text.endsWith('You said: three')).toBe(true)
    await client.ask('session/close', { sessionId })
    const count = client.updates.length
    expect((await client.ask('session/resume', { sessionId, cwd: '/project' }))['result']).toEqual({})
    await client.say(sessionId, '/history')
    // Nothing is told again but the commands, which are no part of the conversation.
    expect(client.updates.slice(count, count + 2).map(({ sessionUpdate }) => sessionUpdate as string)).toEqual([
      'available_commands_update',
      'agent_message_chunk',
    ])
    expect(client.text).toContain('user: three')
  })
})

verifies('acp-1.close', 'closing stops what runs', async () => {
  const { agent, stopped } = endless()
  const client = await ready(overStdio([agent]))
  const sessionId = await client.open()
  const prompt = client.say(sessionId, 'go')
  await client.update('agent_message_chunk')
  await client.ask('session/close', { sessionId })
  expect((await prompt)['result']).toEqual({ stopReason: 'cancelled' })
  await stopped
})

for (const method of ['session/close', 'session/delete']) {
  verifies(['acp-1.close', 'acp-1.always-answered'], `a prompt that waited for another was never answered: ${method}`, async () => {
    const client = await ready(overStdio([paid]))
    const sessionId = await client.open()
    expect((await client.say(sessionId, 'one'))['error']).toMatchObject({ code: -32402 })
    const waiting = client.say(sessionId, 'two')
    expect((await client.ask(method, { sessionId }))['result']).toEqual({})
    expect((await waiting)['result']).toEqual({ stopReason: 'cancelled' })
  })
}

verifies(['acp-1.list', 'acp-1.delete', 'acp-1.unknown-session'], 'listed, of one folder, and deleted for good', async () => {
  const client = await ready(overStdio([demo()]))
  const first = await client.open({ cwd: '/project/a', additionalDirectories: ['/project/c'] })
  const second = await client.open({ cwd: '/project/b' })
  await client.say(first, 'The first\nof all')
  const { result } = await client.ask('session/list')
  expect(result.sessions).toContainEqual({
    sessionId: first,
    cwd: '/project/a',
    title: 'The first',
    additionalDirectories: ['/project/c'],
    updatedAt: expect.any(String) as string,
  })
  expect((result.sessions as Heard[]).map(({ sessionId }) => sessionId as string).sort()).toEqual([first, second].sort())
  expect((await client.ask('session/list', { cwd: '/project/b' }))['result'].sessions).toMatchObject([{ sessionId: second }])
  expect((await client.ask('session/delete', { sessionId: first }))['result']).toEqual({})
  expect((await client.say(first, 'still there?'))['error'].code).toBe(-32002)
  expect((await client.ask('session/load', { sessionId: first, cwd: '/project', mcpServers: [] }))['error'].code).toBe(-32002)
  // ACP, Session Delete: one that is gone, or never was, is as good as deleted.
  for (const sessionId of [first, 'sess_never']) expect((await client.ask('session/delete', { sessionId }))['result']).toEqual({})
  expect((await client.ask('session/list'))['result'].sessions).toMatchObject([{ sessionId: second }])
})

verifies('acp-1.list', 'page by page', async () => {
  const client = await ready(overStdio([demo()]))
  const opened = new Set<string>()
  for (let n = 0; n < 60; n++) opened.add(await client.open())
  const seen: string[] = []
  let cursor: string | undefined
  do {
    const { result } = await client.ask('session/list', cursor === undefined ? {} : { cursor })
    seen.push(...(result.sessions as Heard[]).map(({ sessionId }) => sessionId as string))
    cursor = result.nextCursor as string | undefined
  } while (cursor !== undefined)
  expect(new Set(seen)).toEqual(opened)
  expect(seen).toHaveLength(60)
})

verifies(
  ['acp-1.modes', 'acp-1.config', 'acp-1.commands'],
  'modes and models: told, chosen, kept, and told when others choose',
  async () => {
    const server = await startServer(chooser)
    const client = await ready(overSocket(server.url))
    const { result } = await client.ask('session/new', { cwd: '/project', mcpServers: [] })
    const { sessionId, modes, configOptions } = result
    expect(modes).toEqual({
      currentModeId: 'ask',
      availableModes: [
        { id: 'ask', name: 'Ask', description: 'Changes nothing' },
        { id: 'code', name: 'code' },
      ],
    })
    expect(configOptions).toMatchObject([
      { id: 'mode', category: 'mode', type: 'select', currentValue: 'ask' },
      {
        id: 'model',
        category: 'model',
        type: 'select',
        currentValue: 'small',
        options: [
          { value: 'small', name: 'Small' },
          { value: 'large', name: 'large' },
        ],
      },
    ])
    expect((await client.update('available_commands_update'))['params'].update.availableCommands).toEqual([
      { name: 'fix', description: 'Repairs it', input: { hint: 'what' } },
    ])
    const chosen = await client.ask('session/set_config_option', { sessionId, configId: 'model', value: 'large' })
    expect(chosen['result'].configOptions).toMatchObject([{ currentValue: 'ask' }, { currentValue: 'large' }])
    expect((await client.ask('session/set_mode', { sessionId, modeId: 'code' }))['result']).toEqual({})
    await client.say(sessionId as string, 'go')
    expect(JSON.parse(client.text)).toMatchObject({ uamp: { model: 'large', mode: 'code' }, acp: { cwd: '/project' } })
    for (const [method, params] of [
      ['session/set_mode', { modeId: 'sleep' }],
      ['session/set_config_option', { configId: 'model', value: 'huge' }],
      ['session/set_config_option', { configId: 'colour', value: 'red' }],
      ['session/set_config_option', { configId: 'model', value: true }],
    ] as const) {
      expect((await client.ask(method, { sessionId, ...params }))['error'].code).toBe(-32602)
    }
    const events = await overWebSocket(server.url)
    await events.follow(sessionId as string, 0)
    await events.send({
      type: 'session.update',
      session_id: sessionId as string,
      session: { extensions: { uamp: { mode: 'ask', model: 'large' } } },
    })
    expect((await client.update('current_mode_update'))['params'].update).toEqual({
      sessionUpdate: 'current_mode_update',
      currentModeId: 'ask',
    })
    expect((await client.update('config_option_update'))['params'].update.configOptions).toMatchObject([
      { currentValue: 'ask' },
      { currentValue: 'large' },
    ])
    // A new connection finds them as they were left.
    const again = await ready(overSocket(server.url))
    const { result: resumed } = await again.ask('session/resume', { sessionId, cwd: '/project' })
    expect(resumed.modes.currentModeId).toBe('ask')
  },
)

verifies('acp-1.config', 'a model agent with a fallback offers both, and asks the one that is chosen', async () => {
  const models = ['one', 'two'].map((name) =>
    modelOf(scriptedProvider([[{ type: 'response.delta', delta: { type: 'text', text: name } }]], { name }), 'm'),
  )
  const agent = llmAgent({ name: 'thinker', model: models[0]!, fallbacks: [models[1]!] }) // eslint-disable-line
  const client = await ready(overStdio([agent]))
  const { result } = await client.ask('session/new', { cwd: '/project', mcpServers: [] })
  expect(result.configOptions).toMatchObject([{ id: 'model', currentValue: 'one/m', options: [{ value: 'one/m' }, { value: 'two/m' }] }])
  await client.ask('session/set_config_option', { sessionId: result.sessionId, configId: 'model', value: 'two/m' })
  await client.say(result.sessionId as string, 'go')
  expect(client.text).toBe('two')
})

verifies(['acp-1.load', 'acp-1.cancel'], 'one session over two protocols: the same history, and a cancel from the other side', async () => {
  const server = await startServer(demo())
  const client = await ready(overSocket(server.url))
  const sessionId = await client.open()
  await client.say(sessionId, 'from the IDE')
  const events = await overWebSocket(server.url)
  await events.follow(sessionId, 0)
  await events.send({ type: 'input.text', text: 'from the browser' })
  await events.send({ type: 'response.create' })
  await client.next(({ params }) => params?.update?.content?.text === ' browser')
  const other = await ready(overHttp(server.url))
  await other.ask('session/load', { sessionId, cwd: '/project', mcpServers: [] })
  expect(
    other.updates.filter(({ sessionUpdate }) => /message/.test(sessionUpdate as string)).map(({ content }) => content.text as string),
  ).toEqual(['from the IDE', 'You said: from the IDE', 'from the browser', 'You said: from the browser'])
  const prompt = client.say(sessionId, '/count 1000000 1')
  await events.next((event) => event.type === 'response.delta' && event['delta'].text === ' 3')
  await events.send({ type: 'response.cancel' })
  expect((await prompt)['result']).toEqual({ stopReason: 'cancelled' })
})

verifies('acp-1.load', 'a session that is open is loaded again, here and elsewhere', async () => {
  const server = await startServer(demo())
  const client = await ready(overSocket(server.url))
  const other = await ready(overSocket(server.url))
  const sessionId = await client.open()
  await client.say(sessionId, 'one')
  for (const each of [client, other, client]) {
    expect((await each.ask('session/load', { sessionId, cwd: '/project', mcpServers: [] }))['result']).toEqual({})
    expect((await each.say(sessionId, 'more'))['result']).toMatchObject({ stopReason: 'end_turn' })
  }
  other.close()
  expect((await client.say(sessionId, 'alone'))['result']).toMatchObject({ stopReason: 'end_turn' })
})

verifies('acp-1.owner', "another's sessions are not there", async () => {
  const server = await startServer(demo(), { tokens: { alice: 'a-0123456789abcdef', bob: 'b-0123456789abcdef' } })
  const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
  const alice = await ready(overSocket(server.url, bearer('a-0123456789abcdef')))
  const bob = await ready(overSocket(server.url, bearer('b-0123456789abcdef')))
  const sessionId = await alice.open()
  expect((await bob.ask('session/delete', { sessionId }))['result']).toEqual({})
  for (const method of ['session/load', 'session/resume', 'session/close', 'session/prompt']) {
    expect((await bob.ask(method, { sessionId, cwd: '/project', mcpServers: [], prompt: [] }))['error'].code).toBe(-32002)
  }
  expect((await bob.ask('session/list'))['result'].sessions).toEqual([])
  expect((await alice.ask('session/list'))['result'].sessions).toHaveLength(1)
})

verifies(['acp-1.folders', 'acp-1.list'], 'load and resume left the folders as they were when the session was new', async () => {
  const client = await ready(overStdio([chooser]))
  const sessionId = await client.open({ cwd: '/project/a', additionalDirectories: ['/project/b'] })
  const folders = async (): Promise<unknown> => {
    const from = client.text.length
    await client.say(sessionId, 'go')
    const { acp: { prompt, ...acp } } = JSON.parse(client.text.slice(from)) as { acp: Heard } // prettier-ignore
    expect(prompt).toBe(true)
    const [listed] = (await client.ask('session/list'))['result'].sessions as Heard[]
    expect(listed).toMatchObject(acp)
    expect(listed?.['additionalDirectories']).toEqual(acp['additionalDirectories'])
    return [acp['cwd'], acp['additionalDirectories'], listed?.['title']]
  }
  expect(await folders()).toEqual(['/project/a', ['/project/b'], 'go'])
  await client.ask('session/load', { sessionId, cwd: '/project/c', additionalDirectories: ['/d', '/e'], mcpServers: [] })
  expect(await folders()).toEqual(['/project/c', ['/d', '/e'], 'go'])
  await client.ask('session/resume', { sessionId, cwd: '/project/c' })
  expect(await folders()).toEqual(['/project/c', undefined, 'go'])
  await client.ask('session/close', { sessionId })
  await client.ask('session/resume', { sessionId, cwd: '/project/a', additionalDirectories: ['/f'] })
  expect(await folders()).toEqual(['/project/a', ['/f'], 'go'])
})

verifies(
  ['acp-1.load', 'acp-1.client-tools'],
  'a prompt whose session was loaded again was cancelled, while the agent went on alone',
  async () => {
    let answer = (_: unknown): void => undefined
    const file = new Promise((resolve) => (answer = resolve))
    const client = await Client.connect(overStdio([caller()]), { 'fs/read_text_file': () => file })
    await client.initialize({ fs: { readTextFile: true } })
    const sessionId = await client.open()
    await client.say(sessionId, 'nothing')
    const prompt = client.say(sessionId, 'read_text_file {"path":"/a"}')
    await client.next(({ method }) => method === 'fs/read_text_file')
    await client.ask('session/resume', { sessionId, cwd: '/project' })
    const from = client.updates.length
    expect((await client.ask('session/load', { sessionId, cwd: '/project', mcpServers: [] }))['result']).toEqual({})
    answer({ content: 'let a' })
    expect((await prompt)['result']).toMatchObject({ stopReason: 'end_turn' })
    const told = client.updates.slice(from).map(({ sessionUpdate, content, status }) => [sessionUpdate, content?.text ?? status])
    expect(told).toEqual([
      ['user_message_chunk', 'nothing'],
      ['tool_call', 'pending'],
      ['tool_call_update', 'in_progress'],
      ['tool_call_update', 'failed'],
      ['agent_message_chunk', expect.stringContaining('failed') as string],
      ['user_message_chunk', 'read_text_file {"path":"/a"}'],
      ['tool_call', 'pending'],
      ['tool_call_update', 'in_progress'],
      ['tool_call_update', 'completed'],
      ['agent_message_chunk', 'gave: let a'],
    ])
    expect(client.heard.filter(({ method }) => method === 'fs/read_text_file')).toHaveLength(1)
    expect((await client.say(sessionId, 'again'))['result']).toMatchObject({ stopReason: 'end_turn' })
  },
)

verifies('acp-1.load', 'a prompt that ends while its session is loaded again is answered', async () => {
  const client = await ready(overStdio([demo()]))
  const sessionId = await client.open()
  await client.say(sessionId, '/count 3000')
  for (let n = 0; n < 20; n++) {
    const prompt = client.say(sessionId, `/count ${n * 20}`)
    const load = client.ask('session/load', { sessionId, cwd: '/project', mcpServers: [] })
    expect((await load)['result']).toEqual({})
    expect((await prompt)['result']).toMatchObject({ stopReason: 'end_turn' })
  }
})

verifies('acp-1.prompt', 'a prompt that was refused was part of the next one, and gave the session its name', async () => {
  let finish = (): void => undefined
  const gate = new Promise<void>((resolve) => (finish = resolve))
  const agent = defineAgent('waiter', async function* ({ messages }) {
    yield text('…')
    await gate
    yield text(JSON.stringify(messages.filter(({ role }) => role === 'user').map(({ content }) => content)))
  })
  const server = await startServer(agent)
  const client = await ready(overSocket(server.url))
  const sessionId = await client.open()
  const events = await overWebSocket(server.url)
  await events.follow(sessionId, 0)
  await events.send({ type: 'input.text', text: 'first' })
  await events.send({ type: 'response.create' })
  await client.update('agent_message_chunk')
  expect((await client.say(sessionId, 'refused'))['error']).toMatchObject({ code: -32600, data: { code: 'response_in_progress' } })
  finish()
  await events.next('response.done')
  await client.say(sessionId, 'second')
  expect(client.text).toMatch(/\["first","second"\]$/)
  expect((await client.ask('session/list'))['result'].sessions).toMatchObject([{ title: 'second' }])
})

verifies(
  ['acp-1.initialize', 'acp-1.unknown-session'],
  'over the network the version was another, and errors gave useless advice',
  async () => {
    const server = await startServer(demo())
    const client = await Client.connect(overSocket(server.url))
    expect((await client.initialize())['agentInfo'].version).toBe(packageJson.version)
    const { error } = await client.ask('session/load', { sessionId: 'sess_never', cwd: '/project', mcpServers: [] })
    expect(error).toMatchObject({ code: -32002, message: 'There is no session "sess_never"' })
    expect((await client.say('sess_never', 'x'))['error'].message).toContain('load or resume it first')
  },
)

verifies('acp-1.permission', 'who loads a session in mid-answer was asked what had been answered', async () => {
  let go = (): void => undefined
  const gate = new Promise<void>((resolve) => (go = resolve))
  const agent = defineAgent('asks', async function* (turn) {
    const { approved } = await turn.ask('x.approval.request', { message: 'May I?' })
    yield text(`approved: ${approved}`)
    await gate
    yield text('.')
  })
  const server = await startServer(agent)
  const allow = { 'session/request_permission': () => ({ outcome: { outcome: 'selected', optionId: 'allow' } }) }
  const client = await Client.connect(overSocket(server.url), allow)
  await client.initialize()
  const sessionId = await client.open()
  const prompt = client.say(sessionId, 'go')
  await client.next(({ params }) => params?.update?.content?.text === 'approved: true')
  const other = await ready(overSocket(server.url))
  await other.ask('session/load', { sessionId, cwd: '/project', mcpServers: [] })
  go()
  expect((await prompt)['result']).toMatchObject({ stopReason: 'end_turn' })
  await other.next(({ params }) => params?.update?.content?.text?.endsWith('.') === true)
  expect(other.heard.filter(({ method }) => method === 'session/request_permission')).toEqual([])
})
