import { expect, test } from 'vitest'
import { remoteA2a } from '../../src/remotes/a2a/index.ts'
import { startServer } from '../support/server.ts'
import { say, textOf } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket } from '../support/wire.ts'
import { behind, chunk, peer, streams } from './a2a/peer.ts'
import { v03JsonRpc } from './a2a/v03.ts'
import { v1JsonRpc, v1Rest } from './a2a/v1.ts'

const HELLO = streams({ task: 'working' }, chunk('Hello', false), { status: 'completed' })

async function answerAt(url: string): Promise<string> {
  const here = await startServer(remoteA2a({ name: 'far', url }))
  const client = await overWebSocket(here.url)
  await client.open()
  const events = await say(client, 'hi')
  return textOf(events) || events.at(-1)?.['error'].message
}

verifies('a2a-remote.discovery', 'the card is found below an address, with or without a slash, and at its own', async () => {
  const asked: string[] = []
  const { url } = await peer(v1JsonRpc, HELLO, {
    other(request, response) {
      if (request.method !== 'GET') return false
      asked.push(request.url ?? '')
      if (!['/agents/bob/.well-known/agent-card.json', '/cards/bob.json'].includes(request.url ?? '')) return false
      response.writeHead(200).end(JSON.stringify(v1JsonRpc.card(url, true)))
      return true
    },
  })
  for (const path of ['', '/', '/agents/bob', '/agents/bob/', '/cards/bob.json']) expect(await answerAt(url + path)).toBe('Hello')
  expect(asked).toEqual([
    '/.well-known/agent-card.json',
    '/.well-known/agent-card.json',
    '/agents/bob/.well-known/agent-card.json',
    '/agents/bob/.well-known/agent-card.json',
    '/cards/bob.json',
  ])
})

test('where there is no card, it says where it looked', async () => {
  const { url } = await peer(v1JsonRpc, HELLO)
  expect(await answerAt(`${url}/nobody`)).toBe(
    `"far" has no card at ${url}/nobody: neither ${url}/nobody/.well-known/agent-card.json nor ${url}/nobody/.well-known/agent.json`,
  )
})

const HYBRID = (url: string, first: 'JSONRPC' | 'HTTP+JSON') => {
  const other = first === 'JSONRPC' ? 'HTTP+JSON' : 'JSONRPC'
  return {
    supportedInterfaces: [
      { url: `${url}/future`, protocolBinding: first, protocolVersion: '2.0' },
      { url: `${url}/mqtt`, protocolBinding: 'https://example.com/mqtt', protocolVersion: '1.0' },
      { url: `${url}/agent`, protocolBinding: first, protocolVersion: '1.0' },
      { url: `${url}/other`, protocolBinding: other, protocolVersion: '1.0' },
    ],
  }
}

verifies(
  ['a2a-remote.interface', 'a2a-remote.tenant'],
  'the first interface that is spoken here is asked, without a tenant where it has none',
  async () => {
    const { client, there } = await behind(v1JsonRpc, HELLO, { card: (card, url) => ({ ...card, ...HYBRID(url, 'JSONRPC') }) })
    expect(textOf(await say(client, 'hi'))).toBe('Hello')
    expect(there.calls[0]?.body['params']).not.toHaveProperty('tenant')
    const paths: (string | undefined)[] = []
    const rest = await behind({ ...v1Rest, read: () => undefined }, HELLO, {
      card: (card, url) => ({ ...card, ...HYBRID(url, 'HTTP+JSON') }),
      other(request) {
        paths.push(request.url)
        return false
      },
    })
    await say(rest.client, 'hi')
    expect(paths[1]).toBe('/agent/message:stream')
  },
)

verifies('a2a-remote.0.3-card', 'before 1.0 the URL with its preferred transport comes first, then the others', async () => {
  const { client, there } = await behind(v03JsonRpc, HELLO, {
    card: (card, url) => ({
      ...card,
      url: `${url}/grpc`,
      preferredTransport: 'GRPC',
      additionalInterfaces: [
        { url: `${url}/grpc`, transport: 'GRPC' },
        { url: `${url}/agent`, transport: 'JSONRPC' },
      ],
    }),
  })
  expect(textOf(await say(client, 'hi'))).toBe('Hello')
  expect(there.calls).toHaveLength(1)
})

test('a card that promises 1.0 for a server of 0.3 is seen through, and remembered', async () => {
  const refused: string[] = []
  const { client, there } = await behind(
    {
      ...v03JsonRpc,
      read(request, body) {
        const read = v03JsonRpc.read(request, body)
        if (!read) refused.push(body['method'])
        return read
      },
    },
    HELLO,
    { card: (_, url) => v1JsonRpc.card(url, true) },
  )
  expect(textOf(await say(client, 'hi'))).toBe('Hello')
  expect(textOf(await say(client, 'again'))).toBe('Hello')
  expect(refused).toEqual(['SendStreamingMessage', 'SendMessage'])
  expect(there.calls.map(({ texts }) => texts)).toEqual([['hi'], ['again']])
})

verifies('a2a-remote.cache', 'the card is kept as long as it says, and then asked for by its ETag', async () => {
  let now = 0
  let description = 'First'
  const asked: (string | undefined)[] = []
  const { client, here } = await behind(v1JsonRpc, HELLO, {
    remote: { now: () => now },
    other(request, response) {
      if (request.url !== v1JsonRpc.cardPath) return false
      const etag = `"${description}"`
      asked.push(request.headers['if-none-match'])
      const fresh = { etag, 'cache-control': 'public, max-age=60' }
      if (request.headers['if-none-match'] === etag) response.writeHead(304, fresh).end()
      else
        response
          .writeHead(200, fresh)
          .end(
            JSON.stringify({ ...v1JsonRpc.card(`http://${request.headers.host}`, true), description, defaultOutputModes: ['audio/wav'] }),
          )
      return true
    },
  })
  const far = () => here.agents.get('far')
  await say(client, 'one')
  now = 59_000
  await say(client, 'two')
  expect(asked).toEqual([undefined])
  now = 61_000
  await say(client, 'three')
  expect(asked).toEqual([undefined, '"First"'])
  expect(far()).toMatchObject({ description: 'First', abilities: [{ id: 'talk', name: 'Talk' }] })
  description = 'Second'
  now += 10 * 60_000
  await say(client, 'four')
  expect(asked).toEqual([undefined, '"First"', '"First"'])
  expect(far()).toMatchObject({ description: 'Second' })
  const told = client.heard.filter(({ type }) => type === 'capabilities').map((event) => event['capabilities'])
  expect(told.at(-1)).toMatchObject({ id: 'far', modalities: ['text', 'image', 'audio'], supports_streaming: true })
  expect(told).toHaveLength(2)
})

test('an old card is better than none', async () => {
  let now = 0
  let gone = false
  const { client } = await behind(v1JsonRpc, HELLO, {
    remote: { now: () => now },
    other(request, response) {
      if (!gone || request.url !== v1JsonRpc.cardPath) return false
      response.writeHead(410).end()
      return true
    },
  })
  await say(client, 'one')
  gone = true
  now = 60 * 60_000
  expect(textOf(await say(client, 'two'))).toBe('Hello')
})

verifies('a2a-remote.credentials', 'a token is a bearer token, or the API key that the card wants', async () => {
  const seen: unknown[] = []
  const schemes = [
    {},
    { securitySchemes: { key: { apiKeySecurityScheme: { location: 'header', name: 'X-Api-Key' } } } },
    { securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'X-Older-Key' } } },
    { securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'X-Key' }, oauth: { type: 'http', scheme: 'bearer' } } },
  ]
  for (const scheme of schemes) {
    const { client, there } = await behind(v1JsonRpc, HELLO, {
      card: (card) => ({ ...card, ...scheme }),
      remote: { token: 'secret', headers: { 'x-team': 'blue' } },
    })
    await say(client, 'hi')
    const { authorization, 'x-api-key': key, 'x-older-key': older, 'x-team': team } = there.calls[0]?.request.headers ?? {}
    seen.push([authorization ?? key ?? older, team])
  }
  expect(seen).toEqual([
    ['Bearer secret', 'blue'],
    ['secret', 'blue'],
    ['secret', 'blue'],
    ['Bearer secret', 'blue'],
  ])
})

test.each([
  ['no JSON', '<html></html>', /not JSON/],
  ['no object', '[1]', /is no JSON object/],
  ['without an address', '{"name":"x"}', /names no address/],
  ['with an address that is none', '{"url":"mailto:x@y","capabilities":{}}', /names no address/],
])('a card that is %s is told as an error', async (_, body, message) => {
  const { url } = await peer(v1JsonRpc, HELLO, {
    other(__, response) {
      response.writeHead(200).end(body)
      return true
    },
  })
  expect(await answerAt(url)).toMatch(message)
})
