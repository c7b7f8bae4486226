/**
 * Every kind of signature, checked by a stranger: the server is a process, what it says is read from the wire, its keys come from where it
 * publishes them, and jose alone verifies. Nothing of ours is imported.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import canonicalize from 'canonicalize'
import { createRemoteJWKSet, decodeJwt, decodeProtectedHeader, flattenedVerify, jwtVerify, type JWTPayload } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

const AGENT = `export default {
  name: 'notary',
  description: 'Repeats what it is told',
  capabilities: { id: 'notary', provider: 'test', modalities: ['text'], supports_streaming: true, supports_thinking: false, supports_caching: false },
  async *run({ messages }) {
    const said = messages.at(-1)?.content ?? ''
    for (const word of ('You said: ' + said).split(/(?<= )/)) yield { type: 'response.delta', delta: { type: 'text', text: word } }
  },
}
`
const CONFIG = `agents: [./agent.mjs]
tokens: { alice: open-sesame-open-sesame }
a2a: { sign: true }
`
const TEXT = 'You said: héllo "wörld"'
const MESSAGES = [
  { role: 'system', content: 'Be brief' },
  { content: 'héllo "wörld"', role: 'user' },
]
const headers = { authorization: 'Bearer open-sesame-open-sesame', 'content-type': 'application/json' }

let url = ''
let stop = async (): Promise<void> => undefined

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'signatures-'))
  await writeFile(join(folder, 'agent.mjs'), AGENT)
  await writeFile(join(folder, 'uamp.config.yaml'), CONFIG)
  const child = spawn(process.execPath, [MAIN, 'serve', '--port', '0', '--data', 'memory'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  stop = async () => {
    if (child.exitCode === null && child.kill('SIGKILL')) await once(child, 'close')
    await rm(folder, { recursive: true, force: true })
  }
  url = await new Promise<string>((resolve, reject) => {
    const heard = (data: Buffer): void => {
      output += data.toString()
      const found = /http:\/\/[\w.]+:\d+/.exec(output)?.[0]
      if (found) resolve(found)
    }
    child.stdout.on('data', heard)
    child.stderr.on('data', heard)
    child.once('close', () => reject(new Error(`The server ended: ${output}`)))
  })
})

afterAll(() => stop())

const sha256 = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex')
const hashOf = (value: unknown): string => sha256(canonicalize(value) ?? '')

/** Verifies as the issuer's keys say, which are found from the signature alone. */
async function checked(signature: unknown): Promise<JWTPayload & Record<string, unknown>> {
  expect(signature).toEqual(expect.any(String))
  const { iss = '' } = decodeJwt(signature as string)
  const keys = createRemoteJWKSet(new URL(`${iss}/.well-known/jwks.json`))
  const { payload, protectedHeader } = await jwtVerify(signature as string, keys, { issuer: iss, audience: 'alice', algorithms: ['RS256'] })
  expect(protectedHeader).toEqual({ alg: 'RS256', kid: expect.any(String), typ: 'response+jwt' })
  return payload
}

function claims(request: unknown, text = TEXT): object {
  return {
    iss: expect.stringMatching(/^http:\/\/[\w.]+:\d+\/agents\/notary$/),
    sub: 'notary',
    aud: 'alice',
    response_id: expect.stringMatching(/^resp_/),
    response_hash: sha256(text),
    request_hash: hashOf(request),
    iat: expect.any(Number),
    exp: expect.any(Number),
    jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
  }
}

/** What a socket says, up to the first event of a type. */
async function converse(path: string, send: readonly object[], last: string): Promise<Record<string, unknown>[]> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}${path}`, { headers: { authorization: 'Bearer open-sesame-open-sesame' } })
  const heard: Record<string, unknown>[] = []
  await once(socket, 'open')
  await new Promise<void>((resolve, reject) => {
    socket.on('message', (data: Buffer) => {
      const event = JSON.parse(data.toString()) as Record<string, unknown>
      heard.push(event)
      if (event['type'] === last) resolve()
      if (String(event['type']).endsWith('error')) reject(new Error(data.toString()))
    })
    socket.once('close', () => reject(new Error('The socket was closed')))
    for (const event of send) socket.send(JSON.stringify(event))
  })
  socket.close()
  return heard
}

async function complete(body: object, signature: string): Promise<string> {
  const init = {
    method: 'POST',
    headers: { ...headers, 'x-uamp-signature': signature },
    body: JSON.stringify({ messages: MESSAGES, ...body }),
  }
  return (await fetch(`${url}/v1/chat/completions`, init)).text()
}

test('UAMP events: response.done', async () => {
  const heard = await converse(
    '/uamp',
    [
      {
        type: 'session.create',
        event_id: '1',
        uamp_version: '1.0',
        session: { modalities: ['text'], extensions: { uamp: { sign: true } } },
      },
      { type: 'input.text', event_id: '2', text: 'Be brief', role: 'system' },
      { type: 'input.text', event_id: '3', text: 'héllo ' },
      { type: 'input.text', event_id: '4', text: '"wörld"' },
      { type: 'response.create', event_id: '5' },
    ],
    'response.done',
  )
  const payload = await checked(heard.at(-1)?.['signature'])
  expect(payload).toEqual(claims(MESSAGES))
  expect(payload['response_id']).toBe(heard.at(-1)?.['response_id'])
  expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(300)
})

test('Realtime: response.done', async () => {
  const said = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'héllo "wörld"' }] }
  const heard = await converse(
    '/v1/realtime?model=notary',
    [
      { type: 'session.update', session: { type: 'realtime', output_modalities: ['text'], uamp: { sign: true } } },
      { type: 'conversation.item.create', item: said },
      { type: 'response.create' },
    ],
    'response.done',
  )
  expect(await checked(heard.at(-1)?.['signature'])).toEqual(claims([MESSAGES[1]]))
})

test('Chat Completions: in the answer, and the same when it is read again', async () => {
  const completion = JSON.parse(await complete({ store: true }, 'chunk')) as { id: string; signature: string }
  expect(await checked(completion.signature)).toEqual(claims(MESSAGES))
  const again = (await (await fetch(`${url}/v1/chat/completions/${completion.id}`, { headers })).json()) as { signature: string }
  expect(again.signature).toBe(completion.signature)
})

test('Chat Completions: in the last chunk of a stream', async () => {
  const lines = (await complete({ stream: true }, 'chunk')).trim().split('\n\n')
  expect(lines.at(-1)).toBe('data: [DONE]')
  const chunk = JSON.parse(lines.at(-2)?.slice('data: '.length) ?? '') as { signature: string }
  expect(await checked(chunk.signature)).toEqual(claims(MESSAGES))
})

test('Chat Completions: as an event after the end of a stream', async () => {
  const lines = (await complete({ stream: true }, 'event')).trim().split('\n\n')
  expect(lines.at(-2)).toBe('data: [DONE]')
  const [name, data = ''] = lines.at(-1)?.split('\n') ?? []
  expect(name).toBe('event: response_signature')
  expect(await checked((JSON.parse(data.slice('data: '.length)) as { signature: string }).signature)).toEqual(claims(MESSAGES))
})

test('Responses: in the response, and the same when it is read again', async () => {
  const input = [{ role: 'user', content: [{ type: 'input_text', text: 'héllo "wörld"' }] }]
  const init = { method: 'POST', headers: { ...headers, 'x-uamp-signature': 'chunk' }, body: JSON.stringify({ input }) }
  const response = (await (await fetch(`${url}/v1/responses`, init)).json()) as { id: string; signature: string }
  expect(await checked(response.signature)).toEqual(claims(input))
  const again = (await (await fetch(`${url}/v1/responses/${response.id}`, { headers })).json()) as { signature: string }
  expect(again.signature).toBe(response.signature)
})

test.each(['', '/agents/notary'])('agent cards at "%s"', async (path) => {
  const { signatures, ...card } = (await (
    await fetch(`${url}${path}/.well-known/agent-card.json`, { headers: { 'a2a-version': '1.0' } })
  ).json()) as {
    signatures: { protected: string; signature: string }[]
  }
  const [{ protected: header, signature } = { protected: '', signature: '' }] = signatures
  const { jku } = JSON.parse(Buffer.from(header, 'base64url').toString()) as { jku: string }
  const jws = { protected: header, signature, payload: Buffer.from(canonicalize(withoutDefaults(card)) ?? '').toString('base64url') }
  const { protectedHeader } = await flattenedVerify(jws, createRemoteJWKSet(new URL(jku)))
  expect(protectedHeader).toMatchObject({
    alg: 'ES256',
    typ: 'JOSE',
    jku: expect.stringMatching(/^http:\/\/[\w.]+:\d+\/\.well-known\/jwks\.json$/),
  })
  const changed = Buffer.from(canonicalize({ ...withoutDefaults(card), name: 'forged' }) ?? '').toString('base64url')
  await expect(flattenedVerify({ ...jws, payload: changed }, createRemoteJWKSet(new URL(jku)))).rejects.toThrow('signature verification')
})

/** A2A 1.0 §8.4.1: members at their default are not signed. */
function withoutDefaults(value: object): object {
  const isKept = ([name, member]: [string, unknown]): boolean =>
    !(Array.isArray(member) && member.length === 0) && !(name === 'required' && member === false)
  const inside = (member: unknown): unknown => {
    if (Array.isArray(member)) return member.map(inside)
    return typeof member === 'object' && member !== null ? withoutDefaults(member) : member
  }
  return Object.fromEntries(
    Object.entries(value)
      .filter(isKept)
      .map(([name, member]) => [name, inside(member)]),
  )
}

test.each([
  ['the server', ''],
  ['an agent', '/agents/notary'],
])('access tokens of %s', async (_, path) => {
  const metadata = (await (await fetch(`${url}${path}/.well-known/oauth-authorization-server`)).json()) as Record<string, string>
  const { issuer = '', jwks_uri: keys = '', token_endpoint: endpoint = '' } = metadata
  expect(issuer.endsWith(path)).toBe(true)
  const answer = await fetch(endpoint, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa('alice:open-sesame-open-sesame')}` },
    body: new URLSearchParams({ grant_type: 'client_credentials', target: '@notary' }),
  })
  const { access_token: token = '' } = (await answer.json()) as { access_token?: string }
  const audience = `${issuer.replace(/\/agents\/notary$/, '')}/agents/notary`
  const options = { issuer, audience, typ: 'at+jwt', algorithms: ['RS256'], subject: 'alice', maxTokenAge: 60 }
  const { payload, protectedHeader } = await jwtVerify(token, createRemoteJWKSet(new URL(keys)), options)
  expect(payload).toMatchObject({ client_id: 'alice', jti: expect.any(String) })
  expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(300)
  // It opens the door, which a signature of an answer does not, though it is signed by the same server for the same caller.
  const call = async (bearer: string): Promise<number> => {
    const sent = { method: 'POST', headers: { ...headers, authorization: `Bearer ${bearer}`, 'x-uamp-signature': 'chunk' } }
    return (await fetch(`${url}/v1/chat/completions`, { ...sent, body: JSON.stringify({ messages: MESSAGES }) })).status
  }
  expect(await call(token)).toBe(200)
  const { signature } = JSON.parse(await complete({}, 'chunk')) as { signature: string }
  expect(await call(signature)).toBe(401)
  expect(decodeProtectedHeader(signature).kid).not.toBe(protectedHeader.kid)
})

test('without being asked, nothing is signed', async () => {
  const init = { method: 'POST', headers, body: JSON.stringify({ messages: MESSAGES }) }
  expect(await (await fetch(`${url}/v1/chat/completions`, init)).json()).not.toHaveProperty('signature')
})
