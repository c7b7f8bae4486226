/** Those who read a stream: what they may claim, what they cost, and what is left when they are gone. */
import { expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { defineAgent } from '../../src/core/agent-kit/define-agent.ts'
import { text } from '../../src/core/agent-kit/drafts.ts'
import { heldBytes } from '../support/server.ts'
import { frames, textIn, type Frame } from './company.ts'
import { gate, world } from './world.ts'

const from = (known: number | string) => ({ 'last-event-id': String(known) })

test('who comes back with a frame that was never sent opens the window for nobody', async () => {
  const { pass, open } = gate()
  const counter = defineAgent('counter', async function* () {
    for (let number = 0; number < 40; number++) yield `${number} `
    await pass()
    yield 'end'
  })
  const { ask } = await world(counter)
  const { stream } = await ask('hello', { delta_window: 8 })
  const [all, liar]: [Frame[], Frame[]] = [[], []]
  const lying = frames(stream, { headers: from(999_999), onFrame: (frame) => liar.push(frame) }).catch((error: unknown) => error)
  const reading = frames(stream, { onFrame: (frame) => void all.push(frame), most: 8 })
  await reading
  const again = frames(stream, { onFrame: (frame) => void all.push(frame), most: 9 })
  await expect.poll(() => all.length).toBe(16)
  expect((await fetch(`${stream}/ack`, { method: 'POST', body: '{"ack":8}' })).status).toBe(409)
  expect((await fetch(`${stream}/ack`, { method: 'POST', body: '{"ack":0}' })).status).toBe(204)
  await again
  open()
  await lying
  expect(liar).toMatchObject([{ code: '4.09', reason: 'gap' }])
})

test.each(['', 'x', '-1', '1.5', '9999999999999999', ' 1', '1e3'])('a Last-Event-ID of %o is a number, or is refused', async (id) => {
  const { ask } = await world(demo())
  const { stream } = await ask('/count 3')
  const response = await fetch(stream, { headers: from(id) })
  if (id.trim() === '' || id === ' 1') expect(response.status).toBe(200)
  else expect([response.status, await response.json()]).toMatchObject([400, { code: '4.00', reason: 'after' }])
})

test('readers that leave at every moment leave nothing behind', async () => {
  const { ask, url } = await world(demo(), { limits: { sweepMs: 100 } })
  const { stream } = await ask('/count 500', { delta_window: 1024 })
  for (let moment = 0; moment < 60; moment++) {
    const leave = new AbortController()
    const reading = fetch(stream, { signal: leave.signal, method: moment % 10 === 0 ? 'HEAD' : 'GET' })
      .then((response) => response.body?.getReader().read())
      .catch(() => undefined)
    for (let turn = 0; turn < moment; turn++) await new Promise((resolve) => setImmediate(resolve))
    leave.abort()
    await reading
  }
  await expect.poll(() => heldBytes(url)).toBe(0)
})

test('many slow readers of a large answer hold no more than one caller may', async () => {
  const large = defineAgent('large', async function* () {
    yield text('x'.repeat(8 * 1024 * 1024))
  })
  const { ask, url } = await world(large, { limits: { heldBytesPerPrincipal: 40 * 1024 * 1024 } })
  const { stream } = await ask('hello', { delta_window: 1 })
  await expect.poll(async () => (await fetch(`${stream}?after=900`)).text()).toContain('4.09')
  const leave = new AbortController()
  const first = async (): Promise<string> => {
    const response = await fetch(stream, { signal: leave.signal })
    const reader = response.body?.getReader()
    let said = ''
    while (reader && !said.includes('data:')) said += new TextDecoder().decode((await reader.read()).value)
    return said.includes('event: problem') ? 'refused' : 'read'
  }
  const found = await Promise.all(Array.from({ length: 12 }, first))
  expect(new Set(found)).toEqual(new Set(['read', 'refused']))
  expect(await heldBytes(url)).toBeLessThan(41 * 1024 * 1024)
  leave.abort()
  await expect.poll(() => heldBytes(url)).toBeLessThan(1024 * 1024)
})

test('a text with emoji is whole in every frame, wherever it is divided', async () => {
  const said = `x${'😀'.repeat(200_000)}`
  const happy = defineAgent('happy', async function* () {
    yield text(said)
  })
  const { ask } = await world(happy)
  const all = await frames((await ask('hello')).stream)
  expect(all.length).toBeGreaterThan(6)
  for (const { payload } of all) expect(String(payload['text'] ?? '').isWellFormed()).toBe(true)
  expect(textIn(all)).toBe(said)
})

test('a cancel ends a stream whose readers all wait with their windows full', async () => {
  const { pass } = gate()
  const endless = defineAgent('endless', async function* ({ signal }) {
    for (let number = 0; number < 100; number++) yield `${number} `
    await Promise.race([pass(), new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))])
  })
  const { ask, tell, url } = await world(endless, { limits: { sweepMs: 100 } })
  const { stream, id } = await ask('hello', { delta_window: 4 })
  const heard: Frame[][] = [[], [], []]
  const reading = heard.map(async (all) => frames(stream, { onFrame: (frame) => void all.push(frame) }))
  await expect.poll(() => heard.map((all) => all.length)).toEqual([4, 4, 4])
  const cancels = await Promise.all(Array.from({ length: 10 }, () => tell({ intent: 'cancel', reply_to: id })))
  expect(new Set(cancels.map(({ status }) => status))).toEqual(new Set([202]))
  while (heard[0]?.at(-1)?.type !== 'cancel') {
    const last = heard[0]?.at(-1)?.delta_seq ?? 0
    expect((await fetch(`${stream}/ack`, { method: 'POST', body: JSON.stringify({ ack: last }) })).status).toBe(204)
    await expect.poll(() => heard[0]?.at(-1)?.delta_seq ?? 0).toBeGreaterThan(last)
  }
  expect(await Promise.all(reading)).toEqual([heard[0], heard[0], heard[0]])
  await expect.poll(() => heldBytes(url)).toBe(0)
})
