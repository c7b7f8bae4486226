/** What must happen once, asked for many times at once, or while it goes away. */
import { expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { heldBytes } from '../support/server.ts'
import { chainOf, frames, hashOf, message, post, signed, textIn, type Members } from './company.ts'
import { ANYBODY, gate, world } from './world.ts'

const alias = (stream: string) => ({ protocol: 'envelope', id: stream.split('/').at(-1) ?? '' })

const repeat = <T>(count: number, run: () => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: count }, run))

test('of many messages that name one stream at once, one opens it', async () => {
  const { tell } = await world(demo())
  const answers = await repeat(20, () => tell({ stream_id: 'mine' }))
  expect(answers.filter(({ status }) => status === 202)).toHaveLength(1)
  for (const answer of answers.filter(({ status }) => status !== 202)) {
    expect([answer.status, await answer.json()]).toMatchObject([422, { code: '4.22', reason: 'stream_id' }])
  }
})

test('who asks for the signed answer many times at once gets one message, which stays', async () => {
  const { ask, outcome } = await world(demo())
  const { stream, id } = await ask('/count 5')
  await frames(stream)
  const closings = await repeat(50, () => outcome(id))
  expect(new Set([...closings, await outcome(id)].map((each) => JSON.stringify(each))).size).toBe(1)
})

test('a signed answer has the hash of the whole stream, whoever leaves while it is made', async () => {
  const { ask, outcome, url } = await world(demo())
  const { stream, id } = await ask('/count 3000', { delta_window: 1024 })
  const raw: string[] = []
  for (let last = -1; !raw.at(-1)?.endsWith('"type":"done"}'); last = raw.length - 1) {
    await frames(stream, { raw, headers: { 'last-event-id': String(Math.max(last, -1)).replace('-1', '') }, most: 1024 }).catch(() => [])
  }
  for (let wait = 0; wait < 20; wait++) {
    const leave = new AbortController()
    const asked = fetch(`${url}/v1/messages/${id}`, { signal: leave.signal }).catch(() => undefined)
    for (let turn = 0; turn < wait; turn++) await new Promise((resolve) => setImmediate(resolve))
    leave.abort()
    await asked
  }
  expect(await outcome(id)).toMatchObject({ ext: { uamp: { stream_sha256: chainOf(raw.slice(0, -1)) } } })
})

test('a conversation that is removed while its answer is signed leaves no message behind', async () => {
  const { ask, outcome, host } = await world(demo())
  const { stream, id } = await ask('/count 200', { delta_window: 1024 })
  await frames(stream)
  const { session = '' } = (await host.gateway.response(alias(stream), ANYBODY)) ?? {}
  const asked = outcome(id)
  expect(await host.gateway.remove(session, ANYBODY)).toBe(true)
  await asked
  const kept: string[] = []
  for await (const { key } of host.store.scan()) if (key.includes('/envelope/')) kept.push(key)
  expect(kept).toEqual([])
  expect(await outcome(id)).toMatchObject({ code: '4.04' })
})

test('a message whose conversation was removed is not run again', async () => {
  let runs = 0
  const counter = defineAgent('counter', async function* () {
    runs++
    yield 'once'
  })
  const { client, did, url, host } = await world(counter)
  const asked = await signed(client, message(client, did, { stream_id: 's' }))
  await frames(new URL((await post(url, asked)).headers.get('location') ?? '', url).href)
  const { session = '' } = (await host.gateway.response({ protocol: 'envelope', id: 's' }, ANYBODY)) ?? {}
  expect(await host.gateway.remove(session, ANYBODY)).toBe(true)
  const again = await post(url, asked)
  expect([again.status, await again.json(), runs]).toMatchObject([410, { code: '4.10', reason: 'removed' }, 1])
  const other = await post(url, await signed(client, { ...message(client, did), id: asked['id'] }))
  expect([other.status, runs]).toEqual([422, 1])
})

test('an answer larger than a body may be is signed by its hash alone', async () => {
  const large = defineAgent('large', async function* (turn) {
    yield text('x'.repeat(JSON.stringify(turn.messages).includes('more') ? 1024 * 1024 + 1 : 1024 * 1024))
  })
  const { ask, outcome, url } = await world(large)
  for (const [content, length, where] of [
    ['as much', 1024 * 1024, undefined],
    ['more', 0, 'stream'],
  ] as const) {
    const { stream, id } = await ask(content)
    const raw: string[] = []
    await frames(stream, { raw })
    const closing = await outcome(id)
    expect((closing['body'] as Members)['content']).toHaveLength(length)
    expect(closing['ext']).toMatchObject({ uamp: { stream_sha256: chainOf(raw.slice(0, -1)) } })
    expect(((closing['ext'] as Members)['uamp'] as Members)['body']).toBe(where)
  }
  await expect.poll(() => heldBytes(url)).toBeLessThan(16 * 1024 * 1024)
})

test('a removed conversation ends the streams of those who read it', async () => {
  const { pass, waiting } = gate()
  const slow = defineAgent('slow', async function* () {
    yield 'begun'
    await pass()
  })
  const { ask, host, url, tell } = await world(slow)
  const { stream, id } = await ask('hello')
  const heard: string[] = []
  const reading = frames(stream, { raw: heard })
  await expect.poll(() => heard.length + waiting()).toBe(2)
  const { session = '' } = (await host.gateway.response(alias(stream), ANYBODY)) ?? {}
  expect(await host.gateway.remove(session, ANYBODY)).toBe(true)
  await reading
  expect((await fetch(stream)).status).toBe(404)
  expect((await fetch(`${stream}/ack`, { method: 'POST', body: '{"ack":0}' })).status).toBe(404)
  expect((await tell({ intent: 'cancel', reply_to: id })).status).toBe(404)
  await expect.poll(() => heldBytes(url)).toBe(0)
})

test('a signed answer shows what was asked, also when it is asked for below the path of another agent', async () => {
  const other = defineAgent('other', async function* () {
    yield 'other'
  })
  const { client, did, url, ask } = await world([demo(), other], { defaultAgent: 'demo' })
  const { stream, id } = await ask('/count 2')
  expect(textIn(await frames(stream))).toBe('1 2')
  expect((await fetch(`${url}/agents/other/v1/messages/${id}`)).status).toBe(404)
  // A message for one agent is not taken below the path of another, where its stream would not be found.
  const asked = await signed(client, message(client, did, { to: [`${did}:agents:demo`] }))
  const send = async (path: string): Promise<Response> =>
    fetch(`${url}${path}/v1/messages`, {
      method: 'POST',
      body: JSON.stringify(asked),
      headers: { 'content-type': 'application/uamp+json' },
    })
  const refused = await send('/agents/other')
  expect([refused.status, await refused.json()]).toMatchObject([403, { code: '4.03', reason: 'recipient' }])
  const accepted = await send('/agents/demo')
  const all = await frames(new URL(accepted.headers.get('location') ?? '', url).href)
  expect(all.at(-1)?.type).toBe('done')
  const closing = (await (await fetch(`${url}/agents/demo/v1/messages/${String(asked['id'])}`)).json()) as Members
  expect(closing['context']).toEqual([{ id: asked['id'], hash: `sha256:${hashOf(asked)}` }])
})
