/** Signed answers on every transport: who gets a signature, what it covers, and what becomes of the answer without one. */
import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'
import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose'
import { expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { connect as connectClient } from '../../src/client/node.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import type { AgentPort, Said } from '../../src/core/ports/agent.ts'
import type { ContentItem } from '../../src/protocol/content.ts'
import { remoteEvents } from '../../src/remotes/events/index.ts'
import { connect } from '../openai/realtime-wire.ts'
import { ask, stream, user } from '../openai/support.ts'
import { startServer } from '../support/server.ts'
import { say } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overSse, overWebSocket, type Heard } from '../support/wire.ts'

const SIGN = { extensions: { uamp: { sign: true } } }
const DO_NOT = { extensions: { uamp: { sign: false } } }

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
const hashOf = (value: unknown): string => sha256(canonicalize(value) ?? '')
const claimsOf = (signature: unknown): Record<string, unknown> => decodeJwt(String(signature))

/** An agent that says these drafts. */
const saying = (...drafts: readonly Said[]): AgentPort =>
  defineAgent('sayer', async function* () {
    yield* drafts
  })
const item = (delta: ContentItem): Said => ({ type: 'response.delta', delta }) as Said

/** The end of the answer to a text over UAMP events. */
async function endOf(
  url: string,
  { session = SIGN, create = {}, text = 'hello' }: { session?: object; create?: object; text?: string } = {},
): Promise<Heard> {
  const wire = await overWebSocket(url)
  await wire.open({ session: { modalities: ['text'], ...session } })
  const end = (await say(wire, text, { create })).at(-1) as Heard
  wire.close()
  return end
}

verifies('uamp:signing:signature', 'an answer has an RS256 JWT that the published keys verify', async () => {
  const { url } = await startServer(demo())
  const { signature } = await endOf(url)
  const keys = createRemoteJWKSet(new URL(`${url}/agents/demo/.well-known/jwks.json`))
  const { protectedHeader } = await jwtVerify(String(signature), keys, { issuer: `${url}/agents/demo` })
  expect(protectedHeader).toMatchObject({ alg: 'RS256', typ: 'response+jwt' })
})

verifies('uamp:signing:claims', 'a signature says who, to whom, which, when, and the hashes of both', async () => {
  const { url } = await startServer(demo(), { tokens: { alice: 'a-secret-of-alice' }, allowAnonymous: true })
  const wire = await overWebSocket(url, { token: 'a-secret-of-alice' })
  await wire.open({ session: { modalities: ['text'], ...SIGN } })
  const end = (await say(wire, 'hello')).at(-1) as Heard
  const said = end['response'].output[0].text as string
  const claims = claimsOf(end['signature'])
  expect(claims).toEqual({
    iss: `${url}/agents/demo`,
    sub: 'demo',
    aud: 'alice',
    response_id: end['response_id'],
    response_hash: sha256(said),
    request_hash: hashOf([{ role: 'user', content: 'hello' }]),
    iat: expect.any(Number),
    exp: Number(claims['iat']) + 300,
    jti: expect.any(String),
  })
  // The next request is only what was said since.
  const next = (await say(wire, 'and again')).at(-1) as Heard
  expect(claimsOf(next['signature'])['request_hash']).toBe(hashOf([{ role: 'user', content: 'and again' }]))
  expect(claimsOf(next['signature'])['jti']).not.toBe(claims['jti'])
  expect(claimsOf((await endOf(url))['signature'])).not.toHaveProperty('aud')
})

const OF_SESSION = [
  { session: SIGN, create: {}, signed: true },
  { session: {}, create: SIGN, signed: true },
  { session: SIGN, create: DO_NOT, signed: false },
  { session: {}, create: {}, signed: false },
  { session: { extensions: { uamp: { sign: 'yes' } } }, create: {}, signed: false },
]

verifies('uamp:signing:asked', 'a client asks in its session or in its response, and the response decides', async () => {
  const { url } = await startServer(demo())
  for (const { session, create, signed } of OF_SESSION) {
    const end = await endOf(url, { session, create })
    expect(end['signature'] !== undefined, JSON.stringify({ session, create })).toBe(signed)
  }
  const over = await overSse(url)
  await over.open({ session: { modalities: ['text'], ...SIGN } })
  expect((await say(over, 'hello')).at(-1)).toHaveProperty('signature')
})

test('a server that always signs signs every answer, and one that never signs none', async () => {
  const [always, never] = [await startServer(demo(), { sign: 'always' }), await startServer(demo(), { sign: 'never' })]
  expect(await endOf(always.url, { session: {} })).toHaveProperty('signature')
  expect(await endOf(never.url)).not.toHaveProperty('signature')
  const body = { messages: [user('hello')] }
  expect((await ask(`${always.url}/v1/chat/completions`, body)).body).toHaveProperty('signature')
  expect((await ask(`${never.url}/v1/chat/completions`, body, { 'x-uamp-signature': 'chunk' })).body).not.toHaveProperty('signature')
})

verifies('uamp:signing:complete', 'an answer that fails or is cancelled is not signed', async () => {
  const broken = defineAgent('broken', async function* () {
    yield 'Almost'
    throw new Error('no')
  })
  const endless = defineAgent('endless', async function* ({ signal }) {
    yield 'On and on'
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  })
  const { url } = await startServer([broken, endless], { sign: 'always' })
  expect(await endOf(`${url}/agents/broken`)).toMatchObject({ type: 'response.error' })
  const wire = await overWebSocket(`${url}/agents/endless`)
  await wire.open()
  await wire.send({ type: 'input.text', text: 'go' })
  await wire.send({ type: 'response.create' })
  await wire.next('response.delta')
  await wire.send({ type: 'response.cancel' })
  const end = await wire.next('response.cancelled')
  expect(end).not.toHaveProperty('signature')
  wire.close()
})

const IMAGE: ContentItem = { type: 'image', image: 'AAAA', format: 'png', content_id: 'i-1' }
const SPEECH: ContentItem = { type: 'audio', audio: 'AAAA', format: 'pcm16', transcript: 'spoken', content_id: 'a-1' }
const CALL: ContentItem = { type: 'tool_call', tool_call: { id: 'c', name: 'look', arguments: '{}' } }
const RESULT: ContentItem = { type: 'tool_result', tool_result: { call_id: 'c', result: '"seen"' } }
const REFUSAL: ContentItem = { type: 'text', text: 'I will not', refusal: true }
const KINDS: readonly { kind: string; said: readonly Said[]; words: string; more: boolean }[] = [
  { kind: 'words', said: ['Hel', 'lo 👋'], words: 'Hello 👋', more: false },
  { kind: 'nothing', said: [], words: '', more: false },
  { kind: 'media alone', said: [item(IMAGE)], words: '', more: true },
  { kind: 'speech', said: [item(SPEECH)], words: 'spoken', more: true },
  { kind: 'a refusal before words', said: [item(REFUSAL), 'Sorry'], words: 'SorryI will not', more: false },
  { kind: 'a call with its result', said: [item(CALL), item(RESULT), 'Seen'], words: 'Seen', more: true },
]

verifies('uamp:signing:words', 'words are hashed as text, and what is more as the whole output', async () => {
  for (const { kind, said, words, more } of KINDS) {
    const { url } = await startServer(saying(...said))
    const end = await endOf(url)
    const claims = claimsOf(end['signature'])
    expect(claims['response_hash'], kind).toBe(sha256(words))
    expect(claims['output_hash'], kind).toBe(more ? hashOf(end['response'].output) : undefined)
  }
})

test('the words of a completion are those that were signed, however they are told', async () => {
  for (const { kind, said, words } of KINDS) {
    const { url } = await startServer(saying(...said))
    const { body } = await ask(`${url}/v1/chat/completions`, { messages: [user('x')] }, { 'x-uamp-signature': 'chunk' })
    const { content, refusal } = body.choices[0].message
    expect((content ?? '') + (refusal ?? ''), kind).toBe(words)
    expect(claimsOf(body.signature)['response_hash'], kind).toBe(sha256(words))
  }
})

test('the request is hashed as its client wrote it', async () => {
  const { url } = await startServer(demo())
  const headers = { 'x-uamp-signature': 'chunk' }
  const messages = [{ role: 'user', content: [{ type: 'text', text: 'ä' }], z: 1, unknown: { b: [1.0, 1e21, null], a: '\u2028' } }]
  const raw = `{"messages":${JSON.stringify(messages)}}`
  const { body } = await ask(`${url}/v1/chat/completions`, raw, headers)
  expect(claimsOf(body.signature)['request_hash']).toBe(hashOf(messages))
  const response = await ask(`${url}/v1/responses`, { input: 'just text' }, headers)
  expect(claimsOf(response.body.signature)['request_hash']).toBe(hashOf('just text'))
})

test('media of UAMP events is hashed without the ids that the server gives', async () => {
  const { url } = await startServer(demo())
  const wire = await overWebSocket(url)
  await wire.open({ session: { modalities: ['text'], ...SIGN } })
  await wire.send({ type: 'input.image', image: { url: 'https://example.com/cat.png' }, format: 'png' })
  const end = (await say(wire, 'What is it?')).at(-1) as Heard
  const image = { type: 'image', image: { url: 'https://example.com/cat.png' }, format: 'png' }
  expect(claimsOf(end['signature'])['request_hash']).toBe(hashOf([{ role: 'user', content: 'What is it?', content_items: [image] }]))
  wire.close()
})

test('an answer after results of the client’s tools covers the results', async () => {
  const asker = defineAgent('asker', async function* (turn) {
    const { result } = await turn.ask('tool.call', { call_id: 'call-1', name: 'look', arguments: '{}' })
    yield `It says ${result}`
  })
  const { url } = await startServer(asker)
  const tools = [{ type: 'function', name: 'look', parameters: {} }]
  const headers = { 'x-uamp-signature': 'chunk' }
  const first = await ask(`${url}/v1/responses`, { input: 'Look', tools }, headers)
  expect(claimsOf(first.body.signature)).toHaveProperty('output_hash')
  const input = [{ type: 'function_call_output', call_id: 'call-1', output: 'seen' }]
  const second = await ask(`${url}/v1/responses`, { input, tools, previous_response_id: first.body.id }, headers)
  expect(claimsOf(second.body.signature)).toMatchObject({ request_hash: hashOf(input), response_hash: sha256('It says seen') })
})

verifies('uamp-transports.signature-event', 'a signed completion is followed by its signature', async () => {
  const { url } = await startServer(demo())
  const { raw } = await stream(`${url}/v1/chat/completions`, { messages: [user('x')] }, { 'x-uamp-signature': 'event' })
  expect(raw.slice(raw.indexOf('[DONE]'))).toMatch(
    /^\[DONE\]\n\nevent: response_signature\ndata: \{"signature":"[\w-]+\.[\w-]+\.[\w-]+"\}\n\n$/,
  )
})

verifies('uamp-transports.signature-realtime', 'a response of Realtime is signed for a session that asks', async () => {
  const { url } = await startServer(demo())
  for (const [asked, signed] of [
    [{ uamp: { sign: true } }, true],
    [{}, false],
  ] as const) {
    const wire = await connect(url)
    wire.send({ type: 'session.update', session: { type: 'realtime', output_modalities: ['text'], ...asked } })
    const events = await wire.respond({
      type: 'conversation.item.create',
      item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hi' }] },
    })
    const done = events.at(-1) as Heard
    expect(done['signature'] !== undefined).toBe(signed)
    if (signed) expect(claimsOf(done['signature'])['request_hash']).toBe(hashOf([{ role: 'user', content: 'hi' }]))
  }
})

verifies('uamp:signing:kept', 'an answer that is read again has the same signature', async () => {
  const long = defineAgent('long', async function* () {
    for (let at = 0; at < 40; at++) yield 'x'.repeat(4096)
  })
  const { url } = await startServer([demo(), long])
  for (const agent of ['demo', 'long']) {
    const headers = { 'x-uamp-signature': 'chunk' }
    const completion = await ask(`${url}/agents/${agent}/v1/chat/completions`, { messages: [user('x')], store: true }, headers)
    const again = await fetch(`${url}/agents/${agent}/v1/chat/completions/${completion.body.id}`)
    expect(((await again.json()) as Heard)['signature']).toBe(completion.body.signature)
    expect(completion.body.signature).toBeDefined()
    const wire = await overWebSocket(`${url}/agents/${agent}`)
    const session = await wire.open({ session: { modalities: ['text'], ...SIGN } })
    const { signature } = (await say(wire, 'hello')).at(-1) as Heard
    wire.close()
    const later = await overWebSocket(`${url}/agents/${agent}`)
    await later.follow(session, 0)
    expect(await later.next('response.done')).toMatchObject({ signature })
    later.close()
  }
})

verifies('uamp:signing:agents-own', 'an agent elsewhere signs for the server, and the server for its client', async () => {
  const far = await startServer(demo(), { sign: 'always' })
  const near = await startServer(remoteEvents({ name: 'near', url: far.url }))
  const { signature, response } = await endOf(near.url)
  expect(claimsOf(signature)['iss']).toBe(`${far.url}/agents/demo`)
  expect(claimsOf(response.extensions.uamp.signature)).toMatchObject({ iss: `${near.url}/agents/near`, response_id: response.id })
})

verifies('uamp:signing:own-address', 'a server that knows its address only from requests signs nothing', async () => {
  const { url, logged } = await startServer(demo(), { host: '0.0.0.0', allowAnonymous: true })
  const here = url.replace('0.0.0.0', '127.0.0.1')
  expect(await endOf(here)).not.toHaveProperty('signature')
  expect(logged).toContainEqual(expect.objectContaining({ level: 'warn', message: 'Responses are not signed: set publicUrl' }))
  const known = await startServer(demo(), { host: '0.0.0.0', allowAnonymous: true, publicUrl: 'https://agents.example/ai' })
  const { signature } = await endOf(known.url.replace('0.0.0.0', '127.0.0.1'))
  expect(claimsOf(signature)['iss']).toBe('https://agents.example/ai/agents/demo')
})

test('several choices have no signature, as one covers one text', async () => {
  const { url } = await startServer(demo())
  const { body } = await ask(`${url}/v1/chat/completions`, { messages: [user('x')], n: 2 }, { 'x-uamp-signature': 'chunk' })
  expect(body).not.toHaveProperty('signature')
})

test('our client verifies on request', async () => {
  const { url } = await startServer(demo())
  const client = connectClient(url)
  const session = await client.session()
  expect(await session.say('hello', { verify: true })).toContain('hello')
  const inputs = [
    { type: 'input.image' as const, image: { url: 'https://example.com/cat.png' } },
    { type: 'input.text' as const, text: 'What is it?' },
  ]
  expect(await session.say(inputs, { verify: true })).toContain('What is it?')
  await expect(session.say('hello', { verify: { issuer: 'https://other.example' } })).rejects.toMatchObject({ code: 'bad_signature' })
  await expect(session.say('hello', { verify: { jwks: { keys: [] } } })).rejects.toMatchObject({ code: 'bad_signature' })
  client.close()
  const never = await startServer(demo(), { sign: 'never' })
  const other = connectClient(never.url)
  const unsigned = (await other.session()).say('hello', { verify: true })
  await expect(unsigned).rejects.toMatchObject({ code: 'bad_signature', message: 'The response is not signed' })
  other.close()
})
