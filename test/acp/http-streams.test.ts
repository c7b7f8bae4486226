/** ACP over HTTP: what its streams may hold, and for how long. */
import { expect, onTestFinished } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import { sseParser } from '../../src/wire/sse-parse.ts'
import { heldBytes, startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import type { Heard } from './wire.ts'

interface Listening {
  readonly heard: Heard[]
  /** Resolves at the end of the stream. */
  readonly over: Promise<void>
  leave(): void
}

/** A client that opens the streams that it is told to, and no other. */
async function connect(url: string) {
  const call = (method: string, headers: Record<string, string>, body?: object): Promise<Response> =>
    fetch(`${url}/acp`, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body && { body: JSON.stringify(body) }),
    })
  const opening = await call('POST', {}, { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: 1 } })
  const connection = { 'acp-connection-id': opening.headers.get('acp-connection-id') ?? '' }
  let last = 0
  let wake = (): void => undefined
  const listen = async (session?: string): Promise<Listening> => {
    const gone = new AbortController()
    onTestFinished(() => gone.abort())
    const headers = { ...connection, accept: 'text/event-stream', ...(session !== undefined && { 'acp-session-id': session }) }
    const response = await fetch(`${url}/acp`, { headers, signal: gone.signal })
    if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
    const heard: Heard[] = []
    const read = async (): Promise<void> => {
      const parse = sseParser()
      const decoder = new TextDecoder()
      for await (const chunk of response.body ?? []) {
        heard.push(...parse(decoder.decode(chunk as Uint8Array, { stream: true })).map(({ data }) => JSON.parse(data) as Heard))
        wake()
      }
    }
    return { heard, over: read().catch(() => undefined), leave: () => gone.abort() }
  }
  const main = await listen()
  const next = async ({ heard }: Listening, fits: (message: Heard) => boolean): Promise<Heard> => {
    for (;;) {
      const found = heard.find(fits)
      if (found) return found
      await new Promise<void>((resolve) => (wake = resolve))
    }
  }
  const post = async (method: string, params: { sessionId?: string; [field: string]: unknown }): Promise<number | string> => {
    const { sessionId } = params
    const headers = { ...connection, ...(sessionId !== undefined && { 'acp-session-id': sessionId }) }
    const { status } = await call('POST', headers, { jsonrpc: '2.0', id: ++last, method, params })
    return status === 202 ? last : `refused: ${status}`
  }
  /** Answered on the stream of the connection, where nobody reads that of the session. */
  const ask = async (method: string, params: object, on = main): Promise<Heard> => {
    const id = await post(method, params as { sessionId?: string })
    if (typeof id === 'string') throw new Error(id)
    return next(on, (message) => message['id'] === id)
  }
  const open = async (): Promise<string> => (await ask('session/new', { cwd: '/project', mcpServers: [] }))['result'].sessionId as string
  const prompt = (sessionId: string, words: string) => ({ sessionId, prompt: [{ type: 'text', text: words }] })
  return { main, listen, post, ask, open, prompt, next }
}

/** Says so many characters in pieces, and tells when it has said them all. */
function talkative(characters: number): { agent: AgentPort; said: () => Promise<void> } {
  const ended: (() => void)[] = []
  let count = 0
  const agent = defineAgent('talkative', async function* () {
    for (let left = characters; left > 0; left -= 10_000) yield text('x'.repeat(Math.min(left, 10_000)))
    count++
    for (const resolve of ended.splice(0)) resolve()
  })
  let seen = 0
  const said = async (): Promise<void> => {
    seen++
    while (count < seen) await new Promise<void>((resolve) => ended.push(resolve))
  }
  return { agent, said }
}

verifies(['acp-1.http', 'acp-1.close'], 'streams of closed sessions were never freed, and the 257th session had none', async () => {
  const { url } = await startServer(talkative(10).agent)
  const client = await connect(url)
  for (let n = 0; n < 260; n++) {
    const sessionId = await client.open()
    const stream = await client.listen(sessionId)
    await client.ask('session/prompt', client.prompt(sessionId, 'go'), stream)
    await client.ask('session/close', { sessionId }, stream)
    stream.leave()
    await stream.over
  }
})

verifies('acp-1.http', 'streams of sessions that never were did not go when their readers did', async () => {
  const { url } = await startServer(talkative(10).agent)
  const client = await connect(url)
  for (let n = 0; n < 260; n++) {
    const stream = await client.listen(`nobody-${n}`)
    stream.leave()
    await stream.over
  }
})

verifies(['acp-1.http', 'acp-1.delete'], 'what nobody read of deleted sessions was kept', async () => {
  const { agent, said } = talkative(3_000_000)
  const { url } = await startServer(agent)
  const client = await connect(url)
  for (let n = 0; n < 10; n++) {
    const sessionId = await client.open()
    await client.post('session/prompt', client.prompt(sessionId, 'go'))
    await said()
    await client.ask('session/list', {})
    expect((await client.ask('session/delete', { sessionId }))['result']).toEqual({})
  }
})

verifies('acp-1.http', 'what nobody read had no bound: the connection is closed, and told why', async () => {
  const { agent, said } = talkative(3_000_000)
  const { url, logged } = await startServer(agent)
  const client = await connect(url)
  for (let n = 0; n < 10; n++) {
    const opening = await client.post('session/new', { cwd: '/project', mcpServers: [] })
    if (typeof opening === 'string') break
    const answer = await client.next(client.main, ({ id, error }) => id === opening || (id === null && error !== undefined))
    if (answer['error']) break
    // The agent is not held up by who does not read.
    if (typeof (await client.post('session/prompt', client.prompt(answer['result'].sessionId as string, 'go'))) === 'number') await said()
  }
  await client.main.over
  expect(client.main.heard.at(-1)).toMatchObject({
    id: null,
    error: { code: -32005, message: expect.stringContaining('read the streams of all sessions') as string },
  })
  expect(await client.post('session/list', {})).toBe('refused: 404')
  expect(logged).toContainEqual(expect.objectContaining({ message: 'Closed a connection that nobody reads' }))
})

verifies(['acp-1.http', 'acp-1.load'], 'a long session that was loaded before its stream was read hung', async () => {
  const { agent } = talkative(3_000_000)
  const { url } = await startServer(agent)
  const first = await connect(url)
  const sessionId = await first.open()
  await first.ask('session/prompt', first.prompt(sessionId, 'go'), await first.listen(sessionId))
  const second = await connect(url)
  expect((await second.ask('session/load', { sessionId, cwd: '/project', mcpServers: [] }))['result']).toEqual({})
  const stream = await second.listen(sessionId)
  await second.next(stream, ({ params }) => params?.update?.sessionUpdate === 'agent_message_chunk')
  const length = (): number => stream.heard.map(({ params }) => (params?.update?.content?.text ?? '') as string).join('').length
  while (length() < 3_000_000) await second.next(stream, () => length() >= 3_000_000)
})

verifies('acp-1.http-errors', 'an unknown method without a connection is not there, rather than in want of a header', async () => {
  const { url } = await startServer(talkative(10).agent)
  const post = async (method: string): Promise<Heard> => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 'a', method })
    return (await (await fetch(`${url}/acp`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })).json()) as Heard
  }
  expect(await post('weather/tell')).toMatchObject({ id: 'a', error: { code: -32601 } })
  expect(await post('session/list')).toMatchObject({ error: { code: -32602, message: expect.stringContaining('header') as string } })
})

verifies('acp-1.http', 'what nobody read was no held memory, and each message of it is far larger than what it says', async () => {
  const agent = defineAgent('words', async function* () {
    for (let n = 0; n < 30_000; n++) yield text('x')
  })
  const { url } = await startServer(agent, { limits: { heldBytesPerPrincipal: 2 * 1024 * 1024 } })
  const client = await connect(url)
  await client.post('session/prompt', client.prompt(await client.open(), 'go'))
  await expect
    .poll(() => client.main.heard.at(-1), { timeout: 10_000 })
    .toMatchObject({
      id: null,
      error: { message: expect.stringContaining('too much in memory') as string },
    })
  await client.main.over
  await expect.poll(() => heldBytes(url), { timeout: 10_000 }).toBeLessThan(500_000)
})
