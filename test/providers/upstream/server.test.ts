import { Agent, request } from 'node:http'
import { describe, expect, test } from 'vitest'
import { fixtureNames, loadFixture } from './fixtures.ts'
import { BAD_KEY, startUpstream } from './index.ts'
import { pieces } from './play.ts'

const KEY = { authorization: 'Bearer key', 'x-api-key': 'key', 'x-goog-api-key': 'key', 'anthropic-version': '2023-06-01' }

const vendors = {
  openai: '/openai/v1/chat/completions',
  responses: '/openai/v1/responses',
  compatible: '/compatible/v1/chat/completions',
  anthropic: '/anthropic/v1/messages',
  google: '/google/v1beta/models/{model}:streamGenerateContent?alt=sse',
} as const
type Name = keyof typeof vendors
const names = Object.keys(vendors) as Name[]

/** The vendor's own request for text, to another model. */
function ask(
  url: string,
  vendor: Name,
  model: string,
  { headers = KEY as Record<string, string>, signal = new AbortController().signal } = {},
) {
  const [exchange] = loadFixture([vendor, 'openai'], 'text') ?? []
  const body = { ...(JSON.parse(exchange?.request.text ?? '{}') as object), ...(vendor !== 'google' && { model }) }
  const path = vendors[vendor].replace('{model}', encodeURIComponent(model))
  return fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body), signal })
}

const textOf = (vendor: Name) =>
  (loadFixture([vendor, 'openai'], 'text')?.[0]?.chunks ?? [])
    .map((chunk) => chunk.text ?? '')
    .join('')
    .replaceAll('{{id}}', '000001')

describe.each(names)('%s', (vendor) => {
  test.each(['burst', 'split', 'slow'])('sent by %s the stream is the same', async (how) => {
    const { url } = await startUpstream()
    const model = `text+${how}`
    const response = await ask(url, vendor, model)
    expect(await response.text()).toBe(textOf(vendor).replaceAll('{{model}}', model))
  })

  test('breaks off as it is told to', async () => {
    const { url } = await startUpstream()
    await expect(ask(url, vendor, 'text+cut').then((response) => response.text())).rejects.toThrow()
    const short = await (await ask(url, vendor, 'text+short')).text()
    const half = await (await ask(url, vendor, 'text+half')).text()
    expect(short).toMatch(/\n\r?\n$/)
    expect(half).not.toMatch(/\n\r?\n$/)
    expect(half.length).toBeGreaterThan(short.length)
    const failing = await (await ask(url, vendor, 'text+failing')).text()
    expect(failing).toMatch(/Overloaded in the middle[^\n]*\n\r?\n$/)
  })

  test.each(['text+stall', 'text+endless-comments', 'comments-only', 'silent'])('counts a reader that leaves %s', async (model) => {
    const upstream = await startUpstream()
    const leaving = new AbortController()
    const answer = ask(upstream.url, vendor, model, { signal: leaving.signal })
    if (model === 'silent') await upstream.until(() => upstream.requests.length === 1)
    else await (await answer).body?.getReader().read()
    leaving.abort()
    if (model === 'silent') await expect(answer).rejects.toThrow()
    await upstream.until(() => upstream.aborts === 1)
    expect(upstream.answers).toBe(1)
  })

  test('follows a script, then the header, then the model', async () => {
    const { url, requests, ...upstream } = await scripted(vendor, ['error-500', { status: 418, headers: {}, body: 'tea' }, 'text'])
    const statuses = []
    for (let n = 0; n < 4; n++) statuses.push((await ask(url, vendor, 'error-429')).status)
    expect(statuses).toEqual([500, 418, 200, 429])
    expect((await ask(url, vendor, 'error-429', { headers: { ...KEY, 'x-upstream': 'length' } })).status).toBe(200)
    expect(requests.map((seen) => seen.vendor)).toEqual(Array(5).fill(vendor))
    expect(upstream.aborts).toBe(0)
  })

  test('is refused once by a flaky model', async () => {
    const { url } = await startUpstream()
    const statuses = [await ask(url, vendor, 'text+flaky'), await ask(url, vendor, 'text+flaky')].map(({ status }) => status)
    expect(statuses).toEqual([503, 200])
  })

  test('answers what is no answer', async () => {
    const { url } = await startUpstream()
    const html = await ask(url, vendor, 'html')
    expect([html.status, html.headers.get('content-type'), await html.text()]).toEqual([502, 'text/html', expect.stringContaining('<h1>')])
    expect((await ask(url, vendor, 'html-200')).status).toBe(200)
    const odd = await ask(url, vendor, 'error-in-200')
    expect([odd.status, await odd.json()]).toEqual([
      200,
      expect.objectContaining({ error: expect.objectContaining({ message: expect.any(String) }) }),
    ])
    expect(await (await ask(url, vendor, 'empty')).text()).toBe('')
  })

  test('an unknown model echoes, and a wrong key is refused', async () => {
    const { url } = await startUpstream()
    expect(await (await ask(url, vendor, 'some/model-7b')).text()).toContain('You said: ')
    const wrong = { ...KEY, authorization: `Bearer ${BAD_KEY}`, 'x-api-key': BAD_KEY, 'x-goog-api-key': BAD_KEY }
    expect((await ask(url, vendor, 'text', { headers: wrong })).status).toBe(vendor === 'google' ? 400 : 401)
  })
})

async function scripted(vendor: Name, answers: Parameters<Awaited<ReturnType<typeof startUpstream>>['script']>[1][]) {
  const upstream = await startUpstream()
  upstream.script(vendor, ...answers)
  return { url: upstream.url, requests: upstream.requests, aborts: upstream.aborts }
}

test('every vendor has the same scenarios', () => {
  const [openai, ...others] = (['openai', 'responses', 'anthropic', 'google'] as const).map((vendor) => new Set(fixtureNames(vendor)))
  for (const other of others) expect([...(openai ?? [])].filter((name) => !other.has(name))).toEqual([])
})

test('a split stream cuts characters', () => {
  const events = ['data: "Grüße, 世界 👋🏽"\n\n']
  const sent = [...pieces(events, new Set(['split']))].map((piece) => Buffer.from(piece))
  const isWhole = (bytes: Uint8Array) => Buffer.from(Buffer.from(bytes).toString('utf8')).equals(bytes)
  expect(sent.some((bytes) => !isWhole(bytes))).toBe(true)
  expect(Buffer.concat(sent).toString('utf8')).toBe(events[0])
})

test('counts connections, not requests', async () => {
  const upstream = await startUpstream()
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  for (let n = 0; n < 3; n++) {
    await new Promise((resolve, reject) => {
      const sent = request(`${upstream.url}/openai/v1/models`, { agent, headers: KEY }, (answer) => answer.resume().on('end', resolve))
      sent.on('error', reject).end()
    })
  }
  expect([upstream.connections, upstream.open, upstream.answers, upstream.aborts]).toEqual([1, 1, 3, 0])
  agent.destroy()
  await upstream.until(() => upstream.open === 0)
})

test('a misspelt delivery is said so', async () => {
  const { url } = await startUpstream()
  const response = await ask(url, 'openai', 'text+brust')
  expect([response.status, await response.text()]).toEqual([500, 'Error: No such delivery: brust'])
})
