import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { connect } from '../../src/client/node.ts'
import { serve, type RunningServer } from '../../src/serve/index.ts'
import { has, startCaddy, startNginx, type Proxy } from './proxies.ts'

const TOKEN = 'a-secret-of-the-website'
const HOST = 'museum.example'

/** Status and text of a request from another address of this machine, by the name that clients use. */
async function get(url: string, { from, headers = {} }: { from?: string; headers?: Record<string, string> }) {
  const asking = request(url, { ...(from === undefined ? {} : { localAddress: from }), headers: { host: HOST, ...headers } })
  asking.end()
  const [response] = (await once(asking, 'response')) as [IncomingMessage]
  let text = ''
  for await (const piece of response.setEncoding('utf8')) text += piece as string
  return { status: response.statusCode, text }
}

/** CI has nginx. Whoever changes the recipe for Caddy has that. */
const PROXIES = { nginx: startNginx, ...(has('caddy') ? { caddy: startCaddy } : {}) }

describe.each(Object.entries(PROXIES))('behind %s, set up as in deploy/', (name, start) => {
  const missing = !has(name)
  let server: RunningServer
  let proxy: Proxy
  /** Lets the agent say its second word. */
  let goOn = (): void => undefined

  const patient = defineAgent('patient', async function* () {
    const waiting = new Promise<void>((resolve) => (goOn = resolve))
    yield 'first '
    await waiting
    yield 'second'
  })

  beforeAll(async () => {
    if (missing) return
    const tokens = { website: TOKEN }
    server = await serve(patient, {
      port: 0,
      data: 'memory',
      tokens,
      trustProxy: ['127.0.0.1'],
      allowedHosts: [HOST],
      log: () => undefined,
    })
    proxy = await start(`127.0.0.1:${server.port}`)
  })
  afterAll(async () => {
    if (missing) return
    await proxy.stop()
    await server.close({ graceMs: 0 })
  })

  test.for(['sse', 'websocket'] as const)('an event over %s is there before the next one is said', async (transport, { skip }) => {
    if (missing) return skip(`${name} is not on the PATH`)
    const client = connect(proxy.url, { transport, token: TOKEN })
    const session = await client.session()
    let said = ''
    for await (const event of session.ask('hello')) {
      if (event.type === 'response.delta' && event.delta.type === 'text') said += event.delta.text
      if (said === 'first ') goOn()
    }
    client.close()
    expect(said).toBe('first second')
  })

  test('a stream of Chat Completions is not held back', async ({ skip }) => {
    if (missing) return skip(`${name} is not on the PATH`)
    const response = await fetch(`${proxy.url}/bots/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'accept-encoding': 'gzip' },
      body: JSON.stringify({ model: 'patient', stream: true, messages: [{ role: 'user', content: 'hello' }] }),
    })
    let text = ''
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece
      if (text.includes('first')) goOn()
    }
    expect(text).toContain('second')
  })

  test('addresses in answers have the name and the prefix that the client used', async ({ skip }) => {
    if (missing) return skip(`${name} is not on the PATH`)
    const forged = { forwarded: 'host=evil.example', 'x-forwarded-prefix': '/evil' }
    const urls = (text: string) =>
      (JSON.parse(text) as { supportedInterfaces: { url: string }[] }).supportedInterfaces.map(({ url }) => url)
    const atRoot = await get(`${proxy.url}/.well-known/agent-card.json`, { headers: forged })
    const below = await get(`${proxy.url}/bots/.well-known/agent-card.json`, { headers: forged })
    expect(urls(atRoot.text)[0]).toMatch(/^http:\/\/museum\.example\/a2a/)
    expect(urls(below.text)[0]).toMatch(/^http:\/\/museum\.example\/bots\/a2a/)
  })

  test('wrong tokens are counted for the client, and not for the proxy or for whom the client names', async ({ skip }) => {
    if (missing) return skip(`${name} is not on the PATH`)
    const guess = (from: string, number: number) =>
      get(`${proxy.url}/v1/models`, {
        from,
        headers: { authorization: `Bearer wrong-${number}`, 'x-forwarded-for': `198.51.100.${number}` },
      })
    const statuses: (number | undefined)[] = []
    for (let number = 0; number < 40; number += 1) statuses.push((await guess('127.0.0.2', number)).status)
    expect(statuses[0]).toBe(401)
    expect(statuses.at(-1)).toBe(429)
    expect((await guess('127.0.0.3', 1)).status).toBe(401)
  })
})
