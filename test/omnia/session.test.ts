import { describe, expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { OmniaClient, typesOf, type Heard } from './omnia-client.ts'

const said = (messages: readonly Heard[]): unknown => messages.at(-1)?.['content']

describe('a session', () => {
  verifies('omnia.new-session', 'is begun by a message that names none, and told', async () => {
    const { url } = await startServer(demo())
    const client = await OmniaClient.open(url)
    const greeted = client.sessionId
    const first = await client.ask({ type: 'message', content: 'one' }, 'connected')
    // Nothing was said in the one of the greeting.
    expect(first['session_id']).toBe(greeted)
    await client.next('done')
    const second = await client.ask({ type: 'message', content: '/history' }, 'connected')
    expect(second['session_id']).not.toBe(greeted)
    expect(second['connected']).toMatchObject({ resumed: false, capabilities: { protocol_version: 1 } })
    expect((await client.next('done'))['content']).toBe('user: /history')
  })

  verifies('omnia.resume', 'goes on with its id, also on another connection, and back', async () => {
    const { url } = await startServer(demo())
    const client = await OmniaClient.open(url)
    const id = client.sessionId
    await client.say('one')
    const other = await OmniaClient.open(url)
    const own = other.sessionId
    expect(said(await other.say('/history', { session_id: id }))).toBe(
      'user: one assistant: You said: one user: /history'.replace(' assistant', '\nassistant').replace(' user: /', '\nuser: /'),
    )
    expect(said(await other.say('two', { session_id: own }))).toBe('You said: two')
    expect(typesOf(other.heard as Heard[]).filter((type) => type === 'connected')).toHaveLength(1)
  })

  verifies('omnia.expired', 'that is not there any more is replaced by a new one, which keeps the name', async () => {
    const { url } = await startServer(demo())
    const client = await OmniaClient.open(url)
    const greeting = await client.ask({ type: 'message', session_id: 'sess-of-yesterday', content: 'one' }, 'connected')
    expect(greeting['connected']).toMatchObject({ resumed: false })
    expect((await client.next('done'))['content']).toBe('You said: one')
    // A client that did not listen goes on in the same conversation, as one that did.
    for (const session_id of ['sess-of-yesterday', greeting['session_id']]) {
      expect(said(await client.say('/history', { session_id }))).toContain('user: one\n')
    }
    const other = await OmniaClient.open(url)
    expect(said(await other.say('/history', { session_id: 'sess-of-yesterday' }))).toContain('user: one\n')
    expect(typesOf(other.heard as Heard[]).filter((type) => type === 'connected')).toHaveLength(1)
  })

  verifies(
    ['omnia.expires', 'omnia.expired'],
    'that expires while its client is there is told as that; the next message begins a new one',
    async () => {
      const { url } = await startServer(demo(), { limits: { sessionTtlMs: 1_000, sweepMs: 50 } })
      const client = await OmniaClient.open(url)
      const expired = client.sessionId
      expect((await client.next('error'))['error']).toMatchObject({ code: 'SESSION_EXPIRED' })
      const greeting = await client.ask({ type: 'message', session_id: expired, content: 'two' }, 'connected')
      expect(greeting['session_id']).not.toBe(expired)
      expect(greeting['connected']).toMatchObject({ resumed: false })
      expect((await client.next('done'))['content']).toBe('You said: two')
    },
  )

  verifies('omnia.resume-owner', 'of somebody else is not found', async () => {
    const { url } = await startServer(demo(), { tokens: { alice: 'a-0123456789abcdef', bob: 'b-0123456789abcdef' } })
    const alice = await OmniaClient.open(url, { headers: { authorization: 'Bearer a-0123456789abcdef' } })
    await alice.say('secret')
    const headers = { authorization: 'Bearer b-0123456789abcdef' }
    const again = await OmniaClient.open(url, { headers, path: `/omnia?agent=demo&resume=${alice.sessionId}` })
    expect((again.heard[0] as Heard)['connected'].resumed).toBe(false)
    expect(again.sessionId).not.toBe(alice.sessionId)
    const bob = await OmniaClient.open(url, { headers })
    expect(said(await bob.say('/history', { session_id: alice.sessionId }))).toBe('user: /history')
    // For him the name is that of his own.
    expect(said(await alice.say('/history'))).toContain('user: secret')
  })

  verifies('omnia.resume-owner', 'of another agent is not gone on with', async () => {
    const { url } = await startServer([demo(), defineAgent('other', demo().run)])
    const client = await OmniaClient.open(url)
    await client.say('to the demo')
    const other = await OmniaClient.open(url, { path: '/omnia?agent=other' })
    expect(said(await other.say('/history', { session_id: client.sessionId }))).toBe('user: /history')
  })

  verifies('omnia.resume-call', 'goes on after a break with what was missed, each of it once', async () => {
    let go!: () => void
    const gate = new Promise<void>((resolve) => (go = resolve))
    const agent = defineAgent('demo', async function* () {
      yield { type: 'response.delta', delta: { type: 'text', text: 'before ' } }
      await gate
      yield { type: 'response.delta', delta: { type: 'text', text: 'after' } }
    })
    const { url } = await startServer(agent)
    const client = await OmniaClient.open(url)
    await client.ask({ type: 'message', content: 'hi' }, 'chunk')
    client.socket.terminate()
    await expect.poll(async () => (await fetch(`${url}/metrics`)).text()).toMatch(/sockets\S* 0$/m)
    go()
    await expect.poll(async () => (await fetch(`${url}/metrics`)).text()).toMatch(/responses\S* 0$/m)
    const back = await OmniaClient.open(url, { path: `/omnia?agent=demo&resume=${client.sessionId}` })
    await back.next('done')
    const [greeting, ...rest] = back.heard as Heard[]
    expect(greeting).toMatchObject({ session_id: client.sessionId, connected: { resumed: true } })
    expect(rest.map(({ type, content }) => [type, content as string])).toEqual([
      ['chunk', 'after'],
      ['done', 'before after'],
    ])
  })

  verifies('omnia.hangup', 'is hung up: what is said stops, the connection ends, the conversation stays', async () => {
    let stopped!: () => void
    const end = new Promise<void>((resolve) => (stopped = resolve))
    const agent = defineAgent('demo', async function* ({ messages, signal }) {
      if (messages.length > 1) return yield { type: 'response.delta', delta: { type: 'text', text: `${messages.length} messages` } }
      try {
        yield { type: 'response.delta', delta: { type: 'text', text: 'on and on' } }
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
      } finally {
        stopped()
      }
    })
    const { url } = await startServer(agent)
    const client = await OmniaClient.open(url)
    await client.ask({ type: 'message', content: 'hi' }, 'chunk')
    client.send({ type: 'hangup', session_id: client.sessionId })
    expect(await client.closed).toEqual({ code: 1000, reason: 'hangup' })
    await end
    const later = await OmniaClient.open(url)
    expect(said(await later.say('still there?', { session_id: client.sessionId }))).toBe('3 messages')
  })

  verifies('omnia.resume', 'of a protocol of one request and its reply is gone on with', async () => {
    const { url, gateway } = await startServer(demo())
    const principal = { id: 'anonymous', tenant: 'default', scopes: ['*'] }
    const config = { modalities: ['text' as const] }
    const init = { transport: 'test', agent: 'demo', principal, config, duplex: false, persist: true, onDetach: 'continue' } as const
    const { id } = await gateway.open(init)
    const client = await OmniaClient.open(url)
    for (const content of ['one', 'two']) expect(said(await client.say(content, { session_id: id }))).toBe(`You said: ${content}`)
    expect(typesOf(client.heard as Heard[]).filter((type) => type === 'connected')).toHaveLength(1)
  })

  verifies('omnia.resume', 'is the same that other protocols see', async () => {
    const { url } = await startServer(demo())
    const client = await OmniaClient.open(url)
    await client.say('over Omnia')
    const watcher = await fetch(`${url}/events`, {
      method: 'POST',
      headers: { 'x-session-id': client.sessionId, accept: 'text/event-stream' },
      body: JSON.stringify([{ type: 'input.text', text: '/history' }, { type: 'response.create' }]),
    })
    expect(await watcher.text()).toContain('over Omnia')
    // What was begun there is told here.
    expect((await client.next('done'))['content']).toContain('user: over Omnia')
  })
})
