import { expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { Agent } from '../../src/agents/agent.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import type { Capabilities } from '../../src/protocol/capabilities.ts'
import type { A2aOptions, ServeOptions } from '../../src/serve/index.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'

type Wire = any // eslint-disable-line

const CARD = '/.well-known/agent-card.json'
const silent = async function* () {}
const bare = (name = 'bare', capabilities: Partial<Capabilities> = {}) => defineAgent(name, silent, { capabilities })

const start = (agents: Parameters<typeof startServer>[0], options: A2aOptions = {}, server: Partial<ServeOptions> = {}) =>
  startServer(agents, { a2a: options, ...server })

async function card(url: string, headers: Record<string, string> = {}): Promise<Wire> {
  const response = await fetch(url, { headers })
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json'])
  return response.json()
}

/** Every field of 1.0, and those that must be there. */
const FIELDS = {
  card: ['name', 'description', 'supportedInterfaces', 'version', 'capabilities', 'defaultInputModes', 'defaultOutputModes', 'skills'],
  optional: ['provider', 'documentationUrl', 'iconUrl', 'securitySchemes', 'securityRequirements', 'signatures'],
  interface: ['url', 'protocolBinding', 'protocolVersion'],
  skill: ['id', 'name', 'description', 'tags'],
}

function expectValid(of: Wire): void {
  expect(Object.keys(of)).toEqual(expect.arrayContaining(FIELDS.card))
  expect([...FIELDS.card, ...FIELDS.optional]).toEqual(expect.arrayContaining(Object.keys(of)))
  for (const list of ['supportedInterfaces', 'defaultInputModes', 'defaultOutputModes', 'skills'])
    expect(of[list].length, list).toBeGreaterThan(0)
  for (const each of of.supportedInterfaces) expect(Object.keys(each).toSorted()).toEqual(FIELDS.interface.toSorted())
  for (const skill of of.skills) {
    expect(Object.keys(skill)).toEqual(expect.arrayContaining(FIELDS.skill))
    expect(skill.tags.length).toBeGreaterThan(0)
    for (const field of ['id', 'name', 'description']) expect(skill[field]).toMatch(/\S/)
  }
  for (const { required } of of.capabilities.extensions ?? []) expect(required).not.toBe(false)
}

verifies(
  ['a2a-1.0.card-available', 'a2a-1.0.card-required'],
  'every agent has a card that is strictly valid, also one that says nothing of itself',
  async () => {
    const { url } = await start([demo(), bare()], {}, { tokens: { alice: 'secret-0123456789abcdef' } })
    for (const path of ['', '/agents/demo', '/agents/bare']) {
      expectValid(await card(`${url}${path}${CARD}`, { 'a2a-version': '1.0' }))
      expectValid(await card(`${url}${path}${CARD}?A2A-Version=1.0`))
    }
    expect((await card(`${url}/agents/bare${CARD}`)).skills).toEqual([
      { id: 'chat', name: 'bare', description: 'The agent bare', tags: ['chat'] },
    ])
  },
)

verifies(
  'a2a-1.0.card-interfaces',
  'its URLs are absolute, right at the root and for a named agent, and each is spoken as the card says',
  async () => {
    const { url } = await start([demo(), bare()])
    for (const [path, base] of [
      ['', url],
      ['/agents/demo', `${url}/agents/demo`],
      ['/agents/bare', `${url}/agents/bare`],
    ]) {
      const { supportedInterfaces } = await card(`${url}${path}${CARD}`)
      expect(supportedInterfaces).toEqual([
        { url: `${base}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
        { url: `${base}/a2a/rest`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
        { url: `${base}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
        { url: `${base}/a2a/rest`, protocolBinding: 'HTTP+JSON', protocolVersion: '0.3' },
      ])
    }
    const [rpc, rest] = (await card(`${url}/agents/demo${CARD}`)).supportedInterfaces
    const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'Hello' }] }
    const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' }
    const post = async (to: string, body: object): Promise<Wire> =>
      (await fetch(to, { method: 'POST', headers, body: JSON.stringify(body) })).json()
    const spoken = await post(rpc.url, { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } })
    expect(spoken.result.task.status.state).toBe('TASK_STATE_COMPLETED')
    expect((await post(`${rest.url}/message:send`, { message })).task.status.state).toBe('TASK_STATE_COMPLETED')
  },
)

test('the usual card has the fields of every generation', async () => {
  const { url } = await start(demo(), { extendedCard: {} }, { tokens: { alice: 'secret-0123456789abcdef' } })
  const hybrid = await card(url + CARD)
  expect(hybrid).toMatchObject({
    name: 'demo',
    protocolVersion: '0.3.0',
    url: `${url}/a2a`,
    preferredTransport: 'JSONRPC',
    additionalInterfaces: [
      { url: `${url}/a2a`, transport: 'JSONRPC' },
      { url: `${url}/a2a/rest`, transport: 'HTTP+JSON' },
    ],
    supportsAuthenticatedExtendedCard: true,
    capabilities: { streaming: true, pushNotifications: true, extendedAgentCard: true, stateTransitionHistory: false },
    securitySchemes: { bearer: { type: 'http', scheme: 'bearer', httpAuthSecurityScheme: { scheme: 'Bearer' } } },
    security: [{ bearer: [] }],
    securityRequirements: [{ schemes: { bearer: { list: ['call'] } } }],
  })
  expect(hybrid.skills.map(({ id }: Wire) => id)).toEqual([
    'demo',
    'clock',
    'add',
    'slow',
    ...hybrid.skills.slice(4).map(({ id }: Wire) => id),
  ])
  expect(hybrid.capabilities.extensions.map(({ uri }: Wire) => uri)).toContain('https://uamp.dev/a2a/events/v1')
  // Whoever announces it verifies payments.
  expect(JSON.stringify(hybrid.capabilities.extensions)).not.toContain('x402')
})

test('agent.json has what its readers want: an old version, and what the model can do', async () => {
  const { url } = await start(demo(), { card: '1.0' }, { tokens: { alice: 'secret-0123456789abcdef' } })
  const old = await card(`${url}/agents/demo/.well-known/agent.json`)
  expect(old).toMatchObject({
    name: 'demo',
    protocolVersion: '0.2.1',
    url: `${url}/agents/demo/a2a`,
    authentication: { schemes: ['bearer'] },
    modelCapabilities: { id: 'demo', provider: 'uamp', modalities: ['text', 'image', 'audio', 'video', 'file'], supports_thinking: true },
  })
  expectValid(await card(`${url}/.well-known/agent.json`, { 'a2a-version': '1.0' }))
})

test('by setting the card is of 1.0 alone, unless an older one is asked for', async () => {
  const { url } = await start(demo(), { card: '1.0' })
  expectValid(await card(url + CARD))
  expect(await card(url + CARD, { 'a2a-version': '0.3' })).toMatchObject({ protocolVersion: '0.3.0', url: `${url}/a2a` })
})

verifies('a2a-1.0.card-security', 'it says whether a token is needed', async () => {
  const needed = await card((await start(demo(), {}, { tokens: { alice: 'secret-0123456789abcdef' } })).url + CARD, {
    'a2a-version': '1.0',
  })
  expect(needed.securitySchemes).toEqual({ bearer: { httpAuthSecurityScheme: { scheme: 'Bearer' } } })
  expect(needed.securityRequirements).toEqual([{ schemes: { bearer: { list: ['call'] } } }])
  const taken = await card((await start(demo(), {}, { tokens: { alice: 'secret-0123456789abcdef' }, allowAnonymous: true })).url + CARD)
  expect([Object.keys(taken.securitySchemes), taken.securityRequirements, taken.security]).toEqual([['bearer'], undefined, undefined])
  const none = await card((await start(demo())).url + CARD)
  expect([none.securitySchemes, none.securityRequirements, none.authentication]).toEqual([undefined, undefined, undefined])
})

test('behind a proxy that is trusted the URLs are those of the proxy, else those of the request', async () => {
  const headers = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'agents.example', 'x-forwarded-prefix': '/team' }
  const trusting = await start(demo(), {}, { trustProxy: ['127.0.0.1'] })
  expect((await card(`${trusting.url}/agents/demo${CARD}`, headers)).url).toBe('https://agents.example/team/agents/demo/a2a')
  // Whoever is not one of the proxies that were named cannot speak for them.
  const misled = await start(demo(), {}, { trustProxy: ['10.0.0.0/8'] })
  expect((await card(`${misled.url}/agents/demo${CARD}`, headers)).url).toBe(`${misled.url}/agents/demo/a2a`)
  const wary = await start(demo())
  expect((await card(`${wary.url}/agents/demo${CARD}`, headers)).url).toBe(`${wary.url}/agents/demo/a2a`)
  const fixed = await start(demo(), {}, { publicUrl: 'https://public.example/base/' })
  expect((await card(fixed.url + CARD, headers)).url).toBe('https://public.example/base/a2a')
})

verifies('a2a-1.0.card-caching', 'a client that has the card gets 304, one whose card is old gets the new one', async () => {
  const { url, agents } = await start([demo(), bare()], { maxAgeSeconds: 60 })
  const address = `${url}/agents/bare${CARD}`
  const first = await fetch(address)
  const etag = first.headers.get('etag') ?? ''
  expect(etag).toMatch(/^"[0-9a-f]{32}"$/)
  expect(first.headers.get('cache-control')).toBe('public, max-age=60')
  expect(first.headers.get('vary')).toBe('A2A-Version, Origin')
  const modified = first.headers.get('last-modified') ?? ''
  expect(Date.parse(modified)).not.toBeNaN()

  const again = async (headers: Record<string, string>) => {
    const response = await fetch(address, { headers })
    expect(response.headers.get('etag')).toBeTruthy()
    return [response.status, (await response.text()).length > 0]
  }
  expect(await again({ 'if-none-match': etag })).toEqual([304, false])
  expect(await again({ 'if-none-match': `"other", W/${etag}` })).toEqual([304, false])
  expect(await again({ 'if-none-match': '*' })).toEqual([304, false])
  expect(await again({ 'if-modified-since': modified })).toEqual([304, false])
  expect(await again({ 'if-none-match': '"other"', 'if-modified-since': modified })).toEqual([200, true])
  expect(await again({ 'if-none-match': etag, 'a2a-version': '1.0' })).toEqual([200, true])

  agents.add(defineAgent('bare', silent, { description: 'It has changed' }))
  expect(await again({ 'if-none-match': etag })).toEqual([200, true])
})

test('a page of an allowed origin may read it, and a cache keeps origins and versions apart', async () => {
  const { url } = await start(demo(), {}, { origins: ['https://app.example'] })
  const { headers } = await fetch(url + CARD, { headers: { origin: 'https://app.example' } })
  expect([headers.get('access-control-allow-origin'), headers.get('vary')]).toEqual(['https://app.example', 'A2A-Version, Origin'])
  expect((await fetch(url + CARD, { method: 'HEAD' })).headers.get('etag')).toBeTruthy()
})

test('skills are those of a composed agent, and what an agent says of itself is on its card', async () => {
  const tool = (name: string, description?: string) => ({ name, ...(description !== undefined && { description }), run: () => '' })
  const composed = new Agent({
    name: 'composed',
    tools: [tool('double', 'Doubles a number'), tool('bald')],
    skills: [
      { name: 'files', tools: [tool('read', 'Reads a file'), tool('write', 'Writes a file')] },
      { name: 'mood', description: 'Is always friendly' },
      { name: 'hidden' },
    ],
  })
  const telling = bare('telling', {
    modalities: ['text', 'image'],
    image: { formats: ['webp', 'image/gif'] },
    provides: ['web_search'],
    extensions: {
      a2a: {
        version: '2.3.4',
        provider: { organization: 'Example', url: 'https://example.com' },
        documentationUrl: 'https://example.com/docs',
        extensions: [
          { uri: 'https://example.com/ext', required: false },
          { uri: 'https://example.com/must', required: true, params: { a: 1 } },
        ],
      },
    },
  })
  const wrong = bare('wrong', { extensions: { a2a: { version: 7 } } })
  const { url } = await start([composed, telling, wrong], { version: '9.9.9' })
  expect((await card(`${url}/agents/composed${CARD}`)).skills).toEqual([
    { id: 'files', name: 'files', description: 'Reads a file; Writes a file', tags: ['read', 'write'] },
    { id: 'mood', name: 'mood', description: 'Is always friendly', tags: ['skill'] },
    { id: 'double', name: 'double', description: 'Doubles a number', tags: ['tool'] },
    { id: 'bald', name: 'bald', description: 'Uses the tool bald', tags: ['tool'] },
  ])
  const told = await card(`${url}/agents/telling${CARD}`, { 'a2a-version': '1.0' })
  expectValid(told)
  expect(told).toMatchObject({
    version: '2.3.4',
    provider: { organization: 'Example', url: 'https://example.com' },
    documentationUrl: 'https://example.com/docs',
    defaultInputModes: ['text/plain', 'image/webp', 'image/gif'],
    skills: [{ id: 'web_search', tags: ['capability'] }],
  })
  expect(told.capabilities.extensions.slice(-2)).toEqual([
    { uri: 'https://example.com/ext' },
    { uri: 'https://example.com/must', required: true, params: { a: 1 } },
  ])
  expect((await card(`${url}/agents/wrong${CARD}`)).version).toBe('9.9.9')
})

test('where no agent owns the root, its card says where the others are', async () => {
  const { url } = await start([bare('one'), bare('two')])
  const response = await fetch(url + CARD)
  expect([response.status, await response.text()]).toEqual([404, expect.stringContaining('/agents/{name}/.well-known/agent-card.json')])
  expect((await fetch(`${url}/agents/three${CARD}`)).status).toBe(404)
})
