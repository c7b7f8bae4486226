import { expect, onTestFinished, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { coin } from '../support/money.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { company, frames, message, pinned, post, signed, streamOf, textIn, type Frame, type Members } from './company.ts'

const holds: (() => void)[] = []
const slow = defineAgent('slow', async function* () {
  yield 'begun '
  await new Promise<void>((resolve) => holds.push(resolve))
  yield 'and ended'
})

async function world() {
  const client = await company()
  const server = await startServer([demo(), slow], { defaultAgent: 'demo', insecureDev: true, envelope: { keys: pinned(client) } })
  onTestFinished(() => holds.splice(0).forEach((go) => go()))
  const { id: did } = (await (await fetch(`${server.url}/.well-known/did.json`)).json()) as { id: string }
  const ask = async (content: string, more: Members = {}): Promise<{ stream: string; id: string }> => {
    const asked = message(client, did, { body: { type: 'text/plain', content }, ...more })
    const accepted = await post(server.url, await signed(client, asked))
    if (accepted.status !== 202) throw new Error(`${accepted.status} ${await accepted.text()}`)
    return { stream: streamOf(accepted), id: String(asked['id']) }
  }
  const tell = async (members: Members): Promise<Response> => post(server.url, await signed(client, message(client, did, members)))
  return { ...server, client, did, ask, tell }
}

const acknowledge = (stream: string, ack: unknown): Promise<Response> =>
  fetch(`${stream}/ack`, { method: 'POST', body: JSON.stringify({ ack }) })

/** Reads from a stream, and tells frame by frame what came. */
function follow(stream: string, headers: Record<string, string> = {}) {
  const all: Frame[] = []
  const reading = frames(stream, { headers, onFrame: (frame) => void all.push(frame) })
  return { all, reading }
}

verifies('envelope:window', 'no more frames are sent than the window has, until they are acknowledged', async () => {
  const { ask } = await world()
  const { stream } = await ask('/count 40', { delta_window: 8 })
  const { all, reading } = follow(stream)
  await expect.poll(() => all.length).toBe(8)
  expect((await acknowledge(stream, 3)).status).toBe(204)
  await expect.poll(() => all.length).toBe(12)
  const future = await acknowledge(stream, 12)
  expect([future.status, await future.json()]).toMatchObject([409, { code: '4.09', retry: true, reason: 'ack' }])
  expect(all).toHaveLength(12)
  // One that is behind another changes nothing.
  expect((await acknowledge(stream, 1)).status).toBe(204)
  while (all.at(-1)?.type !== 'done') {
    const before = all.length
    await acknowledge(stream, before - 1)
    await expect.poll(() => all.length).toBeGreaterThan(before)
  }
  expect(textIn(await reading)).toBe(Array.from({ length: 40 }, (_, number) => number + 1).join(' '))
})

test.each([{ ack: -1 }, { ack: 1.5 }, { ack: '1' }, {}, { ack: 2 ** 60 }])('an acknowledgement of %o is refused', async (body) => {
  const { ask } = await world()
  const { stream } = await ask('hello')
  await frames(stream)
  const response = await fetch(`${stream}/ack`, { method: 'POST', body: JSON.stringify(body) })
  expect([400, 409]).toContain(response.status)
})

verifies(['envelope:acknowledge', 'envelope:stream-id'], 'a signed progress acknowledges as well', async () => {
  const { ask, tell } = await world()
  const { stream } = await ask('/count 20', { delta_window: 4, stream_id: 'str-42' })
  expect(stream).toMatch(/\/v1\/stream\/str-42$/)
  const { all } = follow(stream)
  await expect.poll(() => all.length).toBe(4)
  expect((await tell({ intent: 'progress', stream_id: 'str-42', body: { type: 'application/json', content: '{"ack":3}' } })).status).toBe(
    202,
  )
  await expect.poll(() => all.length).toBe(8)
})

verifies(['envelope:resume', 'envelope:sse'], 'who comes back at any frame gets the rest, byte for byte', async () => {
  const { ask } = await world()
  const { stream } = await ask('/count 200', { delta_window: 1024 })
  const raw: string[] = []
  await frames(stream, { raw })
  for (let known = 0; known < raw.length - 1; known += 7) {
    const rest: string[] = []
    await frames(stream, { raw: rest, headers: { 'last-event-id': String(known) } })
    expect(rest).toEqual(raw.slice(known + 1))
  }
  const again: string[] = []
  await frames(`${stream}?after=9`, { raw: again })
  expect(again).toEqual(raw.slice(10))
})

test('what a reader has that comes back counts as acknowledged', async () => {
  const { ask } = await world()
  const { stream } = await ask('/count 40', { delta_window: 8 })
  const found: Frame[] = []
  while (found.at(-1)?.type !== 'done') {
    const last = found.at(-1)?.delta_seq
    const headers = last === undefined ? {} : { 'last-event-id': String(last) }
    found.push(...(await frames(stream, { headers, most: Math.min(8, 45 - found.length) })))
  }
  expect(found.map(({ delta_seq }) => delta_seq)).toEqual(found.map((_, index) => index))
})

test('a stream that is there already is not opened again', async () => {
  const { ask } = await world()
  await ask('hello', { stream_id: 'mine' })
  await expect(ask('hello', { stream_id: 'mine' })).rejects.toThrow('4.22')
})

verifies('envelope:cancel', 'a cancel stops what it names, and later ones have no effect', async () => {
  const { ask, tell, did } = await world()
  const { stream, id } = await ask('hello', { to: [`${did}:agents:slow`] })
  const { all, reading } = follow(stream)
  await expect.poll(() => all.length).toBe(1)
  expect((await tell({ intent: 'cancel', reply_to: id })).status).toBe(202)
  await reading
  expect(all.map(({ type }) => type)).toEqual(['chunk', 'cancel'])
  expect((await tell({ intent: 'cancel', reply_to: id })).status).toBe(202)
  expect((await frames(stream)).map(({ type }) => type)).toEqual(['chunk', 'cancel'])
})

verifies(['envelope:inform', 'envelope:context'], 'what is informed of is known to who asks with it as context', async () => {
  const { ask, tell, client, did, url } = await world()
  const fact = await signed(client, message(client, did, { intent: 'inform', body: { type: 'text/plain', content: 'The sky is green' } }))
  const informed = await post(url, fact)
  expect([informed.status, informed.headers.get('location')]).toEqual([202, null])
  const { hashOf } = await import('./company.ts')
  const context = [{ id: fact['id'], hash: `sha256:${hashOf(fact)}` }]
  const { stream, id } = await ask('/history', { context })
  expect(textIn(await frames(stream))).toContain('The sky is green')
  const { stream: second } = await ask('/history', { reply_to: id })
  expect(textIn(await frames(second))).toContain('The sky is green')
  const forged = await tell({ context: [{ id: fact['id'], hash: `sha256:${'0'.repeat(64)}` }] })
  expect([forged.status, await forged.json()]).toMatchObject([422, { code: '4.22', reason: 'context' }])
})

const proposalIn = (all: readonly Frame[]): Members | undefined =>
  all.map(({ payload }) => payload['proposal'] as Members | undefined).find((proposal) => proposal !== undefined)

test.each([
  ['confirm', 'yes', /approved/i],
  ['deny', 'not today', /denied|not approved|declined|not today/i],
])('an approval is asked as a proposal, and %s answers it', async (intent, content, told) => {
  const { ask, tell } = await world()
  const { stream } = await ask('/approve the plan')
  const { all, reading } = follow(stream)
  await expect.poll(() => proposalIn(all)).toMatchObject({ kind: 'approval', message: expect.stringContaining('the plan') })
  const answer = await tell({ intent, reply_to: proposalIn(all)?.['id'], body: { type: 'text/plain', content } })
  expect(answer.status).toBe(202)
  expect(textIn(await reading)).toMatch(told)
})

test('a payment is asked as a proposal with 4.02, and a confirm pays', async () => {
  const server = await world()
  const { stream } = await server.ask('/pay 0.05')
  const { all, reading } = follow(stream)
  await expect.poll(() => proposalIn(all)).toMatchObject({ kind: 'payment', code: '4.02', accepts: [{ scheme: 'token', amount: '0.05' }] })
  const token = await coin(server, '1')
  const body = { type: 'application/json', content: JSON.stringify({ scheme: 'token', token }) }
  expect((await server.tell({ intent: 'confirm', reply_to: proposalIn(all)?.['id'], body })).status).toBe(202)
  expect(textIn(await reading)).toBe('Paid 0.05 USD. Thank you.')
})

verifies('envelope:stream-owner', 'the stream of another caller is not there', async () => {
  const [client, other] = [await company(), await company('did:web:other.example')]
  const senders = { [client.did]: 'client', [other.did]: 'other' }
  const tokens = { client: 'secret-of-the-client', other: 'secret-of-the-other' }
  const { url } = await startServer(demo(), { tokens, insecureDev: true, envelope: { keys: pinned(client, other), senders } })
  const { id: did } = (await (await fetch(`${url}/.well-known/did.json`)).json()) as { id: string }
  const as = (who: string) => ({ authorization: `Bearer secret-of-the-${who}` })
  const ask = message(client, did, { stream_id: 'mine' })
  expect((await post(url, await signed(client, ask), as('client'))).status).toBe(202)
  const open = async (who: string) => (await fetch(`${url}/v1/stream/mine`, { headers: as(who) })).status
  expect([await open('other'), await open('client')]).toEqual([404, 200])
  const outcome = async (who: string) => (await fetch(`${url}/v1/messages/${String(ask['id'])}`, { headers: as(who) })).status
  expect([await outcome('other'), await outcome('client')]).toEqual([404, 200])
  // The same name is free for others.
  expect((await post(url, await signed(other, message(other, did, { stream_id: 'mine' })), as('other'))).status).toBe(202)
})
