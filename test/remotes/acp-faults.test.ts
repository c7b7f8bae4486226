import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Client, overSocket } from '../acp/wire.ts'
import { ask } from '../openai/support.ts'
import { say, textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket, type Heard } from '../support/wire.ts'
import { begin } from './plain.ts'
import { AGENT, deltas, isAlive, started, told } from './acp/started.ts'

const failureOf = (events: readonly Heard[]): unknown => events.at(-1)?.['error']

/** Chat Completions, with the texts of user and assistant in turn. */
function talker(url: string) {
  return async (...texts: readonly string[]): Promise<string> => {
    const messages = texts.map((content, index) => ({ role: index % 2 === 0 ? 'user' : 'assistant', content }))
    return (await ask(`${url}/v1/chat/completions`, { model: 'coder', messages })).body.choices[0].message.content as string
  }
}

/** Says something, and does not read what is answered. */
async function unread(url: string, content: string) {
  const asking = request(`${url}/v1/chat/completions`, { method: 'POST', headers: { 'content-type': 'application/json' } })
  onTestFinished(() => void asking.destroy())
  asking.end(JSON.stringify({ model: 'coder', stream: true, messages: [{ role: 'user', content }] }))
  const [response] = (await once(asking, 'response')) as [IncomingMessage]
  return { asking, response }
}

verifies('acp-remote.prompt', 'a client that does not read does not stop the agent for others, and its prompt is given up', async () => {
  const { server, wire, folder } = await started()
  const { response } = await unread(server.url, 'flood 100000')
  expect(told(await say(wire, 'hello')).prompts).toEqual(['hello'])
  await expect.poll(() => existsSync(join(folder, 'stopped')), { timeout: 4_000 }).toBe(true)
  expect(told(await say(wire, 'are you there')).prompts).toEqual(['hello', 'are you there'])
  let text = ''
  for await (const chunk of response) text += String(chunk)
  expect(text.slice(-1000)).toContain('bytes of it waited to be read')
})

verifies('acp-remote.prompt', 'two conversations of one user do not become one', async () => {
  const { server, wire } = await started()
  const talk = talker(server.url)
  const hello = await say(wire, 'hello')
  const { session } = told(hello)
  await say(wire, 'my secret is 42')
  // Another one that began with the same words, and one that knows how the first of them began.
  expect(told(await say(wire, 'which session')).session).toBe(session)
  for (const before of ['quite another answer', textOf(hello)]) {
    const other = JSON.parse(await talk('hello', before, 'which session')) as { session: string; prompts: string[] }
    expect(other.session).not.toBe(session)
    expect(other.prompts.join()).not.toContain('secret')
  }
  expect(told(await say(wire, 'and now')).prompts).toEqual(['hello', 'my secret is 42', 'which session', 'and now'])
})

verifies(
  'acp-remote.prompt',
  'whoever brings a conversation along takes it over: the session it was held in has it no longer',
  async () => {
    const { server, wire } = await started()
    const talk = talker(server.url)
    const hello = await say(wire, 'hello')
    const { session } = told(hello)
    expect(JSON.parse(await talk('hello', textOf(hello), 'my secret is 42'))).toMatchObject({ session })
    const next = told(await say(wire, 'what do you know'))
    expect(next.session).not.toBe(session)
    expect(next.prompts.join()).not.toContain('secret')
  },
)

test('Responses that go on from the same one go on in sessions of their own', async () => {
  const { server } = await started()
  const respond = async (input: string, previous_response_id?: string) => {
    const { body } = await ask(`${server.url}/v1/responses`, {
      model: 'coder',
      input,
      ...(previous_response_id && { previous_response_id }),
    })
    return { id: body.id as string, said: JSON.parse(body.output[0].content[0].text as string) as { session: string; prompts: string[] } }
  }
  const first = await respond('one')
  const second = await respond('two', first.id)
  const third = await respond('three', first.id)
  expect(second.said).toEqual({ ...first.said, prompts: ['one', 'two'] })
  expect(third.said.session).not.toBe(first.said.session)
  expect(third.said.prompts.join()).not.toContain('two')
})

for (const fault of ['hang-initialize', 'hang-new']) {
  verifies('acp-remote.stop', `an agent that hangs (${fault}) does not keep us from ending`, async () => {
    const { agent, folder, wire } = await started({ args: [AGENT, `--${fault}`] })
    const answer = await begin(wire, 'hello')
    const pid = (): Promise<number> => readFile(join(folder, 'pid'), 'utf8').then(Number, () => 0)
    await expect.poll(pid).toBeGreaterThan(0)
    await agent.close()
    expect(isAlive(await pid())).toBe(false)
    expect((await answer.end()).at(-1)).toMatchObject({ type: 'response.error' })
  })
}

verifies('acp-remote.cancel', 'a turn that is cancelled while the agent hangs leaves nothing behind', async () => {
  const { wire } = await started({ args: [AGENT, '--hang-new'] })
  const answer = await begin(wire, 'hello')
  await wire.next('response.created')
  await wire.send({ type: 'response.cancel' })
  expect((await answer.end()).at(-1)?.type).toBe('response.cancelled')
})

for (const how of ['release', 'close'])
  verifies('acp-remote.terminal', `what a command left behind does not survive its terminal: ${how}`, async () => {
    const { wire, agent } = await started()
    const { exit, pid } = told(await say(wire, `background ${how}`))
    // The command has ended, though what it started has its output.
    expect(exit).toEqual({ exitCode: 0, signal: null })
    if (how === 'close') {
      expect(isAlive(pid as number)).toBe(true)
      await agent.close()
    }
    await expect.poll(() => isAlive(pid as number)).toBe(false)
  })

verifies('acp-remote.prompt', 'an agent whose user must sign in says so, wherever it notices', async () => {
  const message = 'The agent wants its user to sign in: Authentication required'
  const opening = await started({ args: [AGENT, '--sign-in'] })
  expect(failureOf(await say(opening.wire, 'hello'))).toMatchObject({ code: 'provider_error', message })
  const { wire } = await started({ args: [AGENT, '--sign-in-to-choose'] })
  const chosen = { response: { extensions: { uamp: { mode: 'code' } } } }
  await say(wire, 'hello')
  expect(failureOf(await say(wire, 'hello', { create: chosen }))).toMatchObject({ code: 'provider_error', message })
  // It has not heard that, but is told now.
  expect(told(await say(wire, 'again')).prompts).toEqual(['hello', 'helloagain'])
})

verifies('acp-remote.restart', 'an agent that has closed its output fails its prompt, and is started again', async () => {
  const { wire } = await started()
  await say(wire, 'hello')
  expect(failureOf(await say(wire, 'deaf'))).toMatchObject({ code: 'provider_error' })
  expect(told(await say(wire, 'back?')).prompts).toHaveLength(1)
})

verifies('acp-remote.prompt', 'answers that nest too deep, or have an error that is null, are answers', async () => {
  const { wire } = await started()
  expect(failureOf(await say(wire, 'deep'))).toMatchObject({ code: 'provider_error' })
  expect(textOf(await say(wire, 'null'))).toBe('both')
})

verifies('acp-remote.folder', 'a limit of no lines gives none', async () => {
  const { wire, folder } = await started()
  await writeFile(join(folder, 'a.txt'), 'one\ntwo\nthree')
  const read = async (range: object) =>
    told(await say(wire, `read ${JSON.stringify({ path: `${folder}/a.txt`, ...range })}`)).result.content
  expect(await read({ limit: 0 })).toBe('')
  expect(await read({ line: 2, limit: 1 })).toBe('two')
  expect(await read({ line: 2 })).toBe('two\nthree')
})

verifies('acp-remote.prompt', 'an answer to initialize that is none is told in one line', async () => {
  const { wire } = await started({ args: [AGENT, '--odd-initialize'] })
  expect(failureOf(await say(wire, 'hello'))).toEqual({
    code: 'provider_error',
    message: '"coder" answered "initialize" with something that is no ACP',
  })
})

verifies('acp-remote.prompt', 'a client of ACP sees a call under its own title and kind, and why the prompt ended', async () => {
  const { server } = await started()
  const client = await Client.connect(overSocket(server.url))
  await client.initialize()
  const sessionId = await client.open()
  const answer = client.say(sessionId, 'tool')
  const { params } = await client.next(({ params: given }) => given?.update?.toolCallId === 't1' && given.update.title === 'Read file')
  expect(params.update).toMatchObject({ kind: 'search' })
  client.send({ method: 'session/cancel', params: { sessionId } })
  expect((await answer)['result']).toMatchObject({ stopReason: 'cancelled' })
})

verifies('acp-remote.prompt', 'why it stopped is kept for those who know more reasons', async () => {
  const { wire } = await started()
  expect((await say(wire, 'stop max_turn_requests')).at(-1)?.['response'].extensions).toEqual({
    uamp: { stop_reason: 'length' },
    acp: { stopReason: 'max_turn_requests' },
  })
  expect((await say(wire, 'stop refusal')).at(-1)?.['response'].extensions).toEqual({ uamp: { stop_reason: 'content_filter' } })
})

verifies('acp-remote.permission', 'a call that was denied has failed', async () => {
  const { wire } = await started()
  const answer = await begin(wire, 'permission')
  const { approval_id } = await wire.next('x.approval.request')
  await wire.send({ type: 'x.approval.response', approval_id, approved: false })
  expect(deltas(await answer.end(), 'tool_result')).toMatchObject([{ tool_result: { call_id: 'p1', status: 'failed', is_error: true } }])
})

verifies('acp-remote.permission', 'a question that nobody has read when the turn is left is answered all the same', async () => {
  const { server, folder } = await started()
  const { asking } = await unread(server.url, 'unread')
  await expect.poll(() => existsSync(join(folder, 'asked'))).toBe(true)
  asking.destroy()
  await expect.poll(() => readFile(join(folder, 'outcome'), 'utf8').catch(() => undefined)).toBe('cancelled')
})

verifies('acp-remote.restart', 'a prompt for a program that has just died is put to the next one', async () => {
  const { wire } = await started({ args: [AGENT, '--load'] })
  const { session } = told(await say(wire, 'hello'))
  const pid = Number(/^s(\d+)-/.exec(session as string)?.[1])
  process.kill(pid, 'SIGKILL')
  // In one turn of the event loop: nobody has noticed yet.
  while (isAlive(pid));
  expect(told(await say(wire, 'again'))).toMatchObject({ session, prompts: ['hello', 'again'] })
})

verifies('acp-remote.prompt', 'each turn cost what the whole session had cost', async () => {
  const { wire } = await started()
  const costs: unknown[] = []
  for (const cost of [1, 2, 4]) costs.push((await say(wire, `cost ${cost}`)).at(-1)?.['response'].usage.cost.total_cost)
  expect(costs).toEqual([1, 2, 4])
})

verifies('acp-remote.terminal', 'more terminals than are allowed were opened at once', async () => {
  const { wire } = await started()
  expect(told(await say(wire, 'terminals'))).toEqual({ made: 32, refused: 8 })
})

verifies('acp-remote.stop', 'an agent that did not answer any more was asked for ever', async () => {
  const { server, wire } = await started({ args: [AGENT, '--hang-second'], timeoutMs: 1_000 })
  const waiting = await begin(wire, 'wait')
  await wire.next('response.delta')
  const other = await overWebSocket(server.url)
  await other.open()
  expect(failureOf(await say(other, 'hello'))).toMatchObject({ code: 'timeout' })
  expect(failureOf(await waiting.end())).toMatchObject({ code: 'provider_error' })
  expect(told(await say(other, 'hello again')).prompts.join()).toContain('hello again')
})
