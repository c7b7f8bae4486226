import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { demo } from '../../../src/agents/demo/index.ts'
import { serve, type RunningServer } from '../../../src/serve/index.ts'
import { TRUSTING } from '../../support/money.ts'
import { clerk, seller } from './agents.ts'
import { artifactText, collect, firstTask, say, statesOf, taskOf, textOf, type Update } from './client.ts'
import { generations } from './generations.ts'

let server: RunningServer
beforeAll(
  async () => void (server = await serve([demo(), clerk, seller], { port: 0, data: 'memory', log: () => undefined, payments: TRUSTING })),
)
afterAll(() => server.close({ graceMs: 0 }))

describe.each(generations)('@a2a-js/sdk $name', ({ connect }) => {
  const at = (agent: string) => connect(`${server.url}/agents/${agent}`)

  test('is asked for more, and goes on with the same task', async () => {
    const client = await at('clerk')
    const asked = taskOf(await client.send(say('A flight')))
    expect(asked).toMatchObject({ state: 'input-required', says: { role: 'agent', parts: [{ text: 'Where to?' }] } })
    const booked = taskOf(await client.send({ ...say('Oslo'), task: asked.id, context: asked.context }))
    expect(booked).toMatchObject({ id: asked.id, context: asked.context, state: 'completed' })
    expect(textOf(booked.artifacts.at(-1)?.parts ?? [])).toBe('Booked: A flight, Oslo')
    const said = booked.history.filter(({ role }) => role === 'user').map(({ parts }) => textOf(parts))
    expect(said).toEqual(['A flight', 'Oslo'])
  })

  test('streams up to the question, and from the answer on', async () => {
    const client = await at('clerk')
    const before = await collect(client.stream(say('A flight')))
    expect(before.at(-1)).toMatchObject({ status: { state: 'input-required', says: { parts: [{ text: 'Where to?' }] } } })
    const { id } = firstTask(before)
    const after = await collect(client.stream({ ...say('Oslo'), task: id }))
    expect(after[0]).toMatchObject({ task: { id } })
    expect(statesOf(after).at(-1)).toBe('completed')
  })

  test('cancels a task that asks', async () => {
    const client = await at('clerk')
    const { id } = taskOf(await client.send(say('A flight')))
    expect(await client.cancel(id)).toMatchObject({ id, state: 'canceled' })
  })

  test('is turned down, or told to log in', async () => {
    const client = await at('clerk')
    expect(taskOf(await client.send(say('refuse')))).toMatchObject({ state: 'rejected', says: { parts: [{ text: 'Not here.' }] } })
    expect(taskOf(await client.send(say('log in')))).toMatchObject({ state: 'auth-required', says: { parts: [{ text: 'Who are you?' }] } })
  })

  test.each([
    ['yes', 'Approved: Delete it?'],
    ['no', 'Denied: Delete it?'],
  ])('approves in words: %s', async (word, outcome) => {
    const client = await at('demo')
    const asked = taskOf(await client.send(say('/approve Delete it?')))
    expect(asked.state).toBe('input-required')
    expect(textOf(asked.says?.parts ?? [])).toContain('Delete it?')
    const done = taskOf(await client.send({ ...say(word), task: asked.id }))
    expect(done).toMatchObject({ id: asked.id, state: 'completed' })
    expect(artifactText(done)).toContain(outcome)
  })

  test('approves by data', async () => {
    const client = await at('demo')
    const asked = taskOf(await client.send(say('/approve Delete it?')))
    const question = asked.says?.parts.flatMap((part) => ('data' in part ? [part.data] : []))[0]
    expect(question).toMatchObject({ type: 'x.approval.request', approval_id: expect.any(String), message: 'Delete it?' })
    const { approval_id } = question as { approval_id: string }
    const answer = { data: { type: 'x.approval.response', approval_id, approved: true } }
    const done = taskOf(await client.send({ parts: [answer], task: asked.id }))
    expect(artifactText(done)).toContain('Approved: Delete it?')
  })

  test('pays, as a2a-x402 has it', async () => {
    const client = await at('seller')
    const asked = taskOf(await client.send(say('An apple')))
    expect(asked).toMatchObject({ state: 'input-required', says: { metadata: { 'x402.payment.status': 'payment-required' } } })
    expect(asked.says?.metadata?.['x402.payment.required']).toMatchObject({ accepts: [{ scheme: 'exact', network: 'base' }] })
    const payload = { x402Version: 1, scheme: 'exact', network: 'base', payload: { signature: '0x1' } }
    const metadata = { 'x402.payment.status': 'payment-submitted', 'x402.payment.payload': payload }
    const sold = taskOf(await client.send({ ...say('Here'), task: asked.id, metadata }))
    expect(sold).toMatchObject({ id: asked.id, state: 'completed' })
    expect(artifactText(sold)).toContain('Sold for exact')
  })
})

describe.each(generations.filter(({ version }) => version === '1.0'))('@a2a-js/sdk $name', ({ connect }) => {
  test('a subscription stays while the task waits, until it is over', async () => {
    const client = await connect(`${server.url}/agents/clerk`)
    const { id } = taskOf(await client.send(say('A flight')))
    const updates: Update[] = []
    for await (const update of client.subscribe(id)) {
      updates.push(update)
      if (updates.length === 1) await client.send({ ...say('Oslo'), task: id })
    }
    expect(statesOf(updates)).toEqual(['input-required', 'working', 'completed'])
  })
})
