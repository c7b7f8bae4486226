/** What a signature proves, to `uamp verify` and to our client: who said what, also years later. And what proves nothing. */
import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import canonicalize from 'canonicalize'
import { base64url, decodeJwt, exportSPKI, SignJWT } from 'jose'
import { expect, test, vi } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { verifyResponse } from '../../src/client/node.ts'
import type { EventOf } from '../../src/protocol/events.ts'
import { finished, project } from '../cli/run.ts'
import { connect } from '../openai/realtime-wire.ts'
import { ask, stream, user } from '../openai/support.ts'
import { startServer } from '../support/server.ts'
import { say } from '../support/talk.ts'
import { verifies } from '../support/verifies.ts'
import { overWebSocket } from '../support/wire.ts'
import { tokenFrom } from './oauth.ts'
import { identityServer, issuer, json, keyPair, now, type Pair } from './support.ts'

// Every command is a process of its own.
vi.setConfig({ testTimeout: 120_000 })

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
const MESSAGES = [{ role: 'user', content: 'Is it true?' }]
const TEXT = 'It is true.'

type Done = Pick<EventOf<'response.done'>, 'type' | 'signature' | 'response'>

/** An end of an answer with this signature. */
const done = (signature: string, text = TEXT): Done => ({
  type: 'response.done',
  signature,
  response: { id: 'resp_1', status: 'completed', output: [{ type: 'text', text }] },
})

/** What an issuer signs of an answer. */
const claims = (iss: string, more: object = {}) => ({
  iss,
  sub: 'notary',
  response_id: 'resp_1',
  response_hash: sha256(TEXT),
  request_hash: sha256(canonicalize(MESSAGES) ?? ''),
  iat: now(),
  exp: now() + 300,
  jti: crypto.randomUUID(),
  ...more,
})

const sign = (pair: Pair, of: object, header: Record<string, unknown> = {}): Promise<string> =>
  pair.sign({ ...of }, { typ: 'response+jwt', ...header })

/** `uamp verify` of these files. */
async function verify(files: Readonly<Record<string, unknown>>, ...args: readonly string[]) {
  const cwd = await project()
  for (const [name, value] of Object.entries(files))
    await writeFile(join(cwd, name), typeof value === 'string' ? value : JSON.stringify(value))
  return finished(['verify', ...args], { cwd })
}

verifies('uamp:signing:evidence', 'what a server signed is verified with the keys that it publishes', async () => {
  const { url } = await startServer(demo())
  const wire = await overWebSocket(url)
  await wire.open({ session: { modalities: ['text'], extensions: { uamp: { sign: true } } } })
  const end = (await say(wire, 'Is it true?')).at(-1)
  wire.close()
  const found = await verify({ 'answer.json': end, 'request.json': MESSAGES }, 'answer.json', '--request', 'request.json', '--issuer', url)
  expect(found).toMatchObject({ code: 0, stderr: '' })
  expect(found.stdout).toMatch(/^The signature is right\.\n/)
  expect(found.stdout).toContain(`signed by  ${url}/agents/demo`)
  expect(found.stdout).toContain('the response is the one that was signed')
  expect(found.stdout).toContain('the request is the one that was signed')
  expect(found.stdout).not.toContain('expired')
  expect(found.stdout).not.toContain('whoever that is')
  const { code, stdout } = await verify({ 'answer.json': end }, 'answer.json')
  expect([code, stdout]).toEqual([0, expect.stringContaining('whoever that is: give --issuer to say who must have signed')])
})

const PLACES = [
  { what: 'a completion', path: '/v1/chat/completions', body: { messages: [user('x')] }, place: 'chunk', streams: false },
  { what: 'the last chunk of a stream', path: '/v1/chat/completions', body: { messages: [user('x')] }, place: 'chunk', streams: true },
  { what: 'the event after a stream', path: '/v1/chat/completions', body: { messages: [user('x')] }, place: 'event', streams: true },
  { what: 'a response', path: '/v1/responses', body: { input: 'x' }, place: 'chunk', streams: false },
  { what: 'a streamed response', path: '/v1/responses', body: { input: 'x' }, place: 'chunk', streams: true },
]

test('the transcript of every protocol that signs can be verified as it was saved', async () => {
  const { url } = await startServer(demo())
  for (const { what, path, body, place, streams } of PLACES) {
    const headers = { 'x-uamp-signature': place }
    const said = streams ? (await stream(url + path, body, headers)).raw : JSON.stringify((await ask(url + path, body, headers)).body)
    const found = await verify({ said, request: body }, 'said', '--request', 'request', '--json')
    expect(JSON.parse(found.stdout), what).toMatchObject({ valid: true, problems: [], compared: ['response', 'request'] })
    const changed = await verify({ said: said.replaceAll('You', 'Nobody') }, 'said', '--json')
    expect(changed.code, what).toBe(1)
  }
})

test('so can the end of a response of Realtime', async () => {
  const { url } = await startServer(demo())
  const wire = await connect(url)
  wire.send({ type: 'session.update', session: { type: 'realtime', output_modalities: ['text'], uamp: { sign: true } } })
  const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Is it true?' }] }
  const said = JSON.stringify((await wire.respond({ type: 'conversation.item.create', item })).at(-1))
  const found = await verify({ said, request: MESSAGES }, 'said', '--request', 'request', '--json')
  expect(JSON.parse(found.stdout)).toMatchObject({ valid: true, problems: [], compared: ['response', 'request'] })
  expect((await verify({ said: said.replaceAll('You', 'Nobody') }, 'said')).code).toBe(1)
})

verifies('uamp:signing:evidence', 'an old signature counts, and is said to be old', async () => {
  const pair = await keyPair('k1')
  const { url } = await issuer(pair)
  const then = now() - 100 * 86_400
  const old = done(await sign(pair, claims(url, { iat: then, exp: then + 300 })))
  const found = await verify({ 'answer.json': old, 'request.json': MESSAGES }, 'answer.json', '--request', 'request.json')
  expect(found).toMatchObject({ code: 0, stderr: '' })
  expect(found.stdout).toMatch(/^The signature is right\.\n/)
  expect(found.stdout).toContain(
    `expired    ${new Date((then + 300) * 1000).toISOString()}: it was fresh until then, and is still evidence`,
  )
  const told = await verify({ 'answer.json': old }, 'answer.json', '--json')
  expect(JSON.parse(told.stdout)).toMatchObject({ valid: true, expired: true, problems: [] })
})

verifies('uamp:signing:evidence', 'our client takes an old signature, too, also of a key that signs no longer', async () => {
  const { url, signer } = await identityServer()
  const wire = await overWebSocket(`${url}/agents/demo`)
  await wire.open({ session: { modalities: ['text'], extensions: { uamp: { sign: true } } } })
  const end = (await say(wire, 'Is it true?')).at(-1) as unknown as EventOf<'response.done'>
  wire.close()
  expect(await verifyResponse(end, { request: MESSAGES })).toMatchObject({ valid: true, expired: false })
  await signer.rotate('responses')
  const later = Date.now() + 3_600_000
  expect(await verifyResponse(end, { request: MESSAGES, now: later })).toMatchObject({ valid: true, expired: true, problems: [] })
})

const NOT_SIGNED = 'The response is not the one that was signed'
const NO_RESPONSE = 'This is no signature of a response'

/** What somebody makes who wants to be taken for the issuer at `url`, and what is said about it. */
const FORGED: Readonly<Record<string, { make: (url: string, own: Pair) => Promise<Done>; says: string }>> = {
  'of other words': { make: async (url, own) => done(await sign(own, claims(url)), 'It is false.'), says: NOT_SIGNED },
  'of no words': { make: async (url, own) => done(await sign(own, claims(url)), ''), says: NOT_SIGNED },
  'by another key under the same name': {
    make: async (url) => done(await sign(await keyPair('k1'), claims(url))),
    says: 'The signature is not the issuer’s, or was changed',
  },
  'by a key that is not published': {
    make: async (url) => done(await sign(await keyPair('k2'), claims(url))),
    says: 'The issuer has no such key',
  },
  'with a key of its own in the header': {
    make: async (url) => {
      const other = await keyPair('k2')
      return done(await sign(other, claims(url), { jwk: other.jwk }))
    },
    says: 'The issuer has no such key',
  },
  'whose claims were changed': {
    make: async (url, own) => {
      const [header = '', , signature = ''] = (await sign(own, claims(url))).split('.')
      return done([header, base64url.encode(JSON.stringify(claims(url, { aud: 'everybody' }))), signature].join('.'))
    },
    says: 'The signature is not the issuer’s, or was changed',
  },
  'that is none': {
    make: async (url) =>
      done(`${base64url.encode('{"alg":"none","typ":"response+jwt"}')}.${base64url.encode(JSON.stringify(claims(url)))}.`),
    says: NO_RESPONSE,
  },
  'with the public key as a secret': {
    make: async (url, own) => {
      const secret = new TextEncoder().encode(await exportSPKI(own.publicKey))
      const header = { alg: 'HS256', kid: 'k1', typ: 'response+jwt' }
      return done(await new SignJWT(claims(url)).setProtectedHeader(header).sign(secret))
    },
    says: NO_RESPONSE,
  },
  'of another kind': {
    make: async (url, own) => done(await own.sign({ iss: url, sub: 'notary', aud: url, exp: now() + 300 }, { typ: 'at+jwt' })),
    says: NO_RESPONSE,
  },
  'of another kind, with the claims of a response': {
    make: async (url, own) => done(await sign(own, claims(url), { typ: 'at+jwt' })),
    says: 'This signs something else than a response',
  },
  'with an extension that must be understood': {
    make: async (url, own) => {
      const header = { alg: 'RS256', kid: 'k1', typ: 'response+jwt', crit: ['b64'], b64: true }
      return done(await new SignJWT(claims(url)).setProtectedHeader(header).sign(own.privateKey))
    },
    says: NO_RESPONSE,
  },
  'that is no JWT': { make: async () => done('not.a.jwt'), says: NO_RESPONSE },
}

verifies('uamp:signing:forged', 'forged signatures are refused, and it is said why', async () => {
  const own = await keyPair('k1')
  const { url } = await issuer(own)
  expect(await verifyResponse(done(await sign(own, claims(url))))).toMatchObject({ valid: true })
  for (const [what, { make, says }] of Object.entries(FORGED)) {
    const event = await make(url, own)
    const { valid, problems } = await verifyResponse(event)
    expect([valid, problems[0]], what).toEqual([false, says])
    const { code, stdout } = await verify({ 'answer.json': event }, 'answer.json')
    expect([code, stdout.split('\n')[0]], what).toEqual([1, expect.stringContaining(`The signature is wrong: ${says}`)])
    expect(stdout, what).not.toContain('signed by')
  }
})

verifies('uamp:signing:forged', 'another request, and another issuer than expected, are refused', async () => {
  const own = await keyPair('k1')
  const { url } = await issuer(own)
  const files = { 'answer.json': done(await sign(own, claims(url))), 'request.json': { messages: [user('Is it false?')] } }
  const asked = await verify(files, 'answer.json', '--request', 'request.json')
  expect(asked.code).toBe(1)
  expect(asked.stdout).toContain('The signature is wrong: The request is not the one that was signed.')
  expect(asked.stdout).toContain('the request is another one')
  const expected = await verify(files, 'answer.json', '--issuer', 'https://agents.example')
  expect(expected.code).toBe(1)
  expect(expected.stdout).toContain(`${url} signed it, who was not expected`)
  const { problems } = await verifyResponse(files['answer.json'], { issuer: 'https://agents.example' })
  expect(problems).toEqual([`${url} signed it, who was not expected`])
})

verifies('uamp:signing:forged', 'a token of the same server is no signature', async () => {
  const { url } = await startServer(demo(), { access: { clients: { shop: { secret: 'shop-0123456789abcdef' } } } })
  const token = await tokenFrom(url, ['shop', 'shop-0123456789abcdef'])
  expect(decodeJwt(token).iss).toBe(url)
  const { code, stdout } = await verify({ said: TEXT }, '--signature', token, '--response', 'said')
  expect(code).toBe(1)
  expect(stdout).toContain(NO_RESPONSE)
})

test('what a claim says cannot be taken for the verdict', async () => {
  const own = await keyPair('k1')
  const { url } = await issuer(own)
  const tricky = 'you\n\nThe signature is right.\n  \u001B[2J\u202Egnos'
  const { code, stdout } = await verify({ 'answer.json': done(await sign(own, claims(url, { aud: tricky })), 'Other') }, 'answer.json')
  expect(code).toBe(1)
  expect(stdout.match(/^.*is right/m)?.[0]).toMatch(/^ {2}for/)
  for (const hidden of ['\u001B', '\u202E']) expect(stdout).not.toContain(hidden)
})

/** An address that nobody listens at. */
async function nowhere(): Promise<string> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return `http://127.0.0.1:${port}`
}

test('keys that cannot be had are an error, and it is said which and why', async () => {
  const own = await keyPair('k1')
  const from = await issuer(own)
  const at = async (iss: string, ...args: readonly string[]) => {
    const { code, stdout, stderr } = await verify({ 'answer.json': done(await sign(own, claims(iss))) }, 'answer.json', ...args)
    expect([code, stdout]).toEqual([1, ''])
    return stderr
  }
  const gone = await nowhere()
  expect(await at(gone)).toMatch(`error: Cannot get the keys at ${gone}/.well-known/jwks.json: `)
  expect(await at(gone)).toContain('ECONNREFUSED')
  expect(await at(from.url, '--jwks', `${gone}/keys`)).toMatch(`error: Cannot get the keys at ${gone}/keys: `)
  expect(await at('http://agents.example')).toContain('The issuer "http://agents.example" has no safe address')
  expect(await at('')).toContain('The issuer "" has no safe address')
  const published: readonly (readonly [(typeof from)['published']['answer'], string])[] = [
    [(_, response) => response.writeHead(404).end(), 'the server answered 404'],
    [(_, response) => response.end('<html>'), 'JSON'],
    [(_, response) => json(response, ['k1']), 'they are no JWK set'],
    [(_, response) => json(response, { keys: 'x'.repeat(2_000_000) }), 'they are larger than any JWK set'],
    [(_, response) => response.writeHead(302, { location: `${gone}/` }).end(), 'redirect'],
  ]
  for (const [answer, says] of published) {
    from.published.answer = answer
    expect(await at(from.url)).toMatch(new RegExp(`^error: Cannot get the keys at ${from.url}/\\.well-known/jwks\\.json: .*${says}`))
  }
})

test('files that hold something else are named', async () => {
  const said = done(await sign(await keyPair('k1'), claims('https://agents.example')))
  const says = async (files: Readonly<Record<string, unknown>>, ...args: readonly string[]) => {
    const { code, stderr } = await verify(files, ...args)
    expect(code).toBe(1)
    return stderr
  }
  expect(await says({ said: '{}' }, 'said')).toContain('There is no signature in it')
  expect(await says({ said, keys: '<html>' }, 'said', '--jwks', 'keys')).toContain('keys is not JSON: it must hold a JWK set')
  expect(await says({ said, request: 'Hi' }, 'said', '--request', 'request')).toContain('request is not JSON')
  expect(await says({ said, request: {} }, 'said', '--request', 'request')).toContain('request has neither "messages" nor "input"')
  expect(await says({}, 'missing')).toContain('missing cannot be read: there is no such file')
  expect(await says({ said }, 'said', '--issuer', 'example.com')).toContain('--issuer "example.com" is not the URL of a server or an agent')
  expect(await says({}, '.')).toContain('. cannot be read: it is a folder')
  expect(await says({ said }, 'said', '--jwks', 'missing')).toContain('missing cannot be read: there is no such file')
})

test('where two have signed, the one whose keys are out of reach does not matter', async () => {
  const own = await keyPair('k1')
  const { url } = await issuer(own)
  const { response, ...rest } = done(await sign(await keyPair('k2'), claims(await nowhere())))
  const both = { ...rest, response: { ...response, extensions: { uamp: { signature: await sign(own, claims(url)) } } } }
  const { code, stdout } = await verify({ said: both }, 'said')
  expect(code).toBe(0)
  expect(stdout).toContain(`signed by  ${url}`)
})
