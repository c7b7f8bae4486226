/** What becomes of answers while the token of our client ends, over both links: nothing is lost, and nothing comes twice. */
import { expect } from 'vitest'
import type { ConnectOptions } from '../../src/client/node.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { asked, client, counting, EndingTokens, guest, TRANSPORTS, type Kind } from './client-world.ts'
import { identityServer } from './support.ts'

const SOON = 700
const LONG = { timeout: 20_000 }

/** A server with an agent that counts, and a client of Alice, whose function for tokens is the test's. */
async function world(transport: Kind, token: (access: EndingTokens, call: number) => string | Promise<string>, options: Settings = {}) {
  const { graceSeconds = 60, reconnect } = options
  const access = new EndingTokens(graceSeconds)
  const { agent, all, enough } = counting()
  const { port } = await startServer(agent, { access })
  let calls = 0
  const made = await client(port, { transport, token: () => token(access, ++calls), ...(reconnect && { reconnect }) })
  return { ...made, access, all, enough, calls: () => calls }
}

interface Settings {
  readonly graceSeconds?: number
  readonly reconnect?: Exclude<ConnectOptions['reconnect'], false>
}

for (const transport of TRANSPORTS) {
  verifies('identity:time:client', `${transport}: in mid-answer, tokens are replaced before the server wants it`, async () => {
    // The server would take each of them for ever, so it asks for none.
    const given: string[] = []
    const {
      client: alice,
      access,
      all,
      enough,
      statuses,
      sockets,
    } = await world(transport, (tokens) => {
      given.push(tokens.give('alice', { saysIn: 1_200 }))
      return given.at(-1) ?? ''
    })
    const { whole } = asked(await alice.session(), 'alice')
    await expect.poll(() => access.shown.length, LONG).toBeGreaterThanOrEqual(3)
    enough()
    expect(await whole).toEqual(all('alice'))
    expect(access.shown).toEqual(given.slice(0, access.shown.length))
    expect(statuses).toEqual(['connecting', 'open'])
    expect(sockets).toHaveLength(transport === 'websocket' ? 1 : 0)
  })

  verifies('identity:time:client', `${transport}: an answer outlives several tokens of a server’s own`, async () => {
    const { agent, all, enough } = counting()
    const server = await identityServer({ access: { graceSeconds: 1 } })
    server.agents.add(agent)
    const given: string[] = []
    const token = async (): Promise<string> => {
      given.push(await server.mint({ ttlSeconds: 2 }))
      return given.at(-1) ?? ''
    }
    const { client: alice } = await client(server.port, { transport, token, agent: 'counting' })
    const { whole } = asked(await alice.session(), 'alice')
    await expect.poll(() => given.length, LONG).toBeGreaterThanOrEqual(4)
    enough()
    expect(await whole).toEqual(all('alice'))
  })

  verifies('identity:time:client-late', `${transport}: the server says in mid-answer that the token has expired`, async () => {
    const {
      client: alice,
      access,
      all,
      enough,
      statuses,
      sockets,
    } = await world(transport, (tokens, call) => tokens.give('alice', call < 4 ? { endsIn: SOON } : {}))
    const session = await alice.session()
    const seen: string[] = []
    const watching = (async () => {
      for await (const { type } of session) seen.push(type)
    })()
    const { whole } = asked(session, 'alice')
    await expect.poll(() => access.shown.length, LONG).toBe(4)
    enough()
    expect(await whole).toEqual(all('alice'))
    expect(statuses).toEqual(['connecting', 'open'])
    expect(sockets).toHaveLength(transport === 'websocket' ? 1 : 0)
    alice.close()
    await watching
    expect(seen.filter((type) => /error|end$/.test(type))).toEqual([])
  })

  verifies('identity:time:client-late', `${transport}: the next token comes only after the grace is over`, async () => {
    let release: () => void = () => undefined
    const held = new Promise<void>((resolve) => (release = resolve))
    const {
      client: alice,
      access,
      all,
      enough,
      statuses,
    } = await world(
      transport,
      async (tokens, call) => {
        if (call > 1) await held
        return tokens.give('alice', call === 1 ? { endsIn: SOON } : {})
      },
      { graceSeconds: 0.1 },
    )
    const { whole } = asked(await alice.session(), 'alice')
    await expect.poll(() => statuses.includes('reconnecting'), LONG).toBe(true)
    release()
    await expect.poll(() => access.shown.length, LONG).toBe(2)
    enough()
    expect(await whole).toEqual(all('alice'))
  })

  verifies('identity:time:client-late', `${transport}: the network is gone while the token expires`, async () => {
    const {
      client: alice,
      access,
      all,
      enough,
      proxy,
      statuses,
      calls,
    } = await world(transport, (tokens, call) => tokens.give('alice', call === 1 ? { endsIn: SOON } : {}), {
      reconnect: { attempts: 1_000 },
    })
    const answer = asked(await alice.session(), 'alice')
    await answer.begun()
    proxy.door = 'shut'
    proxy.cut()
    await expect.poll(() => access.hasEnded(access.shown[0])).toBe(true)
    expect(calls()).toBe(1)
    proxy.door = 'open'
    await expect.poll(() => access.shown.length, LONG).toBe(2)
    enough()
    expect(await answer.whole).toEqual(all('alice'))
    expect(statuses).toContain('reconnecting')
  })

  verifies(
    ['identity:time:client-late', 'identity:time:client-failing'],
    `${transport}: when it comes back, the function hangs`,
    async () => {
      const {
        client: alice,
        access,
        all,
        enough,
        proxy,
      } = await world(
        transport,
        (tokens, call) => (call === 2 ? new Promise<string>(() => undefined) : tokens.give('alice', call === 1 ? { endsIn: SOON } : {})),
        { reconnect: { attempts: 1_000, idleMs: 1_000 } },
      )
      const answer = asked(await alice.session(), 'alice')
      await answer.begun()
      proxy.door = 'shut'
      proxy.cut()
      await expect.poll(() => access.hasEnded(access.shown[0])).toBe(true)
      proxy.door = 'open'
      await expect.poll(() => access.shown.length, LONG).toBe(2)
      enough()
      expect(await answer.whole).toEqual(all('alice'))
    },
  )

  verifies('identity:time:client-late', `${transport}: tokens end again and again, and the network is cut in between`, async () => {
    const {
      client: alice,
      access,
      all,
      enough,
      proxy,
      statuses,
    } = await world(transport, (tokens, call) => tokens.give('alice', call < 8 ? { endsIn: 200 } : {}), {
      graceSeconds: 0.05,
      reconnect: { attempts: 1_000 },
    })
    const { whole } = asked(await alice.session(), 'alice')
    for (let tokens = 2; tokens <= 8; tokens++) {
      await expect.poll(() => access.shown.length, LONG).toBeGreaterThanOrEqual(tokens)
      if (tokens % 2 === 0) proxy.cut()
    }
    enough()
    expect(await whole).toEqual(all('alice'))
    expect(statuses).toContain('reconnecting')
  })

  verifies('identity:time:client-late', `${transport}: a token that was taken, but whose answer was lost, ends, too`, async () => {
    const {
      client: alice,
      access,
      all,
      enough,
      proxy,
    } = await world(transport, (tokens, call) => tokens.give('alice', call < 3 ? { endsIn: SOON } : {}), { reconnect: { attempts: 1_000 } })
    const answer = asked(await alice.session(), 'alice')
    await answer.begun()
    proxy.door = 'shut'
    proxy.cut()
    await expect.poll(() => access.hasEnded(access.shown[0])).toBe(true)
    access.onShown = () => void (proxy.downstream = 'lose')
    proxy.door = 'open'
    await expect.poll(() => access.shown.length, LONG).toBe(2)
    proxy.door = 'shut'
    proxy.cut()
    await expect.poll(() => access.hasEnded(access.shown[1])).toBe(true)
    access.onShown = () => undefined
    proxy.downstream = 'pass'
    proxy.door = 'open'
    await expect.poll(() => access.shown.length, LONG).toBe(3)
    enough()
    expect(await answer.whole).toEqual(all('alice'))
  })

  verifies('identity:time:client-late', `${transport}: a first token that is too old is replaced once`, async () => {
    const { client: alice, calls } = await world(transport, (tokens, call) => (call === 1 ? 'too old' : tokens.give('alice')))
    await alice.session()
    expect(calls()).toBe(2)
    const other = await world(transport, () => `wrong-${crypto.randomUUID()}`)
    await expect(other.client.session()).rejects.toMatchObject({ code: 'unauthorized' })
    expect(other.calls()).toBe(2)
  })

  verifies('identity:time:client-failing', `${transport}: a function that fails is called again, and the answer goes on`, async () => {
    const {
      client: alice,
      all,
      enough,
      access,
      calls,
    } = await world(transport, (tokens, call) => {
      if (call === 2 || call === 3) throw new Error('Nobody is logged in')
      return tokens.give('alice', call === 1 ? { endsIn: SOON } : {})
    })
    const { whole } = asked(await alice.session(), 'alice')
    await expect.poll(() => access.shown.length, LONG).toBe(2)
    enough()
    expect(await whole).toEqual(all('alice'))
    expect(calls()).toBe(4)
  })

  verifies('identity:time:client-failing', `${transport}: a function that hangs is called again, and the answer goes on`, async () => {
    const {
      client: alice,
      all,
      enough,
      access,
    } = await world(
      transport,
      (tokens, call) => (call === 2 ? new Promise<string>(() => undefined) : tokens.give('alice', call === 1 ? { endsIn: SOON } : {})),
      { reconnect: { idleMs: 1_000 } },
    )
    const { whole } = asked(await alice.session(), 'alice')
    await expect.poll(() => access.shown.length, LONG).toBe(2)
    enough()
    expect(await whole).toEqual(all('alice'))
  })

  const NONE = {
    fails: (): Promise<string> => Promise.reject(new Error('Nobody is logged in')),
    hangs: (): Promise<string> => new Promise<string>(() => undefined),
  }
  for (const [how, none] of Object.entries(NONE)) {
    verifies('identity:time:client-failing', `${transport}: where the function ${how} for ever, the client gives up`, async () => {
      const settings = { graceSeconds: 0.1, reconnect: { attempts: 2, idleMs: 1_000 } }
      const {
        client: alice,
        statuses,
        calls,
      } = await world(transport, (tokens, call) => (call === 1 ? tokens.give('alice', { endsIn: SOON }) : none()), settings)
      const { whole } = asked(await alice.session(), 'alice')
      await expect(whole).rejects.toMatchObject({ code: 'unreachable', message: 'There is no token' })
      expect(statuses.at(-1)).toBe('closed')
      expect(calls()).toBeGreaterThanOrEqual(3)
    })
  }
}

verifies(
  ['identity:time:client', 'identity:time:others'],
  'sessions of others on the same socket, with tokens of their own, are not affected',
  async () => {
    const { agent, all, enough } = counting()
    const server = await identityServer({ access: { graceSeconds: 1 } })
    server.agents.add(agent)
    const token = (): Promise<string> => server.mint({ ttlSeconds: 2 })
    const behind = await client(server.port, { transport: 'websocket', token, agent: 'counting' })
    const answer = asked(await behind.client.session(), 'alice')
    const bob = await guest(behind, await server.mint({ subject: 'bob' }), 'counting')
    bob.ask('bob')
    // Nobody refreshes it. Once it has ended here, so would have the first token of Alice, which is older.
    const carol = await guest(behind, await server.mint({ subject: 'carol', ttlSeconds: 2 }), 'counting')
    carol.ask('carol')
    expect(await carol.hears('session.end')).toMatchObject({ reason: 'token_expired' })
    enough()
    expect(await answer.whole).toEqual(all('alice'))
    await bob.hears('response.done')
    expect(bob.numbers()).toEqual(all('bob'))
    expect(bob.mine().filter(({ type }) => /^session\.(error|end|updated)$/.test(type))).toEqual([])
    expect(behind.sockets).toHaveLength(1)
  },
)

verifies('identity:time:client', 'the end of somebody else’s token on the same socket costs this client none', async () => {
  const behind = await world('websocket', (tokens) => tokens.give('alice'), { graceSeconds: 0.1 })
  const { whole } = asked(await behind.client.session(), 'alice')
  const carol = await guest(behind, behind.access.give('carol', { endsIn: SOON }), 'counting')
  await carol.hears('session.error')
  await carol.hears('session.end')
  behind.enough()
  expect(await whole).toEqual(behind.all('alice'))
  expect(behind.calls()).toBe(1)
})

verifies('identity:time:client-late', 'a session that is opened where the token has just ended waits for the next one', async () => {
  let fails = true
  const behind = await world(
    'websocket',
    (tokens, call) => {
      if (call > 1 && fails) throw new Error('Nobody is logged in')
      return tokens.give('alice', call === 1 ? { endsIn: SOON } : {})
    },
    { graceSeconds: 0.1 },
  )
  const { client: alice, all, enough, heard, sockets } = behind
  const first = await alice.session()
  const answer = asked(first, 'alice')
  // Keeps the socket open when Alice has none of hers left on it.
  await guest(behind, behind.access.give('bob'), 'counting')
  const mine = (type: string) => heard.some((event) => event.type === type && event['session_id'] === first.id)
  await expect.poll(() => mine('session.end'), LONG).toBe(true)
  const opening = alice.session()
  // It was refused, and has not told anybody.
  await expect
    .poll(() => heard.some((event) => event.type === 'session.error' && event['error'].details?.event_id !== undefined))
    .toBe(true)
  fails = false
  const second = asked(await opening, 'second')
  enough()
  expect(await answer.whole).toEqual(all('alice'))
  expect(await second.whole).toEqual(all('second'))
  expect(sockets).toHaveLength(1)
})
