/** Two organisations: one asks the other by signed messages, and believes only what is signed. */
import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { connect } from '../../src/client/node.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { remoteEnvelope } from '../../src/remotes/envelope/index.ts'
import type { AgentPort } from '../../src/core/ports/agent.ts'
import { coin } from '../support/money.ts'
import { startServer } from '../support/server.ts'

async function companies(agents: AgentPort | readonly AgentPort[] = demo()) {
  const there = await startServer(agents, { defaultAgent: 'demo', insecureDev: true, envelope: {} })
  const here = await startServer(remoteEnvelope({ name: 'partner', url: there.url }), { insecureDev: true, envelope: {} })
  const client = connect(here.url)
  onTestFinished(() => client.close())
  return { there, here, client }
}

async function say(client: ReturnType<typeof connect>, text: string): Promise<string> {
  return (await client.session()).say(text)
}

test('an agent of another organisation answers here', async () => {
  const { client, here } = await companies()
  expect(await say(client, '/count 1000')).toBe(Array.from({ length: 1000 }, (_, number) => number + 1).join(' '))
  const body = JSON.stringify({ model: 'partner', messages: [{ role: 'user', content: 'hello' }] })
  const answer = (await (await fetch(`${here.url}/v1/chat/completions`, { method: 'POST', body })).json()) as {
    choices: { message: { content: string } }[]
  }
  expect(answer.choices[0]?.message.content).toBe('You said: hello')
})

test('a conversation goes on there, and one that it does not know is told first', async () => {
  const { client, here } = await companies()
  const session = await client.session()
  await session.say('My name is Ann')
  const history = await session.say('/history')
  expect(history).toContain('My name is Ann')
  expect(history).not.toContain('The conversation so far')
  const messages = [
    { role: 'user', content: 'My name is Ben' },
    { role: 'assistant', content: 'Hello' },
    { role: 'user', content: 'again' },
  ]
  const response = await fetch(`${here.url}/v1/chat/completions`, { method: 'POST', body: JSON.stringify({ model: 'partner', messages }) })
  expect(JSON.stringify(await response.json())).toContain('My name is Ben')
})

test('its questions come to our client, and the answers go back', async () => {
  const { there, client } = await companies()
  const approving = await client.session({ onApproval: () => true })
  expect(await approving.say('/approve the plan')).toMatch(/approved/i)
  const tools = { weather: { parameters: { type: 'object' }, run: () => 'sun' } }
  const withTools = await client.session({ tools: tools as never })
  expect(await withTools.say('/tool clock {}')).toMatch(/\d/)
  const token = await coin(there, '1')
  const { tokenWallet } = await import('../../src/client/index.ts')
  const paying = await startServer(remoteEnvelope({ name: 'partner', url: there.url, wallet: tokenWallet(token) }), {
    insecureDev: true,
    envelope: {},
  })
  const payer = connect(paying.url)
  onTestFinished(() => payer.close())
  expect(await say(payer, '/pay 0.05')).toBe('Paid 0.05 USD. Thank you.')
})

test('a cancel reaches the other side, and its agent cleans up', async () => {
  let cleaned = 0
  const slow = defineAgent('demo', async function* (turn) {
    try {
      yield 'begun'
      await new Promise((_, reject) => turn.signal.addEventListener('abort', () => reject(turn.signal.reason as Error)))
    } finally {
      cleaned++
    }
  })
  const { client } = await companies(slow)
  const stop = new AbortController()
  const session = await client.session()
  const answer = session.ask('go', { signal: stop.signal })
  const heard = (async () => {
    for await (const event of answer) if (event.type === 'response.delta') stop.abort()
  })()
  await expect(heard).rejects.toThrow('aborted')
  await expect.poll(() => cleaned).toBe(1)
})

test('an error there is an error here, with its reason', async () => {
  const { client } = await companies()
  await expect(say(client, '/error overloaded')).rejects.toMatchObject({ code: 'provider_error' })
})

type Change = (path: string, body: string) => string

/** The answer of another organisation, through somebody who may change it on the way. */
async function through(change: Change): Promise<string> {
  let target = ''
  const proxy = createServer((request, response) => {
    void (async () => {
      const pieces: Buffer[] = []
      for await (const piece of request) pieces.push(piece as Buffer)
      const answer = await fetch(target + request.url, {
        method: request.method ?? 'GET',
        headers: { 'content-type': request.headers['content-type'] ?? 'text/plain' },
        ...(request.method === 'POST' && { body: Buffer.concat(pieces) }),
      })
      const location = answer.headers.get('location')
      response.writeHead(answer.status, { ...(location !== null && { location }) })
      response.end(change(request.url ?? '', await answer.text()))
    })().catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void proxy.close())
  const url = `http://localhost:${(proxy.address() as { port: number }).port}`
  target = (await startServer(demo(), { insecureDev: true, envelope: {}, publicUrl: url })).url
  const here = await startServer(remoteEnvelope({ name: 'partner', url }), { insecureDev: true, envelope: {} })
  const client = connect(here.url)
  onTestFinished(() => client.close())
  return say(client, '/count 3').catch((thrown: Error) => thrown.message)
}

const inClosing =
  (change: (body: string) => string): Change =>
  (path, body) =>
    path.startsWith('/v1/messages/') ? change(body) : body

test.each<[string, Change, RegExp]>([
  ['nothing', (_, body) => body, /^1 2 3$/],
  [
    'a word of the answer',
    (path, body) => (path.startsWith('/v1/stream') ? body.replace('"text":"1', '"text":"7') : body),
    /not what its end says/,
  ],
  ['the signed answer', inClosing((body) => body.replace('1 2 3', '1 2 4')), /not signed as it has to be/],
  ['the hash in the signed answer', inClosing((body) => body.replace(/("stream_sha256":")./, '$1x')), /not signed as it has to be/],
  ['the signature', inClosing((body) => body.replace(/\.\.[\w-]{9}/, '..AAAAAAAAA')), /not signed as it has to be/],
  ['the signed answer into none', inClosing(() => '{}'), /not signed as it has to be/],
])('what becomes of an answer in which somebody changes %s', async (_, change, told) => {
  expect(await through(change)).toMatch(told)
})

test('a server signs as its agent, and shows a token of that agent which the other one believes', async () => {
  const here = await startServer(demo(), { insecureDev: true, envelope: {} })
  const allow = [here.url]
  const there = await startServer(
    defineAgent('worker', async function* (turn) {
      yield `You are ${turn.principal.subject} of ${turn.principal.issuer}`
    }),
    {
      tokens: { somebody: 'a-secret-of-somebody' },
      access: { agents: { allow } },
      outbound: { allow: ['127.0.0.1'] },
      insecureDev: true,
      envelope: {},
    },
  )
  here.agents.add(remoteEnvelope({ name: 'partner', url: there.url, auth: { type: 'self' } }))
  const client = connect(here.url, { agent: 'partner' })
  onTestFinished(() => client.close())
  expect(await say(client, 'who am I?')).toBe(`You are partner of ${here.url}`)
  // With the token of one agent nobody signs as another.
  here.agents.add(remoteEnvelope({ name: 'stranger', url: there.url, token: 'a-secret-of-somebody' }))
  const stranger = connect(here.url, { agent: 'stranger' })
  onTestFinished(() => stranger.close())
  await expect(say(stranger, 'who am I?')).rejects.toMatchObject({ message: '"stranger" answered 403' })
})
