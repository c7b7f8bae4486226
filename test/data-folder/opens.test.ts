import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { BINDINGS, user as message } from '../a2a/v1-wire.ts'
import { Client, overSocket } from '../acp/wire.ts'
import { run, user } from '../ag-ui/wire.ts'
import { demo } from '../../src/agents/demo/index.ts'
import { OmniaClient } from '../omnia/omnia-client.ts'
import { client as responses, textOf as answerOf } from '../openai/responses-wire.ts'
import { startServer } from '../support/server.ts'
import { isEnd, textOf } from '../support/talk.ts'
import { overSse, overWebSocket, type Wire } from '../support/wire.ts'

/** The key of the second folder: all zeros. The first was written before there were keys. */
const KEY = `uamp-key-1:${'A'.repeat(43)}\n`
const FOLDERS = ['written-by-0.1.0', 'written-in-format-2'] as const

interface Facts {
  readonly at: number
  readonly bob: string
  readonly events: string
  readonly eventsSeq: number
  readonly gathered: string
  readonly acp: string
  readonly responses: { readonly first: string; readonly second: string; readonly background: string }
  readonly a2a: { readonly done: string; readonly context: string; readonly waiting: string; readonly running: string }
  readonly agUi: { readonly answer: readonly object[]; readonly interrupt: string }
  readonly omnia?: { readonly session: string; readonly ref: string }
}

const tokens = { alice: 'alice-has-a-long-secret', bob: 'bob-has-a-long-secret-too' }
const token = tokens.alice
const headers = { authorization: `Bearer ${token}` }

/** The session remembers ids of events, also those that the folder's writer used: these are new. */
async function say(wire: Wire, text: string): Promise<string> {
  const from = wire.heard.length
  expect(await wire.send({ type: 'input.text', event_id: crypto.randomUUID(), text })).toBeUndefined()
  expect(await wire.send({ type: 'response.create', event_id: crypto.randomUUID() })).toBeUndefined()
  await wire.next((event) => isEnd(event) && wire.heard.indexOf(event) >= from)
  return textOf(wire.heard.slice(from))
}

describe.each(FOLDERS)('a folder %s', (folder) => {
  const file = (name: string): Buffer => readFileSync(new URL(`${folder}/${name}`, import.meta.url))
  const facts = JSON.parse(file('facts.json').toString()) as Facts

  // Sessions are kept for days, and the folder stays in the repository for longer: here it is the minute after it was written.
  beforeAll(() => {
    vi.useFakeTimers({ toFake: ['Date'], now: facts.at + 60_000, shouldAdvanceTime: true })
    return () => vi.useRealTimers()
  })

  /** A copy of the folder as the killed server left it. */
  function copied(): string {
    const data = mkdtempSync(join(tmpdir(), 'uamp-test-'))
    onTestFinished(() => rmSync(data, { recursive: true, force: true, maxRetries: 5 }))
    for (const name of ['uamp.db', 'uamp.db-wal']) writeFileSync(join(data, name), gunzipSync(file(`${name}.gz`)), { mode: 0o600 })
    mkdirSync(join(data, 'blobs'), { mode: 0o700 })
    writeFileSync(join(data, 'uamp.key'), KEY, { mode: 0o600 })
    if (facts.omnia) {
      const id = facts.omnia.ref.split('/med-').at(-1)
      const name = createHash('sha256').update(`default/omnia/media/${id}`).digest('hex')
      writeFileSync(join(data, 'blobs', name), file('upload.bin'), { mode: 0o600 })
    }
    return data
  }

  const serve = (data: string) => startServer(demo(), { data, tokens, outbound: { allow: ['127.0.0.1'] } })
  const opened = () => serve(copied())

  test.each([folder].filter((name) => name === 'written-in-format-2'))('without its key %s is refused, and stays as it is', async () => {
    const data = copied()
    const key = join(data, 'uamp.key')
    for (const [text, told] of [
      [undefined, /were sealed with the key \w+, but there is no uamp\.key/],
      [KEY.replace('AA', 'BB'), /were sealed with the key \w+, but this is/],
    ] as const) {
      rmSync(key)
      if (text !== undefined) writeFileSync(key, text, { mode: 0o600 })
      await expect(serve(data)).rejects.toThrow(told)
      expect(existsSync(key)).toBe(text !== undefined)
      // SQLite file format §1.3: `user_version`.
      expect(readFileSync(join(data, 'uamp.db')).readUInt32BE(60)).toBe(2)
      writeFileSync(key, KEY, { mode: 0o600 })
    }
    const wire = await overWebSocket((await serve(data)).url, { token })
    await wire.follow(facts.gathered, 0)
    expect(await say(wire, '/history')).toBe('user: said before anything was asked /history')
  })

  for (const [binding, connect] of [
    ['WebSocket', overWebSocket],
    ['SSE', overSse],
  ] as const) {
    test(`events over ${binding}: the unfinished response is interrupted, its reader is told, and the conversation goes on`, async () => {
      const { url } = await opened()
      const wire = await connect(url, { token })
      await wire.follow(facts.events, facts.eventsSeq)
      const end = await wire.next(isEnd)
      expect(end).toMatchObject({ type: 'response.error', error: { code: 'interrupted' } })
      expect(end['seq']).toBeGreaterThan(facts.eventsSeq)
      const history = (await say(wire, '/history')).split('\n')
      expect(history.slice(0, 3)).toEqual([
        'user: remember the word swordfish',
        'assistant: You said: remember the word swordfish',
        'user: /count 100000 2',
      ])
      expect(history[3]).toMatch(/^assistant: 1 2 3 .* 60\b/)
      expect(history[4]).toBe('user: said in between /history')
    })
  }

  test('events: an input that no response has used yet is used by the next', async () => {
    const { url } = await opened()
    const wire = await overWebSocket(url, { token })
    await wire.follow(facts.gathered, 0)
    expect(await say(wire, '/history')).toBe('user: said before anything was asked /history')
  })

  test('events: a session of another principal is theirs alone', async () => {
    const { url } = await opened()
    const alice = await overWebSocket(url, { token })
    await expect(alice.follow(facts.bob, 0)).rejects.toMatchObject({ refusal: { error: { code: 'not_found' } } })
    const bob = await overWebSocket(url, { token: tokens.bob })
    await bob.follow(facts.bob, 0)
    expect(await say(bob, '/history')).toContain('user: this is between us')
  })

  test('Responses: stored ones are found, continued and deleted, and the one in the background has failed', async () => {
    const { url } = await opened()
    const api = responses(url, { token })
    const { first, second, background } = facts.responses
    expect(answerOf((await api.get(first)).body)).toBe('You said: my number is 7')
    expect((await api.get(background)).body).toMatchObject({ status: 'failed' })
    const { body } = await api.ask({ model: 'demo', input: '/history', previous_response_id: second })
    expect(answerOf(body).split('\n').slice(0, 4)).toEqual([
      'user: my number is 7',
      'assistant: You said: my number is 7',
      'user: and my letter is q',
      'assistant: You said: and my letter is q',
    ])
    expect((await api.remove(first)).status).toBe(200)
    expect((await api.get(first)).status).toBe(404)
  })

  test('A2A: an ended task is there, a waiting one is answered, a running one has failed, and its context goes on', async () => {
    const { url } = await opened()
    const a2a = BINDINGS[0][1](url)
    const call = async (operation: string, params: object) => (await a2a.call(operation, params, headers)).result
    const { done, context, waiting, running } = facts.a2a
    expect((await call('GetTask', { id: done })).status.state).toBe('TASK_STATE_COMPLETED')
    expect((await call('GetTask', { id: running })).status).toMatchObject({
      state: 'TASK_STATE_FAILED',
      message: { metadata: { code: 'interrupted' } },
    })
    const { configs } = await call('ListTaskPushNotificationConfigs', { taskId: running })
    expect(configs).toMatchObject([{ id: 'hook', url: 'http://127.0.0.1:9/hook' }])
    const answered = await call('SendMessage', { message: message('yes', { taskId: waiting }) })
    expect(JSON.stringify(answered.task.artifacts)).toContain('Approved: the plan')
    const next = await call('SendMessage', { message: message('/history', { contextId: context }) })
    expect(JSON.stringify(next.task.artifacts)).toContain('user: hello from a2a')
  })

  test('AG-UI: a thread goes on, and an open interrupt is resumed', async () => {
    const { url } = await opened()
    const { answer, interrupt } = facts.agUi
    const next = await run(url, [user('u1', 'hello thread'), ...answer, user('u3', '/history')], {
      headers,
      input: { threadId: 'thread-1' },
    })
    expect(next.said.split('\n')).toEqual(['user: hello thread', 'assistant: You said: hello thread', 'user: /history'])
    const resume = [{ interruptId: interrupt, status: 'resolved', payload: true }]
    expect((await run(url, [user('u2', '/approve it')], { headers, input: { threadId: 'thread-2', resume } })).said).toBe('Approved: it')
  })

  test.each(facts.omnia ? [facts.omnia] : [])(
    'Omnia: a session is resumed, by its id and by its name, and an upload is there',
    async ({ session, ref }) => {
      const { url } = await opened()
      const resume = (id: string) => OmniaClient.open(url, { headers, path: `/omnia?agent=demo&resume=${id}` })
      const client = await resume(session)
      expect(client.heard[0]).toMatchObject({ session_id: session, connected: { resumed: true } })
      // How much of it was heard that folder does not tell.
      expect((await client.next('done'))['content']).toContain('hello from omnia')
      expect((await client.say('/history')).at(-1)?.['content']).toContain('user: hello from omnia')
      const place = ref.replace('omnia://sessions/', '').replace('/media/', '/')
      const upload = await fetch(`${url}/media/download/${place}`, { headers })
      expect(await upload.text()).toBe('the bytes of an upload')
      const named = await resume('chosen-by-client')
      await named.next('done')
      expect((await named.say('/history')).at(-1)?.['content']).toContain('user: a name of my own')
    },
  )

  test('ACP: a session is loaded with what was said, and goes on', async () => {
    const { url } = await opened()
    const client = await Client.connect(overSocket(url, { headers }))
    await client.initialize()
    const loaded = await client.ask('session/load', { sessionId: facts.acp, cwd: '/project', mcpServers: [] })
    expect(loaded['error']).toBeUndefined()
    expect(client.text).toContain('You said: hello from an editor')
    await client.say(facts.acp, '/history')
    expect(client.text).toContain('user: hello from an editor')
  })
})
