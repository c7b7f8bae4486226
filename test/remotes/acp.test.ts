import { execFileSync } from 'node:child_process'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Logger } from '../../src/core/ports/transport.ts'
import { Client, overSocket } from '../acp/wire.ts'
import { ask } from '../openai/support.ts'
import { serving } from '../cli/run.ts'
import { say } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overSse, overWebSocket, type Wire } from '../support/wire.ts'
import { AGENT, deltas, isAlive, place, started, told } from './acp/started.ts'

verifies('acp-remote.prompt', 'everything that it says, and a conversation in one session', async () => {
  const { wire } = await started()
  const first = await say(wire, 'everything')
  expect(first.find(({ type }) => type === 'thinking')).toMatchObject({ content: 'Hm.' })
  expect(first.find(({ type }) => type === 'x.plan')).toMatchObject({
    entries: [{ content: 'Do it', status: 'pending', priority: 'high' }],
  })
  expect(deltas(first, 'tool_call')).toMatchObject([{ tool_call: { id: 'c1', name: 'Edit_a_ts', arguments: '{"path":"a.ts"}' } }])
  expect(deltas(first, 'tool_progress')).toMatchObject([
    { tool_progress: { call_id: 'c1', text: 'Edit a.ts', data: { acp: { title: 'Edit a.ts', kind: 'edit' } } } },
    { tool_progress: { call_id: 'c1', text: 'half' } },
  ])
  expect(deltas(first, 'tool_result')).toMatchObject([
    {
      tool_result: {
        call_id: 'c1',
        status: 'completed',
        data: { acp: { content: [{ type: 'diff', newText: 'b' }], locations: [{ path: '/a.ts' }] } },
      },
    },
  ])
  expect(deltas(first, 'image')).toMatchObject([{ image: 'aaaa', format: 'png' }])
  expect(first.at(-1)).toMatchObject({ type: 'response.done', response: { usage: { cost: { total_cost: 0.5 } } } })
  const second = told(await say(wire, 'and again'))
  expect(second.prompts).toEqual(['everything', 'and again'])
  expect(wire.heard.findLast(({ type }) => type === 'capabilities')?.['capabilities'].extensions.uamp.commands).toEqual([
    { name: 'fix', description: 'Repairs it' },
  ])
})

verifies('acp-remote.prompt', 'a conversation that comes along whole, and one that it has not heard', async () => {
  const { server } = await started()
  const talk = async (...texts: readonly string[]): Promise<string> => {
    const messages = texts.map((content, index) => ({ role: index % 2 === 0 ? 'user' : 'assistant', content }))
    return (await ask(`${server.url}/v1/chat/completions`, { model: 'coder', messages })).body.choices[0].message.content as string
  }
  const first = await talk('one')
  const second = await talk('one', first, 'two')
  expect(JSON.parse(second)).toMatchObject({ prompts: ['one', 'two'] })
  const other = await talk('red', 'Fine', 'blue')
  expect(JSON.parse(other)).toMatchObject({ prompts: ['The conversation so far:\nuser: red\nassistant: Fine\n\nNow:\nblue'] })
})

verifies('acp-remote.prompt', 'two conversations that begin with the same words are two', async () => {
  const { server } = await started()
  const talk = async (...texts: readonly string[]): Promise<string> => {
    const messages = texts.map((content, index) => ({ role: index % 2 === 0 ? 'user' : 'assistant', content }))
    return (await ask(`${server.url}/v1/chat/completions`, { model: 'coder', messages })).body.choices[0].message.content as string
  }
  const [first, second] = [await talk('hi'), await talk('hi')]
  const { session } = JSON.parse(first) as { session: string }
  expect(JSON.parse(second)).not.toMatchObject({ session })
  expect(JSON.parse(await talk('hi', first, 'and'))).toMatchObject({ session, prompts: ['hi', 'and'] })
})

verifies('acp-remote.choices', 'commands that come in one piece with the answer are not lost', async () => {
  const { wire } = await started({ args: [AGENT, '--eager'] })
  await say(wire, 'hello')
  expect(wire.heard.findLast(({ type }) => type === 'capabilities')?.['capabilities'].extensions.uamp.commands).toEqual([{ name: 'soon' }])
})

verifies('acp-remote.prompt', 'how it ends', async () => {
  const { wire } = await started()
  expect((await say(wire, 'fail')).at(-1)).toMatchObject({
    type: 'response.error',
    error: { code: 'provider_error', message: 'out of ink', details: { remote_code: 'no_ink' } },
  })
  expect((await say(wire, 'sign')).at(-1)).toMatchObject({
    type: 'response.error',
    error: { message: expect.stringContaining('sign in') as string },
  })
  expect((await say(wire, 'long')).at(-1)).toMatchObject({
    type: 'response.done',
    response: { extensions: { uamp: { stop_reason: 'length' } } },
  })
})

const BINDINGS = { WebSocket: overWebSocket, SSE: overSse }
for (const [binding, connect] of Object.entries(BINDINGS)) {
  verifies('acp-remote.permission', `asks our client: ${binding}`, async () => {
    const { server } = await started()
    const wire: Wire = await connect(server.url)
    await wire.open()
    const answers = [
      [{ approved: true }, 'yes'],
      [{ approved: true, option: 'ever' }, 'ever'],
      [{ approved: false }, 'no'],
    ] as const
    for (const [answer, option] of answers) {
      const saying = say(wire, 'permission')
      const asked = await wire.next('x.approval.request')
      // Its question holds no more than the id of the call: people approved `{}`.
      expect(asked['tool_call']).toEqual({ id: 'p1', name: 'May_I_', arguments: '{"all":true}' })
      expect(asked).toMatchObject({ message: 'May I?', options: [{ id: 'yes' }, { id: 'ever', kind: 'allow_always' }, { id: 'no' }] })
      await wire.send({ type: 'x.approval.response', approval_id: asked['approval_id'], ...answer })
      expect(told(await saying)).toEqual({ outcome: { outcome: 'selected', optionId: option } })
    }
    const contradiction = say(wire, 'permission')
    const asked = await wire.next('x.approval.request')
    await wire.send({ type: 'x.approval.response', approval_id: asked['approval_id'], approved: false, option: 'yes' })
    expect(told(await contradiction)).toEqual({ outcome: { outcome: 'cancelled' } })
  })
}

verifies('acp-remote.permission', 'and a client of ACP is asked as it was put', async () => {
  const { server } = await started()
  const client = await Client.connect(overSocket(server.url), {
    'session/request_permission': () => ({ outcome: { outcome: 'selected', optionId: 'ever' } }),
  })
  await client.initialize()
  await client.say(await client.open(), 'permission')
  expect(client.text).toContain('"optionId":"ever"')
  const request = client.heard.find(({ method }) => method === 'session/request_permission')
  expect(request?.['params'].toolCall).toMatchObject({ toolCallId: 'p1', title: 'May I?', rawInput: { all: true } })
  expect(request?.['params'].options).toEqual([
    { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
    { optionId: 'ever', name: 'Ever', kind: 'allow_always' },
    { optionId: 'no', name: 'No', kind: 'reject_once' },
  ])
})

verifies('acp-remote.permission', 'a call that shows only a diff, and only with the question, was approved unseen', async () => {
  const { server } = await started()
  const client = await Client.connect(overSocket(server.url), {
    'session/request_permission': () => ({ outcome: { outcome: 'selected', optionId: 'yes' } }),
  })
  await client.initialize()
  await client.say(await client.open(), 'diff')
  const request = client.heard.findIndex(({ method }) => method === 'session/request_permission')
  const diff = { type: 'diff', path: '/a.ts', newText: 'b' }
  expect(client.heard[request]?.['params'].toolCall.rawInput).toEqual({ locations: [{ path: '/a.ts' }], content: [diff] })
  // The client shows the diff before it asks.
  expect(client.heard.slice(0, request).map(({ params }) => params?.update as unknown)).toContainEqual(
    expect.objectContaining({ sessionUpdate: 'tool_call_update', toolCallId: 'd1', content: [diff] }),
  )
})

verifies('acp-remote.cancel', 'a cancel stops it there, and its session goes on', async () => {
  const { wire } = await started()
  await say(wire, 'hello')
  const waiting = say(wire, 'wait')
  await wire.next(({ delta }) => delta?.text === 'waiting')
  await wire.send({ type: 'response.cancel' })
  expect((await waiting).at(-1)?.type).toBe('response.cancelled')
  expect(told(await say(wire, 'and now')).prompts).toEqual(['hello', 'wait', 'CANCELLED', 'and now'])
})

verifies('acp-remote.folder', 'files in the folder, and none beside it', async () => {
  const { wire, folder, outside } = await started()
  await writeFile(join(folder, 'a.txt'), 'one\ntwo\nthree')
  await writeFile(join(outside, 'secret.txt'), 'secret')
  await mkdir(join(outside, 'elsewhere'))
  await symlink(join(outside, 'secret.txt'), join(folder, 'link.txt'))
  await symlink(outside, join(folder, 'up'))
  await symlink(join(outside, 'elsewhere', 'new.txt'), join(folder, 'dangling.txt'))
  await symlink(join(folder, 'a.txt'), join(folder, 'inner.txt'))
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  expect(told(await say(wire, `read ${folder}/a.txt`)).result.content).toBe('one\ntwo\nthree')
  expect(told(await say(wire, `read ${folder}/inner.txt`)).result.content).toBe('one\ntwo\nthree')
  for (const path of [
    `${outside}/secret.txt`,
    `${folder}/../secret.txt`,
    `${folder}/link.txt`,
    `${folder}/up/secret.txt`,
    `${folder}-other/x`,
    '/etc/hostname',
    'a.txt',
    folder,
    pipe,
    `${folder}/none.txt`,
  ]) {
    expect([path, told(await say(wire, `read ${path}`)).error?.code]).toEqual([path, expect.any(Number)])
  }
  expect(told(await say(wire, `write ${folder}/deep/er/b.txt hi`)).result).toEqual({})
  expect(await readFile(join(folder, 'deep/er/b.txt'), 'utf8')).toBe('hi')
  expect(told(await say(wire, `write ${folder}/inner.txt changed`)).result).toEqual({})
  expect(await readFile(join(folder, 'a.txt'), 'utf8')).toBe('changed')
  for (const path of [
    `${outside}/x.txt`,
    `${folder}/../x.txt`,
    `${folder}/link.txt`,
    `${folder}/up/x.txt`,
    `${folder}/up/new/x.txt`,
    `${folder}/dangling.txt`,
    pipe,
  ]) {
    expect([path, told(await say(wire, `write ${path} gotcha`)).error?.code]).toEqual([path, expect.any(Number)])
  }
  expect(await readFile(join(outside, 'secret.txt'), 'utf8')).toBe('secret')
  expect(
    execFileSync('find', [outside, '-newer', join(folder, 'deep/er/b.txt'), '-name', '*.txt', '-not', '-path', `${folder}/*`]).toString(),
  ).toBe('')
})

verifies(['acp-remote.folder', 'acp-remote.terminal'], 'what is not allowed is not there', async () => {
  const { wire, folder } = await started({ write: false, terminal: false })
  expect(told(await say(wire, `write ${folder}/a.txt hi`)).error.code).toBe(-32601)
  expect(told(await say(wire, 'run {"command":"true"}')).error.code).toBe(-32601)
})

verifies('acp-remote.terminal', 'commands begin in the folder', async () => {
  const { wire, folder, outside } = await started()
  const run = async (command: object) => told(await say(wire, `run ${JSON.stringify(command)}`))
  expect(await run({ command: 'pwd', args: ['-P'] })).toEqual({
    exit: { exitCode: 0, signal: null },
    shown: { output: `${folder}\n`, truncated: false, exitStatus: { exitCode: 0, signal: null } },
    after: -32002,
  })
  expect((await run({ command: 'echo $GREETING; exit 3', env: [{ name: 'GREETING', value: 'hi' }] })).shown).toMatchObject({
    output: 'hi\n',
    exitStatus: { exitCode: 3 },
  })
  expect((await run({ command: 'printf', args: ['äöüäöü'], outputByteLimit: 5 })).shown).toMatchObject({ output: 'öü', truncated: true })
  expect((await run({ command: 'no-such-program', args: ['x'] })).exit).toMatchObject({ exitCode: 127 })
  expect((await run({ command: 'pwd', cwd: outside })).error.code).toBe(-32602)
})

verifies('acp-remote.restart', 'it dies, and is started again: the conversation is told to it', async () => {
  const { wire } = await started()
  await say(wire, 'hello')
  expect((await say(wire, 'die')).at(-1)).toMatchObject({
    type: 'response.error',
    error: { code: 'provider_error', message: 'The agent "coder" has ended with 7' },
  })
  const { prompts } = told(await say(wire, 'back?'))
  expect(prompts).toHaveLength(1)
  expect(prompts[0]).toContain('user: hello')
  expect(prompts[0]).toMatch(/back\?$/)
})

verifies('acp-remote.restart', 'one that can load its sessions goes on in them', async () => {
  let noticed: () => void = () => undefined
  const gone = new Promise<void>((resolve) => (noticed = resolve))
  const log: Logger = (_, message) => message === 'An ACP agent is gone' && noticed()
  const { wire, agent } = await started({ args: [AGENT, '--load'], log })
  const { session } = told(await say(wire, 'hello'))
  const pid = Number(/^s(\d+)-/.exec(session as string)?.[1])
  process.kill(pid, 'SIGKILL')
  await expect.poll(() => isAlive(pid)).toBe(false)
  await gone
  expect(told(await say(wire, 'again'))).toMatchObject({ session, prompts: ['hello', 'again'] })
  await agent.close()
})

verifies('acp-remote.stop', 'when it is closed, everything that it started has ended', async () => {
  const { wire, agent } = await started()
  const { pids } = told(await say(wire, 'start')) as { pids: number[] }
  expect(pids.every(isAlive)).toBe(true)
  await agent.close()
  await expect.poll(() => pids.filter(isAlive)).toEqual([])
  expect((await say(wire, 'hello')).at(-1)).toMatchObject({ type: 'response.error', error: { code: 'agent_offline' } })
})

verifies('acp-remote.choices', 'modes and models, chosen by a client of ACP', async () => {
  const { server } = await started()
  const client = await Client.connect(overSocket(server.url))
  await client.initialize()
  const sessionId = await client.open()
  await client.say(sessionId, 'hello')
  await client.update('config_option_update')
  await client.ask('session/set_mode', { sessionId, modeId: 'code' })
  await client.ask('session/set_config_option', { sessionId, configId: 'model', value: 'large' })
  await client.say(sessionId, 'and now')
  expect(client.text).toContain('"mode":"ask","model":"small"')
  expect(client.text).toContain('"mode":"code","model":"large"')
})

verifies(['acp-remote.prompt', 'acp-remote.stop'], 'from a config, with nothing of our environment but what it names', async () => {
  const folder = await place()
  const config = {
    agents: [{ name: 'coder', remote: { acp: { command: process.execPath, args: [AGENT], folder: '.', env: { SECRET: '${MINE}' } } } }],
  }
  await writeFile(join(folder, 'uamp.config.json'), JSON.stringify(config))
  const { cli, url } = await serving([], { cwd: folder, env: { UAMP_DATA: 'memory', MINE: 'named', OTHER: 'hidden' } })
  const wire = await overWebSocket(url)
  await wire.open()
  expect(told(await say(wire, 'hello'))).toMatchObject({ env: 'named' })
  const { pids } = told(await say(wire, 'start')) as { pids: number[] }
  await cli.signalUntilExit('SIGTERM')
  await expect.poll(() => pids.filter(isAlive)).toEqual([])
})

verifies('acp-remote.prompt', 'a program that is not there, or speaks something else', async () => {
  const { wire } = await started({ command: '/nowhere/at/all' })
  expect((await say(wire, 'hello')).at(-1)).toMatchObject({
    type: 'response.error',
    error: { code: 'provider_error', message: 'The agent "coder" could not be started' },
  })
  const other = await started({ command: 'cat', args: [] })
  expect((await say(other.wire, 'hello')).at(-1)).toMatchObject({ type: 'response.error', error: { code: 'provider_error' } })
})
