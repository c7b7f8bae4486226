import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { remoteAgent, type RemoteAgentOptions } from '../../src/remotes/agent/index.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket } from '../support/wire.ts'
import { recorder } from './recorder.ts'

/** An agent that says which protocol it is asked over. */
const spoken = (protocols: readonly string[]) =>
  defineAgent(
    'far',
    async function* (turn) {
      yield turn.transport ?? 'none'
    },
    { protocols },
  )

async function near(options: Omit<RemoteAgentOptions, 'name'>) {
  const server = await startServer(remoteAgent({ name: 'near', ...options }))
  const wire = await overWebSocket(server.url)
  await wire.open()
  const ask = async () => {
    const events = await say(wire, 'hello')
    return { said: textOf(events), end: events.at(-1) }
  }
  return { server, ask, wire }
}

const ALL = ['completions', 'ag-ui', 'a2a', 'events']
for (const best of ALL) {
  verifies('discovery.best', `${best} is the best of those up to it, and is looked for once`, async () => {
    const far = await startServer(spoken(ALL.slice(0, ALL.indexOf(best) + 1)))
    const { url, sent } = await recorder(() => far.url)
    const { ask } = await near({ url: `${url}/agents/far` })
    expect(await ask()).toMatchObject({ said: best, end: { type: 'response.done' } })
    const before = sent.filter(({ path }) => /capabilities|models/.test(path)).length
    expect(await ask()).toMatchObject({ said: best })
    expect(sent.filter(({ path }) => /capabilities|models/.test(path))).toHaveLength(before)
  })
}

verifies('discovery.best', 'many turns at once look for it together', async () => {
  const far = await startServer(spoken(['completions']))
  const { url, sent } = await recorder(() => far.url)
  const { server } = await near({ url: `${url}/agents/far` })
  const turns = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const wire = await overWebSocket(server.url)
      await wire.open()
      return textOf(await say(wire, 'hello'))
    }),
  )
  expect(turns).toEqual(Array(6).fill('completions'))
  expect(sent.filter(({ path }) => path.endsWith('/v1/models'))).toHaveLength(1)
})

verifies('discovery.best', 'an agent by its name, at the root of a server', async () => {
  const far = await startServer([spoken(['a2a']), defineAgent('other', async function* () {})])
  const { ask } = await near({ url: far.url, agent: 'far' })
  expect(await ask()).toMatchObject({ said: 'a2a' })
})

verifies('discovery.best', 'a socket is UAMP events', async () => {
  const far = await startServer(spoken(['events']))
  const { ask } = await near({ url: `${far.url.replace('http', 'ws')}/agents/far` })
  expect(await ask()).toMatchObject({ said: 'events' })
})

verifies('discovery.changed', 'when the other side changes, another protocol is found, and the turn goes on', async () => {
  const far = await startServer(spoken(['events']))
  const { ask } = await near({ url: `${far.url}/agents/far` })
  expect(await ask()).toMatchObject({ said: 'events' })
  for (const protocol of ['a2a', 'ag-ui', 'completions', 'events']) {
    far.agents.add(spoken([protocol]))
    expect(await ask(), protocol).toMatchObject({ said: protocol, end: { type: 'response.done' } })
  }
})

/** A server that answers some paths with JSON. */
async function answering(answers: (url: string) => Readonly<Record<string, unknown>>, status = 404) {
  const server = createServer((request, response) => {
    const value = answers(url)[request.url ?? '']
    response.writeHead(value === undefined ? status : 200, { 'content-type': 'application/json', location: 'https://elsewhere.example/' })
    response.end(JSON.stringify(value ?? {}))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  onTestFinished(() => void server.close())
  return { url, close: () => new Promise((resolve) => server.close(resolve)) }
}

verifies('discovery.nothing', 'a server that speaks nothing, in words that help', async () => {
  for (const [status, why] of [
    [404, ''],
    [302, ': it redirects, .*'],
    [405, ''],
  ] as const) {
    const { url } = await answering(() => ({}), status)
    const { ask } = await near({ url })
    const message = expect.stringMatching(new RegExp(`^No protocol .*\\)${why}\\. Name it as \`protocol\`$`))
    expect((await ask()).end).toMatchObject({ type: 'response.error', error: { code: 'not_supported', message } })
  }
})

verifies('discovery.nothing', 'a server that refuses, is not well, or is not there', async () => {
  for (const [status, message] of [
    [401, 'refused the credentials. Give it a `token`'],
    [503, '503'],
  ] as const) {
    const { url } = await answering(() => ({}), status)
    const { ask } = await near({ url })
    expect((await ask()).end).toMatchObject({ type: 'response.error', error: { message: expect.stringContaining(message) } })
  }
  const gone = await answering(() => ({}))
  await gone.close()
  const { ask } = await near({ url: gone.url })
  expect((await ask()).end).toMatchObject({ type: 'response.error', error: { message: expect.stringContaining('cannot be reached') } })
})

verifies('discovery.nothing', 'a server whose token endpoint gives no token is not taken for one that speaks nothing', async () => {
  const clientSecret = 'near-0123456789abcdef'
  const far = await startServer(spoken(ALL), { access: { clients: { near: { secret: clientSecret, scopes: ['read'] } } } })
  for (const [wrong, why] of [
    [{ clientSecret, scope: 'admin' }, '400: invalid_scope'],
    [{ clientSecret: 'another-0123456789abcdef' }, '401'],
  ] as const) {
    const { ask } = await near({ url: far.url, auth: { type: 'client', clientId: 'near', ...wrong } })
    const message = `The token endpoint of "near" answered ${why}`
    expect((await ask()).end).toMatchObject({ type: 'response.error', error: { code: 'provider_error', message } })
  }
})

verifies('discovery.nothing', 'several models, of which none is named', async () => {
  const { url } = await answering(() => ({ '/v1/models': { data: [{ id: 'a' }, { id: 'b' }] } }))
  const { ask } = await near({ url })
  expect((await ask()).end).toMatchObject({ error: { message: expect.stringContaining('2 models: name one as `model`') } })
})

verifies('discovery.origin', 'a card that leads to another host is not followed', async () => {
  const { url: other, sent } = await recorder(() => 'http://127.0.0.1:1')
  const card = { name: 'x', url: `${other}/a2a`, protocolVersion: '0.3', preferredTransport: 'JSONRPC', capabilities: {}, skills: [] }
  const { url } = await answering(() => ({ '/.well-known/agent-card.json': card }))
  const { ask } = await near({ url, token: 'a-token-of-the-operator' })
  expect((await ask()).end).toMatchObject({ type: 'response.error', error: { message: expect.stringContaining('on other hosts only') } })
  expect(sent).toEqual([])
})

verifies('discovery.origin', 'a card that leads here and to another host is followed here only', async () => {
  const { url: other, sent } = await recorder(() => 'http://127.0.0.1:1')
  const interfaces = (url: string) =>
    [other, url].map((each) => ({ url: `${each}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }))
  const { url } = await answering((own) => ({ '/.well-known/agent-card.json': { name: 'x', supportedInterfaces: interfaces(own) } }))
  const { ask } = await near({ url })
  expect((await ask()).end).toMatchObject({ type: 'response.error' })
  expect(sent).toEqual([])
})

test('a URL that is none is refused at once', () => {
  expect(() => remoteAgent({ name: 'near', url: 'agents.example' })).toThrow('write it as in "https://agents.example"')
})
