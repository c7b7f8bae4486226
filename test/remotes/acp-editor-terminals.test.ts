import { expect } from 'vitest'
import { Client, overSocket, type Heard } from '../acp/wire.ts'
import { verifies } from '../support/verifies.ts'
import { started } from './acp/started.ts'

const MIB = 1024 * 1024

/** An editor whose terminals say what a test wants. They have the ids that our own terminals have. */
async function editor(url: string, answers: Record<string, (params: Heard) => unknown> = {}) {
  const asked: (readonly [string, Heard])[] = []
  let last = 0
  const said: Record<string, (params: Heard) => unknown> = {
    'terminal/create': () => ({ terminalId: `term_${++last}` }),
    'terminal/output': () => ({ output: 'of the editor', truncated: false }),
    'terminal/wait_for_exit': () => ({ exitCode: 3, signal: null }),
    'terminal/kill': () => ({}),
    'terminal/release': () => ({}),
    ...answers,
  }
  const noted = Object.entries(said).map(([method, answer]) => {
    return [method, (params: Heard) => (asked.push([method, params]), answer(params))] as const
  })
  const client = await Client.connect(overSocket(url), Object.fromEntries(noted))
  await client.initialize({ terminal: true })
  const sessionId = await client.open()
  const ask = async (steps: readonly (readonly [string, object?])[]): Promise<Heard[]> => {
    const before = client.text.length
    await client.say(sessionId, `ask ${JSON.stringify(steps)}`)
    return JSON.parse(client.text.slice(before)) as Heard[]
  }
  return { client, sessionId, asked, ask, methods: () => asked.map(([method]) => method) }
}

const OF = { terminalId: '$' }

verifies('acp-remote.editor-terminal', 'every method of a terminal is that of the editor, under an id of its own', async () => {
  const { server, folder } = await started()
  const { ask, asked, sessionId, client } = await editor(server.url)
  const env = [{ name: 'A', value: 'b' }]
  const answers = await ask([
    ['terminal/create', { command: 'make', args: ['all'], env, cwd: `${folder}/src`, outputByteLimit: 10 }],
    ['show'],
    ['terminal/output', OF],
    ['terminal/wait_for_exit', OF],
    ['terminal/kill', OF],
    ['terminal/release', OF],
    ['terminal/output', OF],
  ])
  expect(asked).toEqual([
    ['terminal/create', { sessionId, command: 'make', args: ['all'], env, cwd: '/project/src', outputByteLimit: 10 }],
    ['terminal/output', { sessionId, terminalId: 'term_1' }],
    ['terminal/wait_for_exit', { sessionId, terminalId: 'term_1' }],
    ['terminal/kill', { sessionId, terminalId: 'term_1' }],
    ['terminal/release', { sessionId, terminalId: 'term_1' }],
  ])
  const [made, shown, exit, ...rest] = answers
  expect(made?.['terminalId']).not.toBe('term_1')
  expect(shown).toEqual({ output: 'the editor', truncated: true })
  expect(exit).toEqual({ exitCode: 3, signal: null })
  expect(rest).toMatchObject([{}, {}, { code: -32002, message: expect.stringContaining('There is no terminal') as unknown }])
  // The call of the agent shows the terminal by the editor's own name.
  const { params } = await client.next(({ params }) => params?.update?.content?.[0]?.type === 'terminal')
  expect(params.update).toMatchObject({ toolCallId: 'x1', content: [{ type: 'terminal', terminalId: 'term_1' }] })
  // An editor that loads the session has no such terminal.
  const later = await editor(server.url)
  await later.client.ask('session/load', { sessionId, cwd: '/project', mcpServers: [] })
  await later.client.next(({ params }) => params?.update?.toolCallId === 'x1')
  await later.client.say(sessionId, 'stop end_turn')
  expect(JSON.stringify(later.client.updates)).not.toContain('"terminal"')
})

verifies('acp-remote.editor-terminal', 'what the editor refuses is refused in its words, and nothing is asked that cannot be', async () => {
  const { server, outside } = await started()
  const refuse = (code: number, message: string) => () => Promise.reject(Object.assign(new Error(message), { code }))
  const { ask, methods } = await editor(server.url, { 'terminal/create': refuse(-32000, 'the user said no') })
  const answers = await ask([
    ['terminal/create', { command: 'ls' }],
    ['terminal/create', { command: '' }],
    ['terminal/create', { command: 'ls', cwd: outside }],
    ['terminal/create', { command: 'ls', cwd: 'relative' }],
    ['terminal/create', { command: 'ls', outputByteLimit: -1 }],
    ['terminal/output', { terminalId: 'term_1' }],
    ['terminal/kill', {}],
  ])
  expect(answers).toMatchObject([
    { message: expect.stringContaining('the user said no') as unknown },
    { code: -32602 },
    { code: -32602, message: expect.stringContaining('outside of the folder') as unknown },
    { code: -32602 },
    { code: -32602 },
    { code: -32002 },
    { code: -32602 },
  ])
  expect(methods()).toEqual(['terminal/create'])
})

verifies('acp-remote.editor-terminal', 'terminals and their output are bounded, and released when the prompt is over', async () => {
  const { server } = await started()
  const long = 'é'.repeat(MIB)
  const { client, sessionId, ask, asked, methods } = await editor(server.url, {
    'terminal/output': () => ({ output: long, truncated: false }),
  })
  const [, shown] = await ask([
    ['terminal/create', { command: 'yes', outputByteLimit: 100 * MIB }],
    ['terminal/output', OF],
  ])
  expect(asked[0]?.[1]).toMatchObject({ outputByteLimit: MIB })
  expect(Buffer.byteLength(shown?.['output'] as string)).toBe(MIB)
  expect(shown).toMatchObject({ truncated: true })
  await expect.poll(() => methods().at(-1)).toBe('terminal/release')
  await client.say(sessionId, 'terminals')
  expect(client.text).toContain('{"made":32,"refused":8}')
  const made = methods().filter((method) => method === 'terminal/create').length
  expect(made).toBe(33)
  await expect.poll(() => methods().filter((method) => method === 'terminal/release').length).toBe(33)
})

verifies('acp-remote.editor-terminal', 'a cancel reaches a terminal that runs, and one that is still being made', async () => {
  const { server } = await started()
  let make: (made: object) => void = () => undefined
  const held = new Promise<object>((resolve) => (make = resolve))
  let first = true
  const { client, sessionId, methods } = await editor(server.url, {
    'terminal/create': () => (first ? ((first = false), { terminalId: 'term_1' }) : held),
    'terminal/wait_for_exit': () => new Promise(() => undefined),
  })
  const running = client.say(sessionId, 'run {"command":"sleep","args":["1000"]}')
  await client.next(({ method }) => method === 'terminal/wait_for_exit')
  client.send({ method: 'session/cancel', params: { sessionId } })
  expect((await running)['result']).toMatchObject({ stopReason: 'cancelled' })
  await client.next(({ method, params }) => method === 'terminal/release' && params.terminalId === 'term_1')
  const making = client.say(sessionId, 'run {"command":"sleep","args":["1000"]}')
  await expect.poll(() => methods().filter((method) => method === 'terminal/create').length).toBe(2)
  client.send({ method: 'session/cancel', params: { sessionId } })
  expect((await making)['result']).toMatchObject({ stopReason: 'cancelled' })
  make({ terminalId: 'term_2' })
  await client.next(({ method, params }) => method === 'terminal/release' && params.terminalId === 'term_2')
})

verifies('acp-remote.editor-terminal', 'a session that is closed gives its terminals back', async () => {
  const { server } = await started()
  const { client, sessionId } = await editor(server.url, { 'terminal/wait_for_exit': () => new Promise(() => undefined) })
  void client.say(sessionId, 'run {"command":"sleep","args":["1000"]}')
  await client.next(({ method }) => method === 'terminal/wait_for_exit')
  await client.ask('session/close', { sessionId })
  await client.next(({ method, params }) => method === 'terminal/release' && params.terminalId === 'term_1')
})

verifies('acp-remote.editor-terminal', 'an editor without terminals is not asked for one', async () => {
  const { server, folder } = await started()
  const client = await Client.connect(overSocket(server.url))
  await client.initialize({ fs: { readTextFile: true } })
  await client.say(await client.open(), 'run {"command":"pwd"}')
  expect(client.text).toContain(folder)
  expect(client.heard.some(({ method }) => String(method).startsWith('terminal/'))).toBe(false)
})

verifies('acp-remote.editor-terminal', 'the operator who allows no commands allows none in the editor either', async () => {
  const { server } = await started({ terminal: false })
  const { ask, methods } = await editor(server.url)
  expect(await ask([['terminal/create', { command: 'ls' }]])).toMatchObject([{ code: -32601 }])
  expect(methods()).toEqual([])
})

verifies('acp-remote.editor-terminal', 'terminals of one editor are unknown to the agent in the session of another', async () => {
  const { server } = await started()
  // It is open as long as its prompt runs.
  const one = await editor(server.url, { 'terminal/wait_for_exit': () => new Promise(() => undefined) })
  const two = await editor(server.url)
  void one.client.say(one.sessionId, 'run {"command":"a"}')
  const { params } = await one.client.next(({ method }) => method === 'terminal/wait_for_exit')
  expect(params).toMatchObject({ terminalId: 'term_1' })
  expect(await two.ask([['terminal/output', OF], ['terminal/kill', OF]])).toMatchObject([{ code: -32002 }, { code: -32002 }]) // prettier-ignore
  expect(two.methods()).toEqual([])
})
