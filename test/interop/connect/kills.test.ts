/** Either end is killed in the middle of answers: every caller gets an end, and the name goes on. */
import { OpenAI, type APIError } from 'openai'
import { expect } from 'vitest'
import { finished, project, serving } from '../../cli/run.ts'
import { isEnd, textOf } from '../../support/talk.ts'
import { verifies } from '../../support/verifies.ts'
import { overWebSocket } from '../../support/wire.ts'
import { assembled, say, statesOf, type Update } from '../a2a/client.ts'
import { jsonRpc1 } from '../a2a/generation-1.ts'
import { asked, CALLER, connecting, counted, hostFolder, OTHER, startHost } from './places.ts'

function openaiOf(url: string): OpenAI {
  return new OpenAI({ baseURL: `${url}/agents/counter/v1`, apiKey: CALLER, maxRetries: 0 })
}

const user = (content: string) => ({ model: 'counter', messages: [{ role: 'user' as const, content }] })

/** Callers of several protocols in the middle of an answer without end. */
async function callers(url: string) {
  const openai = openaiOf(url)
  const wire = await asked(url, 'forever events')
  await wire.next(({ delta }) => delta?.text === '20 ')
  const stream = await openai.chat.completions.create({ ...user('forever stream'), stream: true })
  const chunks = stream[Symbol.asyncIterator]()
  await chunks.next()
  const streamed = (async () => {
    while (!(await chunks.next()).done);
  })()
  const whole = openai.chat.completions.create(user('forever whole'))
  const client = await jsonRpc1.connect(`${url}/agents/counter`)
  const updates = client.stream(say('forever a2a'))[Symbol.asyncIterator]()
  const seen: Update[] = []
  while (assembled(seen) === '') seen.push((await updates.next()).value as Update)
  const task = (async () => {
    for (let next = await updates.next(); !next.done; next = await updates.next()) seen.push(next.value)
    return seen
  })()
  // Told of below.
  for (const each of [streamed, whole, task]) each.catch(() => undefined)
  return { wire, streamed, whole, task }
}

const OFFLINE = { code: 'agent_offline', details: { agent: 'counter', retry_after: expect.any(Number) as number } }
/** How clients of OpenAI are told. */
const AS_OPENAI = { code: 'model_not_found', message: expect.stringContaining('offline') as string }

verifies(
  ['connect.window', 'connect.offline'],
  'kill -9 of the connecting process: every caller is told, and the next is, too',
  async () => {
    const host = await startHost('limits: { resumeWindowMs: 1500 }\n')
    const cli = await connecting(host.url)
    const { wire, streamed, whole, task } = await callers(host.url)
    await cli.prints(/run forever whole for/)
    cli.signal('SIGKILL')

    expect(await wire.next(isEnd)).toMatchObject({ type: 'response.error', error: OFFLINE })
    await expect(streamed).rejects.toMatchObject(AS_OPENAI)
    await expect(whole).rejects.toMatchObject({ ...AS_OPENAI, status: 404 })
    const updates = await task
    expect(statesOf(updates).at(-1)).toBe('failed')
    expect(JSON.stringify(updates.at(-1))).toContain('offline')

    // Whoever asks now is told at once, and when to come back.
    const next = (await openaiOf(host.url)
      .chat.completions.create(user('count 3'))
      .catch((thrown: unknown) => thrown)) as APIError
    expect(next).toMatchObject({ ...AS_OPENAI, status: 404 })
    expect(Number(next.headers?.get('retry-after'))).toBeGreaterThan(0)
    const cwd = await project()
    const chat = await finished(['chat', `${host.url}/agents/counter`, '-q', 'count 3'], { cwd, env: { HOME: cwd, UAMP_TOKEN: CALLER } })
    expect(chat.code).toBe(3)
    expect(chat.stderr).toContain('offline')

    // The name is kept for its owner.
    await expect(connecting(host.url, { token: OTHER })).rejects.toThrow(/The name "counter" is taken/)
    await connecting(host.url)
    const { choices } = await openaiOf(host.url).chat.completions.create(user('count 100'))
    expect(choices[0]?.message.content).toBe(counted(100))
  },
)

verifies(
  ['connect.restarted', 'connect.offline'],
  'kill -9 and a new process at once: callers of the first do not wait for the window',
  async () => {
    const host = await startHost()
    const cli = await connecting(host.url)
    const { wire, streamed, whole, task } = await callers(host.url)
    await cli.prints(/run forever whole for/)
    cli.signal('SIGKILL')
    await cli.exit()
    const again = await connecting(host.url)
    expect(await wire.next(isEnd)).toMatchObject({ type: 'response.error', error: OFFLINE })
    await expect(streamed).rejects.toMatchObject(AS_OPENAI)
    await expect(whole).rejects.toMatchObject(AS_OPENAI)
    expect(statesOf(await task).at(-1)).toBe('failed')
    await wire.send({ type: 'input.text', text: 'count 5' })
    await wire.send({ type: 'response.create' })
    await wire.next('response.done')
    expect(textOf(wire.heard)).toMatch(/ 1 2 3 4 5$/)
    expect(again.runs).toEqual(['count 5'])
  },
)

verifies(
  ['connect.reconnect', 'connect.cancel'],
  'kill -9 of the host, and its restart: agents come back, and old answers end',
  async () => {
    const cwd = await hostFolder()
    const args = ['--allow-anonymous', '--log-level', 'error', '--data', 'data']
    const host = await serving(args, { cwd })
    const cli = await connecting(host.url)
    const { wire, streamed, whole, task } = await callers(host.url)
    await cli.prints(/run forever whole for/)
    const seen = wire.heard.at(-1)?.['seq'] as number
    host.cli.signal('SIGKILL')
    await host.cli.exit()
    for (const each of [streamed, whole, task]) await expect(each).rejects.toThrow()
    await cli.prints(/Not connected to ws:\S+: .*Trying again/)

    const { port } = new URL(host.url)
    const after = await serving([...args, '--port', port], { cwd })
    expect(after.url).toBe(host.url)
    await cli.prints(/Connected to ws:\S+ again/)
    // Nobody waits for these any more.
    for (const name of ['events', 'stream', 'whole', 'a2a']) await cli.prints(new RegExp(`cancelled ${name}\\.`))

    const back = await overWebSocket(host.url, { token: CALLER })
    await back.follow(wire.session, seen)
    const end = await back.next(isEnd)
    expect(end).toMatchObject({ type: 'response.error', error: { code: 'interrupted' } })
    expect(end['seq']).toBeGreaterThan(seen)
    back.close()
    const { choices } = await openaiOf(host.url).chat.completions.create(user('count 100'))
    expect(choices[0]?.message.content).toBe(counted(100))
  },
)
